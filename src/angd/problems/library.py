"""Tasks that come with `angd`. `angd run burgers` is `angd.fit(angd.problems.library.burgers())`.

What is known before a task is built (its text, its kind, its options) stands here as data; each is built when it is
called. Imports nothing heavy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from angd.problems.task import Task

NETWORKS = ("small", "paper")
SIZES = ("small", "medium", "published", "paper")  # of molecules, whose published network is the paper's


@dataclass(frozen=True)
class Builtin:
    """A task that comes with `angd`: `burgers()` builds it, `burgers("paper")` with the network of the paper.

    **Attributes:**

    - `name`: by which it is run.
    - `about`: one line.
    - `make`: builds what the `Task` needs, from the name of a network.
    - `density`: whether a probability density is sought.
    - `options`: of its default recipe.
    - `cpu_seconds`: what a run takes when nobody says.
    - `recipe`: its default one, where that is not what its kind says.
    - `equation`: as one line of text.
    - `networks`: the sizes that there are.
    """

    name: str
    about: str
    make: Callable[[str], dict[str, Any]]
    density: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    cpu_seconds: float = 600.0
    recipe: str | None = None
    equation: str = ""
    networks: tuple[str, ...] = NETWORKS

    def __call__(self, network: str = "small") -> Task:
        """Build it.

        **Arguments:** `network`: "small", accurate in minutes, or "paper"; for molecules also "medium" and "published".

        **Returns:** a `Task`.
        """
        if network not in self.networks:
            raise ValueError(f"network must be one of {', '.join(self.networks)}, got {network!r}.")
        known = {n: getattr(self, n) for n in ("about", "options", "cpu_seconds", "equation")}
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

    name = f"vmc-{molecule.lower()}"
    return Builtin(name, f"ground state of {about}", make, True, options, cpu_seconds, networks=SIZES)


def _dot(
    name: str, about: str, spins: tuple[int, int], dimension: int, omega: float, energy: float, seconds: float
) -> Builtin:
    def make(network: str) -> dict[str, Any]:
        from angd.problems.vmc import quantum_dot

        return quantum_dot(spins, dimension, omega, energy)

    return Builtin(name, f"quantum dot: {about}", make, True, DOTS, seconds, networks=("small",))


DOTS: Mapping[str, Any] = {"rate": 0.05, "norm": 0.05}


def _lattice(network: str, name: str) -> dict[str, Any]:
    """A ground state of spins or fermions; the larger network is a convolution in place of an RBM."""
    from angd.problems import lattice as of

    ring = of.ring(16)
    if name == "tfim":
        hamiltonian, symmetry = of.TransverseIsing(ring), ring.translations()
    elif name == "heisenberg":
        hamiltonian, symmetry = of.Heisenberg(ring), ring.translations()
    elif name == "j1j2":
        hamiltonian, symmetry = of.Heisenberg(of.square(4), 0.5), of.square(4).translations()
    else:
        hamiltonian = of.Hubbard(of.ring(6), (3, 3))
        symmetry = of.both_spins(hamiltonian.lattice.translations())
    has_phase = name == "j1j2"
    amplitude = of.RBM(hamiltonian.size, 12 if has_phase else 8, symmetry, complex=has_phase)
    if network == "paper" and name != "hubbard":
        amplitude = of.Convolution(hamiltonian.lattice, (6, 6), complex=has_phase)
    task = of.ground_state(hamiltonian, amplitude, symmetry=symmetry)
    return {"problem": task.problem, "samples": task.samples, "energy": task.energy}


def _spins(name: str, about: str, **options: Any) -> Builtin:
    usual = {
        "metric": "fubini-study",
        "solver": "normal",
        "rate": 0.1,
        "decay": 0,
        "eta": 0,
        "damping": 1e-3,
        "norm": 0.05,
    }
    return Builtin(name, about, partial(_lattice, name=name), True, usual | options, 60.0)


BURGERS = "∂ₜu + u ∂ₓu = ν ∂ₓₓu on [0, 1] × [−1, 1], ν = 0.01/π, u = 0 at both walls"
burgers = Builtin("burgers", "Burgers from −sin(πx): a shock at rest in the middle", _burgers("-sin"), equation=BURGERS)
burgers_sin = Builtin(
    "burgers-sin", "Burgers from sin(πx): a rarefaction, and layers at the walls", _burgers("sin"), equation=BURGERS
)
burgers_cos = Builtin(
    "burgers-cos",
    "Burgers from 1 − cos(2πx): a moving shock that meets the wall",
    _burgers("1-cos"),
    options={"interior": 4000},
    equation=BURGERS,
)
euler = Builtin(
    "euler",
    "Euler's equations: two rarefactions that leave almost a vacuum (Toro's test 123)",
    _euler,
    options={"interior": 1000, "condition": 200},
    equation="∂ₜ(ρ, ρu, E) + ∂ₓ(ρu, ρu² + p, (E + p)u) = 0, E = p/(γ − 1) + ρu²/2, γ = 1.4",
)
heat = Builtin(
    "heat",
    "the heat equation from sin(πx) on a tiny network: seconds, to try things out",
    _heat,
    options={"interior": 200, "condition": 40, "fresh": 20, "keep": 5},
    cpu_seconds=20.0,
    equation="∂ₜu = 0.1 ∂ₓₓu on [0, 1] × [−1, 1], u = sin(πx) at the start, u = 0 at both walls",
)
hydrogen = _ground_state("H", "hydrogen: seconds, to try things out", 30.0)
helium = _ground_state("He", "helium", 120.0)
lithium_hydride = _ground_state("LiH", "lithium hydride", 600.0)
beryllium = _ground_state("Be", "the beryllium atom", 1200.0)
lithium_dimer = _ground_state("Li2", "the lithium dimer at 5.051 a₀", 3600.0)
hydrogen_chain = _ground_state("H10", "a chain of ten hydrogen atoms, 1.8 a₀ apart", 3600.0)
# Its local energies vary most: with the steps that suit the others its energy falls, then rises again.
nitrogen = _ground_state("N2", "the nitrogen molecule at 2.068 a₀", 7200.0, norm=0.01, decay=2e-3, pretrain=2000)

dot_2d = _dot("dot-2d", "2 electrons in the plane, ω = 1 (exact 3 Ha)", (1, 1), 2, 1.0, 3.0, 120.0)
dot_2d_6 = _dot(
    "dot-2d-6", "6 electrons in the plane, ω = 1 (20.1597 Ha with fixed nodes)", (3, 3), 2, 1.0, 20.1597, 900.0
)
dot_3d = _dot("dot-3d", "2 electrons in space, ω = ½: Hooke's atom (exact 2 Ha)", (1, 1), 3, 0.5, 2.0, 120.0)

tfim = _spins("tfim", "the critical Ising ring in a transverse field, 16 sites, exact sums")
heisenberg = _spins("heisenberg", "the Heisenberg ring, 16 sites, exact sums")
j1j2 = _spins("j1j2", "the frustrated J1-J2 model at J2 = 0.5 on a 4 x 4 lattice, a complex amplitude, exact sums")
hubbard = _spins("hubbard", "the Hubbard ring, 6 sites, half filled, U = 4, exact sums")


def _equation(
    name: str, about: str, file: str, equation: str, *given: Any, cpu_seconds: float = 300.0, **options: Any
) -> Builtin:
    """What `angd.problems.pinn.equations.FILE` knows."""

    def make(network: str) -> dict[str, Any]:
        if network != "small":
            raise ValueError(f"{name} has one network only: leave network out.")
        return import_module(f"angd.problems.pinn.equations.{file}").known(*given)

    return Builtin(name, about, make, options=options, cpu_seconds=cpu_seconds, equation=equation)


POISSON = "−Δu = f on the unit cube, u known on its faces"
NAVIER_STOKES = "(u ∂ₓ + v ∂ᵧ)(u, v) + ∇p = Δ(u, v)/Re, ∂ₓu + ∂ᵧv = 0"
EQUATIONS = (
    _equation("poisson", "Poisson's equation on a square", "poisson", "−Δu = f, u = 0 at the edge", 2),
    _equation("poisson-5d", "Poisson's equation in 5 dimensions", "poisson", POISSON, 5),
    _equation("poisson-10d", "Poisson's equation in 10 dimensions", "poisson", POISSON, 10),
    _equation("heat-4d", "the heat equation in 4 dimensions and time", "heat", "∂ₜu = Δu/4, u known on the faces"),
    _equation(
        "allen-cahn",
        "Allen–Cahn from x² cos πx: phases that separate, with thin walls between",
        "allen_cahn",
        "∂ₜu = 10⁻⁴ ∂ₓₓu + 5(u − u³) on [0, 1] × [−1, 1], periodic",
        cpu_seconds=600.0,
    ),
    _equation(
        "kdv",
        "Korteweg–de Vries from cos πx: a wave that breaks into solitons",
        "kdv",
        "∂ₜu + u ∂ₓu + 0.022² ∂ₓₓₓu = 0 on [0, 1] × [−1, 1], periodic",
        cpu_seconds=900.0,
    ),
    _equation(
        "kuramoto-sivashinsky",
        "Kuramoto–Sivashinsky from cos x (1 + sin x): patterns out of long waves",
        "kuramoto_sivashinsky",
        "∂ₜu + α u ∂ₓu + β ∂ₓₓu + γ ∂ₓₓₓₓu = 0, α, β, γ = 100/16, 100/16², 100/16⁴, on [0, ½] × [0, 2π], periodic",
        cpu_seconds=900.0,
    ),
    _equation("wave", "the wave equation: a string with two harmonics", "wave", "∂ₜₜu = 4 ∂ₓₓu on [0, 1]²"),
    _equation(
        "helmholtz",
        "Helmholtz's equation with k = 15: three by four waves in a square",
        "helmholtz",
        "Δu + k²u = q on [−1, 1]², u = 0 at the edge",
    ),
    _equation("kovasznay", "Kovasznay's flow behind a grid, Re = 40", "kovasznay", NAVIER_STOKES),
    _equation("cavity", "flow in a cavity with a sliding lid, Re = 100", "cavity", NAVIER_STOKES),
    _equation(
        "sod",
        "Euler's equations: Sod's shock tube, a rarefaction, a contact and a shock",
        "sod",
        "∂ₜ(ρ, ρu, E) + ∂ₓ(ρu, ρu² + p, (E + p)u) = 0, E = p/(γ − 1) + ρu²/2, γ = 1.4",
    ),
    _equation(
        "viscosity",
        "an inverse problem: two coefficients from 500 values with one per cent of noise",
        "viscosity",
        "∂ₜu + λ u ∂ₓu = ν ∂ₓₓu, λ and ν unknown",
        cpu_seconds=120.0,
    ),
    _equation(
        "viscosity-family",
        "Burgers from −sin(πx) for every viscosity from 0.01 to 0.1 at once",
        "family",
        "∂ₜu + u ∂ₓu = ν ∂ₓₓu on [0, 1] × [−1, 1], log₁₀ ν the third coordinate",
    ),
    _equation(
        "insulated",
        "Poisson's equation without flux at the edge, whose mean value is given",
        "insulated",
        "−Δu = f, ∂u/∂n = 0, ∫u = 1",
    ),
)


def _inference(name: str, about: str, target: str, model: Callable[[], Any], **options: Any) -> Builtin:
    def make(network: str) -> dict[str, Any]:
        if network != "small":
            raise ValueError(f"{name} has one model only: leave network out.")
        from angd.problems.inference import targets

        return targets.known(model(), getattr(targets, target))

    return Builtin(name, about, make, True, options, 30.0, "inference")


def _four_gaussians() -> Any:
    from angd.problems.inference import Mixture

    return Mixture(2, components=6, spread=2.0)


def _flow() -> Any:
    from angd.problems.inference import RealNVP

    return RealNVP(2)


gaussian_mixture = _inference(
    "gaussian-mixture", "a mixture fitted to a density with three modes", "three_modes", _four_gaussians
)
funnel = _inference("funnel", "a normalising flow fitted to Neal's funnel in two dimensions", "neals_funnel", _flow)

TASKS: Mapping[str, Builtin] = {
    task.name: task
    for task in (
        *(burgers, burgers_sin, burgers_cos, euler, heat),
        *EQUATIONS,
        *(hydrogen, helium, lithium_hydride, beryllium, lithium_dimer, hydrogen_chain, nitrogen),
        *(dot_2d, dot_2d_6, dot_3d),
        *(tfim, heisenberg, j1j2, hubbard),
        *(gaussian_mixture, funnel),
    )
}
"""Every built-in task by its name."""

OBSERVABLES: Mapping[str, str] = {
    name: f"angd.problems.vmc.observables:{made}"
    for name, made in (
        ("dipole", "Dipole"),
        ("density", "Density"),
        ("pair", "PairDistribution"),
        ("forces", "Forces"),
    )
}
"""What can be measured of a wave function by name; each has `of(problem)`."""
