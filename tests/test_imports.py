"""Imports go one way: a room may know the rooms before it, never those after it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "angd"
ORDER = [
    {"_requirements", "results", "tree"},
    {"flow"},
    {"taps", "samples"},
    {"jacobian"},
    {"system"},
    {"transport"},
    {"metrics", "solvers"},
    {"controllers"},
    {"step"},
    {"presets", "baselines", "parallel"},
    {"problems"},
    {"compat"},
    {"experiments"},
    {"cli"},
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
LIGHT = [
    "cli",
    "experiments.catalogue",
    "experiments.compare_command",
    "experiments.config",
    "experiments.expressions",
    "experiments.files",
    "experiments.flow_catalogue",
    "experiments.flow_command",
    "experiments.folder",
    "experiments.options",
    "experiments.report_command",
    "experiments.reproduce_command",
    "experiments.run_command",
    "experiments.sweep",
    "experiments.sweep_command",
]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("angd."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.level:
            pytest.fail(f"{path}: relative import; write the full name")
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("angd."))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_imports_only_rooms_before_it(path):
    room = room_of(path)
    if room == "__init__":
        return
    for other in imported_rooms(path):
        assert other == room or RANK[other] < RANK[room], f"{room} must not import {other}"


@pytest.mark.parametrize("module", LIGHT)
def test_what_reads_the_command_line_imports_nothing_heavy(module):
    """Bad arguments are answered before JAX is imported."""
    path = SOURCE / (module.replace(".", "/") + ".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert not {name.split(".")[0] for name in names} & {"jax", "numpy", "equinox", "diffrax", "matplotlib"}
