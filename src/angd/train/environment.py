"""What a result depends on besides its configuration."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

PACKAGES = ("angd", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")


def environment() -> dict[str, Any]:
    """Versions, machine and date; nothing that identifies a person or a path."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "packages": {name: version(name) for name in PACKAGES},
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "xla_threads": os.environ.get("PJRT_NPROC", ""),
    }


def stamp(command: str, seed: Any) -> dict[str, Any]:
    """The head of a result file that is committed: how, from which seeds, when and with what it was made."""
    found = environment()
    return {"command": command, "date": found.pop("date"), "seed": seed, "environment": found}
