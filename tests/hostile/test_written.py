"""What users named, in files that we write: pages, tables and figures say it, and do nothing with it."""

from __future__ import annotations

import csv
import io
import os
import re
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lrp4rag.experiments.paper.differences import Difference
from lrp4rag.experiments.paper.differences import draw as draw_differences
from lrp4rag.experiments.paper.sections import SECTIONS
from lrp4rag.sheets import safe_cell
from PIL import Image

from lrp4rag.classifiers.folder import load_card
from lrp4rag.errors import InputError
from lrp4rag.experiments.figures import compare, forest, lengths, reliability, save, save_table, study
from lrp4rag.experiments.figures import transfer as transfer_figure
from lrp4rag.experiments.figures.style import legend_below, panels, themed
from lrp4rag.experiments.paper.page import render
from lrp4rag.experiments.study import page as study_page
from lrp4rag.experiments.study.study import Study
from lrp4rag.experiments.systems.comparison import page as compare_page
from lrp4rag.experiments.systems.comparison.compare import Comparison, Plan
from lrp4rag.experiments.systems.comparison.costs import Cost, Costs
from lrp4rag.experiments.systems.kit import Choices
from lrp4rag.lrp.units import Unit, UnitRelevance
from lrp4rag.report.figure_text import LINES, LONGEST, SYMBOLS, plain_text
from lrp4rag.report.markdown import Markdown, code, emphasised, strong, text
from lrp4rag.report.model_card import model_card
from lrp4rag.report.numbers import markdown, slug
from lrp4rag.report.plots import png
from lrp4rag.report.templates import markdown_templates
from lrp4rag.report.units import heatmap
from lrp4rag.text import surrogate_in, visible
from lrp4rag.training.metrics import Reliability
from tests.hostile.strings import CONTROLS
from tests.hostile.written import (
    FORMULAS,
    HOSTILE,
    MARKDOWN,
    MATHEMATICS,
    METRIC,
    context_named,
    interval,
    links,
    recorded,
    renamed,
    reproduced,
    rows_named,
    structure,
    words,
)
from tests.report import samples

GENERATORS = ("llama-2-7b-chat", "llama-2-13b-chat", "llama-2-70b-chat", "mistral-7B-instruct")
FORMULA = re.compile(r"[=+\-@\t\r\n]")
LONG = "x" * 100_000
NO_HALVES = [value for value in HOSTILE if surrogate_in(value) is None]
"""No store holds half a character."""
IN_PAGES = [*MARKDOWN[:24], FORMULAS[1], MATHEMATICS[3], "", *CONTROLS[:2], "x" * 300, "a\r\nb\u2028c"]
COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\n")


def told(value: str) -> str:
    """What a reader is to see of a name."""
    return re.sub("[ \n]+", " ", visible(value)).strip()


def harmless(value: str) -> str:
    """Another name; none in place of white space."""
    return "name" if told(value) else ""


# Markdown.

PLACES = {
    "paragraph": "It was {} who said {} so.\n",
    "start of a line": "{} did.\n\nAnd then.\n",
    "heading": "## {}: 3 responses\n\nText.\n",
    "item": "* {}: one\n* {}\n",
    "table": "| a | b |\n|---|---|\n| {} | x {} |\n| 1 | 2 |\n",
    "image": "![{}: a curve](a.png)\n",
    "link": "[{}](a.md)\n",
    "bold": "| a |\n|---|\n| {} |\n\nIt was {}.\n",
}


@pytest.mark.parametrize("value", HOSTILE)
def test_text_makes_no_structure(value: str) -> None:
    for place, pattern in PLACES.items():
        escape = strong if place == "bold" else text
        page = pattern.replace("{}", escape(value))
        assert structure(page) == structure(pattern.replace("{}", escape(harmless(value)))), place
        assert place == "image" or told(value) in words(page).replace("\n", " "), place


@settings(deadline=None)
@given(st.text())
def test_no_text_makes_structure(value: str) -> None:
    for pattern in (PLACES["table"], PLACES["heading"], PLACES["item"]):
        page = pattern.replace("{}", text(value))
        assert structure(page) == structure(pattern.replace("{}", harmless(value)))


@pytest.mark.parametrize("value", HOSTILE)
def test_code_is_one_span(value: str) -> None:
    for cell, pattern in ((True, "| a | b |\n|---|---|\n| {} | 1 |\n"), (False, "See {} there.\n")):
        page = pattern.replace("{}", code(value, cell=cell))
        assert structure(page) == structure(pattern.replace("{}", "`name`"))
        assert told(value) in words(page)


