"""`angd.fit`: any problem, any method, and what comes back."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import angd
from angd import Samples
from angd.method.baselines.base import report
from angd.problems.pinn import Box, Condition, Network, Problem, d
from angd.problems.vmc import GaussianStart, GroundState, Metropolis
from angd.recipes import GaussNewton
from angd.train.folder import RunFolder
from making import task_of

BOX = Box((0.0, 1.0))
TARGET = np.array([1.0, -2.0], np.float32)
POINTS = Samples(jnp.linspace(-1, 1, 8))


def equation(u, z):
    return d(u, 0)(z) - 1.0


def start(u, z):
    return u(z)


PROBLEM = Problem(Network((4,)), BOX, equation, {"start": Condition(BOX.face(0, "lower"), start)})
FEW = GaussNewton(interior=20, condition=2, warm_steps=5, fresh=5, keep=2)


class Line(eqx.Module):
    """Regression of a line; the field has one number."""

    def residual(self, params, x):
        return params @ jnp.array([1.0, x]) - TARGET @ jnp.array([1.0, x])

    def field(self, params, x):
        return params @ jnp.array([1.0, x])

    def loss(self, params, samples):
        return 0.5 * samples.mean(jax.vmap(self.residual, (None, 0))(params, samples.x) ** 2)


class Density(eqx.Module):
    """Only log ρ and δL/δρ: nobody knows the loss."""

    def log_density(self, params, x):
        return -jnp.sum((x - params) ** 2) / 2

    def variation(self, params, x):
        return jnp.sum((x - 3.0) ** 2) / 2


def quiet(problem, *rest, **known):
    return angd.fit(problem, *rest, progress=False, **known)


def test_a_problem_is_solved_in_one_call_and_can_be_called():
    fit = quiet(PROBLEM, FEW, steps=15)
    x = jnp.linspace(0, 1, 5)[:, None]
    assert np.allclose(fit(x), x[:, 0], atol=0.02)
    assert fit.result == "finished"
    assert len(fit.history["loss"]) == 15
    assert list(fit.history["step"]) == list(range(1, 16))
    assert fit.info is not None
    assert fit.history["loss"][-1] == fit.records[-1].loss == float(fit.info.loss)
    assert set(fit.history) >= {"loss", "damping", "ratio", "norm", "restarted", "smallest", "seconds"}
    assert "finished" in repr(fit)


ANGD = angd.ANGD(angd.ARGFlow.momentum(0.5, 0.5), angd.Energy(), angd.Normal(1e-6))


class Own(eqx.Module):
    """An optimiser of somebody's own: gradient descent."""

    def init(self, problem, params, samples):
        return jnp.zeros(())

    def step(self, problem, params, samples, state):
        loss, slope = jax.value_and_grad(problem.loss)(params, samples)
        return (
            params - 0.5 * slope,
            samples,
            state,
            report(loss, slope, -slope, jnp.asarray(True)),
        )


METHODS = {
    "default": None,
    "recipe": angd.recipes.Adam(rate=0.1),
    "class": angd.recipes.GaussNewton,
    "name": "energy",
    "ANGD": ANGD,
    "baseline": angd.baselines.adam(0.1),
    "optax": optax.adam(0.1),
    "own": Own(),
}


@pytest.mark.parametrize("name", METHODS)
def test_every_kind_of_method_is_welcome(name):
    fit = quiet(Line(), METHODS[name], params=jnp.zeros(2), samples=POINTS, steps=60)
    assert fit.history["loss"][-1] < 0.2 * fit.history["loss"][0]


def sampler(key, problem, params):
    return Samples(jax.random.uniform(key, (9,), minval=-1.0))


@pytest.mark.parametrize("samples", [POINTS, POINTS.x, sampler], ids=["Samples", "array", "sampler"])
def test_samples_are_fixed_or_drawn(samples):
    fit = quiet(Line(), ANGD, params=jnp.zeros(2), samples=samples, steps=20)
    assert np.allclose(fit.params, TARGET, atol=1e-2)


