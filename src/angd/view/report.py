"""One page about one or several runs: it works from a file, without a network, in light and in dark."""

import base64
import csv
import io
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
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
from angd.view.data import as_data, dashes
from angd.view.fields import draw_errors, draw_solution
from angd.view.observables import draw_observable, drawn
from angd.view.strip import Strip, strips, title
from angd.view.table import groups, short, short_name, table
from angd.view.theme import DARK, LIGHT, PAPER, SCREEN, Page, Style, styles
from angd.view.verdict import gains, judged, unknowns

ERRORS = {
    "fields": "Errors are relative L² errors against the exact solution, the largest over the fields.",
    "energy": "Errors are energies above the reference: in the table on fresh walkers, in the figure in training.",
    None: "No solution is known: runs are ranked by their test loss. How far seeds are apart, as a relative L² "
    "distance from their mean, estimates the error if they do not err alike.",
}
AGAINST = ("cpu_seconds", "step")
COLUMNS = ("step", "seconds", "cpu_seconds", "test_loss", "accepted", "restarted")
PHONE = Page(3.4, letters=8.0, columns=1)
MOST = 8  # methods whose fields are shown beside each other


@dataclass(frozen=True)
class Column:
    """One of the table's: its name in a row, its title, and how its numbers are written."""

    name: str
    title: str
    form: Callable[[Any], str]


@dataclass(frozen=True)
class Picture:
    """On light and on dark paper, as addresses that hold the picture itself."""

    name: str
    light: str
    dark: str
    narrow_light: str = ""
    narrow_dark: str = ""


@dataclass(frozen=True)
class Chapter:
    """All runs on one task."""

    name: str
    file: str
    about: str
    equation: str
    verdict: str
    gains: list[str]
    unknowns: list[str]
    error: str
    columns: list[Column]
    rows: list[dict[str, Any]]
    looks: Mapping[str, Mapping[str, str]]
    data: str
    picture: str
    drawn: str
    csv: str
    found: Picture | None
    multiples: list[Picture]
    measured: list[Picture]
    strips: list[Strip]
    phases: list[str]
    compared: bool


