import numpy as np
import pytest

from experiments.numbers import verdict
from lrp4rag.report.numbers import difference, number, p_value, percent, with_interval
from tests.experiments.figures.samples import interval


@pytest.mark.parametrize(
    ("value", "half", "expected"),
    [
        (0.05, 0.02, "holds"),
        (-0.05, 0.02, "does not hold"),
        (0.01, 0.02, "cannot be told"),
        (None, 0, "cannot be told"),
    ],
)
def test_a_verdict_depends_on_where_the_interval_lies(value, half, expected):
    assert verdict(interval(value, half)) == expected
    if value is not None:
        assert verdict(interval(value + 0.5, half), 0.5) == expected


def test_an_interval_that_touches_the_null_decides_nothing():
    assert verdict(interval(0.25, 0.25)) == "cannot be told"


def test_numbers():
    assert number(0.12345) == "0.123"
    assert (number(None), number(np.nan), percent(np.nan)) == ("", "", "")
    assert percent(0.6916) == "69.2 %"
    assert with_interval(interval(0.716, 0.034)) == "0.716 [0.68, 0.75]"
    assert with_interval(interval(0.5, 0.0)) == "0.500"
    assert difference(interval(0.021, 0.025)) == "+0.021 [-0.004, +0.046]"
    for words in (with_interval, difference):
        assert words(interval(None)) == words(None) == ""
    assert (p_value(0.0123), p_value(1.23e-7)) == ("0.012", "1.2e-07")
