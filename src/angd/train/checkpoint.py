"""Checkpoints of a run: one file each, written beside its place, read back, and moved there in one go.

A file holds the arrays of a `TrainState`, its numbers, and a digest over both and over what is run, so that whatever
was edited or cut is noticed. The last two and the best are kept. Where the last one is damaged, the run goes on from
the one before it, and says so.

Where several processes work together, process 0 writes and reads, and sends the others the file: it holds whole arrays,
which any number of devices can share.
"""

import hashlib
import io
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from angd.problems.stages import staged_like
from angd.train.files import write_atomically
from angd.train.hosts.peers import Alone
from angd.train.loop import TrainState

KEEP = 2
NUMBERS = ("k", "phase", "round", "began", "ended", "fresh", "rejected", "recoveries", "seconds", "cpu_seconds")
TREES = ("params", "samples", "state")
HEAD = "head"  # the member of a file that is not an array of the run


class Damaged(ValueError):
    """A checkpoint that is not what was written."""


class Checkpoints:
    """The last `KEEP` and the best, by step.

    **Arguments:**

    - `path`: a folder.
    - `of`: what is run, as JSON can hold it: a checkpoint of something else is refused.
    - `peers`: the processes that save and load together.
    """

    def __init__(self, path: Path, of: Mapping[str, Any], peers: Alone | None = None):
        self.path, self.of, self.peers = path, json.dumps(of, sort_keys=True), peers or Alone()

    @property
    def steps(self) -> list[int]:
        """Those that are there, in order."""
        return sorted(int(file.stem) for file in self.path.glob("*.npz") if _is_one(file))

    @property
    def best(self) -> int:
        """The step with the smallest error among those that are there."""
        errors = {step: self._error(step) for step in self._some()}
        return min(errors, key=lambda step: (errors[step], -step))

    def _some(self) -> list[int]:
        if not self.steps:
            raise ValueError(f"{str(self.path)!r} holds no checkpoint yet.")
        return self.steps

    def chosen(self, step: int | None = None) -> int:
        """That step if it is there, the last by default."""
        steps = self._some()
        if step is not None and step not in steps:
            kept = ", ".join(map(str, steps))
            raise ValueError(f"{str(self.path)!r} holds no checkpoint of step {step}; there are those of {kept}.")
        return steps[-1] if step is None else step

    def save(self, state: TrainState, error: float) -> None:
        """Keep where the run stands; nothing happens where this step is kept already."""
        trees = self.peers.gathered({name: getattr(state, name) for name in TREES})
        if not self.peers.is_first or state.k in self.steps:
            return
        arrays = named_leaves(trees)
        head = {name: getattr(state, name) for name in NUMBERS} | {"error": min(error, 1e300)}
        write_atomically(self._file(state.k), lambda temporary: self._write(temporary, arrays, head), durable=True)
        self._prune()

    def load(self, like: Callable[[int, int], TrainState]) -> TrainState | None:
        """The last state that is whole, None where there is none at all.

        **Arguments:** `like(phase, round)` is a state of the same structure in a phase, with shapes for arrays.
        """
        step = self.peers.found(self._last_whole)
        if step is None:
            return None
        arrays, head = self._parsed(self.peers.sent(self._bytes(step)), self._file(step))
        template = like(head["phase"], head.get("round", 0))
        trees = with_leaves({name: getattr(template, name) for name in TREES}, arrays, self._file(step))
        numbers = {name: head[name] for name in NUMBERS if name in head}
        return replace(template, **trees, **numbers | {"fresh": tuple(head.get("fresh", ()))})

    def _last_whole(self) -> int | None:
        """The last step that is whole, None where there is none at all."""
        for step in reversed(self.steps):
            try:
                self.read(step)
                return step
            except Damaged as error:
                warnings.warn(f"{error} The run goes on from the one before it.", stacklevel=2)
        if self.steps:
            raise ValueError(f"No checkpoint in {str(self.path)!r} is whole: begin the run again in another folder.")
        return None

    def _bytes(self, step: int) -> bytes | None:
        """A file, where this process has it."""
        return self._file(step).read_bytes() if self.peers.is_first else None

    def read(self, step: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The arrays and numbers of a step, if they are what was written."""
        return self._read(self._file(step))

    def params(self, like: PyTree, step: int | None = None) -> PyTree:
        """The parameters of a step, by default the last.

        **Arguments:** `like`, parameters of the same structure; `step`.
        """
        arrays, _ = self.read(self.chosen(step))
        chosen = {name: array for name, array in arrays.items() if name.startswith("['params']")}
        return with_leaves({"params": staged_like(like, chosen)}, chosen, self.path)["params"]

    def _file(self, step: int) -> Path:
        return self.path / f"{step:09d}.npz"

    def _write(self, path: Path, arrays: Mapping[str, np.ndarray], head: Mapping[str, Any]) -> None:
        whole = dict(head) | {"dtypes": {name: str(array.dtype) for name, array in arrays.items()}}
        text = json.dumps(whole | {"digest": digest(arrays, whole, self.of)})
        with open(path, "wb") as handle:
            np.savez(handle, allow_pickle=False, **{HEAD: np.array(text)}, **arrays)
        self._read(path)

    def _read(self, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise Damaged(f"The checkpoint {str(path)!r} is damaged ({type(error).__name__}).") from error
        return self._parsed(data, path)

    def _parsed(self, data: bytes, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as stored:
                arrays = dict(stored)
            head = json.loads(str(arrays.pop(HEAD)))
            arrays = {name: _of_type(array, head["dtypes"][name]) for name, array in arrays.items()}
            sound = head.pop("digest") == digest(arrays, head, self.of)
        except (OSError, BadZipFile, ValueError, KeyError, EOFError, TypeError) as error:
            raise Damaged(f"The checkpoint {str(path)!r} is damaged ({type(error).__name__}).") from error
        if not sound:
            raise Damaged(f"The checkpoint {str(path)!r}, or config.json, is not what was saved.")
        return arrays, head

    def _prune(self) -> None:
        """Remove all but the last ones and the best."""
        best = self.best
        for step in self.steps[:-KEEP]:
            if step != best:
                self._file(step).unlink(missing_ok=True)

    def _error(self, step: int) -> float:
        try:
            with open(self._file(step), "rb") as handle, np.load(handle, allow_pickle=False) as stored:
                return float(json.loads(str(stored[HEAD]))["error"])
        except (OSError, BadZipFile, ValueError, KeyError, EOFError, TypeError):
            return float("inf")


def _is_one(file: Path) -> bool:
    return file.stem.isdecimal() and len(file.stem) < 20 and file.is_file()


def named_leaves(tree: PyTree) -> dict[str, np.ndarray]:
    """Arrays by their place in the tree; keys of random numbers as their data."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(_data(leaf)) for path, leaf in leaves}


def _data(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _of_type(array: np.ndarray, dtype: str) -> np.ndarray:
    """NumPy stores numbers it does not know, such as bfloat16, as bytes."""
    return array.view(jnp.dtype(dtype)) if array.dtype.kind == "V" else array


def with_leaves(tree: PyTree, arrays: Mapping[str, Any], place: Path) -> PyTree:
    """The tree with saved leaves; another structure is refused."""
    leaves, treedef = jax.tree_util.tree_flatten_with_path(tree)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    shapes = {name: jax.eval_shape(_data, leaf).shape for name, (_, leaf) in zip(names, leaves, strict=True)}
    if shapes != {name: np.shape(array) for name, array in arrays.items()}:
        raise ValueError(f"The checkpoint {str(place)!r} belongs to another run: its arrays are not those of this one.")
    found = [
        jax.random.wrap_key_data(arrays[name]) if _is_key(leaf) else jnp.asarray(arrays[name])
        for name, (_, leaf) in zip(names, leaves, strict=True)
    ]
    return jax.tree.unflatten(treedef, found)


def digest(arrays: Mapping[str, Any], numbers: Mapping[str, Any], of: str) -> str:
    """A fingerprint of all arrays and numbers, and of what is run."""
    total = hashlib.sha256(json.dumps([of, numbers], sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(json.dumps([name, array.shape, str(array.dtype)]).encode())
        total.update(array.tobytes())
    return total.hexdigest()
