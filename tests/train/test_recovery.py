"""Back to the last good state after steps that are not finite, and on with more damping."""

import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.method.baselines.base import FirstOrder
from angd.recipes.base import Phase
from angd.train.config import Config, check_settings
from angd.train.folder import RunFolder
from angd.train.recovery import MOST, RECOVERED, cautious, changeable


class Logarithm:
    """r = log θ: Gauss–Newton from 5 with little damping lands at −1.4, where there is no logarithm."""

    def residual(self, params, x):
        return jnp.log(params["a"]) * x


SAMPLES = angd.Samples(jnp.ones((3,)))
START = {"a": jnp.array(5.0)}


def optimiser(damping=0.01):
    return angd.ANGD(angd.ARGFlow.momentum(0.0, 1.0), angd.Energy(), angd.Normal(damping))


def trained(recover, damping=0.01, steps=40, **rest):
    options = {"params": START, "samples": SAMPLES, "steps": steps, "progress": False}
    return angd.fit(Logarithm(), optimiser(damping), recover=recover, **options, **rest)


def test_without_recovery_the_run_stays_where_nothing_is_finite():
    assert not trained(0).history["loss"][-1] < 1e-10


def test_a_run_goes_back_and_succeeds_with_ten_times_the_damping():
    found = trained(2)
    notes = [record.result for record in found.records if record.result.startswith(RECOVERED)]
    assert len(notes) == 1
    assert "went back to step 0 with ten times the damping (recovery 1 of 3)" in notes[0]
    assert found.history["loss"][-1] < 1e-10
    assert found.history["damping"][-1] == pytest.approx(0.1)
    assert found.summary["recoveries"] == 1
    np.testing.assert_array_equal(found.history["step"], np.arange(1, 41))


def test_a_run_gives_up_after_some_recoveries():
    found = trained(2, damping=1e-9, steps=60)
    assert found.run is not None
    assert f"{MOST} recoveries were in vain" in found.result
    assert len(found.history["step"]) < 20
    assert np.isfinite(found.params["a"])


def test_a_run_that_recovered_goes_on_bit_by_bit(tmp_path):
    whole = trained(2, folder=tmp_path / "whole")
    for steps in (3, 9, 40):
        parts = trained(2, steps=steps, folder=tmp_path / "parts")
    assert parts.params["a"] == whole.params["a"]
    kept = [[record.result for record in RunFolder(tmp_path / name).records()] for name in ("whole", "parts")]
    assert kept[0] == kept[1]


def test_methods_without_damping_get_half_the_rate():
    adam = FirstOrder(1e-2)
    phase = cautious([Phase(adam, None)], 2)[0]
    assert (changeable(adam), float(phase.optimiser.rate)) == ("rate", 0.0025)
    assert changeable(object()) is None


def test_phases_that_share_an_optimiser_share_the_changed_one():
    one = optimiser()
    first, second = cautious([Phase(one, None, 3), Phase(one, None)], 1)
    assert first.optimiser is second.optimiser
    assert float(first.optimiser.solver.damping) == pytest.approx(0.1)


@pytest.mark.parametrize("recover", [-1, True, 1.5, "2", None])
def test_a_bad_number_is_refused(recover):
    with pytest.raises(ValueError, match="recover must be a whole number"):
        check_settings({"recover": recover})


def test_giving_up_must_not_come_first():
    with pytest.raises(ValueError, match="smaller than --max-rejections"):
        Config.of("heat", "adam", steps=3, recover=50)
