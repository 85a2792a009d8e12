"""The rules for sentences, on an answer that is being written."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from lrp4rag.claims.stating import stating
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.verdict import Contradiction, Sentence, SuspectSpan
from lrp4rag.example import Example
from lrp4rag.guard.policy import DecidingAlong, Policy
from lrp4rag.guard.policy.along import record_decided
from lrp4rag.guard.policy.notices import says_nothing
from lrp4rag.streaming import JudgedPiece, ReadingAlong
from lrp4rag.util.sentences import Piece, SentenceStream

EXAMPLE = Example("How long is leave?", ["Leave is 16 weeks."])
TEXTS = Policy().texts
STATUSES = {"right": "supported", "wrong": "unsupported", "other": "contradicted", "odd": "not judged"}


@dataclass
class Reading:
    """Judges a sentence by a word of it."""

    judged: list[str] = field(default_factory=list)
    _waiting: list[Piece] = field(default_factory=list)

    due = ReadingAlong.due

    def waits(self, piece: Piece) -> bool:
        return stating(piece.text.strip(), followed=piece.text.endswith("\n")) == "nothing"

    def judge(self, piece: Piece, *, followed: bool = False) -> JudgedPiece:
        text = piece.text.strip()
        self.judged.append(text)
        status = next((one for word, one in STATUSES.items() if word in text), "states nothing")
        start = piece.start + piece.text.index(text)
        probability = {"supported": 0.1, "states nothing": None}.get(status, 0.9)
        sentence = Sentence(start, start + len(text), text, None, (), None, status, probability)
        told = Contradiction(start, start + 5, "other", "16 weeks", 0, 9, 17, 3.0)
        spans = (SuspectSpan(start, start + 5, "other", contradictions=(told,)),) if "other" in text else ()
        unlike = (Unlike("length", "too long", True),) if "odd" in text else ()
        return JudgedPiece(piece.start, piece.end, piece.text, sentence, probability, spans, unlike)


def pieces(text: str) -> list[Piece]:
    stream = SentenceStream()
    return [*stream.feed(text), *stream.end()]


def shown(along: DecidingAlong, text: str, reading: Reading | None = None) -> list[str]:
    reading, out = reading or Reading(), []
    for piece in (*pieces(text), None):
        for due, followed in reading.due(piece):
            decided = None if says_nothing(due) else along.decide(reading, due, followed=followed)
            out.append(due.text if decided is None else along.let_out(decided))
    return out


def test_sentences_are_let_out_marked_or_corrected() -> None:
    along = DecidingAlong(Policy(), EXAMPLE)
    text = "It is right. It is wrong. So is the other one. It is right again."
    assert shown(along, text) == [
        "It is right. ",
        f"It is wrong.{TEXTS.mark} ",
        "[withheld: passage 1 says “16 weeks”] ",
        "It is right again.",
    ]
    assert dict(along.actions) == {"serve": 2, "mark": 1, "withhold": 1}
    found = along.assess(text, 0.5)
    assert found.measures.probability == 0.9
    assert (found.measures.supported, found.measures.contradicted, found.measures.unsupported) == (2, 1, 1)
    assert found.decided.action == "disclose"
    assert "withheld" not in found.below
    assert "passage 1 says “16 weeks”" in found.below


def test_a_contradicted_sentence_among_right_ones_has_the_passage_s_words() -> None:
    along = DecidingAlong(Policy(), EXAMPLE)
    assert (
        shown(along, "It is right. The other is not.")[-1] == "The other is not. [passage 1 says “16 weeks”]"
    )


def test_a_notice_is_not_repeated() -> None:
    along = DecidingAlong(Policy(), EXAMPLE)
    assert shown(along, "This is wrong. So is this wrong one.") == [f"{TEXTS.notice} ", ""]


@pytest.mark.parametrize("opening", ["## Height\n", "**Height**\n\n", "Okay. ", "\U0001f642 ", "- \n"])
def test_what_states_nothing_waits_for_what_follows(opening: str) -> None:
    along, reading, text = DecidingAlong(Policy(), EXAMPLE), Reading(), f"{opening}It is right."
    assert "".join(shown(along, text, reading)) == text
    assert along.assess(text, 0.5).decided.reason == "grounded"


def test_a_heading_is_held_until_its_text_has_come() -> None:
    reading = Reading()
    heading, text = pieces("## Height\nIt is right.")
    assert reading.due(heading) == []
    assert reading.due(text) == [(heading, True), (text, False)]


def test_what_states_nothing_is_let_out_at_the_end() -> None:
    along = DecidingAlong(Policy(), EXAMPLE)
    assert "".join(shown(along, "It is right.\n\nOkay.")) == "It is right.\n\nOkay."
    assert dict(along.actions) == {"serve": 2}


@pytest.mark.parametrize("word", ["right", "wrong"])
def test_a_citation_that_is_fabricated_is_withheld(word: str) -> None:
    along = DecidingAlong(Policy(), EXAMPLE)
    (piece,) = pieces(f"It is {word} [7].")
    found = along.decide(Reading(), piece)
    assert found.decided.action == "withhold"
    assert found.decided.rule == ("claims.most" if word == "wrong" else "rules.fabricated")
    assert "7" not in str(record_decided(found)["findings"][0].get("words", ""))


def test_what_was_not_judged_makes_the_answer_unavailable() -> None:
    along = DecidingAlong(Policy(sentences={"stop_after": 2}), EXAMPLE)
    one, two = pieces("It is right. It is right too.")
    along.let_out(along.decide(Reading(), one))
    assert not along.stops
    assert along.let_out(along.unavailable(two)) == TEXTS.unavailable_notice + " "
    assert record_decided(along.unavailable(two)) == {}
    assert along.assess("It is right. It is right too.", 0.5).decided.reason == "unavailable"
    along.let_out(along.unavailable(two))
    assert along.stops


def test_an_answer_that_is_unlike_the_training_data_stays_so() -> None:
    along = DecidingAlong(Policy(), EXAMPLE)
    assert shown(along, "It is odd.") == [f"{TEXTS.unavailable_notice} "]
    assert along.assess("It is odd.", 0.5).decided.reason == "unlike training data"
