"""What a run has reached, in words. Imports nothing heavy."""

from typing import Any

MIXED = 1.1  # R̂ of a chain that has settled


def number(value: float | None) -> str:
    """Three digits, or a dash."""
    return "–" if value is None else f"{value:.2e}"


def energy(error: float | None, bar: float | None, found: dict[str, Any]) -> str:
    """An energy with its error bar, and how far it can be trusted."""
    mean, rhat = found["energy"], found.get("rhat")
    if mean is None or bar is None:
        return "no energy, because no local energy was finite,"
    if "states" in found:
        above = "" if error is None else f" ({error:.1e} above the reference)"
        return f"energy {mean:.7f}{above}, a sum over {found['states']:.0f} states,"
    above = "" if error is None else f" ({_short(error, found)} above the reference)"
    mixed = "" if rhat is not None and rhat < MIXED else f"; R̂ = {rhat}, so the chain had not settled: raise burn_in;"
    return f"energy {mean:.5f} ± {bar:.5f}{_unit(found)}{above} on fresh walkers{mixed}"


def _short(error: float, found: dict[str, Any]) -> str:
    return f"{1e3 * error:.2f} mHa" if _unit(found) else f"{error:.1e}"


def _unit(found: dict[str, Any]) -> str:
    """Hartree, but for lattices, whose Hamiltonians have units of their own."""
    return "" if "sites" in found else " Ha"
