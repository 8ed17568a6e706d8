"""The walk: evaluate a jaxpr equation by equation and notice where parameters are used.

Parameters enter as `View`s, everything else as arrays. A view that only moves stays a view; a view contracted with an
activation is a *tap*; any other use reads the view's `probe`, which plain reverse mode differentiates: always exact,
only without factors. Calls are entered, whatever their primitive is named, unless they carry their own derivative rule,
and so are loops of up to `TRIPS` steps that read a parameter (a scan over layers): each step is walked by itself.
Equations that repeat an earlier one are not evaluated again, so a network that a residual evaluates five times is
tapped once. Beside each tap the walk notes who reads its output, which tells biases from other additions.
"""

from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from angd.method.jacobian.taps.contractions import CONTRACTIONS, Contraction
from angd.method.jacobian.taps.views import MOVES, View, rescale

LOOPS = ("scan", "while", "cond")
TRIPS = 128  # steps of a loop that are walked one by one; longer ones would take long to compile
LINEAR = ("add", "add_any", "sub", "mul", "div", "complex of two parameters")  # the last joins pairs of real ones
TURNS = ("transpose", "reshape", "squeeze")


Turn = tuple[Sequence[int] | None, tuple[int, ...]]  # a permutation of axes, or None for a reshape; the shape after it


class Reader(NamedTuple):
    """Who reads the output of a tap, after which turns: a parameter added to it, or anything else (None)."""

    added: View | None
    turns: tuple[Turn, ...]


class Walk:
    """One evaluation: its perturbations (None while only looking), and what it met."""

    def __init__(self, perturbations: Sequence[Any] | None = None):
        self.perturbations = perturbations
        self.taps: list[tuple[int, Contraction]] = []
        self.outputs: list[Any] = []
        self.readers: list[list[Reader]] = []
        self.probed: dict[int, list[str]] = {}
        self._tapped: dict[int, tuple[Any, int, tuple[Turn, ...]]] = {}
        self._known: dict[Any, tuple[list[Any], list[Any]]] = {}
        self._slices: dict[tuple[int, int], tuple[Any, Any]] = {}

    def run(self, jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """Values of the outputs of `jaxpr`."""
        env = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *inputs), strict=True))
        for equation in jaxpr.eqns:
            outputs = self._once(equation, [_read(env, atom) for atom in equation.invars])
            env.update(zip(equation.outvars, outputs, strict=True))
        return [_read(env, atom) for atom in jaxpr.outvars]

    def probe(self, value: Any, primitive: str) -> Any:
        """An array in place of a view, for a use without factors."""
        if not isinstance(value, View):
            return value
        self.probed.setdefault(value.leaf, []).append(primitive)
        return value.probe

    def finish(self, value: Any) -> Any:
        """The output of the function, which reads a tap like any equation does."""
        self._read([value])
        return self.probe(value, "the output itself")

    def _once(self, equation: JaxprEqn, inputs: list[Any]) -> list[Any]:
        """Evaluate an equation unless the same one on the same values is known."""
        key = _key(equation, inputs)
        if key is None:
            return self._evaluate(equation, inputs)
        if key not in self._known:
            self._known[key] = (inputs, self._evaluate(equation, inputs))
        return self._known[key][1]

    def _evaluate(self, equation: JaxprEqn, inputs: list[Any]) -> list[Any]:
        inner = _callee(equation)
        if inner is not None:
            return self.run(inner.jaxpr, inner.consts, inputs)
        views = [v for v in inputs if isinstance(v, View)]
        if not views:
            return self._pass(equation, inputs)
        if equation.primitive.name == "scan" and equation.params["length"] <= TRIPS:
            return self._unroll(equation.params, inputs)
        self._read(inputs, views[0] if equation.primitive.name == "add" else None)
        moved = _move(equation, inputs)
        return [moved] if moved is not None else self._use(equation, inputs, views)

    def _pass(self, equation: JaxprEqn, inputs: list[Any]) -> list[Any]:
        """An equation without parameters: it turns the output of a tap, or reads it."""
        outputs = _bind(equation, inputs)
        if equation.primitive.name in TURNS and id(inputs[0]) in self._tapped:
            _, tap, turns = self._tapped[id(inputs[0])]
            turn = (equation.params.get("permutation"), outputs[0].shape)
            self._tapped[id(outputs[0])] = (outputs[0], tap, (*turns, turn))
        else:
            self._read(inputs)
        return outputs

    def _read(self, inputs: list[Any], added: View | None = None) -> None:
        for _, tap, turns in (self._tapped[id(value)] for value in inputs if id(value) in self._tapped):
            self.readers[tap].append(Reader(added, turns))

    def _unroll(self, params: dict[str, Any], inputs: list[Any]) -> list[Any]:
        """A loop, step by step: parameters in it stay views, whether shared by all steps or stacked along the first."""
        body, first, last = params["jaxpr"], params["num_consts"], params["num_consts"] + params["num_carry"]
        consts, carry, stacked = inputs[:first], inputs[first:last], inputs[last:]
        steps = range(params["length"])
        rows = []
        for i in reversed(steps) if params["reverse"] else steps:
            outputs = self.run(body.jaxpr, body.consts, [*consts, *carry, *(self._take(x, i) for x in stacked)])
            carry, row = outputs[: len(carry)], outputs[len(carry) :]
            rows.append([self.probe(value, "scan that collects it") for value in row])
        rows = rows[::-1] if params["reverse"] else rows
        self._read([value for row in rows for value in row])
        return [*carry, *(jnp.stack(column) for column in zip(*rows, strict=True))]

    def _take(self, x: Any, i: int) -> Any:
        """x[i], the same object for every loop that asks, so that equal equations are known as such."""
        return self._slices.setdefault((id(x), i), (x, _at(x, i)))[1]

    def _use(self, equation: JaxprEqn, inputs: list[Any], views: list[View]) -> list[Any]:
        """A parameter meets the rest of the function: tap it, or probe it."""
        name = equation.primitive.name
        if name == "stop_gradient":
            return _bind(equation, [views[0].value])
        rule = CONTRACTIONS.get(name)
        contraction = rule(inputs, equation.params) if rule and len(views) == 1 else None
        if contraction is None:
            use = _named(equation, len(views))
            return _bind(equation, [self.probe(v, use) for v in inputs])
        if contraction.output is not None:
            return [self._tap(views[0].leaf, contraction, contraction.output())]
        (output,) = _bind(equation, [v.value if isinstance(v, View) else v for v in inputs])
        return [self._tap(views[0].leaf, contraction, output)]

    def _tap(self, leaf: int, contraction: Contraction, output: Any) -> Any:
        """Record a use and perturb its output: the gradient of the perturbation is the cotangent g."""
        self.taps.append((leaf, contraction))
        if self.perturbations is not None:
            output = output + self.perturbations[len(self.outputs)]
        self._tapped[id(output)] = (output, len(self.outputs), ())
        self.readers.append([])
        self.outputs.append(output)
        return output


