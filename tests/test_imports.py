"""Imports go one way: a room may know the rooms before it, never those after it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "angd"
ORDER = [
    {"_requirements", "address", "results", "sizes", "tree"},
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
    {"memory", "parallel"},
    {"passes"},
    {"jacobian"},
    {"system"},
    {"transport"},
    {"metrics", "solvers"},
    {"controllers", "show"},
    {"step"},
    {"baselines"},
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
METHOD_RANK = {room: rank for rank, rooms in enumerate(METHOD) for room in rooms}
LIGHT = [
    "program.arguments",
    "program.help",
    "program.hosts",
    "program.machines",
    "program.terminal",
    "train.cache",
    "program.commands.listing",
    "program.main",
    "program.process",
    "program.words",
    "train.signals",
    "program.expressions",
    "program.flow_catalogue",
    "program.commands.compare",
    "program.commands.completion",
    "program.commands.flow",
    "program.commands.report",
    "program.commands.reproduce",
    "program.commands.run",
    "program.commands.sweep",
    "address",
    "problems.library",
    "problems.lookup",
    "problems.task",
    "recipes.base",
    "recipes.baselines",
    "recipes.choice",
    "recipes.inference",
    "recipes.named",
    "recipes.pinn",
    "recipes.published",
    "recipes.vmc",
    "train.config",
    "train.files",
    "train.folder",
    "train.hosts.cluster",
    "train.hosts.watchdog",
    "train.sweep",
]


# What may look upwards, when it is called: figures of a fit, its report, the live line of progress.
LAZY = {"train/fit.py": {"view"}}
# Nothing below `view` draws or reads a command line, and nothing but the program reads one.
DRAWING = {"matplotlib", "rich", "tyro", "jinja2"}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_names(path: Path, top: bool = False):
    """Modules that a file imports, anywhere or at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if top else ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import; write the full name"
            module = str(node.module)
            yield from (f"angd.{alias.name}" for alias in node.names) if module == "angd" else (module,)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported_rooms(path: Path, top: bool = False):
    found = [name.split(".")[1] for name in imported_names(path, top) if name.startswith("angd.")]
    return [name for name in found if name in RANK]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_imports_only_rooms_before_it(path):
    room = room_of(path)
    if room == "__init__":
        return
    name = path.relative_to(SOURCE).as_posix()
    lazy = LAZY.get(name, set())
    for other in imported_rooms(path):
        assert other == room or RANK[other] < RANK[room] or other in lazy, f"{room} must not import {other}"
    assert not {other for other in imported_rooms(path, top=True) if other in lazy}, "only where it is called"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_the_upper_rooms_draw_and_only_some_knowledge_is_quantum(path):
    room, names = room_of(path), {name.split(".")[0] for name in imported_names(path)}
    if room in RANK and RANK[room] < RANK["view"]:
        assert not names & DRAWING
    knows_waves = {"problems/vmc", "problems/lattice", "problems/inference", "recipes/vmc.py"}
    if not path.relative_to(SOURCE).as_posix().startswith(tuple(knows_waves)):
        assert not names & {"folx", "blackjax", "pyscf"}
    if room != "program":
        assert "tyro" not in names


@pytest.mark.parametrize("path", sorted((SOURCE / "program" / "commands").glob("*.py")), ids=lambda p: p.name)
def test_no_command_imports_another(path):
    assert not [name for name in imported_names(path) if name.startswith("angd.program.commands.")]


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


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_its_rim_knows_netket_and_no_rim_another(path):
    names = set(imported_names(path))
    if path.relative_to(SOURCE).as_posix() != "compat/netket.py":
        assert not [name for name in names if name.split(".")[0] == "netket"]
    rims = {f"angd.compat.{name}" for name in ("netket", "optax", "optimistix")}
    assert not names & rims


@pytest.mark.parametrize("module", LIGHT)
def test_what_reads_the_command_line_imports_nothing_heavy(module):
    """Bad arguments are answered before JAX is imported."""
    path = SOURCE / (module.replace(".", "/") + ".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert not {name.split(".")[0] for name in names} & {"jax", "numpy", "equinox", "diffrax", "matplotlib"}
