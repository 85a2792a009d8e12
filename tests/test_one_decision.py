"""What the verdict says, what is let out and what is read are one decision: on the real reader and
detector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from lrp4rag import Detector, Example
from lrp4rag.classifiers.verdict import Status
from lrp4rag.guard.policy import Assessment, GuardedAnswer, Policy, assess
from lrp4rag.guard.policy.answer import Pending
from lrp4rag.reader import Reader

TOWER = ["The tower is 31 metres tall and built of grey granite.", "Ferries to the island leave every hour."]
RETURNS = [
    "Returns. Items may be returned within 14 days of delivery for a full refund, with the receipt.",
    "Gift cards cannot be returned.",
]
DOSE = [
    "Take one tablet three times a day with water. Do not exceed six tablets in 24 hours.",
    "Store it cool.",
]

NOUNS = ("ropes", "helmets", "paddles", "tents", "lamps")
CONTEXT = [f"The {noun} for spring are kept in the north wing." for noun in NOUNS]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was said of one answer: its sentences' statuses, the action and its reason."""

    statuses: tuple[Status, ...]
    action: str
    reason: str


def whole(detector: Detector, policy: Policy, example: Example) -> Outcome:
    verdict = detector.judge(example, evidence=False)
    decided = assess(policy, example, verdict).decided
    statuses = tuple(one.status for one in verdict.sentences if any(map(str.isalnum, one.text)))
    return Outcome(statuses, decided.action, decided.reason)


def streamed(detector: Detector, policy: Policy, example: Example, random: Random) -> tuple[Outcome, str]:
    """The same of the answer in random parts, and what was let out of it."""
    text = example.response or ""
    answer, shown = GuardedAnswer(policy, example.question, example.sources), list[str]()
    answer.begin(detector.reading_of(Example(example.question, example.passages)))
    parts, at = list[str | None](), 0
    while at < len(text):
        end = at + random.randint(1, 40)
        parts.append(text[at:end])
        at = end
    for written in (*parts, None):
        answer.end() if written is None else answer.write(written)
        while (due := answer.next()) is not None:
            shown.append(answer.release(answer.decide(due)) if isinstance(due, Pending) else due)
    found = answer.assess(detector.card.threshold)
    statuses = tuple(one.status for one in answer.judged if any(map(str.isalnum, one.text)))
    return Outcome(statuses, found.decided.action, found.decided.reason), "".join(shown)


@pytest.fixture(scope="module")
def detector(default_reader: Reader) -> Iterator[Detector]:
    with Detector.load(reader=default_reader) as loaded:
        yield loaded


def decided(detector: Detector, question: str, passages: list[str], response: str) -> Assessment:
    example = Example(question, passages, response)
    return assess(Policy(), example, detector.judge(example, evidence=False))


@pytest.mark.parametrize(
    "response",
    [
        "THE TOWER IS 45 METRES TALL AND BUILT OF GREY GRANITE.",
        "The Tower Is 45 Metres Tall And Built Of Grey Granite.",
        "## Height\n\nThe tower is 45 metres tall and built of grey granite.",
    ],
)
def test_a_wrong_value_is_contradicted_in_any_case(detector: Detector, response: str) -> None:
    verdict = detector.judge("How tall is the tower?", TOWER, response, evidence=False)
    assert verdict.hallucinated
    assert verdict.sentences[-1].status == "contradicted"
    (one,) = verdict.contradictions
    assert (response[one.start : one.end].lower(), one.instead) == ("45 metres", "31 metres")
    assert one.text == response[one.start : one.end]
    assert verdict.reasons[0].feature == "contradiction"
    assert "31 metres" in verdict.reasons[0].words


def test_the_question_supports_nothing(detector: Detector) -> None:
    question = "Is the tower 45 metres tall, as I read?"
    found = decided(detector, question, TOWER, "Yes, the tower is 45 metres tall.")
    assert (found.decided.action, found.decided.reason) == ("withhold", "contradicted")


def test_a_denied_premise_is_right(detector: Detector) -> None:
    found = decided(
        detector,
        "Items may be returned within 30 days, right?",
        RETURNS,
        "No, items may be returned within 14 days of delivery.",
    )
    assert found.decided.action == "serve"


def test_a_contradiction_that_is_named_is_never_served_unmarked(detector: Detector) -> None:
    """The person reads the passage's words, whole and streamed."""
    response = "Take one tablet with water. Take it five times a day."
    example = Example("How often should I take it?", DOSE, response)
    found = decided(detector, example.question, DOSE, response)
    assert (found.decided.action, found.decided.reason) == ("disclose", "contradicted")
    assert "The answer says “five”; passage 1 says “three”." in found.message
    _, shown = streamed(detector, Policy(), example, Random(0))
    assert shown == f"{response} [passage 1 says “three”]"


def test_right_sentences_do_not_make_a_wrong_one_less_suspect(detector: Detector) -> None:
    wrong, passages, right = "The tower is 45 metres tall.", [*TOWER, " ".join(CONTEXT)], CONTEXT[:3]
    alone = detector.judge("What is known?", passages, wrong, evidence=False)
    assert alone.hallucinated
    for lines in ([wrong, *right], [*right, wrong]):
        verdict = detector.judge("What is known?", passages, " ".join(lines), evidence=False)
        at = lines.index(wrong)
        assert verdict.sentences[at].status == "contradicted"
        assert verdict.hallucinated
        if not at:
            assert verdict.sentences[0].probability == pytest.approx(alone.probability, abs=1e-4)
            assert verdict.probability >= alone.probability - 1e-4
        example = Example("What is known?", passages, " ".join(lines))
        assert assess(Policy(), example, verdict).decided.action != "serve"


@pytest.mark.parametrize(
    "response", ["\u200b", "\ufeff", "```\n```", "[1]", "Hello! How can I help you?", "## Tower"]
)
def test_what_states_nothing_has_no_clean_verdict(detector: Detector, response: str) -> None:
    example = Example("How tall is the tower?", TOWER, response)
    verdict = detector.judge(example, evidence=False)
    assert verdict.hallucinated is None or response == "## Tower"
    found = assess(Policy(), example, verdict)
    assert found.decided.reason != "grounded" or response == "## Tower"


@pytest.mark.parametrize(
    "response",
    [
        "## Height\n\nThe tower is 31 metres tall.\n\nI hope this helps!",
        "**Height**\n\n- The tower is 31 metres tall\n- It is built of grey granite",
        "Okay. The tower is 45 metres tall.",
        "\U0001f642 The tower is 31 metres tall. It was built by the queen of Norway in a snowstorm.",
        "Hello!\n\n1. The tower is 31 metres tall.\n2. Ferries leave every two hours.\n\nAnything else?",
    ],
)
def test_streamed_is_decided_as_whole(detector: Detector, response: str) -> None:
    example = Example("How tall is the tower?", TOWER, response)
    found, shown = streamed(detector, Policy(), example, Random(1))
    assert found == whole(detector, Policy(), example)
    if found.action == "serve":
        assert shown == response
