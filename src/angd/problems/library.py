"""Tasks that come with `angd`, each a function of the network's size; its first line says what it is about.

`angd run burgers` is `angd.fit(angd.problems.library.burgers())`. Imports nothing heavy: each function imports what it
builds.
"""

from collections.abc import Callable
from typing import Any

from angd.problems.task import Task

NETWORKS = ("small", "paper")
TIME_SPACE = ("t", "x")


def burgers(network: str = "small") -> Task:
    """Burgers from −sin(πx): a shock at rest in the middle"""
    return _burgers("-sin", network, burgers)


def burgers_sin(network: str = "small") -> Task:
    """Burgers from sin(πx): a rarefaction, and layers at the walls"""
    return _burgers("sin", network, burgers_sin)


def burgers_cos(network: str = "small") -> Task:
    """Burgers from 1 − cos(2πx): a moving shock that meets the wall"""
    return _burgers("1-cos", network, burgers_cos, options={"interior": 4000})


def euler(network: str = "small") -> Task:
    """Euler's equations: two rarefactions that leave almost a vacuum (Toro's test 123)"""
    from angd.problems.pinn import euler as gas

    def reference() -> Any:
        z, states = gas.reference()
        return z, dict(zip(gas.FIELDS, states.T, strict=True))

    problem = gas.euler(_paper(network, outputs=3))
    return _field(problem, euler, reference, 600.0, {"interior": 1000, "condition": 200})


def heat(network: str = "small") -> Task:
    """the heat equation from sin(πx) on a tiny network: seconds, to try things out"""
    from angd.problems.pinn import heat as equation

    def reference() -> Any:
        z, u = equation.reference()
        return z, {"u": u}

    options = {"interior": 200, "condition": 40, "fresh": 20, "keep": 5}
    return _field(equation.heat(_paper(network)), heat, reference, 20.0, options)


def hydrogen(network: str = "small") -> Task:
    """ground state of hydrogen: seconds, to try things out"""
    return _ground_state("H", network, hydrogen, 30.0)


def helium(network: str = "small") -> Task:
    """ground state of helium"""
    return _ground_state("He", network, helium, 120.0)


def lithium_hydride(network: str = "small") -> Task:
    """ground state of lithium hydride"""
    return _ground_state("LiH", network, lithium_hydride, 600.0)


def beryllium(network: str = "small") -> Task:
    """ground state of the beryllium atom"""
    return _ground_state("Be", network, beryllium, 1200.0)


def lithium_dimer(network: str = "small") -> Task:
    """ground state of the lithium dimer at 5.051 a₀"""
    return _ground_state("Li2", network, lithium_dimer, 3600.0)


def hydrogen_chain(network: str = "small") -> Task:
    """ground state of a chain of ten hydrogen atoms, 1.8 a₀ apart"""
    return _ground_state("H10", network, hydrogen_chain, 3600.0)


def nitrogen(network: str = "small") -> Task:
    """ground state of the nitrogen molecule at 2.068 a₀"""
    # Its local energies vary most: with the steps that suit the others its energy falls, then rises again.
    options = {"norm": 0.01, "decay": 2e-3, "pretrain": 2000}
    return _ground_state("N2", network, nitrogen, 7200.0, options)


TASKS: dict[str, Callable[[str], Task]] = {
    "burgers": burgers,
    "burgers-sin": burgers_sin,
    "burgers-cos": burgers_cos,
    "euler": euler,
    "heat": heat,
    "vmc-h": hydrogen,
    "vmc-he": helium,
    "vmc-lih": lithium_hydride,
    "vmc-be": beryllium,
    "vmc-li2": lithium_dimer,
    "vmc-h10": hydrogen_chain,
    "vmc-n2": nitrogen,
}
"""Every task by its name; call it with "small" or "paper"."""


def _burgers(initial: str, network: str, made_by: Callable[..., Task], options: Any = None) -> Task:
    from angd.problems.pinn import burgers as equation

    def reference() -> Any:
        z, u = equation.reference(initial)
        return z, {"u": u}

    return _field(equation.burgers(initial, _paper(network)), made_by, reference, 600.0, options)


def _field(problem: Any, made_by: Callable[..., Task], reference: Any, cpu_seconds: float, options: Any = None) -> Task:
    return Task(
        problem,
        name=made_by.__name__.replace("_", "-"),
        about=made_by.__doc__ or "",
        reference=reference,
        coordinates=TIME_SPACE,
        options=options or {},
        cpu_seconds=cpu_seconds,
    )


def _paper(network: str, outputs: int | None = None) -> Any:
    """The paper's network; None stands for the problem's own small one."""
    if network not in NETWORKS:
        raise ValueError(f"network must be one of {', '.join(NETWORKS)}, got {network!r}.")
    if network == "small":
        return None
    from angd.problems.pinn import Network, burgers

    return Network(burgers.PAPER, outputs=outputs)


def _ground_state(
    molecule: str, network: str, made_by: Callable[..., Task], cpu_seconds: float, options: Any = None
) -> Task:
    from angd.problems.vmc.molecules import MOLECULES, as_task

    return as_task(
        MOLECULES[molecule],
        network=network,
        name=f"vmc-{molecule.lower()}",
        about=made_by.__doc__ or "",
        options=options or {},
        cpu_seconds=cpu_seconds,
    )
