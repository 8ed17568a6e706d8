"""Objects by address: `file.py:name` or `package.module:name`. Imports nothing heavy.

Built-in tasks and recipes have short names; whatever is yours is reached by its address, in the same places: a task, a
recipe, a metric, a solver, a controller. A file is imported once in a process, and its folder can be imported from, as
if Python had been started with it.
"""

import ast
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

PREFIX = "angd_file_"  # of the names under which files are imported


def is_address(text: str) -> bool:
    """Does a text look like an address, and not like a short name?"""
    return ":" in text or text.endswith(".py")


def split(text: str) -> tuple[str, str | None]:
    """The place, a file or a module, and the name in it; None where no name is said."""
    place, sign, name = text.rpartition(":")
    # On Windows a colon follows the letter of a drive.
    if not sign or not (name.isidentifier() and place):
        return text, None
    return place, name


def check(text: str, what: str) -> None:
    """Refuse an address that leads nowhere, without importing it.

    **Arguments:** `text`; `what`, how a message calls it, e.g. "task".
    """
    place, name = split(text)
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise ValueError(f"There is no file {place!r}, so there is no {what} {text!r}.")
        known = _defined(Path(place))
        if name and known is not None and name not in known:
            raise ValueError(f"{place!r} has no {name}; it defines {', '.join(known) or 'nothing'}.")
        return
    if not all(part.isidentifier() for part in place.split(".")):
        raise ValueError(f"{text!r} is no {what}: an address is file.py:name or package.module:name.")
    try:
        known = importlib.util.find_spec(place)
    except ModuleNotFoundError:
        known = None
    if known is None:
        raise ValueError(f"There is no module {place!r}, so there is no {what} {text!r}.")


def load(text: str, what: str, usual: Sequence[str] = ()) -> Any:
    """The object at an address.

    **Arguments:** `text`, the address; `what`, how messages call it; `usual`, names to look for where none is said.

    **Returns:** the object.
    """
    check(text, what)
    place, name = split(text)
    module = _file(Path(place)) if place.endswith(".py") else _module(place, what)
    names = [name] if name else list(usual)
    for wanted in names:
        if hasattr(module, wanted):
            return getattr(module, wanted)
    near = ", ".join(n for n in vars(module) if not n.startswith("_") and not isinstance(vars(module)[n], ModuleType))
    raise ValueError(f"{place!r} has no {' or '.join(names) or what}; it defines {near or 'nothing'}.")


def found(text: str, source: Mapping[str, str] | None) -> str:
    """The address, or the same with the full path of its file where the person is in another folder now."""
    place, name = split(text)
    if source is None or Path(place).exists() or not Path(source.get("path", "")).is_file():
        return text
    return source["path"] + (f":{name}" if name else "")


def source(text: str) -> dict[str, str] | None:
    """The file behind an address and a hash of its text, to notice later that it changed; None where it is no file."""
    place, _ = split(text)
    path = Path(place)
    if path.suffix not in (".py", ".xyz") or not path.is_file():
        return None
    return {"path": str(path.resolve()), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _defined(path: Path) -> list[str] | None:
    """What a file defines at its top level, without running it; None where that cannot be said."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return None
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names += [alias.asname or alias.name for alias in node.names]
        elif not isinstance(node, ast.Expr):
            return None
    return None if "*" in names else names


def _module(place: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except Exception as error:
        raise ValueError(f"{place} cannot be imported as a {what}: {type(error).__name__}: {error}.") from error


def _file(path: Path) -> ModuleType:
    """A file as a module, imported once; what goes wrong inside it is said with its line."""
    whole = path.resolve()
    label = f"{PREFIX}{hashlib.sha256(str(whole).encode()).hexdigest()[:12]}"
    if label in sys.modules:
        return sys.modules[label]
    spec = importlib.util.spec_from_file_location(label, whole)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(whole.parent) not in sys.path:
        sys.path.insert(0, str(whole.parent))
    sys.modules[label] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[label]
        raise ValueError(f"{str(path)!r} cannot be imported: {_where(error, whole)}") from error
    return module


def _where(error: Exception, path: Path) -> str:
    """An error inside a file, with the last line of that file that led to it."""
    line = getattr(error, "lineno", None) or _line(error, str(path))
    said = error.msg if isinstance(error, SyntaxError) else error
    return f"{type(error).__name__}: {said}" + (f" (line {line})." if line else ".")


def blame(error: BaseException) -> str | None:
    """Which file of somebody's own an error comes from, with its line and what it says; None where it is ours."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.startswith(PREFIX) and path and (line := _line(error, path)):
            return f"{path}, line {line}: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None


def _line(error: BaseException, path: str) -> int | None:
    """The last line of a file that led to an error."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