@settings(deadline=None)
@given(st.text())
def test_any_code_is_one_span(value: str) -> None:
    assert structure(f"a {code(value)} b") == structure("a `name` b")


@pytest.mark.parametrize(
    "value",
    [
        "llama-2-7b-chat",
        "log_prob",
        "R* along the response, less R*",
        "0.716 [0.68, 0.75]",
        "+0.021 [-0.004, +0.046]",
        "p < 0.05",
        "R_prompt & R_response; AT&T",
        "best of the paper's own (svm), C=1: 5 %",
        "-0.5",
        "1.5",
        ", ",
        "; ",
        "pad_last",
        "2 x 256",
        "#1 of 3",
        "~/stores",
    ],
)
def test_harmless_text_stays_as_it_is(value: str) -> None:
    assert text(value) == value


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


def test_what_is_meant_is_not_escaped_and_what_is_made_of_it_is() -> None:
    assert text(strong("a*b")) == "**a\\*b**"
    assert text(emphasised("a")) == "*a*"
    assert isinstance(text("a"), Markdown)
    assert text(strong("a") + "|") == "\\*\\*a\\*\\*\\|"


@pytest.mark.parametrize("value", HOSTILE)
def test_a_new_template_cannot_forget_to_escape(value: str, tmp_path: Path) -> None:
    """Whatever way a value comes into it: joined, in a macro, chosen, by a filter."""
    (tmp_path / "page.md.j2").write_text(
        "{% macro cell(x) %}{{ x }}{% endmacro %}"
        "# {{ name }}\n\n* {{ [name, name] | join(', ') }}\n* {{ name ~ ': ' ~ 1 }}\n"
        "* {{ cell(name) | safe }}\n* {{ cell(name) }}\n* {{ name if name else '' }}\n"
        "* {{ '%s' | format(name) }}\n* {{ name | capitalize }}\n"
    )
    template = markdown_templates(tmp_path).get_template("page.md.j2")
    assert structure(template.render(name=value)) == structure(template.render(name=harmless(value)))


# Pages.


@pytest.fixture
def _no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (study_page, compare_page):
        monkeypatch.setattr(module, "save", lambda drawn, stem: [Path(f"{stem}.png")])
        for name in ("draw_reliability", "draw_curve", "draw_cost"):
            monkeypatch.setattr(module, name, lambda *_, **__: None, raising=False)
    for section in SECTIONS.values():
        module = SimpleNamespace(**vars(__import__(section.show.__module__, fromlist=["x"])))
        for name in ("figure", "forest"):
            if (drawing := getattr(module, name, None)) is not None:
                monkeypatch.setattr(drawing, "draw", lambda *_, **__: None)
    monkeypatch.setattr("lrp4rag.experiments.paper.ablations.draw", lambda *_: None)


def four(values: list[str]) -> list[tuple[str, ...]]:
    """Four names a page."""
    return [tuple((values[k:] + values)[:4]) for k in range(0, len(values), 4)]


def unlike(names: tuple[str, ...]) -> tuple[str, ...]:
    """As many harmless names, of which some are empty."""
    return tuple(f"g{k}" if told(name) else " " * k for k, name in enumerate(names))


KNOWN: dict[Any, tuple[str, ...]] = {}


def known(name: str, make: Callable[..., str], *given: Any) -> tuple[str, ...]:
    """The structure of a page with harmless names, made once."""
    if (name, *given) not in KNOWN:
        KNOWN[name, *given] = structure(make(*given))
    return KNOWN[name, *given]


def safe_links(page: str) -> bool:
    return all(re.fullmatch(r"(https://arxiv\.org/abs/)?[\w.#/-]+", link) for link in links(page))


@pytest.mark.usefixtures("_no_figures")
@pytest.mark.parametrize("names", four(IN_PAGES))
def test_the_page_of_a_study(names: tuple[str, ...], tmp_path: Path) -> None:
    costs = {"R_response": 2.0, "fast": 3.0, "segments": 4.0, "full": 9.0}

    def page(called: tuple[str, ...], command: str) -> str:
        found = recorded(Study, "detector", dict(zip(GENERATORS, called, strict=True)))
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        rows = rows_named(list(called), command)
        study_page.write_page(found, rows, out, command, resamples=20, costs=costs)
        return (out / "README.md").read_text()

    made = page(names, names[0])
    assert structure(made) == known("study", page, unlike(names), harmless(names[0]))
    assert safe_links(made)
    assert all(told(name) in told(words(made)) for name in names)


