"""Files that are never half-written. Imports nothing heavy."""

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from platform import node

FORGOTTEN = 3600.0  # seconds after which a temporary file belongs to nobody, whatever machine it was made on


def check_writable(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse, before any work, a path of the wrong kind or in a folder that cannot be written."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{str(path)!r} must end in {' or '.join(suffixes)}.")
    folder = path.parent
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; give the name of a file.")
    if folder.exists() and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise ValueError(f"The folder {str(folder)!r} cannot be written to.")


def check_folder(path: Path) -> None:
    """Refuse, before any work, a folder that cannot be made or written to."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise ValueError(f"{str(place)!r} is a file, so {str(path)!r} cannot be a folder.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ValueError(f"The folder {str(place)!r} cannot be written to.")


def write_atomically(path: Path, write: Callable[[Path], object], durable: bool = False) -> None:
    """Let `write` fill a temporary file beside `path`, then move it into place in one go.

    Where it is `durable`, the disk has it before anybody sees it, so that a power cut leaves the old or the new file.
    What processes that were killed have left in the folder goes away.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=f".{os.getpid()}@{node()}.angd")
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o666 & ~_umask())
        if durable:
            _sync(temporary)
        temporary.replace(path)
        if durable and os.name == "posix":
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    """Remove temporary files that nobody will move into place any more."""
    for temporary in folder.glob(".*@*.angd"):
        with suppress(OSError):  # another process was faster
            if _is_left(temporary):
                temporary.unlink()


def _is_left(temporary: Path) -> bool:
    """Was it written by a process of this machine that is gone, or so long ago that it cannot be in use?"""
    owner, _, machine = temporary.name.removesuffix(".angd").rpartition("@")
    number = owner.rpartition(".")[2]
    if not number.isdecimal():
        return False
    if os.name == "posix" and machine == node():
        return not _is_alive(int(number))
    return time.time() - temporary.stat().st_mtime > FORGOTTEN


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _umask() -> int:
    """What the user forbids for new files; it can only be read by setting it."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
