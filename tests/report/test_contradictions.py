"""A contradiction of hostile texts: terminal, page and notebook show them, and do nothing with them."""

from __future__ import annotations

import pytest

from lrp4rag.report.html import html_page, html_summary
from lrp4rag.report.terminal import render, render_line
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import one_line, surrogate_in, visible
from tests.hostile.strings import IN_PAGES, TEXTS, obeyed
from tests.report.samples import contradicted
from tests.report.test_html import Page
from tests.report.test_record import printed

SAID = [text for text in (*IN_PAGES, *TEXTS) if text.strip() and surrogate_in(text) is None]
TOLD = [text for text in SAID if len(sentences_in(f"A permit lasts {text} here.")) == 1]
"""Values lie in one sentence."""
OBEYED = "\x1b[31m<b onload='x'>\x9b\u202e[bold]*x*[/bold]\x07"


def parts(page: str) -> tuple[list[str], set[str]]:
    """The elements of a page but for the prompt's and the response's pieces, and the names of attributes."""
    tags = Page(page).tags
    names = [tag for tag, named in tags if tag not in ("span", "mark")]
    return names, {key for _, named in tags for key in named}


@pytest.mark.parametrize("view", [html_page, html_summary])
def test_nothing_is_added_to_a_page(view) -> None:
    known = {pushed: parts(view(contradicted(pushed=pushed))) for pushed in (True, False)}
    for number, text in enumerate(SAID):
        pushed = number % 2 == 0
        harmless, attributes = known[pushed]
        says, instead = ((text, "2 weeks"), ("4 weeks", text), (text, text))[number % 3]
        made = view(contradicted(says, instead, pushed=pushed))
        made.encode()
        found, named = parts(made)
        assert set(found) <= set(harmless), text
        assert set(found) == set(harmless) or says not in ("4 weeks", *TOLD), text
        assert found.count("script") == harmless.count("script"), text
        assert named <= attributes, text
        assert not obeyed(made), text


def test_the_page_says_what_they_are() -> None:
    for text in TOLD:
        page = Page(html_page(contradicted(text, text)))
        shown = one_line(text, 60)
        assert f'"{shown}": passage 2 has "{shown}" (characters 15..{15 + len(text)},' in page.text(
            "contradicted"
        )
        marked = "".join(
            words for path, words in page.texts if path[-1:] == ("instead",) and "prompt" in path
        )
        assert marked == visible(text), text
        (one,) = page.data()["verdict"]["spans"][0]["contradictions"]
        assert (one["text"], one["passage_text"]) == (text, text)
        titles = {named.get("title") for _, named in page.tags if named.get("class") == "instead"} - {None}
        assert titles == {f'The response has "{shown}"'}, text


@pytest.mark.parametrize("view", [render, render_line])
def test_a_terminal_obeys_nothing(view) -> None:
    for text in TOLD:
        found = printed(view(contradicted(text, text)), width=400)
        assert not obeyed(found), text
        shown = one_line(text, 60)
        assert f'"{shown}": passage 2 has "{shown}" (characters 15..' in found, text


def test_one_example_is_one_line() -> None:
    for text in SAID:
        assert "\n" not in render_line(contradicted(text, text)).plain


def test_colour_is_only_ours() -> None:
    found = printed(
        render(contradicted(OBEYED, OBEYED)), width=400, force_terminal=True, color_system="standard"
    )
    assert "\x1b[31m<b" not in found
    assert "\u241b[31m<b" in found
    assert "[bold]*x*[/bold]" in found