def write_report(paths: Sequence[Path], out: Path, paper: str | None = None) -> Path:
    """One page about runs.

    **Arguments:** `paths`, folders of runs or folders that hold some; `out`, where to write; `paper`, "narrow" (3.3 in)
    or "wide" (6.9 in), the size of the figures beside the page, None for screens.

    **Returns:** `report.html`, with figures (PNG, PDF, SVG) and metrics (CSV) beside it.
    """
    runs = [folder for folder in find_runs(list(paths)) if folder.records()]
    if not runs:
        raise ValueError("None of these runs has got as far as its first evaluation; there is nothing to report.")
    by_task: dict[str, list[RunFolder]] = {}
    for folder in runs:
        by_task.setdefault(_task_of(folder), []).append(folder)
    page = SCREEN if paper is None else PAPER[paper]
    chapters = [_chapter(name, folders, out, page) for name, folders in by_task.items()]
    pages = Environment(loader=PackageLoader("angd.view"), autoescape=select_autoescape(["j2"]))
    text = pages.get_template("report.html.j2").render(
        chapters=chapters,
        runs=[_run(folder) for folder in runs],
        date=datetime.now(UTC).date().isoformat(),
        version=version("angd"),
    )
    write_atomically(out / "report.html", lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return out / "report.html"


def _task_of(folder: RunFolder) -> str:
    return folder.about().get("name") or folder.config().task


def _chapter(name: str, folders: list[RunFolder], out: Path, page: Page) -> Chapter:
    drawn, about, measured = figures.quantities(folders), folders[0].about(), figures.bars(folders)
    file, rows, text = safe_name(name), table(folders), as_csv(folders)
    known = _ranked(figures.curves(folders), rows)
    looks = styles(known), styles(known, DARK)
    names = max((_phase_names(folder) for folder in folders), key=len)
    figures.save_all(
        lambda theme: figures.draw(known, drawn, AGAINST, theme, page, measured), out / file, page, dark=True
    )
    write_atomically(out / f"{file}.csv", lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return Chapter(
        name=name,
        file=file,
        about=about.get("about", ""),
        equation=about.get("equation", ""),
        verdict=judged(rows),
        gains=gains(rows, folders),
        unknowns=unknowns(rows, folders, about.get("errors")),
        error=ERRORS.get(about.get("errors"), ""),
        columns=columns(rows, about.get("errors")),
        rows=rows,
        looks={label: _look(looks[0][label], looks[1][label]) for label in known},
        data=as_data(known, drawn),
        picture=figures.address_of(out / f"{file}.png"),
        drawn=", ".join(figures.TITLES[quantity] for quantity in drawn),
        csv="data:text/csv;base64," + base64.b64encode(text.encode()).decode(),
        found=_best_solution(folders, out / f"{file}-solution", page),
        multiples=_multiples(folders),
        measured=_measured(folders),
        strips=strips([(_run_name(f), f.records(), _phase_names(f)) for f in sorted(folders, key=_merit)]),
        phases=[title(names, i) for i in range(_phases(folders))],
        compared=about.get("errors") == "fields",
    )


def _ranked(found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By method, the best first, and those that have not ended last."""
    order = [row["recipe"] for row in rows]
    return {label: found[label] for label in sorted(found, key=lambda x: order.index(x) if x in order else len(order))}


def safe_name(name: str) -> str:
    """A task's name as part of a file's."""
    return re.sub(r"[^\w.+-]+", "-", name).strip(".-") or "task"


def columns(rows: Sequence[Mapping[str, Any]], errors: str | None) -> list[Column]:
    """Errors first, then losses, then what it cost; columns in which nothing is known are left out."""
    whole = "{:.0f}".format
    energies = errors == "energy"
    shown = [
        Column("error", "error, mHa" if energies else "error", _milli if energies else short),
        Column("standard_error", "± mHa", _milli),
        Column("test_loss", "energy, Ha" if energies else "test loss", short),
        Column("loss", "training energy" if energies else "training loss", short),
        Column("cpu_seconds", "CPU s", whole),
        Column("seconds", "seconds", whole),
        Column("steps", "steps", str),
        Column("seeds", "seeds", str),
        Column("apart", "seeds apart", short),
    ]
    return [column for column in shown if any(row[column.name] not in (None, 0.0) for row in rows)]


def _milli(value: float | None) -> str:
    return "–" if value is None else f"{1e3 * value:.2f}"


def _run_name(folder: RunFolder) -> str:
    config = folder.config()
    return f"{short_name(str(config.recipe))}, seed {config.seed}"


def _look(light: Style, dark: Style) -> dict[str, str]:
    """Of a chip of colour, for a page."""
    return {"light": light.colour, "dark": dark.colour, "dash": dashes(light.dash)}


def _phase_names(folder: RunFolder) -> list[str]:
    return folder.about().get("phases") or []


def _phases(folders: Sequence[RunFolder]) -> int:
    return 1 + max((record.phase for folder in folders for record in folder.records()), default=0)


def _best_solution(folders: Sequence[RunFolder], place: Path, page: Page) -> Picture | None:
    """Of the run with the smallest error or test loss, where runs keep their solutions; also as files."""
    kept = [folder for folder in folders if (folder.path / "solution.npz").exists()]
    if not kept:
        return None
    best = min(kept, key=_merit)
    solution = best.read_arrays("solution.npz")
    figures.save_all(lambda theme: draw_solution(solution, theme, page), place, page, dark=True)
    light, dark = (figures.address_of(place.with_name(place.name + ending)) for ending in (".png", "-dark.png"))
    narrow = [figures.as_png(draw_solution(solution, theme, PHONE)) for theme in (LIGHT, DARK)]
    return Picture(_run_name(best), light, dark, *narrow)


def _multiples(folders: Sequence[RunFolder]) -> list[Picture]:
    """What the best run of each method found, or where it is wrong, on one scale."""
    kept: dict[str, RunFolder] = {}
    for group in groups(folders):
        with_fields = [folder for folder in group.folders if (folder.path / "solution.npz").exists()]
        if with_fields:
            kept[group.label] = min(with_fields, key=_merit)
    if len(kept) < 2:
        return []
    ranked = sorted(kept, key=lambda label: _merit(kept[label]))[:MOST]
    solutions = {label: kept[label].read_arrays("solution.npz") for label in ranked}
    light, dark = (draw_errors(solutions, theme) for theme in (LIGHT, DARK))
    return [Picture(label, figures.as_png(light[label]), figures.as_png(dark[label])) for label in light]


def _measured(folders: Sequence[RunFolder]) -> list[Picture]:
    """Densities and the like, of the runs on which `angd evaluate --observables` has measured them."""
    looks = [(_run_name(f), drawn((f.read("evaluation.json") or {}).get("observables"))) for f in folders]
    return [
        Picture(f"{name}: {run}", *(figures.as_png(draw_observable(name, found, theme)) for theme in (LIGHT, DARK)))
        for run, known in looks[:MOST]
        for name, found in known.items()
    ]


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
