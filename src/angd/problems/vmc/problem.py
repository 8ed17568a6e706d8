"""The ground state as a problem: ρ = |ψ|², and the variation of the energy is the local energy.

L(ρ) = E[E_L],   δL/δρ = E_L = −½ (Δ log|ψ| + |∇ log|ψ||²) + V.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import folx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.method.samples import Samples
from angd.problems.energies import RefusedWave
from angd.problems.vmc.chunks import in_chunks

Wave = Callable[[PyTree, Array], tuple[Array, Array]]
CENTRES = ("median", "mean")
# Sparse Jacobians halve the time for ten electrons and cost a third more for six.
MANY, SPARSITY = 8, 6


class Clipping(eqx.Module):
    """Local energies within centre ± width × mean absolute deviation; what is not finite counts as the centre.

    **Arguments:**

    - `width`: of the window, in mean absolute deviations; 5 is usual, None does not clip.
    - `centre`: "median" or "mean".

    **Returns:** called with energies of shape (n,), the clipped ones.
    """

    width: float | None = 5.0
    centre: str = eqx.field(static=True, default="median")

    def __check_init__(self):
        if self.centre not in CENTRES or not (self.width is None or self.width > 0):
            raise ValueError(f"Clipping: centre must be one of {CENTRES} and width positive or None.")

    def __call__(self, energies: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.together(energies)[0]

    def together(self, *energies: Float[Array, " n"]) -> tuple[Float[Array, " n"], ...]:
        """Several at the same walkers within the window of the first, so that differences are not of windows; where one
        is not finite, all count as the centre."""
        good = jnp.all(jnp.isfinite(jnp.stack(energies)), axis=0)
        middle = (jnp.nanmedian if self.centre == "median" else jnp.nanmean)(jnp.where(good, energies[0], jnp.nan))
        filled = tuple(jnp.where(good, e, middle) for e in energies)
        if self.width is None:
            return filled
        spread = self.width * jnp.sum(jnp.abs(filled[0] - middle)) / jnp.maximum(jnp.sum(good), 1)
        return tuple(jnp.clip(e, middle - spread, middle + spread) for e in filled)


class GroundState(eqx.Module):
    """Find the ψ of least energy: L = E[E_L], with δL/δρ = E_L = −½ (Δ log|ψ| + |∇ log|ψ||²) + V.

    **Arguments:**

    - `log_psi`: `log_psi(params, x)` at one x of shape (n, d), the pair of numbers (sign, log|ψ|). If it has a method
      `laplacian(params, x)`, which returns ∇ log|ψ| and Δ log|ψ|, local energies are computed by that instead of folx.
    - `potential`: V(x), one number; `Coulomb(molecule)`, `Trap()` or your own.
    - `clipping`: acts on the force, and so on the energies of training that a step reports; `evaluate`
      clips nothing.
    - `chunk`: walkers whose local energies are computed at a time; None: from the size of x.
    - `sparsity`: > 0 lets folx use sparse Jacobians up to that many entries; None: from the size of x. Given, folx is
      used even where `log_psi` has a `laplacian`.

    **Example:** `GroundState(lambda p, x: (jnp.ones(()), -p * jnp.sum(x**2)), Trap())`
    """

    log_psi: Wave
    potential: Callable[[Array], Array]
    clipping: Clipping = Clipping()
    chunk: int | None = eqx.field(static=True, default=None)
    sparsity: int | None = eqx.field(static=True, default=None)

    def log_density(self, params: PyTree, x: Float[Array, "n d"]) -> Float[Array, ""]:
        """log ρ up to a constant."""
        return 2 * signed(self.log_psi(params, x))[1]

    def variation(self, params: PyTree, x: Float[Array, "n d"]) -> Float[Array, ""]:
        """The local energy at one x."""
        own = getattr(self.log_psi, "laplacian", None)
        if self.sparsity is None and own is not None:
            gradient, laplacian = own(params, x)
            return one_number(self.potential(x), x) - (laplacian + jnp.sum(gradient**2)) / 2
        sparsity = SPARSITY * (len(x) >= MANY) if self.sparsity is None else self.sparsity
        kinetic = kinetic_energy(lambda y: signed(self.log_psi(params, y))[1], x, sparsity)
        return kinetic + one_number(self.potential(x), x)

    def local_energies(self, params: PyTree, xs: Float[Array, "N n d"]) -> Float[Array, " N"]:
        """Local energies of all walkers, as they are."""
        size = min(self.chunk or chunk_size(xs.shape[1:]), xs.shape[0])
        return in_chunks(lambda x: self.variation(params, x), xs, size)

    def variations(
        self, params: PyTree, samples: Samples, old: PyTree | None = None
    ) -> tuple[Samples, Float[Array, " N"], Float[Array, " N"]]:
        """Local energies as the optimiser should see them, also for older parameters: clipped alike, and walkers masked
        where one is not finite."""
        energies = [self.local_energies(p, samples.x) for p in ((params,) if old is None else (params, old))]
        bad = ~jnp.all(jnp.isfinite(jnp.stack(energies)), axis=0)
        clipped = self.clipping.together(*energies)
        return samples.masked(bad), clipped[0], clipped[-1]

    def variation_gradients(self, params: PyTree, xs: Float[Array, "N n d"]) -> Float[Array, "N n d"]:
        """∇ E_L of all walkers; 0 where it is not finite."""
        size = min(self.chunk or chunk_size(xs.shape[1:]), xs.shape[0])
        found = in_chunks(lambda x: jax.grad(self.variation, argnums=1)(params, x), xs, size)
        return jnp.where(jnp.isfinite(found), found, 0.0)

    def loss_of(self, energies: Float[Array, " N"], samples: Samples) -> Float[Array, ""]:
        """The energy, from local energies."""
        return samples.mean(energies)

    def check_start(self, params: PyTree, x: Float[Array, "n d"], spins: tuple[int, int] | None = None) -> None:
        """Refuse a ψ that is not finite, or that keeps its sign when two equal spins (n↑ first, by default those of the
        potential, if it has any) change places."""
        spins = getattr(self.potential, "spins", None) if spins is None else spins
        if jnp.ndim(x) != 2:
            raise RefusedWave(f"A walker has the shape (particles, coordinates), got {jnp.shape(x)}.")
        log_psi = eqx.filter_jit(
            lambda x: signed(self.log_psi(params, x))
        )  # one compilation, not one for each operation
        sign, log = log_psi(x)
        if jnp.iscomplexobj(sign) or jnp.iscomplexobj(log):
            raise RefusedWave(
                "log_psi must return a real sign and log|ψ|: the phase of a complex wave function is not seen by the "
                "metrics of densities, and their gradient would be wrong."
            )
        if not bool(jnp.isfinite(log)):
            raise RefusedWave("log_psi is not finite at the first walker: check the wave function and its parameters.")
        for first, count in ((0, spins[0]), (spins[0], spins[1])) if spins else ():
            if count > 1:
                swapped = x.at[jnp.array([first, first + 1])].set(x[jnp.array([first + 1, first])])
                other, log_other = log_psi(swapped)
                if bool(other == sign) or not bool(jnp.isclose(log, log_other, rtol=1e-3, atol=1e-3)):
                    raise RefusedWave("log_psi is not antisymmetric: its sign must change when two equal spins change.")


def signed(value: Any) -> tuple[Array, Array]:
    """What a wave function returns, if it is (sign, log|ψ|)."""
    shapes = tuple(map(jnp.shape, value)) if isinstance(value, tuple | list) else jnp.shape(value)
    if shapes != ((), ()):
        raise ValueError(
            "log_psi must return a pair of numbers (sign, log|ψ|) at one x, but what it returns has the shape "
            f"{shapes}: where ψ > 0 everywhere, return jnp.ones(()), log."
        )
    return value[0], value[1]


def one_number(value: Any, x: Float[Array, "n d"]) -> Any:
    """What a potential returns, if it is a number."""
    if jnp.shape(value) != ():
        raise ValueError(
            f"The potential must return one number at x of shape {x.shape}, got an array of shape {jnp.shape(value)}: "
            "sum over particles and coordinates."
        )
    return value


def kinetic_energy(log_psi: Callable[[Array], Array], x: Float[Array, "n d"], sparsity: int = 0) -> Float[Array, ""]:
    """−½ (Δ log|ψ| + |∇ log|ψ||²) by one forward pass that carries value, gradient and Laplacian."""
    with jax.numpy_rank_promotion("allow"):  # folx's own code broadcasts freely
        found = folx.forward_laplacian(lambda y: log_psi(y.reshape(x.shape)), sparsity)(x.reshape(-1))
    gradient = found.jacobian.dense_array.reshape(-1)
    return -0.5 * (found.laplacian + jnp.sum(gradient**2))


def kinetic_energy_by_loop(log_psi: Callable[[Array], Array], x: Float[Array, "n d"]) -> Float[Array, ""]:
    """The same, one coordinate after the other: slow, and independent of the forward Laplacian."""
    gradient = jax.grad(lambda y: log_psi(y.reshape(x.shape)))
    flat, eye = x.reshape(-1), jnp.eye(x.size, dtype=x.dtype)
    g, push = jax.linearize(gradient, flat)
    second = lax.fori_loop(0, x.size, lambda i, total: total + push(eye[i])[i], jnp.zeros((), x.dtype))
    return -0.5 * (second + jnp.sum(g**2))


def chunk_size(shape: tuple[int, ...]) -> int:
    """Walkers at a time, so that the derivatives of one layer stay in the cache: fewer for more electrons."""
    n, d = shape
    return max(1, int(1600 / (n * n * d)))


def energy(problem: GroundState, params: PyTree, samples: Samples) -> tuple[Array, Array, Array]:
    """The energy at given samples.

    **Arguments:**

    - `problem`: a `GroundState`.
    - `params`: of its wave function.
    - `samples`: walkers x of shape (N, n, d).

    **Returns:** mean and variance of the finite local energies, and how many are not finite.
    """
    energies = problem.local_energies(params, samples.x)
    good = jnp.isfinite(energies)
    kept = jnp.where(good, energies, jnp.nan)
    return jnp.nanmean(kept), jnp.nanvar(kept), jnp.sum(~good)
