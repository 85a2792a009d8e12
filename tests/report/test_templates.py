"""Text of users in Markdown: it is said, and makes no structure."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrp4rag.report.templates import Markdown, code, emphasised, markdown_templates, strong, text
from tests.hostile.pages import harmless, shown, structure, words
from tests.hostile.strings import HOSTILE

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