def _at(x: Any, i: int) -> Any:
    """x[i], as a view where x is one."""
    if not isinstance(x, View):
        return x[i]
    start, stop = (i, *(0,) * (x.value.ndim - 1)), (i + 1, *x.value.shape[1:])
    return x.move(lax.slice, start, stop).move(lax.squeeze, (0,))


def _named(equation: JaxprEqn, parameters: int) -> str:
    """A use without factors, as the report calls it."""
    name = equation.primitive.name
    if name == "scan":
        return f"scan of {equation.params['length']} steps"
    return name if parameters == 1 or name in LOOPS else f"{name} of two parameters"


def _read(env: dict[Any, Any], atom: Any) -> Any:
    return atom.val if isinstance(atom, Literal) else env[atom]


def _move(equation: JaxprEqn, inputs: list[Any]) -> View | None:
    name = equation.primitive.name
    if name in MOVES and len(inputs) == 1:
        return MOVES[name](inputs[0], equation.params)
    return rescale(name, inputs)


def _bind(equation: JaxprEqn, inputs: list[Any]) -> list[Any]:
    """Evaluate an equation as it stands."""
    params = equation.primitive.get_bind_params(equation.params)
    functions, params = params if isinstance(params, tuple) else ((), params)
    outputs = equation.primitive.bind(*functions, *inputs, **params)
    return list(outputs) if equation.primitive.multiple_results else [outputs]


def _callee(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The body of an equation that is only a call: one jaxpr of the same signature, and no rule of its own."""
    bodies = [_closed(value) for value in equation.params.values() if isinstance(value, ClosedJaxpr | Jaxpr)]
    if equation.primitive.name in LOOPS or len(bodies) != 1 or _has_rule(equation):
        return None
    body = bodies[0].jaxpr
    return bodies[0] if _signature(body) == _signature(equation) and not body.effects else None


def _closed(value: ClosedJaxpr | Jaxpr) -> ClosedJaxpr:
    return value if isinstance(value, ClosedJaxpr) else ClosedJaxpr(value, ())


def _has_rule(equation: JaxprEqn) -> bool:
    """Does the call bring its own derivative (custom_jvp, custom_vjp)? A rematerialisation policy is none."""
    functions = [v for name, v in equation.params.items() if name != "policy" and isinstance(v, FunctionType)]
    return equation.primitive.name.startswith("custom_") or bool(functions)


def _signature(body: Jaxpr | JaxprEqn) -> list[tuple[Any, Any]]:
    avals = [v.aval for v in (*body.invars, *body.outvars)]
    return [(getattr(aval, "shape", None), getattr(aval, "dtype", None)) for aval in avals]


def _key(equation: JaxprEqn, inputs: list[Any]) -> Any | None:
    """What makes two equations equal; None for those that must not be shared."""
    if equation.effects:
        return None
    same = tuple(_identity(atom, value) for atom, value in zip(equation.invars, inputs, strict=True))
    key = (equation.primitive, tuple(sorted(equation.params.items(), key=lambda item: item[0])), same)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _identity(atom: Any, value: Any) -> Any:
    return (str(atom.aval), str(atom.val)) if isinstance(atom, Literal) else id(value)
