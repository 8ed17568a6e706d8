"""Burgers' equation with jinns (github.com/mia-jinns/jinns): natural gradient and self-scaled Broyden, in float64.

"ngd-page" has the network, points, weights and optimiser of jinns' own notebook on this equation
(Notebooks/PDE/1D_non_stationary_Burgers.ipynb of 1.10.2). "ngd" and "ssbroyden" have the network, the numbers of
points and the weights of our default recipe: odd and of period 2, on half the domain. Natural gradient takes the next
of twenty batches in every step, Broyden's points serve 500 steps. Both have jinns' own line searches.

`jinns.solve` compiles at every call, so that it is traced here once, as a function of what it goes on from.
"""

from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jinns
import optax
from fixed import fixed
from jinns.solver import GetJinnsVariableName
from watch import Watch

jax.config.update("jax_enable_x64", True)
NU = 0.01 / jnp.pi
BLOCK, SERVE, BATCHES = 10, 500, 20
KIND = "PDENonStatio"


class Odd(eqx.Module):
    """N(t, cos πx, sin πx) − N(t, cos πx, −sin πx)."""

    inner: eqx.nn.MLP

    def __init__(self, key: jax.Array):
        self.inner = eqx.nn.MLP(3, 1, 20, 3, activation=jnp.tanh, key=key)

    def __call__(self, z: jax.Array) -> jax.Array:
        t, c, s = z[0], jnp.cos(jnp.pi * z[1]), jnp.sin(jnp.pi * z[1])
        return self.inner(jnp.stack([t, c, s])) - self.inner(jnp.stack([t, c, -s]))


def train(method: str, seed: int, watch: Watch) -> int:
    """`method` is "ngd-page", "ngd" or "ssbroyden"."""
    page = method == "ngd-page"
    key = jax.random.key(seed)
    u, start = network_of_the_page(key) if page else jinns.nn.PINN_MLP.create(eq_type=KIND, eqx_network=Odd(key))
    params = jinns.parameters.Params(nn_params=start, eq_params={"nu": jnp.asarray(NU)})
    loss = loss_of(u, params, 1.0 if page else 10.0, jinns.loss.Dirichlet() if page else None)
    optimiser, extra = broyden() if method == "ssbroyden" else (jinns.optimizers.vanilla_ngd(), None)

    def points(k: int) -> Any:
        shuffled = jax.random.key(1000 * seed + k)
        return points_of_the_page(shuffled) if page else points_of_ours(shuffled, method == "ngd")

    @eqx.filter_jit
    def block(params: Any, state: Any, data: Any) -> Any:
        found = jinns.solve(
            n_iter=BLOCK,
            init_params=params,
            data=data,
            loss=loss,
            optimizer=optimiser,
            opt_state=state,
            verbose=False,
            ahead_of_time=False,
            extra_optax_args_and_kwargs=extra,
        )
        return found[0], found[5], found[3]

    predict = jax.jit(lambda params, z: jax.vmap(lambda at: u(at, params).squeeze())(z))
    params, state, data, k, going = *fixed((params, optimiser.init(params), points(0))), 0, True
    while going:
        data = fixed(points(k)) if method == "ssbroyden" and k % SERVE == 0 else data
        params, state, data = jax.block_until_ready(block(params, state, data))
        k += BLOCK
        going = watch(predict, params, k)
    return sum(leaf.size for leaf in jax.tree.leaves(start))


def network_of_the_page(key: jax.Array) -> Any:
    """tanh, three hidden layers of 16."""
    widths = [2, 16, 16, 16, 1]
    layers: list[Any] = []
    for i, o in pairwise(widths):
        layers += [(eqx.nn.Linear, i, o), (jax.nn.tanh,)]
    return jinns.nn.PINN_MLP.create(key=key, eqx_list=tuple(layers[:-1]), eq_type=KIND)


def loss_of(u: Any, params: Any, weight: float, walls: Any) -> Any:
    """The equation, the initial value and, where the network does not have them, the walls."""
    weights = jinns.loss.LossWeightsPDENonStatio(
        dyn_loss=1.0, initial_condition=weight, boundary_loss=None if walls is None else weight
    )
    return jinns.loss.LossPDENonStatio(
        u=u,
        loss_weights=weights,
        dynamic_loss=jinns.loss.BurgersEquation(Tmax=1),
        boundary_condition=walls,
        initial_condition_fun=lambda x: -jnp.sin(jnp.pi * x),
        params=params,
    )


def points_of_the_page(key: jax.Array) -> Any:
    return mesh(key, n=900, nb=2000, ni=2000, min_pts=(-1.0,))


def points_of_ours(key: jax.Array, batches: bool) -> Any:
    """Half the domain; twenty batches or one set."""
    if not batches:
        return mesh(key, n=3000, nb=None, ni=300, min_pts=(0.0,))
    sizes = {"domain_batch_size": 3000, "initial_batch_size": 300}
    return mesh(key, n=3000 * BATCHES, nb=None, ni=300 * BATCHES, min_pts=(0.0,), **sizes)


def mesh(key: jax.Array, **counts: Any) -> Any:
    return jinns.data.CubicMeshPDENonStatio(
        key=key, dim=1, max_pts=(1.0,), tmin=0.0, tmax=1.0, method="uniform", **counts
    )


def broyden() -> tuple[optax.GradientTransformationExtraArgs, dict[str, Any]]:
    """jinns' self-scaled Broyden with its zoom line search, and what `jinns.solve` hands it."""

    def callback_value_fn(params: Any, batch: Any, loss: Any) -> jax.Array:
        return loss.evaluate(params, batch)[0]

    def callback_grad_fn(params: Any, batch: Any, loss: Any) -> Any:
        return loss.ponderate_and_sum_gradient(loss.values_and_grads(params, batch)[1])

    named = {"value": "train_loss_value", "grad_pt": "grads", "batch": "batch", "loss": "loss"}
    handed = {name: GetJinnsVariableName(theirs) for name, theirs in named.items()}
    functions = {"value_fn": callback_value_fn, "grad_fn": callback_grad_fn}
    return jinns.optimizers.scale_by_SSBroyden_family(method="SSBroyden"), handed | functions
