"""Arrays that every process holds whole, put on the devices that they share."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from angd.method.parallel import AXIS


def copied(tree: PyTree, mesh: Mesh) -> PyTree:
    """The same arrays on every device."""
    sharding = NamedSharding(mesh, PartitionSpec())
    return jax.tree.map(lambda leaf: _put(leaf, sharding), tree)


def divided(tree: PyTree, mesh: Mesh) -> PyTree:
    """Arrays whose leading axis is spread over the devices; those it does not fit are copied."""

    def place(leaf: Any) -> Any:
        even = jnp.ndim(leaf) > 0 and jnp.shape(leaf)[0] % mesh.size == 0
        return _put(leaf, NamedSharding(mesh, PartitionSpec(AXIS) if even else PartitionSpec()))

    return jax.tree.map(place, tree)


def beside(params: PyTree, state: PyTree) -> PyTree:
    """A state on the devices of the parameters: what `init` has made on one device is copied to all, or the second
    step would be compiled again."""
    mesh = next((m for leaf in jax.tree.leaves(params) if (m := _mesh(leaf)) is not None), None)
    if mesh is None:
        return state
    return jax.tree.map(lambda leaf: copied(leaf, mesh) if _mesh(leaf) is None else leaf, state)


def _mesh(leaf: Any) -> Mesh | None:
    """The devices that an array is on, None where it is on one."""
    sharding: Any = getattr(leaf, "sharding", None)
    return getattr(sharding, "mesh", None) if len(getattr(sharding, "device_set", ())) > 1 else None


def _put(leaf: Any, sharding: NamedSharding) -> Any:
    if jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_put(jax.random.key_data(leaf), sharding))
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])
