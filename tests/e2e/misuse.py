"""Calls of the library with something wrong in them, drawn from a seed: `python misuse.py COUNT SEED…`.

Prints the calls that did not raise ValueError or TypeError with a sentence of ours; nothing where all is well.
"""

import inspect
import random
import string
import sys
from typing import Any

import jax
import jax.numpy as jnp
import optax

import angd

jax.config.update("jax_enable_x64", True)


def garbage(rng):
    """A word of anything."""
    letters = string.printable + "äψ→\U0001f600"
    return "".join(rng.choice(letters) for _ in range(rng.randint(1, 30)))


class Density:
    def log_density(self, params, x):
        return -params["a"] * x**2

    def variation(self, params, x):
        return x**2


class Residual:
    def residual(self, params, x):
        return params["a"] * x - 1


PARAMS, X = {"a": jnp.array(1.0)}, jnp.linspace(-1, 1, 8)
SAMPLES = angd.Samples(X)
STRANGE = [None, 3, "text", [1, 2], {"a": 3}, object(), 1j, float("nan"), X, PARAMS, SAMPLES, len, angd]


def optimiser(metric):
    return angd.ANGD(angd.ARGFlow.momentum(0.5, 0.1), metric, angd.Normal(1e-3))


def a_misuse(rng):
    """A call of the library with something wrong in it."""
    strange = rng.choice(STRANGE)
    no_text = rng.choice([s for s in STRANGE if not isinstance(s, str)])
    stranger = rng.choice([s for s in STRANGE if s is not None and s is not SAMPLES and not callable(s)])
    number = rng.choice([-1, -0.5, float("nan"), float("inf"), "1", True, [1.0], {}])
    whole = rng.choice([-1, 1.5, "3", True, float("nan"), 10**400, [3]])
    solver, energy = angd.Normal(1e-3), angd.Energy()
    flow = angd.ARGFlow.momentum(0.5, 0.1)
    state = optimiser(energy).init(Residual(), PARAMS, SAMPLES) if rng.random() < 0.5 else strange
    adam = optax.adam(1e-2).init(PARAMS)
    wrong_state: Any = adam if state is not strange else strange
    kinds = [
        lambda: optimiser(energy).init(Residual(), PARAMS, stranger),
        lambda: optimiser(angd.FisherRao()).init(Density(), PARAMS, {"a": SAMPLES}),
        lambda: optimiser(energy).step(Residual(), PARAMS, SAMPLES, wrong_state),
        lambda: optimiser(energy).init(strange, PARAMS, SAMPLES),
        lambda: optimiser(energy).init(Residual(), rng.choice([None, {}, 3, "x", {"a": 1}, [1j]]), SAMPLES),
        lambda: angd.ANGD(strange, energy, solver),
        lambda: angd.ANGD(flow, strange, solver),
        lambda: angd.ANGD(flow, energy, strange),
        lambda: angd.ANGD(flow, energy, solver, strange),
        lambda: angd.Normal(number),
        lambda: angd.Kernel(number),
        lambda: angd.Iterative(1e-3, rtol=rng.choice([0, -1.0, float("nan")])),
        lambda: angd.in_turn(rng.choice([[], [3], [None], ["x"]])),
        lambda: angd.fit("heat", steps=whole, progress=False),
        lambda: angd.fit("heat", steps=1, key=whole, progress=False),
        lambda: angd.fit("heat", steps=1, recover=whole, progress=False),
        lambda: angd.fit("heat", rng.choice([3, [1], {"a": 3}, object(), angd.ANGD, X]), steps=1, progress=False),
        lambda: angd.fit("heat", f"no-{garbage(rng)}", steps=1, progress=False),
        lambda: angd.fit(rng.choice([3, [1], X, object(), f"no-{garbage(rng)}"]), steps=1, progress=False),
        lambda: angd.fit("heat", "adam", steps=1, callback=rng.choice([3, "x", [1]]), progress=False),
        lambda: angd.fit("heat", "adam", steps=1, mesh=rng.choice([3, "x", [1]]), progress=False),
        lambda: angd.fit("heat", "adam", steps=1, folder=rng.choice(["", ".", 3, []]), progress=False),
        lambda: angd.load(f"nowhere/{garbage(rng)}".replace("\x00", "")),
        lambda: angd.evaluate(rng.choice(["nowhere", 3, None, []])),
        lambda: angd.evaluate("nowhere", grid=rng.choice([3, (0, 3), "x", (1.5, 2)])),
        lambda: angd.Task(angd.Task(Residual())),
        lambda: angd.Task.of(no_text),
        lambda: angd.recipes.GaussNewton(damping=number),
        lambda: angd.recipes.GaussNewton(interior=rng.choice([0, -1, 1.5, "3", True, [3]])),
        lambda: angd.Samples(X, -jnp.ones(8)),
        lambda: angd.published.spring(rng.choice([-1.0, 0.0, float("nan")])),
    ]
    return rng.choice(kinds)


def flaw(call):
    """What is wrong with the answer, None where it is a sentence."""
    try:
        call()
    except (ValueError, TypeError) as error:
        return None if len(str(error)) > 20 and "\n" not in str(error)[:60] else f"says {error!r}"
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    return "succeeds in silence"


def main(count, seeds):
    for seed in seeds:
        rng = random.Random(seed)
        for _ in range(count):
            call = a_misuse(rng)
            said = flaw(call)
            if said is not None:
                known = inspect.getclosurevars(call).nonlocals
                print(said[:200], "|", inspect.getsource(call).strip(), {n: str(v)[:60] for n, v in known.items()})


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(word) for word in sys.argv[2:]])
