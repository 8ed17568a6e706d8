"""Samples over devices and hosts: data are split, parameters are copied.

    samples, params = angd.split(samples), angd.replicate(params)
    params, samples, state, info = eqx.filter_jit(opt.step)(problem, params, samples, state)

Arrays on a mesh carry it in their type, also while they are traced: `mesh_of` asks for it, and whoever must not leave
it to the compiler where work is done maps over the devices with `on_each` or `by_share`. On several hosts call
`jax.distributed.initialize` first and give each host its own samples: `split` joins them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from angd.method.samples import Samples

AXIS = "samples"
SPLIT, COPIED = PartitionSpec(AXIS), PartitionSpec()


def mesh(devices: Any = None) -> Mesh:
    """All devices (of all hosts) in a row.

    **Arguments:**

    - `devices`: a list of devices; all by default.

    **Returns:** a `jax.sharding.Mesh` with one axis, `samples`.
    """
    return Mesh(np.asarray(jax.devices() if devices is None else devices), (AXIS,))


def split(samples: PyTree, over: Mesh | None = None) -> PyTree:
    """Samples with their leading axis spread over the devices; each host passes its own part.

    Single numbers, such as the width of a Markov chain's proposals, are copied. With several hosts the
    weights are divided by their number, so that they still add up to what one host would have; for that, every host
    must hold as many samples, on as many devices, as the others.

    **Arguments:**

    - `samples`: `Samples` or any pytree; leading axes must be multiples of a host's number of devices.
    - `over`: a `Mesh`, `angd.parallel.mesh()` by default.

    **Returns:** the same pytree, sharded.
    """
    where = over or mesh()
    devices = Counter(device.process_index for device in where.devices.flat)
    hosts, share = len(devices), where.size // len(devices)
    own = [leaf.shape[0] for leaf in jax.tree.leaves(samples) if leaf.ndim]
    if hosts > 1:
        check_shares(list(devices.values()), _of_all_hosts(own))
    bad = sorted(n for n in set(own) if n % share)
    if bad:
        raise ValueError(f"{bad[0]} samples cannot be split evenly over {share} devices: use a multiple of {share}.")

    def place(leaf: Any) -> Any:
        sharding = NamedSharding(where, PartitionSpec(AXIS) if leaf.ndim else PartitionSpec())
        if hosts == 1:
            return jax.device_put(leaf, sharding)
        return jax.make_array_from_process_local_data(sharding, np.asarray(leaf))

    return jax.tree.map(place, samples if hosts == 1 else _divide(samples, hosts))


def check_shares(devices: Sequence[int], lengths: Sequence[Sequence[int]]) -> None:
    """Refuse hosts with unequal shares: their weights would not add up.

    **Arguments:** `devices` of each host; `lengths`, for each host those of its arrays, in the same order.
    """
    if len(set(devices)) > 1:
        raise ValueError(f"The hosts have {_each(devices)} devices: give the mesh as many of each.")
    for shares in zip(*lengths, strict=True):
        if len(set(shares)) > 1:
            raise ValueError(f"The hosts hold {_each(shares)} samples: give each host as many as the others.")


def _each(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def _of_all_hosts(lengths: list[int]) -> list[list[int]]:
    """What every host says of its own samples."""
    from jax.experimental.multihost_utils import process_allgather

    return np.asarray(process_allgather(np.asarray(lengths))).tolist()


def mesh_of(tree: PyTree) -> AbstractMesh | None:
    """The devices that samples are split over, as arrays know them, also while they are traced.

    **Arguments:** `tree`, any pytree.

    **Returns:** a mesh of several devices with an axis `samples`; None where no array is on one, or where every device
    is at work for itself already.
    """
    meshes = (jax.typeof(leaf).sharding.mesh for leaf in jax.tree.leaves(tree) if eqx.is_array(leaf))
    return next((mesh for mesh in meshes if _is_free(mesh)), None)


def _is_free(mesh: AbstractMesh) -> bool:
    types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    return types.get(AXIS) == AxisType.Auto and mesh.shape[AXIS] > 1


def on_each(f: Callable[..., Any], over: AbstractMesh, takes: Any, gives: Any) -> Callable[..., Any]:
    """f, done by every device with its own share of what is `SPLIT` and all of what is `COPIED`.

    **Arguments:**

    - `f`: may sum over the devices along the axis `samples`.
    - `over`: the mesh.
    - `takes`, `gives`: `SPLIT` or `COPIED` for each argument and result, or trees of them.

    **Returns:** a function of whole arrays.
    """
    return jax.shard_map(f, mesh=over, in_specs=takes, out_specs=gives, check_vma=False)


def by_share(f: Callable[[PyTree], PyTree], xs: PyTree) -> PyTree:
    """`f(xs)` for an f that treats every sample alike: on a mesh each device does its share, and nothing is gathered.

    **Arguments:**

    - `f`: from samples to results, both along leading axes of one length.
    - `xs`: the samples; where the devices do not divide them, some are computed twice.

    **Returns:** the results of all samples.
    """
    over = mesh_of(xs)
    if over is None:
        return f(xs)
    n = jax.tree.leaves(xs)[0].shape[0]
    found = on_each(f, over, SPLIT, SPLIT)(filled(xs, over.size))
    return jax.tree.map(lambda leaf: leaf[:n], found) if n % over.size else found


def filled(xs: PyTree, devices: int) -> PyTree:
    """Samples, the last one repeated until the devices divide them."""
    n = jax.tree.leaves(xs)[0].shape[0]
    if n % devices == 0:
        return xs
    places = np.minimum(np.arange(-(-n // devices) * devices), n - 1)
    return jax.tree.map(lambda x: x[places], xs)


def spread(tree: PyTree, like: PyTree) -> PyTree:
    """Leading axes split over the mesh that other arrays are on, inside a compiled function; nothing without one.

    **Arguments:** `tree`, samples to be; `like`, arrays on the mesh, such as parameters.
    """
    over = mesh_of(like)
    return tree if over is None else constrained(tree, over)


def copied(tree: PyTree) -> PyTree:
    """All of every array on every device of the mesh that it is on, inside a compiled function."""
    over = mesh_of(tree)
    if over is None:
        return tree
    return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, NamedSharding(over, COPIED)), tree)


def constrained(samples: PyTree, over: Mesh | AbstractMesh) -> PyTree:
    """Samples split over a mesh inside a compiled function; copied where the devices do not divide them."""

    def place(leaf: Any) -> Any:
        even = leaf.ndim and leaf.shape[0] % over.size == 0
        return jax.lax.with_sharding_constraint(leaf, NamedSharding(over, SPLIT if even else COPIED))

    return jax.tree.map(place, samples)


def replicate(tree: PyTree, over: Mesh | None = None) -> PyTree:
    """The same arrays on every device.

    **Arguments:**

    - `tree`: parameters, or any pytree of arrays.
    - `over`: a `Mesh`, `angd.parallel.mesh()` by default.

    **Returns:** the same pytree, replicated.
    """
    sharding = NamedSharding(over or mesh(), COPIED)

    def place(x: Any) -> Any:
        if sharding.is_fully_addressable:
            return jax.device_put(jnp.asarray(x), sharding)
        return jax.make_array_from_callback(jnp.shape(x), sharding, np.asarray(x).__getitem__)  # every host has it

    return jax.tree.map(place, tree)


def _divide(samples: PyTree, hosts: int) -> PyTree:
    def one(part: Any) -> Any:
        return eqx.tree_at(lambda p: p.omega, part, part.omega / hosts) if isinstance(part, Samples) else part

    return jax.tree.map(one, samples, is_leaf=lambda part: isinstance(part, Samples))
