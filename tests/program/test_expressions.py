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


@pytest.mark.parametrize("text", ["-1", "1-t", "1/(t-2)", "10**400", "(1-t)**0.5"])
def test_values_out_of_range_on_the_time_span_are_refused(text):
    with pytest.raises(ValueError, match="must be finite and ≥ 0"):
        check_range(text, "beta", (1.0, 2.0, 3.0))
