"""A verdict on the terminal and as JSON, of vector and of token detectors: the same facts in both."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console, RenderableType

from lrp4rag.claims.stating import Stating
from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.verdict import Assessment, Claims, Evidence, Judgement, Reason, TokenMarks
from lrp4rag.features.plain import CONTEXT, PlainTable
from lrp4rag.features.plain import FEATURES as PLAIN_FEATURES
from lrp4rag.report.html import html_page
from lrp4rag.report.record import record
from lrp4rag.report.terminal import Tally, render, render_line, render_summary
from lrp4rag.report.words import REASONS, reason_words
from lrp4rag.util.errors import RelevanceError
from tests.report.samples import (
    READER,
    RESPONSE,
    analysis_of,
    contradicted,
    grounded_then_not,
    hostile,
    judged_again,
)
from tests.report.test_html import Page

REASON = Reason("share", 1.5, 1, 0.04, (0.1, 0.25, 0.31, 0.4, 0.6))
LONG = Unlike("response tokens", "the response's tokens: 900, trained on 8 to 500", decides=True)
FEW = Unlike("passages", "the number of passages: 2, trained on 2.4 to 3.75", decides=False)
CONTROLS = "a\x1b[2J\x1b]0;owned\x07\x9b31m\r\x08\x7f\u202eb\ud800"
SENTENCES = ("It opened in 1874.", "Aliens built it from cheese.")
HOSTILE = f"{CONTROLS} [bold red]x[/] [link=http://e.org]y[/link] :smile:"


def judged(
    base: Analysis | None = None,
    *,
    claims: tuple[float, float] = (0.1, 0.78),
    stating: tuple[Stating, Stating] = ("a claim", "a claim"),
    unlike: tuple[tuple[Unlike, ...], ...] = (),
    **changes: Any,
) -> Analysis:
    """Of a token detector: sentences have the probabilities `claims`, with what each states; tokens of the
    second have one of 0.9, the others of 0.1."""
    base = base or grounded_then_not()
    count = len(base.relevance.response)
    probabilities = np.where(np.arange(count) < 4, 0.1, 0.9).astype(np.float32)
    known = [one for one, states in zip(claims, stating, strict=True) if states != "nothing"]
    assessment = Assessment(
        max(known, default=None),
        marks=TokenMarks(probabilities, 0.5),
        claims=Claims(np.array(claims), stating),
    )
    judgement = Judgement.of(base.encoded, assessment, 0.5, relevance=base.relevance, unlike=unlike)
    return replace(judged_again(base, judgement, Evidence()), **{"reasons": (REASON,), **changes})


def printed(shown: Analysis | RenderableType, *, encoding: str = "utf-8", **options: Any) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    Console(file=stream, **{"width": 100, **options}).print(
        render(shown) if isinstance(shown, Analysis) else shown
    )
    return raw.getvalue().decode(encoding)


def as_json(analysis: Analysis) -> dict[str, Any]:
    """The record, which JSON can hold."""
    return json.loads(json.dumps(record(analysis), allow_nan=False))


# What is said.


def test_the_record_has_everything_a_machine_needs():
    analysis = grounded_then_not(token_threshold=-0.001)
    row = as_json(analysis)
    assert set(row) == {
        "id", "probability", "threshold", "hallucinated", "spans", "sentences", "reader", "composite",
        "target", "prompt_tokens", "response_tokens", "dropped", "generated", "response", "seconds",
        "abstained", "unlike", "reasons", "computed", "relevance_of", "generator_shift", "prevalence",
        "decision", "read", "differences", "comparer", "calibrated",
    }  # fmt: skip
    expected = {"id": "bridge-1", "probability": 0.78, "threshold": 0.5, "hallucinated": True}
    expected |= {"reader": READER, "response": RESPONSE, "response_tokens": 9, "dropped": 0}
    expected |= {"generated": False, "seconds": {"push": 1.25, "classify": 0.5}}
    assert expected.items() <= row.items()
    assert row["prompt_tokens"] == len(analysis.encoded.prompt_ids)


def test_sentences_and_spans_carry_their_text_and_their_passage():
    analysis = grounded_then_not(token_threshold=0.4)
    row = record(analysis)
    first, second = row["sentences"]
    assert (first["text"], first["passage"], second["passage"]) == ("It opened in 1874.", 1, None)
    assert (first["by_passage"], second["by_passage"]) == ([2.0, 0.0], [0.0, -1.0])
    assert row["spans"]
    for part in (*row["spans"], *row["sentences"]):
        assert part["text"] == RESPONSE[part["start"] : part["end"]]
    text = printed(analysis)
    for words in (
        "Likely hallucinated, probability 0.78", "threshold 0.50", "passage 1 (+2.00)", "no passage",
        "push 1.2 s, classify 0.5 s; total 1.8 s",
    ):  # fmt: skip
        assert words in text


@pytest.mark.parametrize(
    ("probability", "words"), [(0.2, "Likely grounded"), (None, "Evidence only, no detector")]
)
def test_other_verdicts(probability, words):
    analysis = analysis_of(probability=probability, segments=False)
    text = printed(analysis)
    assert words in text
    assert "not attributed" in text
    assert "no passage" not in text
    if probability is None:
        row = record(analysis)
        assert row["probability"] is row["threshold"] is row["hallucinated"] is None


def test_no_nan_and_no_numpy():
    with pytest.raises(RelevanceError, match="invalid probability, nan"):
        analysis_of(probability=float("nan"))
    analysis = replace(analysis_of(), seconds={"push": np.float64(1.0), "pull": float("inf")})
    assert as_json(analysis)["seconds"] == {"push": 1.0, "pull": None}


def test_a_token_detectors_spans_and_sentences_have_probabilities():
    analysis = judged()
    row = as_json(analysis)
    (span,) = row["spans"]
    assert span["text"] == "Aliens built it from cheese."
    assert (round(span["probability"], 3), span["passage"]) == (0.9, None)
    suspects = [(one["status"], one["suspect"], round(one["probability"], 3)) for one in row["sentences"]]
    assert suspects == [("supported", False, 0.1), ("unsupported", True, 0.78)]
    text, page = printed(analysis), html_page(analysis)
    for words in ("P(hallucinated)", "0.78", "supported", "unsupported", "no passage"):
        assert words in text
        assert words in page
    assert "0.90" not in text, "one number is on the scale of the threshold, and is all that is told"


def test_nothing_suspect_is_said_too():
    analysis = judged(claims=(0.1, 0.2))
    assert analysis.marks.probabilities.max() > analysis.marks.threshold
    assert as_json(analysis)["spans"] == [], "tokens are marked in suspect sentences only"
    assert "a probability below 0.50" in html_page(analysis)
    assert "probability of hallucination 0.20" in printed(analysis)


def test_a_flagged_verdict_counts_its_sentences():
    flagged = "Likely hallucinated, probability 0.78"
    assert f"{flagged} (of 2 sentences 1 unsupported)" in printed(judged())
    assert f"{flagged} (of 2 sentences 2 unsupported)" in printed(judged(claims=(0.7, 0.78)))
    shown = judged(claims=(0.6, 0.78), stating=("nothing", "a claim"))
    assert f"{flagged} (of 1 sentence 1 unsupported)" in printed(shown)


def test_what_states_nothing_has_no_verdict():
    analysis = judged(claims=(0.9, 0.2), stating=("nothing", "an aside"), reasons=())
    row = as_json(analysis)
    assert (row["hallucinated"], row["abstained"], row["threshold"]) == (None, False, 0.5)
    assert [one["status"] for one in row["sentences"]] == ["states nothing", "states nothing"]
    shown = " ".join(printed(analysis).split())
    assert "verdict: it states nothing" in shown
    assert shown.count(" states nothing ") == 3
    assert "0.90" not in shown, "its probability is nobody's"
    assert "0.90" not in Page(html_page(analysis)).text("fallback")
    assert "no verdict" in render_line(analysis).plain
    nothing = judged(claims=(0.9, 0.9), stating=("nothing", "nothing"), reasons=())
    row = as_json(nothing)
    assert (row["probability"], row["hallucinated"]) == (None, None)
    assert "verdict: it states nothing" in printed(nothing)
    assert "hallucinated from probability 0.50" in html_page(nothing), "a detector looked"


def test_sentences_that_are_unlike_the_training_data_are_not_judged():
    analysis = judged(claims=(0.1, 0.78), unlike=((FEW,), (LONG, FEW)))
    row = as_json(analysis)
    assert [one["status"] for one in row["sentences"]] == ["supported", "not judged"]
    assert (row["abstained"], row["hallucinated"], row["spans"]) == (True, None, [])
    assert [one["facet"] for one in row["unlike"]] == ["response tokens", "passages"], "each is told once"
    assert "not judged" in printed(analysis)


# Why.


def test_contradicted_values_are_the_first_reasons():
    analysis = contradicted()
    analysis = replace(analysis, reasons=(replace(REASON, sentence=0),))
    first, second = record(analysis)["reasons"]
    words = 'the response: "4 weeks": passage 2 has "2 weeks"'
    assert (first["feature"], first["moved"], first["sentence"], first["words"]) == (
        "contradiction",
        None,
        1,
        words,
    )
    assert (first["value"], first["faithful"]) == (None, [])
    assert second["feature"] == REASON.feature
    shown = " ".join(printed(analysis, width=200).split())
    assert shown.index(f"main reasons {words}") < shown.index("share of its values")
    assert [one["words"] for one in Page(html_page(analysis)).data()["verdict"]["reasons"]] == [
        first["words"],
        second["words"],
    ]


def test_reasons_are_the_same_words_everywhere():
    words = (
        "sentence 2: share of its values among the passages' alternatives 4% "
        "(middle half of faithful sentences: 25%\u201340%)"
    )
    analysis = judged()
    assert reason_words(REASON, analysis) == words
    assert words in " ".join(printed(analysis).split())
    assert Page(html_page(analysis)).data()["verdict"]["reasons"][0]["words"] == words
    assert record(analysis)["reasons"][0]["words"] == words


def test_every_feature_has_words():
    assert set(REASONS) == {*PlainTable().telling, *PlainTable(groups=("entailment",), beside=()).telling}
    assert set(PLAIN_FEATURES) >= CONTEXT
    assert all(words.count("{}") == 1 for words in REASONS.values())


def test_what_a_known_generator_adds_is_a_reason():
    analysis = judged(shift=-0.25)
    analysis = replace(analysis, example=replace(analysis.example, generator="careful"))
    expected = "careful hallucinates less often than other generators: -0.25 log odds"
    assert expected in printed(analysis)
    assert record(analysis)["generator_shift"] == -0.25
    assert "hallucinates" not in printed(judged())


def test_where_there_is_no_verdict_it_is_said_why():
    analysis = judged(unlike=((), (LONG, FEW)))
    row = as_json(analysis)
    assert (row["hallucinated"], row["abstained"], row["probability"]) == (None, True, 0.78)
    assert [one["facet"] for one in row["unlike"]] == ["response tokens", "passages"]
    text = " ".join(printed(analysis).split())
    for shown in (text, html_page(analysis).replace("&#39;", "'")):
        assert "(probability would be 0.78)" in shown
        assert f"unlike the training data: {LONG.words}" in shown
        assert f"caution: {FEW.words}" in shown
    assert "no verdict" in render_line(analysis).plain
    assert "0 flagged, 1 without a verdict" in summary_of([row])


def test_a_caution_leaves_the_verdict():
    analysis = judged(unlike=((FEW,), (FEW,)))
    assert analysis.hallucinated
    assert "Likely hallucinated" in printed(analysis)
    assert "caution" in printed(analysis)


# How it is shown.


@pytest.mark.parametrize(
    ("options", "marks"),
    [
        ({}, ("⟦", "⟧")),
        ({"force_terminal": True, "no_color": True}, ("⟦", "⟧")),
        ({"encoding": "ascii"}, ("[[", "]]")),
    ],
)
def test_suspect_spans_are_marked_where_there_is_no_colour(options, marks):
    text = printed(grounded_then_not(token_threshold=99.0), **options)
    for sentence in SENTENCES:
        assert f"{marks[0]}{sentence}{marks[1]}" in text
    assert "unsupported" in text
    if "force_terminal" not in options:
        assert "\x1b" not in text


def test_colour_needs_no_marks():
    text = printed(grounded_then_not(token_threshold=99.0), force_terminal=True, color_system="standard")
    assert "\x1b[1;4;35m" in text
    assert "⟦" not in text


@pytest.mark.parametrize("view", [render, render_line])
def test_control_characters_and_markup_in_any_field_stay_text(view):
    text = printed(view(hostile(HOSTILE)))
    assert not set("\x1b\x07\x9b\r\x08\x7f\u202e") & set(text)
    assert "[bold red]x[/]" in text or view is render_line  # clipped there
    assert "😄" not in text


def test_a_line_per_example():
    text = printed(render_line(grounded_then_not()))
    assert text.count("\n") == 1
    assert text.split()[:3] == ["bridge-1", "0.78", "hallucinated"]
    assert "Aliens built it from cheese." in text
    assert "\n" not in render_line(hostile("line\nbreak")).plain


def summary_of(rows: list[dict]) -> str:
    tally = Tally()
    for row in rows:
        tally.add(row)
    return render_summary(tally).plain


def test_summary():
    flagged, fine = record(analysis_of(probability=0.9)), record(analysis_of(probability=0.2))
    slow = {**fine, "id": "slow\x1b[1m", "seconds": {"push": 20.0}}
    text = summary_of([flagged, fine, slow, {"id": "failed", "error": "too long"}])
    assert text.startswith("4 examples, 1 flagged, mean probability 0.43 (threshold 0.50), slowest slow")
    assert text.endswith("(20.0 s)")
    assert "\x1b" not in text
    assert summary_of([]) == "0 examples"
    evidence = summary_of([record(analysis_of(probability=None))])
    assert evidence == "1 example, slowest bridge-1 (1.8 s)"
    written = summary_of([fine, {**fine, "generated": True}])
    assert written.endswith("\n1 response was not given, and written by the reader")