def test_a_density_that_knows_no_loss_is_trained():
    def around(key, problem, params):
        return Samples(params[None] + jax.random.normal(key, (64, 1)))

    fit = quiet(Density(), angd.recipes.Vmc(norm=1.0, rate=0.1, mu=0.5), params=jnp.zeros(1), samples=around, steps=60)
    assert abs(float(fit.params[0]) - 3.0) < 0.8
    assert fit.records[-1].loss is None


def test_a_hamiltonian_of_one_s_own_finds_its_ground_state():
    """The harmonic oscillator in two dimensions, E = 1."""

    def log_psi(params, x):
        return jnp.ones(()), -params * jnp.sum(x**2) / 2

    def potential(x):
        return jnp.sum(x**2) / 2

    chain = Metropolis(GaussianStart(1, 2), walkers=256, moves=5, burn_in=50)
    task = angd.Task(GroundState(log_psi, potential), params=jnp.array(0.5), samples=chain, energy=1.0)
    fit = quiet(task, angd.recipes.Vmc(norm=1.0, rate=0.1, measurements=20), steps=40)
    assert fit.evaluation is not None
    assert abs(fit.evaluation["energy"] - 1.0) < 5e-3
    assert fit(jnp.zeros((3, 1, 2))).shape == (3,)


def test_the_same_call_goes_on_and_load_brings_everything_back(tmp_path):
    place = tmp_path / "run"
    quiet(PROBLEM, FEW, steps=6, folder=place)
    parts = quiet(PROBLEM, FEW, steps=15, folder=place)
    whole = quiet(PROBLEM, FEW, steps=15)
    same = jax.tree.map(np.array_equal, parts.params, whole.params)
    assert all(jax.tree.leaves(same))
    assert np.array_equal(parts.history["loss"], whole.history["loss"])
    again = angd.load(place, PROBLEM)
    x = jnp.linspace(0, 1, 5)[:, None]
    assert np.array_equal(again(x), whole(x))
    assert [record.step for record in again.records] == list(range(1, 16))
    assert (place / "report" / "report.html").exists()
    with pytest.raises(ValueError, match=r"was made in Python: angd.load\(folder, problem\)"):
        angd.load(place)


def test_a_built_in_task_is_loaded_by_its_address(tmp_path):
    quiet("heat", "adam", steps=4, folder=tmp_path / "run")
    loaded = angd.load(tmp_path / "run")
    assert loaded.errors == angd.load(tmp_path / "run", task_of("heat")).errors != {}
    assert np.allclose(loaded(jnp.array([0.1, 0.5])), loaded(jnp.array([[0.1, 0.5]]))[0])


def test_a_fit_can_be_saved_afterwards(tmp_path):
    fit = quiet(PROBLEM, FEW, steps=4)
    fit.save(tmp_path / "kept")
    again = angd.load(tmp_path / "kept", PROBLEM)
    assert np.array_equal(again(jnp.ones((1, 1))), fit(jnp.ones((1, 1))))
    with pytest.raises(ValueError, match="is not empty"):
        fit.save(tmp_path / "kept")


def test_another_method_in_the_same_folder_is_refused(tmp_path):
    quiet(Line(), ANGD, params=jnp.zeros(2), samples=POINTS, steps=2, folder=tmp_path / "run")
    other = eqx.tree_at(lambda opt: opt.solver, ANGD, angd.Normal(0.5))
    with pytest.raises(ValueError, match="holds a run with another recipe"):
        quiet(Line(), other, params=jnp.zeros(2), samples=POINTS, steps=2, folder=tmp_path / "run")


def test_a_callback_sees_every_step_and_may_stop_or_retry():
    seen = []

    def stop(state, info):
        seen.append((state.k, float(info.loss)))
        return "stop" if state.k == 3 else None

    fit = quiet(Line(), ANGD, params=jnp.zeros(2), samples=POINTS, steps=9, callback=stop)
    assert [k for k, _ in seen] == [1, 2, 3]
    assert fit.result == "stopped by the callback"
    asked = []

    def retry(state, info):
        asked.append(state.k)
        return "retry" if state.k == 2 and asked.count(2) < 3 else None

    fit = quiet(Line(), ANGD, params=jnp.zeros(2), samples=sampler, steps=3, callback=retry)
    assert asked == [1, 2, 2, 2, 3]
    assert list(fit.history["step"]) == [1, 2, 3]
    with pytest.raises(ValueError, match="callback: it may return None, 'stop' or 'retry'"):
        quiet(Line(), ANGD, params=jnp.zeros(2), samples=POINTS, steps=3, callback=lambda state, info: True)


