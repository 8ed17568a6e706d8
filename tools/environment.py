"""What a result file says about where it was made."""

import datetime
import platform
import sys
from importlib.metadata import version
from typing import Any


def stamp(command: str, seed: Any) -> dict[str, Any]:
    """Command, date, seed and versions."""
    packages = {name: version(name) for name in ("jax", "diffrax", "equinox", "optax")}
    environment = {"python": sys.version.split()[0], "machine": platform.machine(), **packages}
    return {
        "command": command,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "seed": seed,
        "environment": environment,
    }
