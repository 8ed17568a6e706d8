"""What a problem may offer: each protocol is a question that metrics, baselines and samplers ask.

A problem is any object, best an `equinox.Module`, with some of these methods. All but the last group look at **one**
sample x; `angd` maps them over batches.

    residual, residuals          what should vanish                        → Energy
    field, loss                  u_θ(x), and L at samples                  → L2, Hs(s ≥ 0), GridHs
    field, variation             u_θ(x), and δL/δu there                   → L2Pointwise, Hs(s < 0)
    field, cost                  u_θ(x), and ℓ(u, x)                       → GGN
    log_density, variation       log ρ_θ(x), and δL/δρ there               → FisherRao, Wasserstein
    log_amplitude, variation     log ψ_θ(x), perhaps complex, and Hψ/ψ     → FubiniStudy
    log_density                  log ρ_θ(x), normalised                    → FisherScoring

    variations, variation_gradients, loss_of, check_start                  optional, for whole batches at once
    draw                                                                   optional, independent samples of ρ_θ
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

from jaxtyping import Array, Float, Inexact, PyTree

Sample = Any  # one point x: an array, or a pytree of arrays


@runtime_checkable
class ResidualProblem(Protocol):
    """L = ½ Σ ω |r(x)|²."""

    def residual(self, params: PyTree, x: Sample) -> Float[Array, "*m"]:
        """r at one point, a number or a vector, that should vanish."""
        ...


@runtime_checkable
class TermsProblem(Protocol):
    """The same with several terms, each with samples of its own."""

    @property
    def residuals(self) -> Mapping[str, Callable[..., Array]]:
        """`residual(params, x)` of every term, by name."""
        ...


@runtime_checkable
class LossProblem(Protocol):
    """A loss that can be evaluated, and differentiated, at any parameters."""

    def loss(self, params: PyTree, samples: Any) -> Float[Array, ""]:
        """L."""
        ...


@runtime_checkable
class FieldProblem(Protocol):
    """A function u_θ with a loss."""

    def field(self, params: PyTree, x: Sample) -> Float[Array, "*m"]:
        """u_θ(x), a number or a vector."""
        ...

    def loss(self, params: PyTree, samples: Any) -> Float[Array, ""]:
        """L."""
        ...


@runtime_checkable
class VariationProblem(Protocol):
    """A function u_θ whose loss has a variation that is known at a point."""

    def field(self, params: PyTree, x: Sample) -> Float[Array, "*m"]:
        """u_θ(x), a number or a vector."""
        ...

    def variation(self, params: PyTree, x: Sample) -> Float[Array, "*m"]:
        """δL/δu at x, of the shape of the field."""
        ...


@runtime_checkable
class CostProblem(Protocol):
    """L = Σ ω ℓ(u_θ(x), x) with ℓ convex in its first argument."""

    def field(self, params: PyTree, x: Sample) -> Float[Array, "*m"]:
        """u_θ(x), a number or a vector."""
        ...

    def cost(self, z: Float[Array, "m"], x: Sample) -> Float[Array, ""]:
        """ℓ."""
        ...


@runtime_checkable
class DensityProblem(Protocol):
    """A probability density ρ_θ, real; samples are drawn from it."""

    def log_density(self, params: PyTree, x: Sample) -> Float[Array, ""]:
        """log ρ_θ(x) up to a constant."""
        ...

    def variation(self, params: PyTree, x: Sample) -> Float[Array, ""]:
        """δL/δρ at x, up to a constant."""
        ...


@runtime_checkable
class AmplitudeProblem(Protocol):
    """A wave function ψ_θ, real or complex; samples are drawn from |ψ|²."""

    def log_amplitude(self, params: PyTree, x: Sample) -> Inexact[Array, ""]:
        """log ψ_θ(x) up to a constant: real where ψ > 0, with the phase as its imaginary part elsewhere."""
        ...

    def variation(self, params: PyTree, x: Sample) -> Inexact[Array, ""]:
        """δL/δρ at x up to a constant, for energies the local energy Hψ/ψ, which may be complex."""
        ...


@runtime_checkable
class LikelihoodProblem(Protocol):
    """A normalised probability density ρ_θ that is fitted to data: L = −E_data[log ρ]."""

    def log_density(self, params: PyTree, x: Sample) -> Float[Array, ""]:
        """log ρ_θ(x)."""
        ...


@runtime_checkable
class GivesDraws(Protocol):
    """A density that needs no Markov chain: recipes then draw new samples in every step."""

    def draw(self, params: PyTree, key: Array, n: int) -> Any:
        """Samples, n independent ones of ρ_θ; or a dictionary of them, as a metric asks for it."""
        ...


@runtime_checkable
class GivesVariations(Protocol):
    """Variations of a whole batch at once: in chunks, clipped, samples masked where one is not finite."""

    def variations(self, params: PyTree, samples: Any, old: PyTree | None = None) -> tuple[Any, Array, Array]:
        """Samples fit for a step, δL/δρ there, and the same for older parameters (again the first, if None)."""
        ...


@runtime_checkable
class GivesForces(Protocol):
    """Forces of a whole batch at once."""

    def variation_gradients(self, params: PyTree, xs: PyTree) -> PyTree:
        """∇ₓ δL/δρ at every sample."""
        ...


@runtime_checkable
class GivesLossOf(Protocol):
    """A loss that follows from variations that are known already, such as an energy from local energies."""

    def loss_of(self, variations: Inexact[Array, "n"], samples: Any) -> Float[Array, ""]:
        """L."""
        ...


@runtime_checkable
class ChecksStart(Protocol):
    """A problem that looks at its first parameters and one sample before work begins."""

    def check_start(self, params: PyTree, x: Sample) -> None:
        """Raise ValueError with one sentence if they cannot be used."""
        ...


P = TypeVar("P")
NEEDED: dict[type, tuple[str, ...]] = {
    ResidualProblem: ("residual",),
    FieldProblem: ("field", "loss"),
    VariationProblem: ("field", "variation"),
    CostProblem: ("field", "cost"),
    DensityProblem: ("log_density", "variation"),
    AmplitudeProblem: ("log_amplitude", "variation"),
    LikelihoodProblem: ("log_density",),
}


def require(problem: object, kind: type[P], owner: object) -> P:
    """The problem as one of a kind; otherwise a sentence that says which methods are missing."""
    if isinstance(problem, kind):
        return problem
    names = NEEDED[kind]
    missing = [name for name in names if not hasattr(problem, name)]
    raise ValueError(
        f"{type(owner).__name__} needs {' and '.join(f'{n}(params, x)' for n in names)} of the problem, but "
        f"{type(problem).__name__} has no {' and no '.join(missing)}."
    )
