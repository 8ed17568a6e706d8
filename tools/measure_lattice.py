"""Does function-space momentum pay where noise is small? Spins on rings, into results/lattice.json.

    python tools/measure_lattice.py                          everything that results/lattice.jsonl has not yet
    python tools/measure_lattice.py --part exact tfim-10     only exact sums, only systems whose names begin so

The critical Ising ring (h = J), the Heisenberg ring and Majumdar and Ghosh's (J₂ = J₁/2) of 10 to 16 sites, and the
last two on a square lattice of 4 × 4, with translation-invariant networks: an RBM of eight units, real or complex, and
a convolution of two layers. Complex amplitudes have the metric of Fubini and Study, real ones Fisher and Rao's, which
is the same there. Natural gradients: plain (which is minSR, the kernel's form of the same direction), SPRING, and the
accelerated flow with β = 0 and with β > 0.

Part `exact`: sums over all states with weights ρ, one of each orbit of the translations. Every method has a grid of 24
settings, then 24 more at random around the best of them; what decides is the mean number of iterations, over four
starts, until the relative energy error stays below 1e-5. The winner is told for five other starts.
Part `sampled`: the same, with the shares of 500 … 16,000 independent samples of ρ as weights, drawn
anew in each step; errors are those of exact sums, so that they have no noise of an evaluation. Two more methods: ANGD
with SPRING's projected momentum, and ANGD with a μ that falls with the measured noise of the force. The goals are 1e-3,
1e-4, 1e-5 and 1e-6 in both; iterations are counted until the error stays below.
"""

import argparse
import json
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

import angd
from angd.problems.lattice import (
    RBM,
    Basis,
    Convolution,
    Enumerated,
    Heisenberg,
    Lattice,
    LatticeState,
    TransverseIsing,
    lowest,
)
from angd.problems.lattice.basis import counted
from angd.train.environment import stamp
from angd.train.files import write_atomically
from settled import settled

OUT = Path(__file__).parent.parent / "results" / "lattice.json"
LOG = OUT.with_suffix(".jsonl")
GOALS = (1e-3, 1e-4, 1e-5, 1e-6)
DECIDES = 1e-5
STEPS, TUNING, STARTS, LANES, CHECKED = 250, 4, 5, 12, 25
EXACT = ("j1j2-12-rbm", "j1j2-14-rbm", "heisenberg-12-rbm", "tfim-10-rbm", "tfim-12-rbm", "j1j2-10-rbm")
EXACT += ("heisenberg-4x4-rbm", "j1j2-4x4-complex", "j1j2-16-rbm", "tfim-14-rbm", "heisenberg-16-rbm")
EXACT += ("j1j2-12-convolution", "tfim-10-convolution", "tfim-16-rbm")
SAMPLED = {"j1j2-12-rbm": (4096, 16000, 500), "j1j2-14-rbm": (4096,), "tfim-10-rbm": (4096,)}
SAMPLED |= {"heisenberg-4x4-rbm": (4096,), "j1j2-4x4-complex": (4096,)}
ON_SAMPLES = ("spring", "angd_projected", "ngd", "angd", "angd_noise")
EARLY = 28  # rows of exact sums before those with samples
DAMPINGS = (1e-4, 1e-3)
SYSTEMS = {
    "tfim": TransverseIsing,
    "heisenberg": Heisenberg,
    "j1j2": lambda lattice: Heisenberg(lattice, 0.5),
}
NETWORKS = {
    "rbm": lambda lattice: RBM(lattice.sites, 8, lattice.translations()),
    "complex": lambda lattice: RBM(lattice.sites, 8, lattice.translations(), complex=True),
    "convolution": lambda lattice: Convolution(lattice, (6, 6)),
}
# Settings by name: rate h²γ, damping λ, momentum μ of the flow or η of the projection, b with β = b h.
RATES, MUS, ETAS = (0.07, 0.15, 0.3), (0.5, 0.7, 0.8, 0.9), (0.6, 0.8, 0.95, 0.995)
GRIDS: dict[str, list[dict[str, float]]] = {
    "ngd": [{"rate": float(r), "damping": l} for r, l in product(np.geomspace(0.05, 0.8, 12), DAMPINGS)],
    "spring": [{"rate": r, "damping": l, "eta": e} for r, l, e in product(RATES, DAMPINGS, ETAS)],
    "angd": [{"rate": r, "damping": l, "mu": m} for r, l, m in product(RATES, DAMPINGS, MUS)],
    "angd_beta": [
        {"rate": r, "damping": l, "mu": m, "b": b} for r, l, m, b in product(RATES, DAMPINGS, (0.7, 0.9), (0.3, 1.0))
    ],
    "angd_projected": [
        {"rate": r, "damping": l, "mu": m, "eta": e} for r, l, m, e in product(RATES, DAMPINGS, (0.5, 0.8), (0.9, 0.99))
    ],
}
GRIDS["angd_noise"] = GRIDS["angd"]
RANDOM = (12, 12)  # settings around the winner, in rounds that draw closer
WIDTHS = {"rate": 0.25, "damping": 1.2, "mu": 0.5, "eta": 0.5, "b": 0.5}  # of log rate, log(1 − μ) and so on