@pytest.mark.usefixtures("_no_figures")
@pytest.mark.parametrize("names", four(IN_PAGES))
def test_the_page_of_a_comparison(names: tuple[str, ...], tmp_path: Path) -> None:
    def page(called: tuple[str, ...], command: str) -> str:
        found = recorded(Comparison, "compare", dict(zip(GENERATORS, called, strict=True)))
        costs = Costs({name: Cost(0.5, 2.0, 10**9) for name in found.facts}, command)
        choices = Choices(reader=command, token_classifier=command)
        baselines = {name: SimpleNamespace(facts=one) for name, one in found.facts.items()}
        plan: Any = Plan(baselines, 200, called, choices, 1, 20)
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        compare_page.write_page(found, rows_named(list(called), command), out, command, plan, costs, {})
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
@pytest.mark.parametrize("name", IN_PAGES)
def test_the_page_of_a_reproduction(name: str) -> None:
    def page(called: str) -> str:
        results = reproduced(called)
        shown = {
            title: markdown(table)
            for section, result in results.items()
            for title, table in SECTIONS[section].show(result).shown.items()
        }
        assert all("/" not in title and len(title) < 100 for title in shown)
        return render(context_named(called), results, shown, [], called)

    made = page(name)
    assert structure(made) == known("reproduction", page, harmless(name))
    assert safe_links(made)
    assert told(name) in told(words(made))


@pytest.mark.parametrize("value", IN_PAGES)
def test_the_card_of_a_detector(value: str) -> None:
    card = load_card("default")
    assert card.training is not None
    assert card.evidence is not None

    def page(called: str) -> str:
        names = dict.fromkeys(["llama-2-7b-chat"], called)
        changed = card.model_copy(
            update={
                "composite": called,
                "reader": {**card.reader, "name": called, "digest": called},
                "training": card.training.model_copy(
                    update={"command": called, "generators": renamed(card.training.generators, names)}
                ),
                "versions": {called: called},
                "evidence": card.evidence.model_copy(
                    update={"generators": renamed(dict(card.evidence.generators), names)}
                ),
                "selections": [one.model_copy(update={"chosen": called}) for one in card.selections],
            }
        )
        return model_card(changed, called)

    made = page(value)
    assert structure(made) == known("card", page, harmless(value))
    assert safe_links(made)


# Tables for spreadsheets.


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
    assert not FORMULA.match(row[0].lstrip())
    assert row[1] == "x"


@pytest.mark.parametrize(
    "value", ["llama-2-7b-chat", "a, b", 'say "x"', "", "R_response at 20", "'quoted'", "1"]
)
def test_other_cells_stay_as_they_are(value: str) -> None:
    assert safe_cell(value) == value


# Names of files.


