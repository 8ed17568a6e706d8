"""What is fixed is sorted once, and shared; what moves is traced."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.train.compiled import Compiled


class Line(eqx.Module):
    slope: jnp.ndarray
    power: int = 1

    def __call__(self, x):
        return self.slope * x**self.power


def counted():
    """A function, and the list of its tracings."""
    traced = []

    def apply(line, x):
        traced.append(line.power)
        return line(x)

    return apply, traced


def test_equal_things_share_what_is_compiled_and_others_do_not():
    apply, traced = counted()
    x = jnp.arange(3.0)
    for slope, power in ((2.0, 1), (3.0, 1), (2.0, 2)):
        found = Compiled(apply, Line(jnp.asarray(slope), power))(x)
        assert np.array_equal(found, slope * np.arange(3.0) ** power)
    assert traced == [1, 2], "another array is no reason to compile again, another power is"


def test_another_shape_is_compiled_again():
    apply, traced = counted()
    line = Compiled(apply, Line(jnp.asarray(2.0)))
    for n in (3, 3, 4):
        assert np.array_equal(line(jnp.ones(n)), np.full(n, 2.0))
    assert len(traced) == 2


def test_what_is_compiled_ahead_gives_the_same_and_knows_its_memory():
    apply, _ = counted()
    line = Compiled(apply, Line(jnp.asarray(2.0)))
    compiled = line.ahead(jnp.arange(3.0))
    ahead, memory = line.with_arrays(compiled), compiled.memory_analysis()
    assert np.array_equal(ahead(jnp.arange(3.0)), line(jnp.arange(3.0)))
    assert memory.output_size_in_bytes == jnp.arange(3.0).nbytes
    other = Compiled(apply, Line(jnp.asarray(5.0)))
    assert other.shares(line)
    assert np.array_equal(other.with_arrays(compiled)(jnp.arange(3.0)), other(jnp.arange(3.0)))
    assert not Compiled(apply, Line(jnp.ones(2))).shares(line)
    assert not Compiled(apply, Line(jnp.asarray(5.0), 2)).shares(line)


class Named:
    """A method that keeps a word in its state."""

    def init(self, problem, params, samples):
        return {"name": "mine", "count": 0}

    def step(self, problem, params, samples, state):
        raise AssertionError


def test_a_state_with_other_things_than_arrays_is_refused_in_a_sentence():
    class Flat:
        def loss(self, params, samples):
            return jnp.sum(params**2)

    task = angd.Task(Flat(), name="flat", params=jnp.ones(2), samples=angd.Samples(jnp.zeros((1, 1))))
    with pytest.raises(ValueError, match="its state must consist of arrays and numbers, but `init` put a str there"):
        angd.fit(task, Named(), steps=1, progress=False)