class Setting(eqx.Module):
    """Numbers of one method, as arrays: those of a grid run side by side."""

    rate: Array
    damping: Array
    mu: Array
    eta: Array
    b: Array

    @classmethod
    def of(cls, settings: list[dict[str, float]]) -> "Setting":
        """A grid."""
        usual = {"mu": 0.0, "eta": 0.0, "b": 0.0}
        return cls(**{name: jnp.array([(usual | s)[name] for s in settings]) for name in WIDTHS})


def optimiser(method: str, s: Setting) -> angd.ANGD:
    """The method, by its own name in the library."""
    solver: Any = angd.Normal(s.damping)
    if method in ("spring", "angd_projected"):
        solver = angd.ProjectedMomentum(s.eta, solver)
    if method.startswith("angd"):
        flow = angd.ARGFlow.momentum(s.mu, s.rate, s.b * s.rate**0.5 if method == "angd_beta" else 0.0)
        return angd.ANGD(flow, angd.FubiniStudy(), solver, angd.Restart())
    metric = angd.FubiniStudy(limit=None, correction=False)
    return angd.ANGD(angd.ARGFlow.momentum(0.0, s.rate), metric, solver)


class System(eqx.Module):
    """A Hamiltonian with its states and a network."""

    problem: LatticeState
    basis: Basis
    levels: tuple[float, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, system: str, sites: str, network: str) -> "System":
        hamiltonian = SYSTEMS[system](Lattice(tuple(map(int, sites.split("x")))))
        basis = Basis.of(hamiltonian, hamiltonian.lattice.translations())
        return cls(
            LatticeState(NETWORKS[network](hamiltonian.lattice), hamiltonian),
            basis,
            tuple(map(float, lowest(basis, 2))),
        )

    def starts(self, first: int, count: int) -> Any:
        """First parameters."""
        return jax.vmap(self.problem.init)(jax.vmap(jax.random.key)(jnp.arange(first, first + count)))


class Momentum(eqx.Module):
    """What a step leaves to the next: at every state the old momentum function O d and the old local energy."""

    d: Float[Array, "p"]
    phi: Inexact[Array, "n"]
    energies: Inexact[Array, "n"]
    started: Array


def steadiness(s: Setting, A: Array, root: Array, e: Array, draws: int) -> Array:
    """Which share of the force is no noise, 1 − N/S: S = vᵀ(G + λ)⁻¹v, and N what S would be of draws around zero."""
    factor = jnp.linalg.cholesky(A.T @ A + s.damping * jnp.eye(A.shape[1]))
    rows = jax.scipy.linalg.solve_triangular(factor, A.T, lower=True).T
    each = jnp.sum(real_rows(e)[:, None].reshape(-1, len(root), 1) * rows.reshape(-1, len(root), rows.shape[1]), axis=0)
    S = jnp.sum((root @ each) ** 2)
    return jnp.clip(1 - (jnp.sum(each**2) - S) / (draws * S), 0, 1)


def real_rows(u: Inexact[Array, "n *m"]) -> Float[Array, "N *m"]:
    """Complex rows as real ones: first all real parts, then all imaginary ones."""
    return jnp.concatenate([jnp.real(u), jnp.imag(u)]) if jnp.iscomplexobj(u) else u


