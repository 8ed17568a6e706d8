"""Callbacks that keep something: early stopping, averages, several at once; loggers by fakes."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.train.callbacks import Average, Best, Together
from angd.train.loop import TrainState

STEPS = (1, 2, 3)
SAMPLES = angd.Samples(jnp.linspace(-1.0, 1.0, 8))


class Line(eqx.Module):
    def residual(self, params, x):
        return params[0] * x - 2.0 * x

    def loss(self, params, samples):
        return angd.Energy().loss(self, params, samples)


def run(callback, steps=20, rate=0.3):
    opt = angd.ANGD(angd.ARGFlow.gradient(rate), angd.Energy(), angd.Normal(1e-9))
    return angd.fit(Line(), opt, params=jnp.zeros(1), samples=SAMPLES, steps=steps, callback=callback, progress=False)


@cache
def info():
    """What some step said."""
    found = run(None, 1).info
    assert found is not None
    return found


def state(k, value):
    return TrainState(jnp.array([float(value)]), k=k)


def test_the_best_is_kept_and_the_run_ends_where_nothing_better_comes():
    best = Best(lambda params: jnp.abs(params[0] - 1.0), patience=3)
    fit = run(best)
    path = 2 * (1 - 0.7 ** np.arange(1, 21))
    at = int(np.argmin(np.abs(path - 1)))
    assert fit.result == "stopped by the callback"
    assert (best.step, len(fit.history["step"])) == (at + 1, at + 4)
    assert np.isclose(best.params[0], path[at], atol=1e-6)
    assert np.isclose(best.value, abs(path[at] - 1), atol=1e-6)


def test_the_best_looks_now_and_then_and_asks_for_a_margin():
    best, values = Best(lambda p: p[0], every=2, patience=2, better=0.5), [9, 5, 1, 4.8, 1, 4.7]
    answers = [best(state(k, value), info()) for k, value in enumerate(values, 1)]
    assert answers == [None] * 5 + ["stop"]
    assert (best.value, best.step) == (5.0, 2)


def test_an_average_forgets_its_start():
    average, values = Average(0.9), np.array([4.0, -1.0, 2.5, 7.0])
    for k, value in enumerate(values, 1):
        average(state(k, value), info())
    weights = 0.9 ** np.arange(3, -1, -1)
    assert average.params is not None
    assert np.isclose(average.params[0], weights @ values / weights.sum(), atol=1e-12)


def test_several_callbacks_are_one():
    seen = []

    def log(state, info):
        seen.append(state.k)

    fit = run(Together(log, lambda state, info: "stop" if state.k == 4 else None, log))
    assert seen == [k for k in range(1, 5) for _ in range(2)]
    assert fit.result == "stopped by the callback"
    again = Together(lambda state, info: "retry", log)
    assert again(state(1, 0.0), info()) == "retry"
    assert len(seen) == 8


class Recorder:
    """Stands for a logger: whatever is called on it is written down."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **kwargs: self.calls.append((name, args, kwargs))


def test_loggers_take_three_lines():
    """The lines of docs/callbacks.md, with fakes in place of the libraries."""
    writer, wandb_run, mlflow = Recorder(), Recorder(), Recorder()
    log = Together(
        lambda state, info: writer.add_scalar("loss", info.loss, state.k),
        lambda state, info: wandb_run.log({"loss": info.loss, "norm": info.norm}, step=state.k),
        lambda state, info: mlflow.log_metric("loss", float(info.loss), state.k),
    )
    fit = run(log, steps=3)
    assert [(name, args[0], args[2]) for name, args, _ in writer.calls] == [
        ("add_scalar", "loss", k) for k in (1, 2, 3)
    ]
    assert np.allclose([args[1] for _, args, _ in writer.calls], fit.history["loss"])
    assert [kwargs for *_, kwargs in wandb_run.calls] == [{"step": k} for k in STEPS]
    assert all(isinstance(args[1], float) for _, args, _ in mlflow.calls)
    assert not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(wandb_run.calls))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Best(3.0), "judge"),
        (lambda: Best(len, every=0), "every ≥ 1"),
        (lambda: Average(1.0), "below 1"),
        (lambda: Together(len, 3), "must be a function of state and info, got 3"),
    ],
)
def test_misuse_is_told_in_one_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
