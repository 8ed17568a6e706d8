"""One page about one or several runs: it works from a file, without a network, in light and in dark."""

import base64
import csv
import io
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape

from angd.recipes.experiments import EXPERIMENTS
from angd.train.config import Config
from angd.train.files import write_atomically
from angd.train.folder import RunFolder, find_runs
from angd.view import curves as figures
from angd.view.fields import draw_solution
from angd.view.table import short, table
from angd.view.theme import DARK, LIGHT

FIELDS = "Errors are relative L² errors against the exact solution, the largest over the fields."
ENERGIES = "Errors are Hartree above the reference: in the table on fresh walkers, in the figure those of training."
AGAINST = ("step", "cpu_seconds")
NUMBERS = ("step", "seconds", "cpu_seconds", "loss", "test_loss", "damping", "norm", "accepted")


@dataclass(frozen=True)
class Chapter:
    """All runs of one experiment."""

    name: str
    about: str
    error: str
    rows: list[dict[str, Any]]
    light: str
    dark: str
    csv: str
    drawn: str
    found: "Found | None"


@dataclass(frozen=True)
class Found:
    """The solution of the best run, as pictures for a page."""

    name: str
    light: str
    dark: str


def write_report(paths: Sequence[Path], out: Path) -> Path:
    """`report.html` with figures (PNG, PDF) and metrics (CSV) beside it; returns the page."""
    runs = [folder for folder in find_runs(list(paths)) if folder.rows()]
    if not runs:
        raise ValueError("None of these runs has got as far as its first look; there is nothing to report.")
    groups: dict[str, list[RunFolder]] = {}
    for folder in runs:
        groups.setdefault(folder.config().experiment, []).append(folder)
    chapters = [_chapter(name, folders, out) for name, folders in groups.items()]
    pages = Environment(loader=PackageLoader("angd.view"), autoescape=select_autoescape(["j2"]))
    text = pages.get_template("report.html.j2").render(
        chapters=chapters,
        runs=[_run(folder) for folder in runs],
        date=datetime.now(UTC).date().isoformat(),
        version=version("angd"),
        short=short,
    )
    write_atomically(out / "report.html", lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return out / "report.html"


def _chapter(name: str, folders: list[RunFolder], out: Path) -> Chapter:
    curves = figures.curves(folders)
    drawn = figures.quantities(name)
    light, dark = (figures.draw(curves, drawn, AGAINST, theme) for theme in (LIGHT, DARK))
    for ending in (".png", ".pdf"):
        figures.save(light, out / f"{name}{ending}")
    text = as_csv(folders)
    write_atomically(out / f"{name}.csv", lambda temporary: temporary.write_text(text, encoding="utf-8"))
    rows = sorted(table(folders), key=lambda row: row["error"])
    link = "data:text/csv;base64," + base64.b64encode(text.encode()).decode()
    entry = EXPERIMENTS[name]
    error = ENERGIES if entry.molecule else FIELDS
    pictures = figures.as_svg(light), figures.as_svg(dark)
    shown = ", ".join(figures.TITLES[quantity] for quantity in drawn)
    return Chapter(name, entry.about, error, rows, *pictures, link, shown, _best_solution(folders))


def _best_solution(folders: Sequence[RunFolder]) -> Found | None:
    """Of the run with the smallest error, where runs keep their solutions."""
    kept = [folder for folder in folders if (folder.path / "solution.npz").exists()]
    if not kept:
        return None
    best = min(kept, key=lambda folder: folder.rows()[-1].error)
    solution, config = best.read_arrays("solution.npz"), best.config()
    light, dark = (figures.as_png(draw_solution(solution, theme)) for theme in (LIGHT, DARK))
    return Found(f"{config.optimizer}, seed {config.seed}", light, dark)


def as_csv(folders: Sequence[RunFolder]) -> str:
    """All looks of all runs."""
    text = io.StringIO()
    writer = csv.writer(text)
    looks = [(folder.config(), row) for folder in folders for row in folder.rows()]
    errors = sorted({name for _, row in looks for name in row.errors})
    chains = sorted({name for _, row in looks for name in row.chain})
    writer.writerow(["experiment", "optimizer", "seed", *NUMBERS, *(f"error {name}" for name in errors), *chains])
    for config, row in looks:
        numbers = [getattr(row, name) for name in NUMBERS]
        numbers += [row.errors.get(name) for name in errors] + [row.chain.get(name) for name in chains]
        writer.writerow([config.experiment, config.optimizer, config.seed, *numbers])
    return text.getvalue()


def _run(folder: RunFolder) -> dict[str, Any]:
    config = folder.config()
    summary = folder.read("summary.json") or {}
    return {
        "name": f"{config.experiment} · {config.optimizer} · seed {config.seed}",
        "result": summary.get("result", "still running, or killed"),
        "config": json.dumps(config.to_dict(), indent=1, ensure_ascii=False),
        "environment": json.dumps(folder.read("environment.json"), indent=1, ensure_ascii=False),
        "command": command(config),
    }


def command(config: Config) -> str:
    """What to type to run it again."""
    parts = ["angd", "run", config.experiment, "--optimizer", config.optimizer]
    changed = config.changes()
    parts += ["--set", *(f"{k}={v}" for k, v in changed.items())] if changed else []
    for name, usual in (("network", "small"), ("seed", 0), ("precision", "f64"), ("max_refusals", 50)):
        if getattr(config, name) != usual:
            parts += [f"--{name.replace('_', '-')}", str(getattr(config, name))]
    for name in ("max_steps", "max_seconds", "max_cpu_seconds"):
        if getattr(config, name) is not None:
            parts += [f"--{name.replace('_', '-')}", f"{getattr(config, name):g}"]
    return shlex.join(parts)