def step(
    s: Setting, rho: Array, J: Array, energies: Array, old: Momentum, method: str, draws: int | None = None
) -> tuple[Array, Array]:
    """The direction, and whether momentum was dropped: Fubini-Study, (G + λ) d = v + λ c.

    It is `angd.ANGD` written out, which `--part check` compares: since the states stay where they are, the old momentum
    at them is known without another derivative, and hundreds of small runs fit into minutes."""
    h, beta, accelerated = jnp.sqrt(s.rate), s.b * jnp.sqrt(s.rate) * old.started, method.startswith("angd")

    def centred(u: Array) -> Array:
        return u - rho @ u

    e, before, phi = centred(energies), centred(old.energies), centred(old.phi)
    b, c, root = -h * e, s.eta * old.d, jnp.sqrt(rho)
    A = real_rows(2 * root[:, None] * (J - (rho @ J)[None]))
    if accelerated:
        mu = s.mu if method != "angd_noise" or draws is None else s.mu * steadiness(s, A, root, e, draws)
        phi = phi * (0.5 / h / jnp.maximum(jnp.abs(phi), 0.5 / h))
        b = b + mu * phi - h / 2 * phi * (phi + beta * before) - beta * (e - before)
        c = jnp.where(s.eta > 0, s.eta, mu) * old.d
    n, p = A.shape
    right = real_rows(jnp.stack([root * centred(b), -h * root * e], axis=1))
    if n < p:
        factor = jax.scipy.linalg.cho_factor(A @ A.T + s.damping * jnp.eye(n))
        found = A.T @ jax.scipy.linalg.cho_solve(factor, right - jnp.outer(A @ c, jnp.array([1.0, 0.0])))
        d, rest = c + found[:, 0], found[:, 1]
    else:
        factor = jax.scipy.linalg.cho_factor(A.T @ A + s.damping * jnp.eye(p))
        found = jax.scipy.linalg.cho_solve(factor, A.T @ right + jnp.outer(s.damping * c, jnp.array([1.0, 0.0])))
        d, rest = found[:, 0], found[:, 1]
    climbs = accelerated & (jnp.dot(A.T @ real_rows(root * e), d) > 0)
    return jnp.where(climbs, rest, d), climbs


def course(system: System, method: str, s: Setting, start: Any, key: Array, draws: int | None) -> Float[Array, "steps"]:
    """Relative energy errors after 0, 1, 2, … steps from one start."""
    basis, (first, unravel) = system.basis, jax.flatten_util.ravel_pytree(start)
    ground = system.levels[0]

    def amplitude(theta: Array, x: Array) -> Array:
        return system.problem.log_amplitude(unravel(theta), x)

    def with_gradient(theta: Array, x: Array) -> tuple[Array, Array]:
        if not jnp.iscomplexobj(jax.eval_shape(amplitude, theta, x)):
            return jax.value_and_grad(amplitude)(theta, x)
        value, pulled = jax.vjp(lambda t: (jnp.real(amplitude(t, x)), jnp.imag(amplitude(t, x))), theta)
        return jax.lax.complex(*value), jax.lax.complex(pulled((1.0, 0.0))[0], pulled((0.0, 1.0))[0])

    no = jnp.zeros_like(jax.eval_shape(basis.log_amplitudes, system.problem.log_amplitude, start))

    def once(carry: tuple[Array, Momentum], k: Array) -> tuple[tuple[Array, Momentum], Array]:
        theta, old = carry
        log_psi, J = jax.vmap(with_gradient, (None, 0))(theta, basis.x)
        rho, energies = basis.weights(log_psi), basis.local_energies(log_psi)
        energies = jnp.where(jnp.isfinite(energies), energies, 0.0)
        error = (jnp.sum(rho * jnp.real(energies)) - ground) / abs(ground)
        weights = rho if draws is None else counted(jax.random.fold_in(key, k), rho, draws)
        d, _ = step(s, weights, J, energies, old, method, draws)
        after = Momentum(d, 2 * J @ d, energies, jnp.ones(()))
        return (theta + jnp.sqrt(s.rate) * d, after), error

    at_rest = Momentum(jnp.zeros_like(first), no, no, jnp.zeros(()))
    return jax.lax.scan(once, (first, at_rest), jnp.arange(STEPS + 1))[1]


@eqx.filter_jit
def errors(
    system: System, method: str, settings: Setting, starts: Any, draws: int | None = None
) -> Float[Array, "settings starts steps"]:
    """The same of every setting and start."""
    keys = jax.random.split(jax.random.key(5), jax.tree.leaves(starts)[0].shape[0])
    one = jax.vmap(lambda s, p, key: course(system, method, s, p, key, draws), (None, 0, 0))
    return jax.vmap(one, (0, None, None))(settings, starts, keys)


