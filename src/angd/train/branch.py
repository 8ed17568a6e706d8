"""A branch: a run that starts from the parameters of another one, with the same or another recipe.

The parameters are copied into the folder of the branch, so that it can be resumed without the run it came from.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from jaxtyping import PyTree

from angd.problems.stages import staged_like
from angd.problems.task import Task
from angd.train.checkpoint import Checkpoints, digest, named_leaves, with_leaves
from angd.train.config import Config
from angd.train.folder import RunFolder
from angd.train.run import identity


def branch(config: Config, task: Task, parent: Path, step: int | None = None) -> tuple[Config, PyTree]:
    """Start from a checkpoint of another run.

    **Arguments:** `config` of the branch; its `task`; `parent`, the folder of the other run; `step`, that of the
    checkpoint, by default the last.

    **Returns:** the configuration, which says where it came from, and the parameters.
    """
    folder = RunFolder(parent)
    kept = Checkpoints(folder.checkpoints, identity(folder.config()))
    chosen = kept.chosen(step)
    params = kept.params(task.start(jax.random.key(0)), chosen)
    start = {"folder": str(parent), "step": chosen, "sha256": _hash(named_leaves(params))}
    return replace(config, start=start), params


def start_of(folder: RunFolder, config: Config, task: Task) -> PyTree:
    """The parameters that a branch began with, None for a run that is none."""
    if config.start is None:
        return None
    arrays, path = folder.read_arrays("start.npz"), folder.path / "start.npz"
    if _hash(arrays) != config.start.get("sha256"):
        raise ValueError(f"{str(path)!r} is not what this branch began with: begin it again in another folder.")
    return with_leaves(staged_like(task.start(jax.random.key(0)), arrays), arrays, path)


def _hash(arrays: Any) -> str:
    return digest(arrays, {}, "")
