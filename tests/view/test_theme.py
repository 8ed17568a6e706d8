"""One look for each method, and names that do not lie on each other."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import colors

from angd.recipes.named import RECIPES
from angd.view.labels import isotonic, spread
from angd.view.theme import DARK, LIGHT, family, styles

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    "nobody": np.eye(3),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = XYZ.sum(1)


def linear(colour):
    rgb = np.asarray(colors.to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    t = np.clip(XYZ @ rgb, 0, None) / WHITE
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    first, second = ((XYZ @ linear(c))[1] + 0.05 for c in (one, other))
    return max(first, second) / min(first, second)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("eye", BLIND)
def test_hues_differ_for_every_eye(theme, eye):
    """Distances in CIELAB, where 2 can just be seen side by side."""
    seen = {n: lab(np.clip(np.array(BLIND[eye]) @ linear(c), 0, 1)) for n, c in theme.hues.items()}
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_names_in_the_colours_of_curves_can_be_read(theme):
    assert min(contrast(colour, theme.paper) for colour in theme.colours) > 2.8


def test_a_method_looks_the_same_whoever_stands_beside_it():
    alone = {name: styles([name])[name] for name in RECIPES}
    for names in (["sgd", "adam", "energy"], ["energy", "angd-h1", "adam"], ["sgd", "ngd-l2", "angd-l2", "energy"]):
        assert styles(names) == {name: alone[name] for name in names}


def test_no_two_methods_of_a_figure_look_the_same():
    for labels in (list(RECIPES), ["adam (rate 0.1)", "adam (rate 0.2)", "adam (rate 0.3)", "Mine", "Other"]):
        looks = [(look.colour, str(look.dash)) for look in styles(labels).values()]
        few = len(labels) < 10
        assert len(set(looks)) == len(looks) if few else len(set(looks)) > 0.8 * len(looks)
    assert len({styles(["Mine", "energy", "adam"])[name].colour for name in ("Mine", "energy", "adam")}) == 3


def test_every_named_recipe_belongs_to_a_family_and_the_longest_beginning_wins():
    assert all(family(name) for name in RECIPES)
    assert (family("adam-vmc"), family("angd-l2 (rate 0.1)"), family("adamant")) == ("orange", "vermilion", None)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.floats(0.01, 0.2))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_names_keep_their_distance_and_their_order(heights, least):
    found = np.array(spread(heights, least))
    order = np.argsort(np.asarray(heights), kind="stable")
    assert np.all(np.diff(found[order]) >= least - 1e-9)
    if np.all(np.diff(np.asarray(heights)[order]) >= least):
        assert np.allclose(found, heights)


def test_isotonic_regression_agrees_with_another_library():
    from scipy.optimize import isotonic_regression

    values = np.random.default_rng(0).normal(size=40)
    assert np.allclose(isotonic(values), isotonic_regression(values).x)
