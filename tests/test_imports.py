"""Imports go one way: a room may know the rooms before it, never those after it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "angd"
ORDER = [
    {"_requirements", "results", "tree"},
    {"flow"},
    {"method"},
    {"problems"},
    {"recipes"},
    {"train"},
    {"view"},
    {"compat"},
    {"program"},
]
# Inside stage two, in the order of a step.
METHOD = [
    {"protocols"},
    {"samples"},
    {"jacobian"},
    {"system"},
    {"transport"},
    {"metrics", "solvers"},
    {"controllers", "show"},
    {"step"},
    {"baselines", "parallel"},
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
METHOD_RANK = {room: rank for rank, rooms in enumerate(METHOD) for room in rooms}
LIGHT = [
    "program.main",
    "program.expressions",
    "program.flow_catalogue",
    "program.commands.compare",
    "program.commands.flow",
    "program.commands.report",
    "program.commands.reproduce",
    "program.commands.run",
    "program.commands.sweep",
    "problems.library",
    "problems.task",
    "recipes.base",
    "recipes.baselines",
    "recipes.choice",
    "recipes.experiments",
    "recipes.named",
    "recipes.pinn",
    "recipes.published",
    "recipes.vmc",
    "train.config",
    "train.files",
    "train.folder",
    "train.sweep",
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


def imported_parts(path: Path):
    """Second names of imports from stage two: `metrics` of `angd.method.metrics.base`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("angd.method."):
            yield str(node.module).split(".")[2]


@pytest.mark.parametrize("path", sorted((SOURCE / "method").rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_stage_two_imports_in_the_order_of_a_step(path):
    part = path.relative_to(SOURCE / "method").parts[0].removesuffix(".py")
    for other in imported_parts(path):
        assert part == "__init__" or other == part or METHOD_RANK[other] < METHOD_RANK[part]


@pytest.mark.parametrize("module", LIGHT)
def test_what_reads_the_command_line_imports_nothing_heavy(module):
    """Bad arguments are answered before JAX is imported."""
    path = SOURCE / (module.replace(".", "/") + ".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert not {name.split(".")[0] for name in names} & {"jax", "numpy", "equinox", "diffrax", "matplotlib"}
