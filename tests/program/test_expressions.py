"""Formulas in t: what they mean, and what is refused."""

import pytest

from angd.program.expressions import check_range, parse


@pytest.mark.parametrize(
    ("text", "value"), [("3/t", 1.5), ("1 + 0.4/t", 1.2), ("0.3/(1+0.5*t)", 0.15), ("-(-t)**2", -4.0), ("2", 2.0)]
)
def test_formulas_are_evaluated_like_arithmetic(text, value):
    assert parse(text, "alpha")(2.0) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "3/", "k", "exit()", "t.real", "'3'", "__import__('os')", "t if t else 1", "1j"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="alpha"):
        parse(text, "alpha")


OUT_OF_RANGE = {
    "-1": 1.0,
    "2-t": None,
    "1/(t-2)": 2.0,
    "10**400": None,
    "(2-t)**0.5": None,
    "(t-5)**2-0.001": 5.0,
    "(t-5.4321)**2-1e-10": 5.4321,
    "1/(t-7.123)": 7.123,
    "1/(t-7.123)**2": 7.123,
    "(t-7.123)**-2": 7.123,
    "3/(t*t-50)": 50**0.5,
    "((t-5)**2-0.0001)**0.5": None,
    "1-1e-6/((t-7)**2+1e-7)": 7.0,
}


@pytest.mark.parametrize("end", [40.0, 1e6])
@pytest.mark.parametrize(("text", "place"), OUT_OF_RANGE.items())
def test_values_out_of_range_anywhere_on_the_time_span_are_refused(text, place, end):
    with pytest.raises(ValueError, match="must be finite and ≥ 0") as refusal:
        check_range(text, "beta", (1.0, end))
    if place is not None:
        assert float(str(refusal.value).split("t = ")[1].split(";")[0]) == pytest.approx(place, abs=0.04)


@pytest.mark.parametrize(
    "text",
    ["0", "3/t", "1+0.4/t", "(t-5)**2", "t*t-10*t+25", "1/((t-7)**2+1e-4)", "t**-0.5", "2**-t", "(t-1)**0.5", "1e-9"],
)
@pytest.mark.parametrize("end", [40.0, 1e6])
def test_values_in_range_are_taken_also_where_they_touch_zero(text, end):
    check_range(text, "beta", (1.0, end))


def test_a_span_from_zero_is_looked_at_as_well():
    check_range("t/(1+t)", "beta", (0.0, 10.0))
    with pytest.raises(ValueError, match="inf at t = 0"):
        check_range("3/t", "alpha", (0.0, 10.0))
