"""Whoever adds a metric, solver, controller or transport adds it to the catalogue, so that it sits every exam."""

import importlib
import inspect
import pkgutil

import catalogue
import pytest

import angd
import angd.method

FAMILIES = {
    "METRICS": (angd.AbstractMetric, [case.metric for case in catalogue.METRICS.values()]),
    "SOLVERS": (angd.AbstractSolver, catalogue.SOLVERS.values()),
    "CONTROLLERS": (angd.AbstractController, catalogue.CONTROLLERS.values()),
    "TRANSPORTS": (angd.AbstractTransport, catalogue.TRANSPORTS.values()),
}
for module in pkgutil.walk_packages(angd.method.__path__, "angd.method."):
    importlib.import_module(module.name)


def members(base: type) -> set[type]:
    """All classes of the library under a base that can be made."""
    below = set(base.__subclasses__())
    deeper = set().union(*map(members, below))
    mine = {cls for cls in below if cls.__module__.startswith("angd.") and not inspect.isabstract(cls)}
    return {cls for cls in mine if not cls.__name__.startswith("_")} | deeper


@pytest.mark.parametrize("family", FAMILIES)
def test_every_member_of_a_family_sits_the_exam(family):
    base, examined = FAMILIES[family]
    missing = {cls.__name__ for cls in members(base)} - {type(member).__name__ for member in examined}
    assert not missing, f"add {sorted(missing)} to {family} of tests/method/catalogue.py"


def test_every_public_class_of_a_family_is_found():
    for base, _ in FAMILIES.values():
        public = {getattr(angd, name) for name in vars(angd)["__all__"]}
        made = {cls for cls in public if inspect.isclass(cls) and issubclass(cls, base) and not inspect.isabstract(cls)}
        assert made <= members(base)


def test_a_new_class_is_missed():
    class Fresh(angd.Constant):
        """A controller that nobody examines."""

    Fresh.__module__ = "angd.method.fresh"
    assert Fresh in members(angd.AbstractController)
    Fresh.__module__ = __name__