def test_an_interrupt_returns_what_there_is():
    def interrupt(state, info):
        if state.k == 4:
            raise KeyboardInterrupt

    fit = quiet(Line(), ANGD, params=jnp.zeros(2), samples=POINTS, steps=9, callback=interrupt)
    assert fit.result == "interrupted"
    assert len(fit.history["step"]) == 3
    assert not np.array_equal(fit.params, jnp.zeros(2))


def test_an_error_inside_a_problem_is_raised_where_it_is():
    class Broken(eqx.Module):
        def residual(self, params, x):
            raise NameError("undefined_name")

    with pytest.raises(NameError, match="undefined_name"):
        quiet(Broken(), ANGD, params=jnp.zeros(2), samples=POINTS, steps=2)


def test_samples_are_split_over_a_mesh():
    fit = quiet(Line(), ANGD, params=jnp.zeros(2), samples=POINTS, steps=5, mesh=angd.parallel.mesh())
    alone = quiet(Line(), ANGD, params=jnp.zeros(2), samples=POINTS, steps=5)
    assert np.allclose(fit.params, alone.params)


def test_figures_and_notebooks_show_the_course_and_the_solution():
    fit = quiet(PROBLEM, FEW, steps=4)
    titles = [panel.get_title() for panel in fit.plot().axes]
    assert titles == ["problem", "u"]
    assert fit._repr_html_().startswith("<p>problem: 4 steps")


def test_fit_changes_no_setting_of_jax():
    before = jax.config.values.copy()
    quiet("heat", "adam", steps=2)
    assert jax.config.values == before


def test_single_precision_is_told_where_it_costs_digits():
    with jax.enable_x64(False), pytest.warns(UserWarning, match="accurate in double precision only"):
        quiet(Line(), FEW, params=jnp.zeros(2), samples=Samples(jnp.linspace(-1, 1, 7)), steps=2)


def test_plain_lines_are_printed_where_rich_is_missing(monkeypatch, capsys):
    import angd.train.fit as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    angd.fit(Line(), ANGD, params=jnp.zeros(2), samples=POINTS, steps=2)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "problem, ANGD: compiling"
    assert "first step after" in second


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"steps": 0}, "fit: steps must be a whole number from 1"),
        ({"seconds": -1}, "fit: seconds must be a number"),
        ({"key": -1}, "fit: key must be a whole number"),
        ({"method": 3}, "a int is not a method"),
        ({"method": "adm"}, "did you mean 'adam'?"),
        ({"method": "spring"}, "spring is not for problem"),
        ({"samples": "many"}, "samples must be Samples"),
        ({"samples": None}, "where should problem be sampled"),
        ({"params": None}, "where does training start"),
        ({"problem": 3}, "A int is not a problem"),
        ({"problem": "burgrs"}, "did you mean 'burgers'?"),
    ],
)
def test_misuse_is_answered_in_a_sentence(given, words):
    usual = {"problem": Line(), "method": ANGD, "params": jnp.zeros(2), "samples": POINTS, "steps": 2}
    with pytest.raises(ValueError, match=words):
        quiet(**usual | given)


def test_old_and_foreign_configurations_are_refused_in_a_sentence(tmp_path):
    for name, data, words in (
        ("old", {"experiment": "heat", "optimizer": "adam"}, "older version"),
        ("new", {"format": 9, "task": "heat", "recipe": "adam"}, "has format 9"),
        ("odd", {"task": "heat"}, "names no format"),
        ("list", [1], "names no format"),
        ("wrong", {"format": 2, "task": ["heat"], "recipe": "adam"}, "task must not be"),
        ("more", {"format": 2, "task": "heat", "recipe": "adam", "sed": 1}, "did you mean 'seed'"),
        ("true", {"format": 2, "task": "heat", "recipe": "adam", "options": {"rate": True}}, "rate must be a number"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(data))
        with pytest.raises(ValueError, match=words):
            RunFolder(tmp_path / name).config()
    (tmp_path / "old" / "config.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        RunFolder(tmp_path / "old").config()
