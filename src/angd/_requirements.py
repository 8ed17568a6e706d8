"""A clear sentence where a dependency is missing or too old, instead of a traceback from deep inside it."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

MINIMUM = {"jax": (0, 8, 0), "equinox": (0, 13, 2), "diffrax": (0, 7, 0)}


def check_requirements() -> None:
    """Raise ImportError, naming the package, the version found and the one needed."""
    for package, needed in MINIMUM.items():
        wanted = ".".join(map(str, needed))
        try:
            found = version(package)
        except PackageNotFoundError:
            raise ImportError(
                f"angd needs {package} ≥ {wanted}, which is not installed: pip install -U {package}"
            ) from None
        if _numbers(found) < needed:
            raise ImportError(f"angd needs {package} ≥ {wanted}, found {found}: pip install -U {package}")


def needs(package: str, extra: str, what: str) -> None:
    """Raise ImportError in one sentence where a package of an extra is missing.

    **Arguments:** `package`, as it is imported; `extra` of angd that has it; `what` needs it.
    """
    if find_spec(package) is None:
        raise ImportError(f"{what} needs {package}, which is not installed: pip install 'angd[{extra}]'")


def _numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version, e.g. 0.10.2 of 0.10.2.dev1."""
    numbers = []
    for part in text.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
