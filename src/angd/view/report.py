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

from angd.train.config import BUDGETS, Config
from angd.train.files import write_atomically
from angd.train.folder import RunFolder, find_runs
from angd.view import curves as figures
from angd.view.fields import draw_solution
from angd.view.table import short, short_name, table
from angd.view.theme import DARK, LIGHT

ERRORS = {
    "fields": "Errors are relative L² errors against the exact solution, the largest over the fields.",
    "energy": "Errors are Hartree above the reference: in the table on fresh walkers, in the figure those of training.",
    None: "No solution is known: runs are ranked by their test loss. How far seeds are apart, as a relative L² "
    "distance from their mean, estimates the error if they do not err alike.",
}
UNEQUAL = "These runs had different budgets, so this table is no comparison."
AGAINST = ("step", "cpu_seconds")
COLUMNS = ("step", "seconds", "cpu_seconds", "test_loss", "accepted", "restarted")


@dataclass(frozen=True)
class Chapter:
    """All runs on one task."""

    name: str
    about: str
    error: str
    rows: list[dict[str, Any]]
    light: str
    dark: str
    csv: str
    drawn: str
    found: "Found | None"
    compared: bool


@dataclass(frozen=True)
class Found:
    """The solution of the best run, as pictures for a page."""

    name: str
    light: str
    dark: str


def write_report(paths: Sequence[Path], out: Path) -> Path:
    """One page about runs.

    **Arguments:** `paths`, folders of runs or folders that hold some; `out`, where to write.

    **Returns:** `report.html`, with figures (PNG, PDF) and metrics (CSV) beside it.
    """
    runs = [folder for folder in find_runs(list(paths)) if folder.records()]
    if not runs:
        raise ValueError("None of these runs has got as far as its first evaluation; there is nothing to report.")
    groups: dict[str, list[RunFolder]] = {}
    for folder in runs:
        groups.setdefault(_task_of(folder), []).append(folder)
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


def _task_of(folder: RunFolder) -> str:
    return folder.about().get("name") or folder.config().task


def _chapter(name: str, folders: list[RunFolder], out: Path) -> Chapter:
    curves, drawn, about = figures.curves(folders), figures.quantities(folders), folders[0].about()
    light, dark = (figures.draw(curves, drawn, AGAINST, theme) for theme in (LIGHT, DARK))
    for ending in (".png", ".pdf"):
        figures.save(light, out / f"{name}{ending}")
    text = as_csv(folders)
    write_atomically(out / f"{name}.csv", lambda temporary: temporary.write_text(text, encoding="utf-8"))
    rows = table(folders)
    notes = [ERRORS.get(about.get("errors"), ""), UNEQUAL if any(row["budget"] for row in rows) else ""]
    link = "data:text/csv;base64," + base64.b64encode(text.encode()).decode()
    pictures = figures.as_svg(light), figures.as_svg(dark)
    shown = ", ".join(figures.TITLES[quantity] for quantity in drawn)
    found = _best_solution(folders)
    said, compared = " ".join(filter(None, notes)), about.get("errors") == "fields"
    return Chapter(name, about.get("about", ""), said, rows, *pictures, link, shown, found, compared)


def _best_solution(folders: Sequence[RunFolder]) -> Found | None:
    """Of the run with the smallest error or test loss, where runs keep their solutions."""
    kept = [folder for folder in folders if (folder.path / "solution.npz").exists()]
    if not kept:
        return None
    best = min(kept, key=_merit)
    solution, config = best.read_arrays("solution.npz"), best.config()
    light, dark = (figures.as_png(draw_solution(solution, theme)) for theme in (LIGHT, DARK))
    return Found(f"{short_name(str(config.recipe))}, seed {config.seed}", light, dark)


def _merit(folder: RunFolder) -> tuple[float, float]:
    last = folder.records()[-1]
    return last.error, float("inf") if last.test_loss is None else last.test_loss


def as_csv(folders: Sequence[RunFolder]) -> str:
    """All records of all runs."""
    text = io.StringIO()
    writer = csv.writer(text)
    all_records = [(folder.config(), record) for folder in folders for record in folder.records()]
    infos = list(dict.fromkeys(name for _, record in all_records for name in record.info))
    errors = sorted({name for _, record in all_records for name in record.errors})
    others = sorted({name for _, record in all_records for name in record.observables})
    writer.writerow(["task", "recipe", "seed", *COLUMNS, *infos, *(f"error {name}" for name in errors), *others])
    for config, record in all_records:
        numbers = [getattr(record, name) for name in COLUMNS] + [record.info.get(name) for name in infos]
        numbers += [record.errors.get(name) for name in errors] + [record.observables.get(name) for name in others]
        writer.writerow([config.task, config.recipe, config.seed, *numbers])
    return text.getvalue()


def _run(folder: RunFolder) -> dict[str, Any]:
    config = folder.config()
    summary = folder.read("summary.json") or {}
    return {
        "name": f"{_task_of(folder)} · {short_name(str(config.recipe))} · seed {config.seed}",
        "result": summary.get("result", "still running, or killed"),
        "config": json.dumps(config.to_dict(), indent=1, ensure_ascii=False),
        "environment": json.dumps(folder.read("environment.json"), indent=1, ensure_ascii=False),
        "command": command(config),
    }


def command(config: Config) -> str:
    """What to type to run it again; what was begun in Python is called there."""
    if config.python:
        return "angd.fit(…) in Python"
    parts = ["angd", "run", config.task, str(config.recipe)]
    usual = Config("")
    given = config.changes() | dict(config.arguments)
    given |= {name: getattr(config, name) for name in ("seed", "precision", "max_rejections", "recover", *BUDGETS)}
    given |= {} if config.start is None else {"from": config.start["folder"], "from_step": config.start["step"]}
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            parts.append(option if value else option.replace("--", "--no-", 1))
        elif value is not None and value != getattr(usual, name, None):
            parts += [option, str(value)]
    return shlex.join(parts)
