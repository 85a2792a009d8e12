import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrp4rag.report.numbers import (
    difference,
    markdown,
    number,
    p_value,
    percent,
    percent_interval,
    slug,
    verdict,
    with_interval,
)
from tests.experiments.figures.samples import interval
from tests.hostile.strings import HOSTILE


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
    assert percent_interval(interval(0.664, 0.031)) == "66.4 % [63.3, 69.5]"
    assert difference(interval(0.021, 0.025)) == "+0.021 [-0.004, +0.046]"
    for words in (with_interval, percent_interval, difference):
        assert words(interval(None)) == words(None) == ""
    assert (p_value(0.0123), p_value(1.23e-7)) == ("0.012", "1.2e-07")


def test_a_markdown_table_keeps_bars_and_lines_in_their_cells():
    table = markdown(pd.DataFrame({"a": ["x|y", "two\nlines"], "b": [1, 2]}))
    assert table == "| a | b |\n| --- | --- |\n| x\\|y | 1 |\n| two lines | 2 |\n"


def test_a_slug_is_the_name_of_a_file(tmp_path: Path) -> None:
    for name in HOSTILE:
        made = slug(name)
        assert re.fullmatch(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?", made)
        assert ".." not in made
        assert len(made) <= 64
        (tmp_path / f"table2-{made}-honest.md").write_text("")
    assert len(list(tmp_path.iterdir())) == len({slug(name) for name in HOSTILE})


def test_no_two_names_have_one_slug() -> None:
    names = [*HOSTILE, "a/b", "a-b", "a b", slug("a/b"), slug(slug("a/b"))]
    names += [f"{'x' * 60}{k}" for k in range(99)]
    assert len({slug(name) for name in names}) == len(set(names))


@settings(deadline=None)
@given(st.text(), st.text())
def test_slugs_tell_names_apart(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)


@pytest.mark.parametrize("name", ["llama-2-7b-chat", "mistral-7B-instruct", "gpt-4", "Qwen2.5_7B", "a"])
def test_most_names_are_their_own_slugs(name: str) -> None:
    assert slug(name) == name
