"""What a run has reached, in words. Imports nothing heavy."""

from typing import Any

MIXED = 1.1  # R̂ of a chain that has settled


def number(value: float | None) -> str:
    """Three digits, or a dash."""
    return "–" if value is None else f"{value:.2e}"


def energy(error: float | None, bar: float | None, found: dict[str, Any]) -> str:
    """An energy with its error bar, and how far it can be trusted."""
    mean, rhat = found["energy"], found["rhat"]
    if mean is None or bar is None:
        return "no energy, because no local energy was finite,"
    above = "" if error is None else f" ({1e3 * error:.2f} mHa above the reference)"
    mixed = "" if rhat is not None and rhat < MIXED else f"; R̂ = {rhat}, so the chain had not settled: raise burn_in;"
    return f"energy {mean:.5f} ± {bar:.5f} Ha{above} on fresh walkers{mixed}"
