"""What is asked of a model of a density: first parameters, log ρ_θ at one point, and exact samples."""

from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


@runtime_checkable
class DensityModel(Protocol):
    """A normalised density ρ_θ on ℝ^d that can be evaluated and sampled: built-in ones, or one of your own."""

    @property
    def dimension(self) -> int:
        """d."""
        ...

    def init(self, key: Array) -> PyTree:
        """First parameters."""
        ...

    def log_density(self, params: PyTree, x: Float[Array, " d"]) -> Float[Array, ""]:
        """log ρ_θ(x), normalised, at one point."""
        ...

    def sample(self, params: PyTree, key: Array, n: int) -> Float[Array, "n d"]:
        """n independent points of ρ_θ."""
        ...


NEEDED = ("dimension", "init", "log_density", "sample")


def check_model(model: Any, owner: str) -> None:
    """Refuse what is no model of a density, by what it lacks."""
    missing = [name for name in NEEDED if not hasattr(model, name)]
    if isinstance(model, type) or missing:
        kind = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        lacks = "it must be made first" if isinstance(model, type) else f"it has no {', no '.join(missing)}"
        raise ValueError(f"{owner}: {kind} is no model of a density: {lacks}; try AffineGaussian(2) or RealNVP(2).")


def check_number(name: str, value: Any, least: int, owner: str) -> None:
    """Refuse what does not count something."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{owner}: {name} must be a whole number, at least {least}, got {value!r}.")


def standard_normal(z: Float[Array, " d"]) -> Float[Array, ""]:
    """log N(z; 0, I)."""
    return -0.5 * jnp.sum(z**2) - 0.5 * z.shape[0] * jnp.log(2 * jnp.pi)


def noise(key: Array, n: int, dimension: int) -> Float[Array, "n d"]:
    """n points of N(0, I)."""
    return jax.random.normal(key, (n, dimension))
