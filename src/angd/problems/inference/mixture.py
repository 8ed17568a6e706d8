"""Mixtures of Gaussians: Σ_k w_k N(m_k, Σ_k)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PyTree

from angd.problems.inference.base import check_number, noise
from angd.problems.inference.gaussian import AffineGaussian


class Mixture(eqx.Module):
    """A mixture of Gaussians with trained weights, means and covariances: for targets with several modes.

    Its parameters are `logits` and the vectors of `AffineGaussian`, those of all components one after the other.

    **Arguments:**

    - `dimension`: d.
    - `components`: how many Gaussians; more than there are modes do no harm.
    - `diagonal`: components whose coordinates are independent.
    - `spread`: standard deviation of each component at the start, and of the means around 0.

    **Example:** `ReverseKL(Mixture(2, components=4, spread=2.0), log_target)`
    """

    dimension: int = eqx.field(static=True)
    components: int = eqx.field(static=True, default=2)
    diagonal: bool = eqx.field(static=True, default=False)
    spread: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        check_number("dimension", self.dimension, 1, "Mixture")
        check_number("components", self.components, 1, "Mixture")
        if not self.spread > 0:
            raise ValueError(f"Mixture: spread must be positive, got {self.spread}.")

    @property
    def component(self) -> AffineGaussian:
        """One of them."""
        return AffineGaussian(self.dimension, self.diagonal, self.spread)

    def init(self, key: Array) -> PyTree:
        """Equal weights; means drawn from N(0, `spread`² I)."""
        one = self.component.init(key) | {"mean": self.spread * noise(key, self.components, self.dimension).ravel()}
        tiled = {name: leaf if name == "mean" else jnp.tile(leaf, self.components) for name, leaf in one.items()}
        return {"logits": jnp.zeros(self.components)} | tiled

    def log_density(self, params: PyTree, x: Float[Array, " d"]) -> Float[Array, ""]:
        logs = jax.vmap(self.component.log_density, (0, None))(self.parts(params), x)
        return logsumexp(jax.nn.log_softmax(params["logits"]) + logs)

    def sample(self, params: PyTree, key: Array, n: int) -> Float[Array, "n d"]:
        choose, move = jax.random.split(key)
        chosen, parts = jax.random.categorical(choose, params["logits"], shape=(n,)), self.parts(params)
        roots = jax.vmap(self.component.root)(parts)
        return parts["mean"][chosen] + jnp.einsum("nij,nj->ni", roots[chosen], noise(move, n, self.dimension))

    def parts(self, params: PyTree) -> PyTree:
        """Parameters of the components along a leading axis."""
        return {name: leaf.reshape(self.components, -1) for name, leaf in params.items() if name != "logits"}
