"""A value that a passage has otherwise: the same words on the terminal, on the page and in a notebook."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.report.html import html_page, html_summary
from lrp4rag.report.record import record
from lrp4rag.report.terminal import render, render_line
from lrp4rag.report.words import contradiction_words
from tests.report.samples import contradicted
from tests.report.test_html import Page
from tests.report.test_record import printed

WORDS = '"4 weeks": passage 2 has "2 weeks" (characters 15..22, margin 3.1 nats, relevance +0.4)'
WITHOUT = WORDS.replace(", relevance +0.4", "")


def with_figures(analysis: Analysis, *figures: tuple[float, float | None]) -> Analysis:
    """The analysis with a contradiction of each margin and relevance."""
    (span,) = analysis.spans
    told = [replace(span.contradictions[0], margin=one, relevance=two) for one, two in figures]
    return replace(analysis, spans=(replace(span, contradictions=tuple(told)),))


@pytest.mark.parametrize(("relevance", "words"), [(0.4, WORDS), (None, WITHOUT)])
def test_the_same_words_everywhere(relevance: float | None, words: str) -> None:
    analysis = contradicted(relevance=relevance)
    page, summary = Page(html_page(analysis)), Page(html_summary(analysis))
    table = printed(render(analysis), width=250)
    line = printed(render_line(analysis), width=250)
    for text in (table, page.text("contradicted"), summary.text("contradicted"), line):
        assert words in text
    assert "contradicted" in table
    for shown in (page, summary):
        titles = [named["title"] for tag, named in shown.tags if tag == "mark" and "style" in named]
        assert titles == [f"contradicted; {words}"]
    for text in (table, page.text("note")):
        assert "Margin: how much likelier" in text
        assert ("Relevance: how much more" in text) == (relevance is not None)


def test_figures_may_be_negative_and_are_said_once() -> None:
    analysis = with_figures(contradicted(), (-0.04, -12.345), (-0.04, -12.345), (20.0, None))
    assert contradiction_words(analysis.spans[0]) == [
        WORDS.replace("3.1", "\u22120.04").replace("+0.4", "\u221212.3"),
        WITHOUT.replace("3.1", "20"),
    ]


def test_nothing_is_explained_where_nothing_is_contradicted() -> None:
    analysis = with_figures(contradicted())
    shown = html_page(analysis)
    assert 'title="unsupported"' in shown
    assert "unsupported" in printed(render(analysis), width=250)
    for text in (printed(render(analysis), width=250), Page(shown).text("note")):
        assert "argin" not in text
    assert "instead" not in {named.get("class") for _, named in Page(html_page(analysis)).tags}
    assert "Contradicted by" not in html_summary(analysis)


def noted(page: Page) -> list[tuple[str, str | None]]:
    """What is marked in the prompt, and the titles of the marks."""
    texts = [text for path, text in page.texts if path[-1:] == ("instead",) and "prompt" in path]
    titles = [
        named["title"] for _, named in page.tags if named.get("class") == "instead" and "title" in named
    ]
    return list(zip(texts, titles, strict=True))


@pytest.mark.parametrize("pushed", [True, False])
def test_the_page_marks_what_the_passage_has_instead(pushed: bool) -> None:
    analysis = contradicted(pushed=pushed)
    page = Page(html_page(analysis))
    title = 'The response has "4 weeks"'
    assert noted(page) == [("2", title), (" weeks", title)]  # a mark for each token
    assert page.text("prompt") == analysis.encoded.text
    shaded = [named for _, named in page.tags if named.get("class") in ("p", "p break")]
    assert len(shaded) == len(analysis.encoded.prompt_ids)
    if pushed:
        assert len(page.rows()["sentences"]["mean"]) == len(shaded)


def test_marks_that_overlap() -> None:
    analysis = with_figures(contradicted(), (1.0, None), (2.0, None))
    (span,) = analysis.spans
    first, second = span.contradictions
    told = (replace(first, passage_end=first.passage_start + 3), replace(second, text="may"))
    changed = replace(span, contradictions=told)
    page = Page(html_page(replace(analysis, spans=(changed,))))
    both, only = 'The response has "4 weeks"; The response has "may"', 'The response has "may"'
    assert noted(page) == [("2", both), (" w", both), ("eeks", only)]


def test_the_page_marks_the_passage_where_a_chat_template_moved_it() -> None:
    analysis = contradicted()
    encoded, shift = analysis.encoded, len("<|user|>")
    moved = tuple((start + shift, end + shift) for start, end in encoded.prompt_offsets)
    spans = tuple((start + shift, end + shift) for start, end in encoded.spans)
    framed = replace(encoded, text=f"<|user|>{encoded.text}<|end|>", prompt_offsets=moved, spans=spans)
    page = Page(html_page(replace(analysis, encoded=framed)))
    assert [text for text, _ in noted(page)] == ["2", " weeks"]


def test_the_page_of_a_reader_that_cannot_be_pulled() -> None:
    analysis = contradicted(relevance=None, pushed=False)
    page = Page(html_page(analysis))
    for words in ("A permit lasts 4 weeks here.", "0.78", "not attributed"):
        assert words in page.text("fallback")
    (sentence,) = page.data()["verdict"]["sentences"]
    assert (sentence["relevance"], sentence["passage"], sentence["by_passage"]) == (None, None, [])
    assert page.rows()["relevance"] == [None]
    assert page.rows()["restsOn"] == ["not attributed"]


def test_a_sentence_without_relevance_beside_one_with_it() -> None:
    analysis = contradicted(pushed=False)
    (sentence,) = analysis.sentences
    both = (sentence, replace(sentence, relevance=1.5, by_passage=(0.5, 1.0), passage=1))
    page = Page(html_page(replace(analysis, sentences=both)))
    assert page.rows()["relevance"] == [None, 1.5]
    assert [one["passage"] for one in page.data()["verdict"]["sentences"]] == [None, 2]
    assert "passage 2 (+1.00)" in page.text("fallback")


def test_passages_count_from_one_and_json_has_the_same() -> None:
    (span,) = record(contradicted())["spans"]
    (one,) = span["contradictions"]
    assert (one["passage"], one["passage_start"], one["passage_end"]) == (2, 15, 22)
    assert (one["text"], one["passage_text"]) == ("4 weeks", "2 weeks")
    assert (one["margin"], one["relevance"]) == (3.1, 0.4)
