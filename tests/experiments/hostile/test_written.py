"""What users named, in pages, tables and figures of the research: they say it, and do nothing with it."""

from __future__ import annotations

import csv
import io
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from experiments import study
from experiments.figures import results, save, save_table
from experiments.figures.style import legend_below, panels, themed
from experiments.figures.text import SYMBOLS
from experiments.metrics import Reliability
from experiments.numbers import markdown
from experiments.pages import write_results
from experiments.paper import run
from experiments.paper.run import SECTIONS
from experiments.study import Study
from experiments.systems import comparison
from experiments.systems.comparison import Comparison, Cost, Costs
from lrp4rag.util.text import safe_cell, surrogate_in, visible
from tests.experiments.hostile.written import (
    METRIC,
    context_named,
    interval,
    recorded,
    reproduced,
)
from tests.hostile.pages import harmless, known, safe_links, shown, structure, words
from tests.hostile.strings import HOSTILE, IN_PAGES

NO_HALVES = [value for value in HOSTILE if surrogate_in(value) is None]

COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\n")

GENERATORS = ("llama-2-7b-chat", "llama-2-13b-chat", "llama-2-70b-chat", "mistral-7B-instruct")

LONG = "x" * 100_000


@pytest.fixture
def _no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.pages.save", lambda drawn, stem: [])
    modules = [study, comparison, *(sys.modules[section.show.__module__] for section in SECTIONS.values())]
    for module in modules:
        for name in [name for name in vars(module) if name.startswith("draw")]:
            monkeypatch.setattr(module, name, lambda *_, **__: None)


def four(values: list[str]) -> list[tuple[str, ...]]:
    """Four names a page."""
    return [tuple((values[k:] + values)[:4]) for k in range(0, len(values), 4)]


def unlike(names: tuple[str, ...]) -> tuple[str, ...]:
    """As many harmless names, of which some are empty."""
    return tuple(f"g{k}" if shown(name) else " " * k for k, name in enumerate(names))


@pytest.mark.usefixtures("_no_figures")
@pytest.mark.parametrize("names", four(IN_PAGES)[::3])
def test_the_page_of_a_study(names: tuple[str, ...], tmp_path: Path) -> None:
    costs = {"R_response": 2.0, "fast": 3.0, "segments": 4.0, "full": 9.0}

    def page(called: tuple[str, ...], command: str) -> str:
        found = recorded(Study, "detector", dict(zip(GENERATORS, called, strict=True)))
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        write_results(out, "study", found, command, protocol="p", resamples=20, forwards=costs)
        return (out / "README.md").read_text()

    made = page(names, names[0])
    assert structure(made) == known("study", page, unlike(names), harmless(names[0]))
    assert safe_links(made)
    assert all(shown(name) in shown(words(made)) for name in names)


@pytest.mark.usefixtures("_no_figures")
@pytest.mark.parametrize("names", four(IN_PAGES)[::3])
def test_the_page_of_a_comparison(names: tuple[str, ...], tmp_path: Path) -> None:
    def page(called: tuple[str, ...], command: str) -> str:
        found = recorded(Comparison, "compare", dict(zip(GENERATORS, called, strict=True)))
        costs = Costs({name: Cost(0.5, 2.0, 10**9) for name in found.facts}, command)
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        write_results(
            out,
            "compare",
            found,
            command,
            protocol="p",
            resamples=20,
            sample_seed=0,
            reader=command,
            asks_another=True,
            choices={"reader": command},
            costs=costs,
        )
        with (out / "metrics.csv").open(newline="") as stream:
            assert not any(cell.startswith(COMPUTED) for row in csv.reader(stream) for cell in texts_of(row))
        return (out / "README.md").read_text()

    made = page(names, names[0])
    assert structure(made) == known("comparison", page, unlike(names), harmless(names[0]))
    assert safe_links(made)


def texts_of(row: list[str]) -> list[str]:
    """The cells that are no numbers."""
    return [cell for cell in row if not re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell)]


@pytest.mark.usefixtures("_no_figures")
@pytest.mark.parametrize("name", IN_PAGES[::4])
def test_the_page_of_a_reproduction(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "extractions", lambda context: [context.rows.store.configuration.composite])

    def page(called: str) -> str:
        results = reproduced(called)
        shown = {
            title: markdown(table)
            for section, result in results.items()
            for title, table in SECTIONS[section].show(result).shown.items()
        }
        assert all("/" not in title and len(title) < 100 for title in shown)
        return run._page(context_named(called), Path(), results, shown, {}, called, [])

    made = page(name)
    assert structure(made) == known("reproduction", page, harmless(name))
    assert safe_links(made)
    assert shown(name) in shown(words(made))


def read_back(table: pd.DataFrame, path: Path) -> list[list[str]]:
    with save_table(table, path).open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