def by_the_library(system: System, method: str, s: Setting, start: Any) -> Float[Array, "steps"]:
    """The same course with exact sums, by the library's own optimiser."""
    exact, opt = Enumerated(system.basis), optimiser(method, s)
    advance = eqx.filter_jit(opt.step)
    samples, found = exact(None, system.problem, start), []
    params, state = start, opt.init(system.problem, start, samples)
    for _ in range(CHECKED):
        found.append((exact.energy(system.problem, params) - system.levels[0]) / abs(system.levels[0]))
        params, _, state, _ = advance(system.problem, params, exact(None, system.problem, params), state)
    return jnp.stack(found)


def check() -> None:
    """Both give the same."""
    for name, method in product(("j1j2-10-rbm", "tfim-8-convolution", "j1j2-8-complex"), GRIDS):
        system = System.of(*parts(name))
        usual = {"rate": 0.05, "damping": 1e-3, "mu": 0.8, "eta": 0.8, "b": 0.5}
        setting = Setting.of([{k: usual[k] for k in GRIDS[method][0]}])
        start = system.starts(0, 1)
        here = errors(system, method, setting, start)[0, 0, :CHECKED]
        one = [jax.tree.map(lambda leaf: leaf[0], tree) for tree in (setting, start)]
        there = by_the_library(system, method, *one)
        print(name, method, float(here[-1]), float(jnp.max(jnp.abs(here - there))), flush=True)
        assert jnp.allclose(here, there, atol=1e-9)


def parts(name: str) -> tuple[str, str, str]:
    system, sites, network = name.split("-")
    return system, sites, network


def tried(system: System, method: str, settings: list[dict[str, float]], starts: Any, draws: int | None) -> np.ndarray:
    """The same for any number of settings, some at a time."""
    groups = [settings[i : i + LANES] for i in range(0, len(settings), LANES)]
    return np.concatenate([np.asarray(errors(system, method, Setting.of(g), starts, draws)) for g in groups])


def iterations(course: np.ndarray, goal: float) -> int | None:
    """Until the error stays below a goal."""
    return settled(list(np.where(np.isfinite(course), course, np.inf)), goal)


def score(courses: np.ndarray) -> tuple[float, float]:
    """Mean iterations to the goal that decides (a start that does not arrive counts double), then the last errors."""
    counts = [iterations(course, DECIDES) for course in courses]
    last = np.where(np.isfinite(courses[:, -1]), np.abs(courses[:, -1]), np.inf)
    return float(np.mean([2 * STEPS if n is None else n for n in counts])), float(np.mean(last))


def nearby(best: dict[str, float], count: int, spread: float, seed: int) -> list[dict[str, float]]:
    """Random settings around one."""
    rng = np.random.default_rng(seed)

    def moved(name: str, value: float) -> float:
        factor = float(np.exp(spread * WIDTHS[name] * rng.normal()))
        return max(1 - (1 - value) * factor, 0.0) if name in ("mu", "eta") else value * factor

    return [{name: moved(name, value) for name, value in best.items()} for _ in range(count)]


def tuned(system: System, method: str, draws: int | None) -> dict[str, float]:
    """The best setting of the grid, refined."""
    starts = system.starts(1000, TUNING)
    known: list[tuple[tuple[float, float], int, dict[str, float]]] = []

    def look(settings: list[dict[str, float]]) -> dict[str, float]:
        found = tried(system, method, settings, starts, draws)
        known.extend((score(row), len(known) + i, s) for i, (row, s) in enumerate(zip(found, settings, strict=True)))
        return min(known, key=lambda entry: entry[:2])[2]

    best = look(GRIDS[method])
    for k, count in enumerate(RANDOM):
        best = look(nearby(best, count, 0.5**k, seed=k))
    return best


def row(name: str, method: str, draws: int | None) -> dict[str, Any]:
    """One method on one system: the tuned setting, and what it does from five other starts."""
    system, begin = System.of(*parts(name)), time.process_time()
    best = tuned(system, method, draws)
    courses = tried(system, method, [best], system.starts(0, STARTS), draws)[0]
    counts = {f"{goal:.0e}": [iterations(course, goal) for course in courses] for goal in GOALS}
    return {
        "system": name,
        "method": method,
        "draws": draws,
        "tuning": TUNING,
        "setting": {k: float(f"{v:.3g}") for k, v in best.items()},
        "iterations": counts,
        "last": [float(f"{abs(course[-1]):.2g}") for course in courses],
        "gap": system.levels[1] - system.levels[0],
        "energy": system.levels[0],
        "states": system.basis.size,
        "parameters": int(sum(leaf.size for leaf in jax.tree.leaves(system.problem.init(jax.random.key(0))))),
        "cpu_seconds": round(time.process_time() - begin, 1),
    }


