"""What Markov chains say about themselves: how long they remember, and whether they agree."""

import numpy as np
from jaxtyping import Float


def autocorrelation_time(series: Float[np.ndarray, "T N *c"]) -> Float[np.ndarray, "*c"]:
    """τ = 1 + 2 Σ ρ(t) of each component, averaged over chains and cut where t ≥ 5 τ(t)."""
    centred = series - series.mean(axis=(0, 1))
    power = np.mean(centred**2, axis=(0, 1))
    total, going = np.ones_like(power), power > 0
    for t in range(1, len(series)):
        if not np.any(going):
            break
        rho = np.mean(centred[t:] * centred[:-t], axis=(0, 1)) / np.where(power > 0, power, 1.0)
        total = np.where(going, total + 2 * rho, total)
        going = going & (t < 5 * total)
    return np.asarray(np.maximum(total, 1.0))


def rhat(series: Float[np.ndarray, "T N"]) -> float:
    """Gelman and Rubin's ratio on split chains: √(pooled variance / variance within); infinite for chains that stand
    still apart."""
    half = series.shape[0] // 2
    chains = np.concatenate([series[:half], series[half : 2 * half]], axis=1)
    within = np.mean(np.var(chains, axis=0, ddof=1))
    between = np.var(chains.mean(axis=0), ddof=1)
    if within > 0:
        return float(np.sqrt((within * (half - 1) / half + between) / within))
    return float("inf") if between > 0 else 1.0
