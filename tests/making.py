"""Runs for tests: built-in tasks are built once, so that they compile once."""

from functools import lru_cache

from angd.problems.library import TASKS
from angd.train.run import Run
from angd.train.setup import prepare


@lru_cache
def task_of(name, network="small"):
    return TASKS[name](network)


def completed(config):
    """The configuration with all that its task decides, the task, and the recipe."""
    task = task_of(config.task, config.arguments.get("network", "small"))
    return config.completed(task)[0], task, config.completed(task)[1]


def setup_of(config):
    complete, task, recipe = completed(config)
    return prepare(task, recipe, complete.seed)


def session(path, config, save_seconds=30.0, setup=None):
    """A run in a folder."""
    return Run(setup or setup_of(config), completed(config)[0], path, save_seconds)


def left_and_resumed(path, config, step):
    """The folder of a run that was left after a step and then ended, so that it has two checkpoints."""
    records = session(path, config).records()
    while next(records).step < step:
        pass
    records.close()
    list(session(path, config).records())
    return path
