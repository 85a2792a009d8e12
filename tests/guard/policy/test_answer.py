"""`GuardedAnswer`: sequences of events, and what may leave after each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lrp4rag.classifiers.verdict import Contradiction, SuspectSpan
from lrp4rag.example import Example
from lrp4rag.guard.policy import GuardedAnswer, Policy
from lrp4rag.guard.policy.answer import DecidedSentence, Pending
from lrp4rag.source import Source
from lrp4rag.streaming import JudgedPiece, StreamingDetector
from lrp4rag.util.errors import RelevanceError
from lrp4rag.util.sentences import Piece
from tests.guard.service.conftest import piece_of

EXAMPLE = Example("How long is leave?", ["Leave is 16 weeks."])
TEXTS = Policy().texts
NOTICE, MARK = TEXTS.notice, TEXTS.mark
CORRECTION, CONTRADICTED = " [passage 1 says “16 weeks”]", "[withheld: passage 1 says “16 weeks”]"
STATUSES = {"right": "supported", "wrong": "unsupported", "other": "contradicted", "odd": "not judged"}
END = None


class Scripted(StreamingDetector):
    """Judges a sentence by a word of it; a broken one raises."""

    def __init__(self) -> None:
        super().__init__(SimpleNamespace(example=EXAMPLE))  # type: ignore[arg-type]

    def judge(self, piece: Piece, *, followed: bool = False) -> JudgedPiece:
        text = piece.text.strip()
        if "broken" in text:
            raise RelevanceError(text)
        status: Any = next((one for word, one in STATUSES.items() if word in text), "states nothing")
        start = piece.start + piece.text.index(text)
        probability = {"supported": 0.1, "states nothing": None}.get(status, 0.9)
        told = Contradiction(start, start + 5, "other", "16 weeks", 0, 9, 17, 3.0)
        spans = (SuspectSpan(start, start + 5, "other", contradictions=(told,)),) if "other" in text else ()
        return piece_of(piece, status, probability, spans)


def begun(**policy: Any) -> GuardedAnswer:
    answer = GuardedAnswer(Policy.model_validate(policy), EXAMPLE.question, EXAMPLE.sources)
    answer.begin(Scripted())
    return answer


def decided(answer: GuardedAnswer, due: Pending) -> DecidedSentence:
    try:
        return answer.decide(due)
    except RelevanceError:
        return answer.unavailable(due)


def left(answer: GuardedAnswer, event: str | None) -> list[str]:
    """The texts that leave after an event."""
    answer.end() if event is END else answer.write(event)
    texts = []
    while (due := answer.next()) is not None:
        texts.append(due if isinstance(due, str) else answer.release(decided(answer, due)))
    return texts


def text_of(answer: GuardedAnswer, text: str) -> str:
    return "".join([*left(answer, text), *left(answer, END)])


WITHHOLDING = {"claims": {"unsupported": "withhold", "most": None}}
SEQUENCES: dict[str, tuple[dict[str, Any], list[tuple[str | None, list[str]]]]] = {
    "nothing leaves before its sentence has ended": (
        {},
        [("It is ri", []), ("ght. It is", ["It is right. "]), (" right", []), (END, ["It is right"])],
    ),
    "suspect sentences are marked, corrected or withheld": (
        {},
        [
            ("It is right. ", []),
            ("It is wrong. So is the other one. ", ["It is right. ", f"It is wrong.{MARK} "]),
            ("It is right again.", [f"{CONTRADICTED} "]),
            (END, ["It is right again."]),
        ],
    ),
    "one contradiction among right sentences is corrected": (
        {},
        [("It is right. The other is not.", ["It is right. "]), (END, [f"The other is not.{CORRECTION}"])],
    ),
    "a notice is not repeated": ({}, [("This is wrong. So is this wrong one.", [f"{NOTICE} "]), (END, [""])]),
    "each sentence is withheld by what most of the answer so far is": (
        {},
        [
            (
                "It is wrong. It is right. It is wrong too. It is right.",
                [f"{NOTICE} ", "It is right. ", f"{NOTICE} "],
            ),
            (END, ["It is right."]),
        ],
    ),
    "a sentence that states nothing waits for the next": (
        {},
        [("## Height\n", []), ("It is right.", []), (END, ["## Height\n", "It is right."])],
    ),
    "at the end nothing waits": (
        {},
        [("It is right.\n\nOkay.", ["It is right.\n", "\n"]), (END, ["Okay."])],
    ),
    "what cannot be judged is withheld": (
        {},
        [
            ("It is odd. It is broken. It is right.", [f"{TEXTS.unavailable_notice} ", ""]),
            (END, ["It is right."]),
        ],
    ),
    "after a stop nothing leaves": (
        WITHHOLDING | {"sentences": {"stop_after": 1}},
        [
            ("It is right. It is wrong. It is right. ", ["It is right. ", f"{NOTICE} "]),
            ("More.", []),
            (END, []),
        ],
    ),
    "a fabricated citation is withheld": (
        {},
        [("It is right [7].", []), (END, [f"{TEXTS.distrusted_notice} "])],
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(name: str) -> None:
    policy, steps = SEQUENCES[name]
    answer = begun(**policy)
    for number, (event, texts) in enumerate(steps):
        assert left(answer, event) == texts, number
    assert answer.shown == "".join(text for _, texts in steps for text in texts)


@pytest.mark.parametrize("opening", ["## Height\n", "**Height**\n\n", "Okay. ", "\U0001f642 ", "- \n"])
def test_openings_are_served_with_their_claim(opening: str) -> None:
    answer = begun()
    assert text_of(answer, f"{opening}It is right.") == f"{opening}It is right."
    assert answer.assess(0.5).decided.reason == "grounded"


@pytest.mark.parametrize("alone", ["Okay.", "Hello! Okay.", "Okay.\n\nSure!"])
@pytest.mark.parametrize("policy", [{}, WITHHOLDING, {"claims": {"contradicted": "escalate"}}])
def test_an_answer_that_states_nothing_is_served(alone: str, policy: dict[str, Any]) -> None:
    answer = begun(**policy)
    assert text_of(answer, alone) == alone
    whole = answer.assess(0.5)
    assert (whole.decided.action, whole.decided.reason) == ("serve", "states nothing")
    assert answer.conclude(whole) == ""


def test_only_the_sentence_that_is_due_is_released() -> None:
    answer = begun()
    answer.write("It is right. It is wrong. It is right. ")
    first = answer.next()
    assert isinstance(first, Pending)
    assert answer.next() is first, "it is due until it is released"
    sentence = answer.decide(first)
    assert answer.shown == "", "deciding lets nothing out"
    answer.release(sentence)
    for wrong in (sentence, DecidedSentence(Piece(0, 1, "x", "sentence"), sentence.decided)):
        with pytest.raises(ValueError, match="due"):
            answer.release(wrong)
    assert answer.shown == "It is right. "


def test_the_whole_is_decided_on_by_its_sentences() -> None:
    answer = begun()
    shown = text_of(answer, "It is right. It is wrong. So is the other one. It is right again.")
    assert dict(answer.actions) == {"serve": 2, "mark": 1, "withhold": 1}
    whole = answer.assess(0.5)
    assert whole.measures.probability == 0.9
    assert whole.measures.statuses == {"supported": 2, "contradicted": 1, "unsupported": 1}
    assert whole.decided.action == "disclose"
    last = answer.conclude(whole)
    assert "withheld" not in last
    assert "passage 1 says “16 weeks”" in last
    assert answer.over
    assert answer.shown == shown + last


@pytest.mark.parametrize(
    ("text", "reason"),
    [("It is odd.", "unlike training data"), ("It is right. It is broken.", "unavailable")],
)
def test_a_sentence_without_a_verdict_leaves_the_whole_without(text: str, reason: str) -> None:
    answer = begun()
    text_of(answer, text)
    assert answer.assess(0.5).decided.reason == reason
    assert (answer.missed, answer.abstained) == (reason == "unavailable", reason != "unavailable")


@pytest.mark.parametrize("word", ["right", "wrong"])
def test_a_withheld_sentence_is_quoted_nowhere(word: str) -> None:
    answer = begun()
    answer.write(f"It is {word} [7].")
    answer.end()
    due = answer.next()
    assert isinstance(due, Pending)
    sentence = answer.decide(due)
    assert sentence.decided.rule == ("claims.most" if word == "wrong" else "rules.fabricated")
    assert "7" not in str(sentence.record()["findings"])
    assert answer.unavailable(due).record() == {}


@pytest.mark.parametrize(
    ("sources", "policy", "over", "shown"),
    [
        ([Source("Leave.", score=0.1)], {}, True, TEXTS.gap.split(".")[0]),
        ([], {}, True, TEXTS.gap.split(".")[0]),
        ([], {"unavailable": "mark", "rules": {"null": None}}, False, f"It is right.\n\n{TEXTS.unchecked}"),
    ],
)
def test_without_fit_passages_nothing_is_judged(
    sources: list[Source], policy: dict[str, Any], over: bool, shown: str
) -> None:
    answer = GuardedAnswer(Policy.model_validate(policy), "How long?", sources)
    assert answer.unfit is not None
    assert (answer.over, answer.stopped) == (over, over)
    assert text_of(answer, "It is right.") == ""
    answer.conclude(answer.assess_unjudged())
    assert answer.shown.startswith(shown)
