"""The program: thin commands on the library."""

import traceback
from importlib.util import find_spec

from angd.program.hosts import is_joined, leave
from angd.program.terminal import tell
from angd.train.signals import Stopped, Stopper, end_at_once, ignore_signals

NEEDED = ("tyro", "rich", "matplotlib", "jinja2", "filelock")


def start() -> int:
    """The entry point: a signal is answered in a sentence from the first import to the end of the process."""
    try:
        Stopper(end_at_once).install()
        code = _start()
    except Stopped as stop:
        tell(str(stop))
        code = stop.code
    except Exception:
        if not is_joined():
            raise
        traceback.print_exc()
        code = 1
    ignore_signals()
    return leave(code)


def _start() -> int:
    """Say in one sentence what is missing, or run the command."""
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        tell(f"the program needs {', '.join(missing)}: pip install 'angd[program]'")
        return 1
    from angd.program.main import main

    return main()