def plan(part: str | None, begins: list[str]) -> Iterator[tuple[str, str, int | None]]:
    """Everything that is measured, what matters most first."""
    exact = [
        (name, method, None) for name in EXACT for method in GRIDS if method not in ("angd_projected", "angd_noise")
    ]
    drawn = [(name, m, n) for name, counts in SAMPLED.items() for n in counts for m in ON_SAMPLES]
    rows = exact[:EARLY] + drawn + exact[EARLY:]
    for name, method, draws in rows:
        chosen = not begins or any(name.startswith(begin) for begin in begins)
        if chosen and part in (None, "exact" if draws is None else "sampled"):
            yield name, method, draws


def done() -> list[dict[str, Any]]:
    """Rows that were measured before, the last of each."""
    lines = LOG.read_text(encoding="utf-8").splitlines() if LOG.exists() else []
    return list({(r["system"], r["method"], r["draws"]): r for r in map(json.loads, lines)}.values())


def middle(counts: list[int | None]) -> float | None:
    """The median of the starts; None where most do not arrive."""
    found = median(float("inf") if n is None else n for n in counts)
    return None if found == float("inf") else found


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One system, with as many samples: medians by goal, and shares of the better of NGD and SPRING."""
    found: dict[str, Any] = {r["method"]: {"setting": r["setting"]} for r in rows}
    for r in rows:
        for goal, counts in r["iterations"].items():
            found[r["method"]][goal] = middle(counts)
        found[r["method"]]["arrived"] = sum(n is not None for n in r["iterations"]["1e-05"])
        found[r["method"]]["last"] = median(r["last"])
    goals = rows[0]["iterations"]
    plain = {g: [found[m][g] for m in ("ngd", "spring") if m in found and found[m][g] is not None] for g in goals}
    for method in [m for m in found if m.startswith("angd")]:
        shares = {g: found[method][g] / min(plain[g]) if plain[g] and found[method][g] else None for g in goals}
        found[method]["share"] = {g: None if s is None else float(f"{s:.2g}") for g, s in shares.items()}
    fast = {g: [found[m][g] for m in found if m.startswith("angd") and found[m][g] is not None] for g in goals}
    best = {g: min(fast[g]) / min(plain[g]) for g in goals if fast[g] and plain[g]}
    return found | {"share": {g: float(f"{best[g]:.2g}") if g in best else None for g in goals}}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """By system: what it is, then each method; those with samples by their number."""
    values: dict[str, Any] = {}
    for name in dict.fromkeys(r["system"] for r in rows):
        mine = [r for r in rows if r["system"] == name]
        about = {key: mine[0][key] for key in ("energy", "states", "parameters")} | {"gap": round(mine[0]["gap"], 4)}
        exact = [r for r in mine if r["draws"] is None]
        values[name] = about | (figures(exact) if exact else {})
        drawn = dict.fromkeys(sorted(r["draws"] for r in mine if r["draws"] is not None))
        sampled = {f"n{n}": figures([r for r in mine if r["draws"] == n]) for n in drawn}
        values[name] |= {"sampled": sampled} if sampled else {}
    return values


def save() -> None:
    """Summarise what is known."""
    report = stamp("python tools/measure_lattice.py", list(range(STARTS))) | {"values": summary(done()), "runs": done()}
    text = json.dumps(report, indent=1) + "\n"
    write_atomically(OUT, lambda path: path.write_text(text, encoding="utf-8"))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=("exact", "sampled", "check", "summary"))
    parser.add_argument("begins", nargs="*")
    given = parser.parse_args()
    if given.part == "check":
        check()
    if given.part in ("check", "summary"):
        save()
        raise SystemExit
    for name, method, draws in plan(given.part, given.begins):
        if (name, method, draws) in {
            (r["system"], r["method"], r["draws"]) for r in done() if r.get("tuning") == TUNING
        }:
            continue
        found = row(name, method, draws)
        print(json.dumps(found), flush=True)
        with LOG.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
    save()
