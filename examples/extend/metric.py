"""A metric of your own: ∫ (½ + t) σ², where changes at late times are dear.

    angd run heat angd-l2 --metric examples/extend/metric.py:Weighted --steps 20

One method says what is squared and integrated, at one point; `u` is a function and can be differentiated. From it come
the rows of the linear system, the transport of momentum and Hessian-driven damping.
"""

import equinox as eqx
import jax.numpy as jnp

import angd


class Weighted(angd.AbstractSobolev):
    """∫ (½ + t) σ²."""

    on: str = eqx.field(static=True, default="interior")

    def features(self, u, x):
        return jnp.sqrt(0.5 + x[0]) * jnp.ravel(u(x))
