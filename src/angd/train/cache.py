"""What XLA has compiled, kept on disk, so that the next process need not wait for it. Imports nothing heavy.

The program does so by itself. The library leaves JAX as it is, until `angd.keep_compiled()` is called.
"""

import hashlib
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

VARIABLE = "ANGD_CACHE"
OFF = ("0", "off", "no", "none", "false")
LARGEST = 2**30  # bytes; what was not used for longest goes first


def keep_compiled(folder: str | Path | None = None) -> Path | None:
    """Keep what XLA compiles on disk, and take it from there in later processes.

    Call it before anything is compiled. It sets options of JAX for the whole process, which `angd` never does unasked.

    **Arguments:**

    - `folder`: where; by default that of the environment variable `ANGD_CACHE`, or the user's cache folder. A word
      such as `off` in the variable switches it off. One that JAX knows already (`JAX_COMPILATION_CACHE_DIR`) stays.

    **Returns:** the folder, None where nothing is kept.

    **Example:** `angd.keep_compiled(); angd.fit(problem, seconds=60)`
    """
    import jax

    if folder is None and jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        return Path(jax.config.jax_compilation_cache_dir)  # pyright: ignore[reportAttributeAccessIssue]
    place = usual_folder() if folder is None else Path(folder)
    if place is None or not _is_writable(place):
        return None
    jax.config.update("jax_compilation_cache_dir", str(place))
    # A step consists of many small programs, which together take as long as the large one.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    prune(place)
    return place


def keep_nothing() -> None:
    """Compile everything, whatever is on disk: for measurements in which compilation counts."""
    import jax

    jax.config.update("jax_enable_compilation_cache", False)


def usual_folder() -> Path | None:
    """The folder for this kind of machine, None where the user wants none."""
    said = os.environ.get(VARIABLE)
    if said is not None and said.strip().lower() in ("", *OFF):
        return None
    return (Path(said).expanduser() if said else user_cache() / "angd") / "xla" / kind_of_machine()


def user_cache() -> Path:
    """Where programs of this user keep what they could make again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    said = os.environ.get("XDG_CACHE_HOME", "")
    return Path(said) if os.path.isabs(said) else Path.home() / ".cache"


def kind_of_machine() -> str:
    """A few letters: programs for one kind of processor may fail on another that sees the same folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        known = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        known = platform.processor()
    return hashlib.sha256(f"{platform.machine()} {known}".encode()).hexdigest()[:12]


def _is_writable(place: Path) -> bool:
    """Make the folder; one that cannot be written to is done without."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(place, os.W_OK)


def prune(place: Path, largest: float = LARGEST) -> None:
    """Remove the oldest files of a folder that is too large, down to half of what it may hold.

    Once in a process: JAX would look through all files whenever it adds one.
    """
    found = []
    for path in place.iterdir():
        with suppress(OSError):  # another process prunes as well
            stat = path.stat()
            found.append((max(stat.st_atime, stat.st_mtime), stat.st_size, path))
    total = sum(size for _, size, _ in found)
    if total <= largest:
        return
    for _, size, path in sorted(found):
        with suppress(OSError):
            path.unlink()
        total -= size
        if total <= largest / 2:
            return
