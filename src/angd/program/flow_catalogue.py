"""The flows that can be run by name: manifold → functional → one line about it. Imports nothing heavy."""

from angd.recipes.base import unknown

FLOWS: dict[str, dict[str, str]] = {
    "sobolev": {
        "quartic": "H^s on the circle: mean of 0.025 u_x² + u⁴/4 − F u, convex, with F = cos x + ½ sin 2x",
        "power": "|mean of u|^1.2: with alpha = 2/t it decays more slowly than 1/t²",
    },
    "interval": {"quartic": "H^s on [0, π], natural boundary: mean of u⁴/4 + u²/2 − F u, with F = cos x + ½ cos 2x"},
    "wasserstein": {
        "relative-entropy": "Wasserstein-2, densities on the circle: KL to exp(½ cos x)",
        "torus": "the same on the torus: KL to exp(0.3 cos x + 0.2 sin(x + y))",
    },
    "fisher-rao": {
        "relative-entropy": "densities on [−3, 3]: KL from N(½, 0.9²) to N(0, 1)",
        "linear-energy": "densities on [−3, 3]: E x²/2; accelerated flows leave the positive densities",
    },
    "simplex": {
        "square-distance": "probability vectors: weighted squared distances to three points, geodesically convex",
        "relative-entropy": "probability vectors: KL to a given one",
    },
    "gaussian": {"relative-entropy": "Wasserstein-2 on Gaussians in the plane: KL to a correlated one"},
    "quantiles": {
        "free-energy": "Wasserstein-2 on the line: potential x²/2 minus entropy, 40 quantiles",
        "power": "|mean|^1.2: the flow only translates",
    },
    "particles": {"interaction": "Wasserstein-2, eight weighted particles in the plane that attract in a well"},
    "hessian": {"relative-entropy": "metric of the entropy Σ x log x on the orthant: generalised KL"},
    "matrix": {"half-plane": "hyperbolic half-plane as a metric given by a matrix: ½ dist² to the point (0, 1)"},
}
"""Every manifold with its functionals; the first one is taken when none is named."""


def pick(manifold: str, functional: str | None) -> str:
    """The functional to run; an unknown name is refused with the nearest known one."""
    if manifold not in FLOWS:
        raise ValueError(unknown("manifold", manifold, FLOWS))
    known = list(FLOWS[manifold])
    if functional is None:
        return known[0]
    if functional not in known:
        raise ValueError(unknown(f"functional on {manifold}", functional, known))
    return functional
