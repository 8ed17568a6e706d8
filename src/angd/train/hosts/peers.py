"""What processes tell each other between steps: process 0 has the clock and the files, any of them may ask for an end.

Alone       one process, which agrees with itself
Together    several: `shared` gathers a few numbers of each, `sent` brings bytes of process 0 to all
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

# How the transports of JAX say that the other side is not there any more.
GONE = re.compile(r"gloo|nccl|rccl|connection|socket|coordination|heartbeat|peer|unavailable|barrier", re.IGNORECASE)


class Alone:
    """One process."""

    number, count, is_first = 0, 1, True

    def shared(self, numbers: Sequence[float]) -> np.ndarray:
        """The numbers of every process, a row for each."""
        return np.asarray([numbers], float)

    def sent(self, data: bytes | None) -> bytes:
        """The bytes of process 0; others pass None."""
        assert data is not None
        return data

    def gathered(self, tree: PyTree) -> PyTree:
        """The same arrays, so that this process can read them."""
        return tree

    def found(self, look: Callable[[], Any]) -> Any:
        """What process 0 finds, as JSON can hold it; a mistake that it finds is raised everywhere."""
        return look()


class Together(Alone):
    """The processes of a mesh. Whatever one of them calls, all of them must call.

    **Arguments:** `mesh`, devices of all processes.
    """

    def __init__(self, mesh: Mesh):
        numbers = sorted({device.process_index for device in mesh.devices.flat})
        self.number, self.count = numbers.index(jax.process_index()), len(numbers)
        self.is_first = self.number == 0
        firsts = [next(d for d in mesh.devices.flat if d.process_index == i) for i in numbers]
        row = Mesh(np.asarray(firsts), ("processes",))
        self._device, self._rows = firsts[self.number], NamedSharding(row, PartitionSpec("processes"))
        self._gather = jax.jit(lambda rows: rows, out_shardings=NamedSharding(row, PartitionSpec()))
        self._copies = NamedSharding(mesh, PartitionSpec())
        self._copy = jax.jit(lambda array: array, out_shardings=self._copies)

    def shared(self, numbers: Sequence[float]) -> np.ndarray:
        # As pairs of 32 bits, because without x64 JAX would round them.
        row = np.asarray([numbers], np.float64).view(np.uint32)
        mine = jax.device_put(row, self._device)
        rows = jax.make_array_from_single_device_arrays((self.count, row.shape[1]), self._rows, [mine])
        return np.asarray(self._gather(rows)).view(np.float64)

    def sent(self, data: bytes | None) -> bytes:
        length = int(self.shared([0 if data is None else len(data)])[0, 0])
        whole = np.zeros(length, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return np.asarray(multihost_utils.broadcast_one_to_all(whole, self.is_first)).tobytes()

    def gathered(self, tree: PyTree) -> PyTree:
        return jax.tree.map(self._readable, tree)

    def _readable(self, leaf: Any) -> Any:
        """An array of all processes as one of this process."""
        if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
            return leaf
        if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(self._readable(jax.random.key_data(leaf)))
        whole = leaf if leaf.is_fully_replicated else self._copy(leaf)
        return jax.numpy.asarray(np.asarray(whole.addressable_data(0)))

    def found(self, look: Callable[[], Any]) -> Any:
        mistake, said = None, None
        if self.is_first:
            try:
                said = {"found": look()}
            except (ValueError, OSError, ImportError) as error:
                mistake, said = error, {"wrong": str(error)}
        answer = json.loads(self.sent(None if said is None else json.dumps(said).encode()))
        if mistake is not None:
            raise mistake
        if "wrong" in answer:
            raise ValueError(f"Process 0 says: {answer['wrong']}")
        return answer["found"]


def peers_of(mesh: Mesh | None) -> Alone:
    """The processes whose devices are in a mesh; this one alone where there is none."""
    if mesh is None or len({device.process_index for device in mesh.devices.flat}) == 1:
        return Alone()
    return Together(mesh)


def is_gone(error: BaseException) -> bool:
    """Does an error, or what it arose from, say that another process does not answer any more?"""
    if isinstance(error, jax.errors.JaxRuntimeError) and GONE.search(str(error)):
        return True
    return error.__cause__ is not None and is_gone(error.__cause__)
