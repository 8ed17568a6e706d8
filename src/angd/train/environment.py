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


def different_versions(before: Any, now: dict[str, Any]) -> list[str]:
    """What changed between two environments, as `jax 0.8.0 → 0.8.1`; nothing where the first is not known."""
    old, new = _versions(before), _versions(now)
    return [f"{name} {old[name]} → {new[name]}" for name in new if name in old and old[name] != new[name]]


def _versions(found: Any) -> dict[str, Any]:
    packages = found.get("packages") if isinstance(found, dict) else None
    return {"Python": found.get("python")} | packages if isinstance(packages, dict) else {}


def stamp(command: str, seed: Any) -> dict[str, Any]:
    """The head of a result file that is committed: how, from which seeds, when and with what it was made."""
    found = environment()
    return {"command": command, "date": found.pop("date"), "seed": seed, "environment": found}
