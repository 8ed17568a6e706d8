"""Burgers' equation with scimba_jax (scimba.org): energy natural gradient, DSGNAR and self-scaled Broyden, in float64.

Its model of the equation, its samplers, its weights (10 for the initial value) and the defaults of each optimiser. The
network, tanh 3 × 20, and the numbers of points are those of our default recipe: odd and of period 2, on half the
domain. Points are new in every step, as `Projector.project` has it; Broyden's serve 500 steps. With "-strong" the
initial value and the walls are built into the field, as in scimba's own notebook on this equation.
"""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
from scimba_jax.domains.meshless_domains.domains_1d import Segment1D
from scimba_jax.nonlinear_approximation.approximation_spaces.approximation_spaces import ApproximationSpace
from scimba_jax.nonlinear_approximation.integration.monte_carlo import DomainSampler, TensorizedSampler
from scimba_jax.nonlinear_approximation.integration.monte_carlo_time import UniformTimeSampler
from scimba_jax.nonlinear_approximation.networks.mlp import MLP
from scimba_jax.nonlinear_approximation.networks.scimba_module import ScimbaModule
from scimba_jax.nonlinear_approximation.numerical_solvers import projectors
from scimba_jax.physical_models.temporal_pde.viscous_burgers import ViscousBurgers1D
from watch import Watch

NU = 0.01 / jnp.pi
METHODS = {"eng": "ENG", "dsgnar": "DSGNAR", "ssbroyden": "SS-Broyden", "anagram": "ANaGRAM"}
STEPS = {"eng": 5, "dsgnar": 5, "ssbroyden": 20, "anagram": 5}  # at a call
SERVE, FOREVER = 500, 10**7


class Odd(ScimbaModule):
    """N(t, cos πx, sin πx) − N(t, cos πx, −sin πx)."""

    def __init__(self, key: jax.Array):
        self.inner = MLP(3, 1, hidden_sizes=[20, 20, 20], activation="tanh", key=key)

    def __call__(self, z: jax.Array) -> jax.Array:
        t, c, s = z[..., :1], jnp.cos(jnp.pi * z[..., 1:]), jnp.sin(jnp.pi * z[..., 1:])
        return self.inner(jnp.concatenate([t, c, s], -1)) - self.inner(jnp.concatenate([t, c, -s], -1))


class Strong(Odd):
    """−sin πx + t × that: the initial value is exact, and so are the walls of an odd field of period 2."""

    def __call__(self, z: jax.Array) -> jax.Array:
        return -jnp.sin(jnp.pi * z[..., 1:]) + z[..., :1] * super().__call__(z)


class OverError(Exception):
    """The budget is spent."""


def train(method: str, seed: int, watch: Watch) -> int:
    """`method` is "eng", "dsgnar" or "ssbroyden", with "-strong" for built-in conditions."""
    name, _, strong = method.partition("-")
    field = (Strong if strong else Odd)(jax.random.PRNGKey(seed))
    space = ApproximationSpace({"t": 1, "x": 1}, [(field, "scalar", None)], "t_x")
    predict = jax.jit(lambda module, z: module(z)[:, 0])
    done = 0

    def scan(leaves: Any, space: Any, key: Any, **options: Any) -> Any:
        """A call of their own loop, and a look."""
        nonlocal done
        found = jax.block_until_ready(projectors._scan_train(leaves, space, key, **options))
        done += options["n_epochs"]
        if not watch(predict, found[5].models[0], done):
            raise OverError
        return found

    projector, key = made(METHODS[name], space, bool(strong)), jax.random.PRNGKey(seed + 1)
    renewed = name != "ssbroyden"
    counts = (3072, 1, 300) if name == "dsgnar" else (3000, 1, 300)  # DSGNAR's in blocks of 1,024
    try:
        while True:
            key, projector = projector._project_chunks(
                scan,
                key,
                projector.space,
                FOREVER if renewed else SERVE,
                *counts,
                verbose=True,
                scan_chunk=STEPS[name],
                resample=renewed,
                keep_last=True,
            )
    except OverError:
        return field.ndof()


def made(optimiser: str, space: Any, strong: bool) -> projectors.Projector:
    """Equation, points and optimiser."""
    domain = Segment1D((0.0, 1.0), is_main_domain=True)
    start = None if strong else "weak"
    model = ViscousBurgers1D(domain, (0.0, 1.0), bc="strong", ic=start, f_ic_rhs=initial, sigma=NU)
    sampler = TensorizedSampler(
        [UniformTimeSampler((0.0, 1.0)), DomainSampler(domain)], model_type="t_x", bc=False, ic=not strong
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its sketch is as wide as the network
        return projectors.Projector(model, space, sampler, optimizer=optimiser)


def initial(x: jax.Array) -> jax.Array:
    return -jnp.sin(jnp.pi * x)
