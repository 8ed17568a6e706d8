"""From what a person types to a task: a built-in name, `file.py[:name]`, `package.module:name`, or `water.xyz`.

`check_task` refuses what leads nowhere before anything heavy is imported; `find_task` builds the task.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from angd import address
from angd.problems.library import NETWORKS, OBSERVABLES, SIZES, TASKS
from angd.problems.task import Task

USUAL = ("task", "problem")  # names that are looked for in a file
MOLECULE = ("charge", "spin", "network")
EXTRAPOLATED = "variance"  # of all kept checkpoints: no function of a walker


def check_task(text: str, arguments: Mapping[str, Any]) -> None:
    """Refuse, in one sentence, a task that cannot be found, and arguments that it does not take."""
    allowed = _arguments(text)
    for name in arguments:
        if name not in allowed:
            takes = f"; it takes {_list(allowed)}" if allowed else ""
            raise ValueError(f"--{name} says nothing about {text}{takes}.")
    sizes = SIZES if text.endswith(".xyz") else TASKS[text].networks if text in TASKS else NETWORKS
    if arguments.get("network", "small") not in sizes:
        raise ValueError(f"--network must be one of {', '.join(sizes)}, got {arguments['network']!r}.")
    if text in TASKS:
        return
    if text.endswith(".xyz"):
        if not Path(text).is_file():
            raise ValueError(f"There is no file {text!r}.")
    elif address.is_address(text):
        address.check(text, "task")
    else:
        raise ValueError(_unknown(text))


def find_task(text: str, arguments: Mapping[str, Any] | None = None) -> Task:
    """The task at an address.

    **Arguments:**

    - `text`: a built-in name, `file.py[:name]`, `package.module:name` or a file that ends in .xyz.
    - `arguments`: `network` of built-in tasks, `charge` and `spin` of molecules.

    **Returns:** a `Task` that knows its address.
    """
    given = dict(arguments or {})
    check_task(text, given)
    if text in TASKS:
        return TASKS[text](**given)
    made = _molecule(Path(text), given) if text.endswith(".xyz") else _own(text)
    return replace(made, address=text, arguments=given)


def check_observables(names: Sequence[str]) -> None:
    """Refuse, in one sentence, names of observables that nobody knows."""
    for name in names:
        if address.is_address(name):
            address.check(name, "observable")
        elif name not in (*OBSERVABLES, EXTRAPOLATED):
            known = ", ".join((*OBSERVABLES, EXTRAPOLATED))
            raise ValueError(f"There is no observable called {name!r}; there are {known}, or file.py:name of your own.")


def find_observables(names: Sequence[str], problem: Any) -> dict[str, Any]:
    """Functions of a walker by name.

    **Arguments:** `names`, those of `OBSERVABLES` or addresses of functions; `problem`, whose wave function it is.

    **Returns:** a dictionary for `evaluate`; `EXTRAPOLATED` is left out.
    """
    check_observables(names)
    found = {}
    for name in names:
        if name in OBSERVABLES:
            found[name] = address.load(OBSERVABLES[name], "observable").of(problem)
        elif name != EXTRAPOLATED:
            found[name.rpartition(":")[2]] = address.load(name, "observable", ("observable",))
    return found


def _own(text: str) -> Task:
    """A task, a problem or a molecule of somebody's own, or what a function without arguments makes of it."""
    found = address.load(text, "task", USUAL)
    is_maker = callable(found) and not any(hasattr(found, name) for name in ("residual", "residuals", "log_density"))
    try:
        task = Task.of(found() if is_maker else found)
    except TypeError as error:
        raise ValueError(f"{text} is called without arguments to make a task, and that fails: {error}.") from error
    place, name = address.split(text)
    stem = Path(place).stem if place.endswith(".py") else place.rpartition(".")[2]
    label = stem if name in (None, *USUAL) else f"{stem}-{name}"
    return task if task.name != "problem" else replace(task, name=label.replace("_", "-"))


def _molecule(path: Path, given: dict[str, Any]) -> Task:
    from angd.problems.vmc.molecules import Molecule, as_task

    network = given.get("network", "small")
    known = {name: value for name, value in given.items() if name != "network"}
    try:
        return as_task(Molecule.from_xyz(path, **known), network, name=path.stem)
    except UnicodeDecodeError:
        raise ValueError(f"{str(path)!r} is not a text file.") from None
    except ValueError as error:
        raise ValueError(f"{str(path)!r}: {error}") from None


def _arguments(text: str) -> tuple[str, ...]:
    return MOLECULE if text.endswith(".xyz") else ("network",) if text in TASKS else ()


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(f"--{name}" for name in names)


def _unknown(text: str) -> str:
    if text.lower().startswith("vmc-"):
        molecules = ", ".join(name for name in TASKS if name.startswith("vmc-"))
        file = text[4:] or "water"
        return (
            f"There is no task called {text!r}, only {molecules}; any other molecule is a file with its nuclei in "
            f"Ångström, angd run {file}.xyz: their number, a comment, and a line 'O 0 0 0.1173' for each."
        )
    near = get_close_matches(text, TASKS, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(TASKS)}."
    return f"There is no task called {text!r}; {hint} A task of your own is file.py or package.module:name."
