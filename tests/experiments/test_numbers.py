"""Names of generators as names of files, and tables whose cells hold what is in them."""

import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.numbers import markdown, percent_interval, slug, stacked
from tests.experiments.figures.samples import interval
from tests.hostile.pages import structure
from tests.hostile.strings import HOSTILE


def test_intervals_in_percent_and_below_their_value() -> None:
    assert percent_interval(interval(0.664, 0.031)) == "66.4 % [63.3, 69.5]"
    assert percent_interval(interval(None)) == percent_interval(None) == ""
    assert stacked(interval(0.716, 0.034)) == "0.716\n[0.68, 0.75]"


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


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_a_table_has_its_rows_and_columns(cells: list[tuple[str, str]]) -> None:
    page = markdown(pd.DataFrame({"a|b": [one for one, _ in cells], "=": [two for _, two in cells]}))
    lines = page.splitlines()
    assert len(lines) == len(cells) + 2
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3 for line in lines)
    made = structure(page)
    assert made.count("tr_open tr") == len(cells) + 1
    assert made.count("td_open td") == 2 * len(cells)
