"""Runs beside each other: medians over seeds, and who is ahead. Imports nothing heavy."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from angd.train.folder import RunFolder


def table(folders: Sequence[RunFolder]) -> list[dict[str, Any]]:
    """One line for each optimiser: medians over its seeds."""
    runs: dict[str, list[tuple[dict[str, Any], float]]] = {}
    for folder in folders:
        summary, rows = folder.read("summary.json"), folder.rows()
        if summary and rows:
            error = summary["largest_error"]
            runs.setdefault(summary["optimizer"], []).append((summary, float("inf") if error is None else error))
    return [
        {
            "optimizer": name,
            "seeds": len(found),
            "steps": round(median(summary["steps"] for summary, _ in found)),
            "seconds": round(median(summary["seconds"] for summary, _ in found), 1),
            "cpu_seconds": round(median(summary["cpu_seconds"] for summary, _ in found), 1),
            "loss": middle([summary["loss"] for summary, _ in found]),
            "test_loss": middle([summary["test_loss"] for summary, _ in found]),
            "error": median(error for _, error in found),
            "standard_error": max((summary.get("standard_error") or 0.0 for summary, _ in found), default=0.0),
        }
        for name, found in runs.items()
    ]


def middle(values: Sequence[float | None]) -> float | None:
    """The median, where all values are numbers."""
    return None if None in values else median(value for value in values if value is not None)


def verdict(rows: list[dict[str, Any]]) -> str:
    """How far the best is ahead; with error bars, which may be as large as the errors, no ratios."""
    best, *others = sorted(rows, key=lambda row: row["error"])
    if any(row["standard_error"] for row in rows):
        shown = [f"{row['optimizer']} {row['error']:.1e} ± {row['standard_error']:.0e}" for row in (best, *others)]
        return "distance from the reference: " + ", ".join(shown) + "."
    behind = [f"{row['error'] / best['error']:.3g} × less than with {row['optimizer']}" for row in others]
    return ", ".join([f"{best['optimizer']}: error {best['error']:.2e}", *behind]) + "."


def short(value: float | None) -> str:
    """A number in a table: losses by their order, energies, which are negative, by their digits."""
    if value is None:
        return "–"
    return f"{value:.5f}" if value < 0 else f"{value:.2e}"
