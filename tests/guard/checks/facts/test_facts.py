"""Facts are grounded or not by the verdict's spans and sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.verdict import Contradiction, Sentence, Status, SuspectSpan, Verdict
from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.facts import Facts, fact_score, facts_of, score
from lrp4rag.source import Source
from lrp4rag.util.sentences import sentences_in

PASSAGE = (
    "Employees are entitled to 16 weeks of parental leave at 80% of base salary. They must have worked "
    "here for at least 12 months and give 8 weeks' written notice. Leave is approved by the line manager, "
    "must be taken within 12 months of the birth, and applies to adoption."
)
ANSWER = (
    "Employees are entitled to 18 weeks of parental leave at 80% of their base salary. To qualify, "
    "they must have worked here for at least 12 months and give 8 weeks' written notice. The leave has to be "
    "approved by the line manager, must be taken within 24 months of the birth, and also applies to adoption."
)


WRONG: tuple[Status, float] = ("unsupported", 0.8)
RIGHT: tuple[Status, float] = ("supported", 0.1)


def span_of(
    text: str, answer: str = ANSWER, *, instead: str | None = None, probability: float = 0.9
) -> SuspectSpan:
    start = answer.index(text)
    end = start + len(text)
    found: tuple[Contradiction, ...] = ()
    if instead is not None:
        at = PASSAGE.index(instead)
        found = (Contradiction(start, end, text, instead, 0, at, at + len(instead), 1.0),)
    return SuspectSpan(start, end, text, probability=probability, contradictions=found)


def verdict_of(
    answer: str = ANSWER, *spans: SuspectSpan, suspect: tuple[int, ...] = (), passage: int | None = None
) -> Verdict:
    sentences = tuple(
        Sentence(start, end, answer[start:end], None, (), passage, *(WRONG if k in suspect else RIGHT))
        for k, (start, end) in enumerate(sentences_in(answer))
    )
    return Verdict(0.9 if spans or suspect else 0.1, 0.5, None, None, spans, sentences)


def look(
    verdict: Verdict | None, answer: str = ANSWER, passages: tuple[str, ...] = (PASSAGE,)
) -> list[Finding]:
    return Facts()(CheckInput("How long is parental leave?", tuple(map(Source, passages)), answer, verdict))


def test_what_the_sentence_alone_tells_has_its_probability() -> None:
    span = span_of("18 weeks", instead="16 weeks", probability=0.03)
    (wrong,) = (one for one in look(verdict_of(ANSWER, span, suspect=(0,))) if one.kind == "ungrounded")
    assert wrong.details["probability"] == WRONG[1]


def test_five_of_seven_facts_about_parental_leave_are_grounded() -> None:
    spans = (
        span_of("18 weeks", instead="16 weeks"),
        span_of("24 months", instead="12 months", probability=0.7),
    )
    found = look(verdict_of(ANSWER, *spans, suspect=(0, 2)))
    assert len(found) == 7
    assert fact_score(found) == pytest.approx(5 / 7)
    wrong = [one for one in found if one.kind == "ungrounded"]
    assert [ANSWER[one.start : one.end] for one in wrong] == [
        "Employees are entitled to 18 weeks of parental leave",
        "must be taken within 24 months of the birth",
    ]
    assert [one.details for one in wrong] == [
        {"probability": 0.9, "sentence": 0},
        {"probability": 0.7, "sentence": 2},
    ]
    assert wrong[0].words == (
        '"Employees are entitled to 18 weeks of parental leave" is not grounded: '
        'passage 1 has "16 weeks" in place of "18 weeks".'
    )
    assert {one.passages for one in found} == {(0,)}


@pytest.mark.parametrize(
    ("answer", "spans", "ungrounded"),
    [
        (ANSWER, ["18 weeks of parental leave at"], [0]),  # a small word is none of the next fact
        (ANSWER, ["18 weeks of parental leave at 80%"], [0, 1]),
        (ANSWER, ["24 months", "18 weeks"], [0, 5]),  # they need not be in order
        ("The pass is not valid on buses.", ["not"], [0]),
        # A subject is a part of both claims of it.
        ("Anna Berg, who founded the firm in 1998, retired last year.", ["Anna Berg"], [0, 1]),
    ],
)
def test_facts_are_ungrounded_that_a_suspect_span_has_a_word_of(
    answer: str, spans: list[str], ungrounded: list[int]
) -> None:
    found = look(verdict_of(answer, *(span_of(text, answer) for text in spans)), answer)
    assert [number for number, one in enumerate(found) if one.kind == "ungrounded"] == ungrounded


def test_a_contradiction_is_told_of_the_fact_that_it_stands_in() -> None:
    weeks = span_of("18 weeks", instead="16 weeks")
    whole = span_of("18 weeks of parental leave at 80%")
    span = replace(whole, contradictions=weeks.contradictions)
    first, second, *_ = look(verdict_of(ANSWER, span))
    assert '"16 weeks" in place of "18 weeks"' in first.words
    assert (second.kind, "in place of" in second.words) == ("ungrounded", False)


def test_in_a_suspect_sentence_without_spans_no_fact_is_grounded() -> None:
    kinds = [(one.kind, one.details["probability"]) for one in look(verdict_of(ANSWER, suspect=(1,)))]
    assert kinds == [("grounded", 0.1)] * 2 + [("ungrounded", 0.8)] * 2 + [("grounded", 0.1)] * 3


def test_a_fact_beside_a_suspect_one_has_no_probability_of_its_own() -> None:
    _, second, *_ = look(verdict_of(ANSWER, span_of("18 weeks"), suspect=(0,)))
    assert (second.kind, second.details["probability"]) == ("grounded", None)


def test_nothing_is_judged_without_a_detector_or_where_it_abstained() -> None:
    evidence = replace(verdict_of(), probability=None, threshold=None)
    abstained = replace(
        verdict_of(ANSWER, span_of("18 weeks")), unlike=(Unlike("length", "too long", decides=True),)
    )
    for verdict in (evidence, abstained):
        found = look(verdict)
        assert {one.kind for one in found} == {"unjudged"}
        assert fact_score(found) is None


def test_a_verdict_without_sentences_still_tells_by_spans() -> None:
    found = look(replace(verdict_of(ANSWER, span_of("18 weeks")), sentences=()))
    assert fact_score(found) == pytest.approx(6 / 7)


def test_the_passage_is_that_of_the_sentence_or_that_with_the_words() -> None:
    answer = "Loans last 3 weeks."
    passages = ("The museum opens at nine.", "Loans run for 21 days.")
    (by_words,) = look(verdict_of(answer), answer, passages)
    assert by_words.passages == (1,)
    (by_verdict,) = look(verdict_of(answer, passage=0), answer, passages)
    assert by_verdict.passages == (0,)
    assert by_verdict.words == '"Loans last 3 weeks" is grounded in passage 1.'
    (nowhere,) = look(verdict_of(answer), answer, ("The museum opens at nine.",))
    assert (nowhere.passages, nowhere.words) == ((), '"Loans last 3 weeks" is grounded in the passages.')


def test_words_quote_little_and_show_what_controls_a_terminal() -> None:
    answer = "The " + "very " * 100 + "long \x1b[31m pass costs $10."
    (found,) = look(verdict_of(answer), answer)
    assert len(found.words) < 140
    assert "\x1b" not in found.words


def test_without_response_or_verdict_there_is_nothing() -> None:
    assert look(None) == []
    assert Facts().name == "facts"
    assert fact_score([]) is None


def test_a_score_is_of_one_fact() -> None:
    fact = facts_of(ANSWER)[0]
    assert score(fact, verdict_of(ANSWER, span_of("18 weeks"))) == (0.9, False)
    assert score(fact, verdict_of()) == (0.1, True)
