"""The rules for sentences, on an answer that is being written."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lrp4rag.classifiers.along import JudgedPiece
from lrp4rag.example import Example
from lrp4rag.policy import DecidingAlong, Policy
from lrp4rag.report.along import record_decided
from lrp4rag.sentence_stream import Piece, SentenceStream

EXAMPLE = Example("How long is leave?", ["Leave is 16 weeks."])
TEXTS = Policy().texts


@dataclass
class Reading:
    """Judges a sentence by a number in it."""

    def judge(self, piece: Piece) -> JudgedPiece:
        score = float(piece.text.split()[0].rstrip("."))
        return JudgedPiece(piece.start, piece.end, piece.text, score, score > 0.3, score, (), score == 0.99)


def pieces(text: str) -> list[Piece]:
    stream = SentenceStream()
    return [*stream.feed(text), *stream.end()]


def shown(along: DecidingAlong, text: str) -> list[str]:
    return [along.let_out(along.decide(Reading(), piece)) for piece in pieces(text)]


def test_sentences_are_let_out_marked_or_replaced() -> None:
    along = DecidingAlong(Policy(), EXAMPLE)
    text = "0.1 is this. 0.4 is that. 0.9 is so. 0.8 is too. 0.2 is as well."
    assert shown(along, text) == [
        "0.1 is this. ",
        f"0.4 is that.{TEXTS.mark} ",
        f"{TEXTS.notice} ",
        "",
        "0.2 is as well.",
    ]
    assert dict(along.actions) == {"serve": 2, "mark": 1, "withhold": 2}
    found = along.assess(text, 0.5)
    assert found.measures.probability == 0.2
    assert found.measures.faithfulness == pytest.approx(2 / 5)


@pytest.mark.parametrize(("score", "action"), [(0.1, "withhold"), (0.4, "withhold"), (0.9, "withhold")])
def test_a_citation_that_is_fabricated_is_graver_than_the_probability(score: float, action: str) -> None:
    along = DecidingAlong(Policy(), EXAMPLE)
    (piece,) = pieces(f"{score} weeks it is [7].")
    found = along.decide(Reading(), piece)
    assert found.decided.action == action
    assert found.decided.rule == ("sentences" if score == 0.9 else "rules.fabricated")
    assert "7" not in str(record_decided(found)["findings"][0].get("words", ""))


def test_what_was_not_judged_makes_the_answer_unavailable() -> None:
    along = DecidingAlong(Policy(sentences={"stop_after": 2}), EXAMPLE)
    one, two = pieces("0.1 is this. 0.1 is that.")
    along.let_out(along.decide(Reading(), one))
    assert not along.stops
    assert along.let_out(along.unavailable(two)) == f"{TEXTS.unavailable_notice} "
    assert record_decided(along.unavailable(two)) == {}
    assert along.assess("0.1 is this. 0.1 is that.", 0.5).decided.reason == "unavailable"
    along.let_out(along.unavailable(two))
    assert along.stops


def test_an_answer_that_is_unlike_the_training_data_stays_so() -> None:
    along = DecidingAlong(Policy(), EXAMPLE)
    assert shown(along, "0.99 it is.") == [f"{TEXTS.unavailable_notice} "]
    assert along.assess("0.99 it is.", 0.5).decided.reason == "unlike training data"
