"""The program: thin commands on the library."""

import sys
from importlib.util import find_spec

NEEDED = ("tyro", "rich", "matplotlib", "jinja2", "filelock")


def start() -> int:
    """The entry point: says in one sentence what is missing, or runs the command."""
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        print(f"angd: the program needs {', '.join(missing)}: pip install 'angd[program]'", file=sys.stderr)
        return 1
    from angd.program.main import main

    return main()