@pytest.mark.parametrize("name", HOSTILE)
def test_a_slug_is_the_name_of_a_file(name: str, tmp_path: Path) -> None:
    made = slug(name)
    assert re.fullmatch(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?", made)
    assert ".." not in made
    assert len(made) <= 64
    (tmp_path / f"table2-{made}-honest.md").write_text("")
    assert len(list(tmp_path.iterdir())) == 1


def test_no_two_names_have_one_slug() -> None:
    names = [
        *HOSTILE,
        "a/b",
        "a-b",
        "a b",
        slug("a/b"),
        slug(slug("a/b")),
        *(f"{'x' * 60}{k}" for k in range(99)),
    ]
    assert len({slug(name) for name in names}) == len(set(names))


@settings(deadline=None)
@given(st.text(), st.text())
def test_slugs_tell_names_apart(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)


@pytest.mark.parametrize("name", [*GENERATORS, "gpt-4", "Qwen2.5_7B", "a"])
def test_most_names_are_their_own_slugs(name: str) -> None:
    assert slug(name) == name


# Figures.


def figures(one: str, other: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every kind of figure that shows names."""
    bins = Reliability(np.linspace(0, 1, 3), np.array([0.2, 0.8]), np.array([0.3, 0.7]), np.array([5, 5]))
    curve = lengths.LengthCurve((10, 220), (METRIC, METRIC))
    systems = {one: interval(), other: interval(0.7)}
    entries = [forest.Entry(name, "detector", METRIC) for name in (one, other)]
    changes = [Difference(one, f"rules: {other}", interval(0.1)), Difference(other, one, interval(0.2))]
    pairs = {(a, b): interval() for a in (one, other) for b in (one, other)}
    yield "panels", lambda: _panels([one, other])
    yield "forest", lambda: forest.draw(entries, title=one)
    yield "differences", lambda: draw_differences(changes, "AUROC")
    yield "transfer", lambda: transfer_figure.draw(pairs, title=one)
    yield "lengths", lambda: lengths.draw({one: curve, other: curve}, title=one)
    yield "reliability", lambda: reliability.draw({one: bins, other: bins}, title=one)
    yield "systems", lambda: compare.draw_cost({one: systems, other: systems}, {one: 2.0, other: 5.0}, (one,))
    yield (
        "curve",
        lambda: study.draw_curve({50: {one: METRIC, other: METRIC}, 100: {one: METRIC, other: METRIC}}),
    )
    yield "cost", lambda: study.draw_cost({one: systems, other: systems}, {one: 2.0, other: 5.0})


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


@pytest.mark.parametrize("value", [*MATHEMATICS, *CONTROLS, *MARKDOWN[:4], LONG, "a\n" * 9, "\ufffe"])
def test_text_is_made_plain(value: str) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    drawn = Figure()
    ax = drawn.subplots()
    shown = [ax.set_title(value), ax.text(0, 0, value), ax.annotate(value, (0, 0)), drawn.suptitle(value)]
    ax.set_xticks([0, 1], [value, "$R_{prompt}$"])
    shown.append(ax.set_ylabel(f"{SYMBOLS['total']} of {value}"))
    plain_text(drawn)
    for one in [*shown, *ax.get_xticklabels()[:1]]:
        lines = one.get_text().split("\n")
        assert len(lines) <= LINES
        assert max(map(len, lines)) <= LONGEST
        assert one.get_text() == visible(one.get_text())
        assert one.get_parse_math() == ("$" not in value)
    assert ax.get_xticklabels()[1].get_parse_math()
    formatter = ax.xaxis.get_major_formatter()
    assert isinstance(formatter, FuncFormatter)
    assert formatter(0, 0) == shown[1].get_text()  # also when it is drawn again


@pytest.mark.parametrize("value", [*MATHEMATICS[1:4], "\\$5 ^{", "\x1b[2J\x00 \u202e", "模型 🗼", "x" * 900])
def test_the_picture_of_an_analysis(value: str, tmp_path: Path) -> None:
    png(samples.hostile(value, rows=False, segments=False), tmp_path / "a.png")
    assert max(size(tmp_path / "a.png")) < 3000


def test_the_picture_of_many_sentences_has_an_end(tmp_path: Path) -> None:
    png(samples.hostile("$ a. " * 180), tmp_path / "a.png")
    assert max(size(tmp_path / "a.png")) < 12_000


def relevance_between(label: str, rows: int = 2, columns: int = 3) -> UnitRelevance:
    def units(count: int) -> tuple[Unit, ...]:
        return tuple(Unit(label, 0, 1, (k,)) for k in range(count))

    values = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    ones = np.ones(rows, np.float32)
    return UnitRelevance(
        rows=units(rows), columns=units(columns), values=values, own=ones, logits=ones, **_told(label)
    )


def _told(label: str) -> dict[str, Any]:
    return {"composite": label, "target": label, "layer": 0}


@pytest.mark.parametrize("value", [*MATHEMATICS[1:4], "\x1b[2J\x00 \u202e", "模型 🗼\ud800", LONG])
def test_the_picture_of_units(value: str, tmp_path: Path) -> None:
    heatmap(relevance_between(value), tmp_path / "u.png")
    assert max(size(tmp_path / "u.png")) < 2000


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "pipe"])
@pytest.mark.parametrize("draw", ["analysis", "units"])
def test_a_picture_replaces_files_only(kind: str, draw: str, tmp_path: Path) -> None:
    path, target = tmp_path / "a.png", tmp_path / "other"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
        if kind == "link":
            target.write_text("mine")
    analysis = samples.analysis_of(rows=False, segments=False)
    write = {"units": lambda: heatmap(relevance_between("a"), path), "analysis": lambda: png(analysis, path)}
    with pytest.raises(InputError):
        write[draw]()
    assert target.exists() == (kind == "link")
    assert not target.exists() or target.read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.usefixtures("_no_figures")
def test_pairs_of_names_are_apart_in_figures_of_a_reproduction() -> None:
    for one, other in combinations(["a/b", "a-b", "a b", ".."], 2):
        titles = [{*SECTIONS["length"].show(reproduced(name)["length"]).figures} for name in (one, other)]
        assert not titles[0] & titles[1]


@pytest.mark.usefixtures("_no_figures")
def test_a_generator_with_a_colon_keeps_its_name() -> None:
    table = SECTIONS["length"].show(reproduced("a: b")["length"]).tables["length"]
    assert set(table["generator"]) == {"a: b"}
    assert set(table["name"]) == {"svm, R_response, zeros"}
