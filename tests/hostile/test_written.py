"""What users named, in files that we write: pages, tables and figures say it, and do nothing with it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lrp4rag.classifiers.folder import load_card
from lrp4rag.lrp.units import Unit, UnitRelevance
from lrp4rag.report.cards import model_card
from lrp4rag.report.figure_text import LINES, LONGEST, SYMBOLS, plain_text
from lrp4rag.report.markdown import Markdown, code, emphasised, strong, text
from lrp4rag.report.numbers import markdown, slug
from lrp4rag.report.plots import png
from lrp4rag.report.templates import markdown_templates
from lrp4rag.report.units import heatmap
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import visible
from tests.experiments.hostile.written import renamed
from tests.hostile.pages import harmless, known, safe_links, shown, structure, words
from tests.hostile.strings import CONTROLS, HOSTILE, HTML, IN_PAGES, MATHEMATICS
from tests.report import samples

LONG = "x" * 100_000


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


@pytest.mark.parametrize("place", PLACES)
def test_text_makes_no_structure(place: str) -> None:
    pattern = PLACES[place]
    for value in HOSTILE:
        escape = strong if place == "bold" else text
        page = pattern.replace("{}", escape(value))
        assert structure(page) == structure(pattern.replace("{}", escape(harmless(value)))), value
        assert place == "image" or shown(value) in words(page).replace("\n", " "), value


@settings(deadline=None)
@given(st.text())
def test_no_text_makes_structure(value: str) -> None:
    for pattern in (PLACES["table"], PLACES["heading"], PLACES["item"]):
        page = pattern.replace("{}", text(value))
        assert structure(page) == structure(pattern.replace("{}", harmless(value)))


@pytest.mark.parametrize("pattern", ["| a | b |\n|---|---|\n| {} | 1 |\n", "See {} there.\n"])
def test_code_is_one_span(pattern: str) -> None:
    for value in HOSTILE:
        page = pattern.replace("{}", code(value, cell="|" in pattern))
        assert structure(page) == structure(pattern.replace("{}", "`name`"))
        assert shown(value) in words(page)


@settings(deadline=None)
@given(st.text())
def test_any_code_is_one_span(value: str) -> None:
    assert structure(f"a {code(value)} b") == structure("a `name` b")


HARMLESS = [
    *("llama-2-7b-chat", "log_prob", "R* along the response, less R*", "0.716 [0.68, 0.75]"),
    *("+0.021 [-0.004, +0.046]", "p < 0.05", "R_prompt & R_response; AT&T", "2 x 256", "#1 of 3", "~/stores"),
    *("best of the paper's own (svm), C=1: 5 %", "-0.5", "1.5", ", ", "; ", "pad_last"),
]


@pytest.mark.parametrize("value", HARMLESS)
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


def test_a_new_template_cannot_forget_to_escape(tmp_path: Path) -> None:
    """Whatever way a value comes into it: joined, in a macro, chosen, by a filter."""
    (tmp_path / "page.md.j2").write_text(
        "{% macro cell(x) %}{{ x }}{% endmacro %}"
        "# {{ name }}\n\n* {{ [name, name] | join(', ') }}\n* {{ name ~ ': ' ~ 1 }}\n"
        "* {{ cell(name) | safe }}\n* {{ cell(name) }}\n* {{ name if name else '' }}\n"
        "* {{ '%s' | format(name) }}\n* {{ name | capitalize }}\n"
    )
    template = markdown_templates(tmp_path).get_template("page.md.j2")
    for value in HOSTILE:
        assert structure(template.render(name=value)) == structure(template.render(name=harmless(value)))


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


def size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


@pytest.mark.parametrize("value", [*MATHEMATICS, *CONTROLS, *HTML, "<!-- comment", LONG, "a\n" * 9, "\ufffe"])
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
    return UnitRelevance(units(rows), units(columns), values, ones, ones, label, label, 0)


@pytest.mark.parametrize("value", [*MATHEMATICS[1:4], "\x1b[2J\x00 \u202e", "模型 🗼\ud800", LONG])
def test_the_picture_of_units(value: str, tmp_path: Path) -> None:
    heatmap(relevance_between(value), tmp_path / "u.png")
    assert max(size(tmp_path / "u.png")) < 2000


@pytest.mark.parametrize("draw", ["analysis", "units"])
def test_a_picture_replaces_files_only(draw: str, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    (tmp_path / "target").write_text("mine")
    path.symlink_to(tmp_path / "target")
    analysis = samples.analysis_of(rows=False, segments=False)
    write = {"units": lambda: heatmap(relevance_between("a"), path), "analysis": lambda: png(analysis, path)}
    with pytest.raises(InputError):
        write[draw]()
    assert (tmp_path / "target").read_text() == "mine"
    assert not list(tmp_path.glob(".*"))
