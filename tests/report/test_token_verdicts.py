"""Verdicts of token detectors, wherever they are told: spans, what moved them, and when there is none."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.verdict import Reason, TokenMarks, judge
from lrp4rag.features.table import FEATURES
from lrp4rag.report.html import html_page
from lrp4rag.report.plots import figure
from lrp4rag.report.reasons import WORDS, reason_words
from lrp4rag.report.record import record
from lrp4rag.report.terminal import render, render_line, render_summary
from tests.report.samples import analysis_of, grounded_then_not, hostile

REASON = Reason("cp passages", 1.5, 1, 0.04, (0.1, 0.25, 0.31, 0.4, 0.6))
LONG = Unlike("response tokens", "the response's tokens: 900, trained on 8 to 500", decides=True)
FEW = Unlike("passages", "the number of passages: 2, trained on 2.4 to 3.75", decides=False)


def judged(base: Analysis | None = None, **changes: Any) -> Analysis:
    """The second sentence is made up: its tokens have 0.9, the others 0.1."""
    base = base or grounded_then_not()
    count = len(base.relevance.response)
    probabilities = np.where(np.arange(count) < 4, 0.1, 0.9).astype(np.float32)
    marks = TokenMarks(probabilities, 0.5, 3, 0.6)
    verdict = judge(base.relevance, probability=0.78, threshold=0.5, marks=marks)
    return replace(base, verdict=replace(verdict, reasons=(REASON,), **changes))


def printed(analysis: Analysis) -> str:
    console = Console(width=100, no_color=True, record=True, file=io.StringIO())
    console.print(render(analysis))
    return console.export_text()


def test_a_span_has_a_probability_and_the_passage_behind_it_or_none() -> None:
    analysis = judged()
    (span,) = record(analysis)["spans"]
    assert span["text"] == "Aliens built it from cheese."
    assert (round(span["probability"], 3), span["passage"]) == (0.9, None)
    text = printed(analysis)
    assert "draws most on" in text
    assert "no passage" in text
    page = html_page(analysis)
    assert "no passage" in page
    assert "0.90" in page
    assert len(figure(analysis).axes) > len(figure(grounded_then_not()).axes)


def test_sentences_are_suspect_by_their_own_threshold() -> None:
    first, second = record(judged())["sentences"]
    assert (first["suspect"], round(first["probability"], 3)) == (False, 0.1)
    assert (second["suspect"], round(second["probability"], 3)) == (True, 0.9)


def test_what_a_known_generator_adds_is_told() -> None:
    analysis = judged(shift=-0.25)
    analysis = replace(analysis, example=replace(analysis.example, generator="careful"))
    assert "careful makes things up less often than others: -0.25 in log odds" in printed(analysis)
    assert record(analysis)["generator_shift"] == -0.25
    assert "makes things up" not in printed(judged())


def test_what_moved_it_is_told_in_words() -> None:
    words = (
        "sentence 2 draws 4% of its logit from the passages (cp_lrp); half of faithful sentences: 25% to 40%"
    )
    analysis = judged()
    assert reason_words(REASON, analysis.verdict) == words
    assert words in " ".join(printed(analysis).split())
    assert words in html_page(analysis)
    assert record(analysis)["reasons"][0]["words"] == words


def test_every_feature_has_words() -> None:
    assert set(WORDS) == set(FEATURES)
    assert all(words.count("{}") == 1 for words in WORDS.values())


def test_where_there_is_no_verdict_it_is_said_why() -> None:
    analysis = judged(unlike=(LONG, FEW))
    row = json.loads(json.dumps(record(analysis), allow_nan=False))
    assert (row["hallucinated"], row["abstained"], row["probability"]) == (None, True, 0.78)
    assert [one["facet"] for one in row["unlike"]] == ["response tokens", "passages"]
    text = " ".join(printed(analysis).split())
    for told in (text, html_page(analysis).replace("&#39;", "'")):
        assert "No verdict: unlike the training data (probability would be 0.78)" in told
        assert f"unlike the training data: {LONG.words}" in told
        assert f"caution: {FEW.words}" in told
    assert "no verdict" in render_line(analysis).plain
    assert "0 flagged" in render_summary([row]).plain
    assert "1 without a verdict" in render_summary([row]).plain


def test_a_caution_leaves_the_verdict() -> None:
    analysis = judged(unlike=(FEW,))
    assert analysis.verdict.hallucinated
    assert "Likely hallucinated" in printed(analysis)
    assert "caution" in printed(analysis)


def test_nothing_suspect_is_said_too() -> None:
    analysis = judged()
    marks = replace(analysis.verdict.marks, threshold=0.95)
    verdict = judge(analysis.relevance, probability=0.2, threshold=0.5, marks=marks)
    assert "No token has a probability of 0.95" in html_page(replace(analysis, verdict=verdict))


def test_relevance_of_passages_only_is_named() -> None:
    analysis = replace(judged(analysis_of(segments=False)), passages_only=True)
    assert "of passages" in printed(analysis)
    assert "not attributed" in printed(analysis)
    assert "no passage" not in printed(analysis)
    assert record(analysis)["relevance_of"] == "passages"


def test_user_text_is_escaped_in_spans_too() -> None:
    page = html_page(judged(hostile("<script>alert(1)</script>")))
    assert "<script>alert" not in page
