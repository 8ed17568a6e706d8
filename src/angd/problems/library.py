"""Tasks that come with `angd`. `angd run burgers` is `angd.fit(angd.problems.library.burgers())`.

What is known before a task is built (its text, its kind, its options) stands here as data; each is built when it is
called. Imports nothing heavy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from angd.problems.task import Task

NETWORKS = ("small", "paper")


@dataclass(frozen=True)
class Builtin:
    """A task that comes with `angd`: `burgers()` builds it, `burgers("paper")` with the network of the paper.

    **Attributes:** `name`; `about`, one line; `density`, whether a probability density is sought; `options` of its
    default recipe; `cpu_seconds`, what a run takes when nobody says.
    """

    name: str
    about: str
    make: Callable[[str], dict[str, Any]]
    density: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    cpu_seconds: float = 600.0

    def __call__(self, network: str = "small") -> Task:
        """Build it.

        **Arguments:** `network`: "small", accurate in minutes, or "paper".

        **Returns:** a `Task`.
        """
        if network not in NETWORKS:
            raise ValueError(f"network must be one of {', '.join(NETWORKS)}, got {network!r}.")
        known = {"about": self.about, "options": self.options, "cpu_seconds": self.cpu_seconds}
        chosen = {} if network == "small" else {"network": network}
        return Task(name=self.name, address=self.name, arguments=chosen, **known, **self.make(network))


def _burgers(initial: str) -> Callable[[str], dict[str, Any]]:
    def make(network: str) -> dict[str, Any]:
        from angd.problems.pinn import burgers as equation

        def reference(counts: Sequence[int] | None = None) -> Any:
            z, u = equation.reference(initial, *_even(counts, 2))
            return z, {"u": u}

        return _in_time(equation.burgers(initial, _network(network)), reference)

    return make


def _euler(network: str) -> dict[str, Any]:
    from angd.problems.pinn import euler as gas

    def reference(counts: Sequence[int] | None = None) -> Any:
        z, states = gas.reference(*_even(counts, 1))
        return z, dict(zip(gas.FIELDS, states.T, strict=True))

    return _in_time(gas.euler(_network(network, outputs=3)), reference)


def _heat(network: str) -> dict[str, Any]:
    from angd.problems.pinn import heat as equation

    def reference(counts: Sequence[int] | None = None) -> Any:
        z, u = equation.reference(*reversed(_even(counts, 2)))
        return z, {"u": u}

    return _in_time(equation.heat(_network(network)), reference)


def _even(counts: Sequence[int] | None, coordinates: int) -> Sequence[int]:
    """Points along each coordinate of a reference's grid, its own by default."""
    if counts is not None and len(counts) != coordinates:
        raise ValueError(f"The grid of this task takes {coordinates} numbers of points, got {len(counts)}.")
    return counts or ()


def _in_time(problem: Any, reference: Callable[[], Any]) -> dict[str, Any]:
    return {"problem": problem, "reference": reference, "coordinates": ("t", "x")}


def _network(network: str, outputs: int | None = None) -> Any:
    """The paper's network; None stands for the problem's own small one."""
    if network == "small":
        return None
    from angd.problems.pinn import Network, burgers

    return Network(burgers.PAPER, outputs=outputs)


def _ground_state(molecule: str, about: str, cpu_seconds: float, **options: Any) -> Builtin:
    def make(network: str) -> dict[str, Any]:
        from angd.problems.vmc.molecules import MOLECULES, wave_function

        return wave_function(MOLECULES[molecule], network)

    return Builtin(f"vmc-{molecule.lower()}", f"ground state of {about}", make, True, options, cpu_seconds)


burgers = Builtin("burgers", "Burgers from −sin(πx): a shock at rest in the middle", _burgers("-sin"))
burgers_sin = Builtin("burgers-sin", "Burgers from sin(πx): a rarefaction, and layers at the walls", _burgers("sin"))
burgers_cos = Builtin(
    "burgers-cos",
    "Burgers from 1 − cos(2πx): a moving shock that meets the wall",
    _burgers("1-cos"),
    options={"interior": 4000},
)
euler = Builtin(
    "euler",
    "Euler's equations: two rarefactions that leave almost a vacuum (Toro's test 123)",
    _euler,
    options={"interior": 1000, "condition": 200},
)
heat = Builtin(
    "heat",
    "the heat equation from sin(πx) on a tiny network: seconds, to try things out",
    _heat,
    options={"interior": 200, "condition": 40, "fresh": 20, "keep": 5},
    cpu_seconds=20.0,
)
hydrogen = _ground_state("H", "hydrogen: seconds, to try things out", 30.0)
helium = _ground_state("He", "helium", 120.0)
lithium_hydride = _ground_state("LiH", "lithium hydride", 600.0)
beryllium = _ground_state("Be", "the beryllium atom", 1200.0)
lithium_dimer = _ground_state("Li2", "the lithium dimer at 5.051 a₀", 3600.0)
hydrogen_chain = _ground_state("H10", "a chain of ten hydrogen atoms, 1.8 a₀ apart", 3600.0)
# Its local energies vary most: with the steps that suit the others its energy falls, then rises again.
nitrogen = _ground_state("N2", "the nitrogen molecule at 2.068 a₀", 7200.0, norm=0.01, decay=2e-3, pretrain=2000)

TASKS: Mapping[str, Builtin] = {
    task.name: task
    for task in (
        *(burgers, burgers_sin, burgers_cos, euler, heat),
        *(hydrogen, helium, lithium_hydride, beryllium, lithium_dimer, hydrogen_chain, nitrogen),
    )
}
"""Every built-in task by its name."""
