"""Optax's Adam and L-BFGS in loops of their own, on the residual, network and settings that our sweep found best."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from fixed import fixed
from jax import lax
from watch import Watch

from angd.problems.pinn import Adaptive, Uniform, burgers
from angd.tree import count

jax.config.update("jax_enable_x64", True)
TUNED = Path(__file__).parents[2] / "results" / "rivals.json"


def train(method: str, seed: int, watch: Watch) -> int:
    """`method` is "adam" or "lbfgs"."""
    problem = burgers.burgers("-sin")
    params = problem.init(jax.random.key(seed))
    best = json.loads(TUNED.read_text(encoding="utf-8"))["values"][method]["best"]
    {"adam": adam, "lbfgs": lbfgs}[method](problem, params, jax.random.key(seed + 1), best, watch)
    return count(params)


def adam(problem: Any, params: Any, key: jax.Array, best: dict[str, Any], watch: Watch) -> None:
    """New uniform points in every step, a rate that halves; a hundred steps at a call."""
    rule, draw = (
        optax.adam(optax.exponential_decay(best["rate"], best["halving"], 0.5)),
        Uniform(interior=1000, initial=250),
    )

    def step(held: Any, key: jax.Array) -> tuple[Any, None]:
        params, state = held
        gradient = jax.grad(loss(problem))(params, draw(key, problem, params))
        update, state = rule.update(gradient, state)
        return (optax.apply_updates(params, update), state), None

    block, predict = jax.jit(lambda held, key: lax.scan(step, held, jax.random.split(key, each))[0]), field(problem)
    held, k, going = fixed((params, rule.init(params))), 0, True
    while going:
        held, k = jax.block_until_ready(block(held, jax.random.fold_in(key, k))), k + each
        going = watch(predict, held[0], k)


def lbfgs(problem: Any, params: Any, key: jax.Array, best: dict[str, Any], watch: Watch) -> None:
    """Adaptive points that serve `keep` steps, zoom line search; twenty steps at a call."""
    rule, each = optax.lbfgs(memory_size=best["memory"]), 20
    draw = jax.jit(lambda key, params: Adaptive(interior=best["interior"], initial=300)(key, problem, params))

    def step(held: Any, samples: Any) -> Any:
        params, state = held

        def value(params: Any) -> jax.Array:
            return loss(problem)(params, samples)

        now, gradient = optax.value_and_grad_from_state(value)(params, state=state)
        update, state = rule.update(gradient, state, params, value=now, grad=gradient, value_fn=value)
        return optax.apply_updates(params, update), state

    block = jax.jit(lambda held, samples: lax.fori_loop(0, each, lambda _, held: step(held, samples), held))
    predict, held, k, going, samples = field(problem), (params, rule.init(params)), 0, True, None
    while going:
        if k % best["keep"] == 0:
            samples = draw(jax.random.fold_in(key, k), held[0])
            held = fixed((held[0], optax.tree.set(held[1], value=jnp.inf)))  # its last value is of other points
        held, k = jax.block_until_ready(block(held, samples)), k + each
        going = watch(predict, held[0], k)


def loss(problem: Any) -> Callable[..., jax.Array]:
    """½ Σ weight × mean r²."""

    def value(params: Any, samples: Any) -> jax.Array:
        parts = {name: jax.vmap(f, (None, 0))(params, samples[name].x) for name, f in problem.residuals.items()}
        return sum((problem.weight(name) * jnp.mean(r**2) / 2 for name, r in parts.items()), jnp.zeros(()))

    return value


def field(problem: Any) -> Callable[..., jax.Array]:
    return jax.jit(jax.vmap(problem.field, (None, 0)))
