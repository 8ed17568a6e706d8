"""Checkpoints of a run: orbax writes them beside their place and moves them there in one go."""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from jaxtyping import PyTree
from orbax.checkpoint import checkpoint_managers as policies

from angd.train.loop import Stand

KEEP = 2
NUMBERS = ("k", "phase", "began", "ended", "refused", "seconds", "cpu_seconds")
TREES = ("params", "samples", "state")
logging.getLogger("absl").setLevel(logging.ERROR)


class Checkpoints:
    """The last `KEEP` and the best, by step."""

    def __init__(self, path: Path):
        self.path = path
        latest = policies.LatestN(KEEP)
        best = policies.BestN(get_metric_fn=lambda metrics: metrics["error"], reverse=True, n=1)
        options = ocp.CheckpointManagerOptions(
            preservation_policy=policies.AnyPreservationPolicy([latest, best]), enable_async_checkpointing=False
        )
        self.manager = ocp.CheckpointManager(path.resolve(), options=options)

    @property
    def latest(self) -> int | None:
        return self.manager.latest_step()

    def save(self, stand: Stand, error: float) -> None:
        """Keep where the run stands; nothing happens where this step is kept already."""
        if stand.k in self.manager.all_steps():
            return
        arrays = named_leaves({name: getattr(stand, name) for name in TREES})
        numbers = {name: getattr(stand, name) for name in NUMBERS} | {"digest": digest(arrays)}
        args = ocp.args.Composite(arrays=ocp.args.StandardSave(arrays), numbers=ocp.args.JsonSave(numbers))
        self.manager.save(stand.k, args=args, metrics={"error": min(error, 1e300)})

    def load(self, like: Any, step: int | None = None) -> Stand:
        """The last stand; `like(phase)` is one of the same structure in a phase, with shapes for arrays."""
        step = self.latest if step is None else step
        place = self.path / str(step)
        try:
            args = ocp.args.Composite(arrays=ocp.args.StandardRestore(), numbers=ocp.args.JsonRestore())
            found = self.manager.restore(step, args=args)
            numbers, arrays = dict(found["numbers"]), found["arrays"]
            sound = numbers.pop("digest") == digest(arrays)
        except Exception as error:
            raise ValueError(_damaged(place, f"{type(error).__name__}")) from error
        if not sound:
            raise ValueError(_damaged(place, "its numbers are not those that were saved"))
        template: Stand = like(int(numbers["phase"]))
        trees = with_leaves({name: getattr(template, name) for name in TREES}, arrays, place)
        return replace(template, **trees, **{name: numbers[name] for name in NUMBERS})

    def close(self) -> None:
        self.manager.close()


def _damaged(place: Path, why: str) -> str:
    return (
        f"The checkpoint {str(place)!r} is damaged ({why}): move it away, and the run goes on from the one before it."
    )


def named_leaves(tree: PyTree) -> dict[str, np.ndarray]:
    """Arrays by their place in the tree."""
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def with_leaves(tree: PyTree, arrays: Mapping[str, Any], place: Path) -> PyTree:
    """The tree with saved leaves; another structure is refused."""
    leaves, treedef = jax.tree_util.tree_flatten_with_path(tree)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    shapes = {name: leaf.shape for name, (_, leaf) in zip(names, leaves, strict=True)}
    if shapes != {name: np.shape(array) for name, array in arrays.items()}:
        raise ValueError(
            f"The checkpoint {str(place)!r} belongs to another configuration: its arrays are not those of this run."
        )
    return jax.tree.unflatten(treedef, [jax.numpy.asarray(arrays[name]) for name in names])


def digest(arrays: Mapping[str, Any]) -> str:
    """A fingerprint of all arrays."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(json.dumps([name, array.shape, str(array.dtype)]).encode())
        total.update(array.tobytes())
    return total.hexdigest()