@pytest.mark.parametrize("value", NO_HALVES)
def test_no_cell_is_a_formula(value: str, tmp_path: Path) -> None:
    table = pd.DataFrame(
        {value: [value, None, value], "number": [-1.5, 2.0, np.nan], "mixed": [value, -1, 0.5]}
    )
    rows = read_back(table, tmp_path / "t.csv")
    assert len(rows) == 4
    assert not any(row[0].startswith(COMPUTED) for row in rows)
    assert [row[1] for row in rows] == ["number", "-1.5", "2", ""]
    assert [row[2] for row in rows[2:]] == ["-1", "0.5"]
    assert rows[1][0].lstrip("'") == visible(value).replace("\n", " ").lstrip("'")


@settings(deadline=None)
@given(st.text())
def test_no_text_is_a_formula(value: str) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow([safe_cell(value), "x"])
    (row,) = csv.reader(io.StringIO(written.getvalue(), newline=""))
    assert not row[0].lstrip().startswith(COMPUTED)
    assert row[1] == "x"


@pytest.mark.parametrize("value", ["llama-2-7b-chat", "a, b", 'say "x"', "", "R_response", "'quoted'", "1"])
def test_other_cells_stay_as_they_are(value: str) -> None:
    assert safe_cell(value) == value


def figures(one: str, other: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every kind of figure that shows names."""
    bins = Reliability(np.linspace(0, 1, 3), np.array([0.2, 0.8]), np.array([0.3, 0.7]), np.array([5, 5]))
    curve = {10: METRIC, 220: METRIC}
    systems = {one: interval(), other: interval(0.7)}
    entries = [results.Entry(name, "detector", METRIC) for name in (one, other)]
    changes = [
        results.Difference(one, f"rules: {other}", interval(0.1)),
        results.Difference(other, one, interval(0.2)),
    ]
    pairs = {(a, b): interval() for a in (one, other) for b in (one, other)}
    yield "panels", lambda: _panels([one, other])
    yield "forest", lambda: results.draw_forest(entries, title=one)
    yield "differences", lambda: results.draw_differences(changes, "AUROC")
    yield "transfer", lambda: results.draw_transfer(pairs, title=one)
    yield "lengths", lambda: results.draw_lengths({one: curve, other: curve}, title=one)
    yield "reliability", lambda: results.draw_reliability({one: bins, other: bins}, title=one)
    yield (
        "systems",
        lambda: results.draw_systems({one: systems, other: systems}, {one: 2.0, other: 5.0}, (one,)),
    )
    both = {one: METRIC, other: METRIC}
    yield "curve", lambda: results.draw_curve({50: both, 100: both})
    yield "cost", lambda: results.draw_cost({one: systems, other: systems}, {one: 2.0, other: 5.0})


def size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def _panels(titles: list[str]) -> Any:
    with themed():
        drawn, axes = panels(1, titles)
        for ax, name in zip(axes.flat, titles, strict=True):
            ax.plot([0, 1], [1, 100], label=name)
            ax.set(yscale="log", ylabel=f"mean {SYMBOLS['response']}\nlogits")
        legend_below(drawn, axes.flat)
        return drawn


SCRIPT, MATHS = "</text><script>alert(1)</script>", "$\\frac{$ \x00\x1b 模型\ufffe\nline"

KINDS = [name for name, _ in figures("a", "b")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_shows_names_as_they_are(kind: str, tmp_path: Path) -> None:
    """Also of a megabyte, which makes no gigantic figure and takes no minutes."""
    started = time.perf_counter()
    image, drawing = save(dict(figures(SCRIPT, MATHS + LONG))[kind](), tmp_path / "figure")
    assert time.perf_counter() - started < 10
    root = ElementTree.parse(drawing).getroot()
    assert not [element.tag for element in root.iter() if "script" in element.tag]
    shown = "".join(root.itertext())
    assert SCRIPT in shown
    assert "\\frac{$ \u2400\u241b" in shown
    assert max(size(image)) < 2000
    assert drawing.stat().st_size < 1_000_000


def test_our_mathematics_are_set_and_so_are_powers_of_ten(tmp_path: Path) -> None:
    drawing = save(_panels(["$R_{prompt}$", "$x_1$"]), tmp_path / "figure")[1].read_text()
    content = re.sub("<!--.*?-->", "", drawing)  # where mathematics are repeated
    assert "$x_1$" in content
    assert "mathdefault" not in content
    assert "R_{" not in content


@pytest.mark.usefixtures("_no_figures")
def test_names_are_apart_in_figures_and_tables_of_a_reproduction() -> None:
    for one, other in combinations(["a/b", "a-b", "a b", ".."], 2):
        titles = [{*SECTIONS["length"].show(reproduced(name)["length"]).figures} for name in (one, other)]
        assert not titles[0] & titles[1]
    table = SECTIONS["length"].show(reproduced("a: b")["length"]).tables["length"]
    assert set(table["generator"]) == {"a: b"}
    assert set(table["name"]) == {"svm, R_response, zeros"}
