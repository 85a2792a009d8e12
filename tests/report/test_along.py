"""Sentences that were judged while they were written, on a terminal and as JSON."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from lrp4rag.claims.nearest import Nearest
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.verdict import Contradiction, Sentence, SuspectSpan
from lrp4rag.guard.policy.answer import DecidedSentence
from lrp4rag.guard.policy.decide import Decided
from lrp4rag.guard.policy.policy import Action
from lrp4rag.report.along import PiecePrinter, record_piece
from lrp4rag.streaming import JudgedPiece
from lrp4rag.util.sentences import Piece

SAID = Contradiction(0, 7, "4 weeks", "2 weeks", 0, 0, 7, 1.0)
SPAN = SuspectSpan(0, 7, "4 weeks", None, 0.6, 0, (SAID,))
SENTENCE = Sentence(
    0, 19, "4 weeks\x1b[31m of it.", None, (), None, "contradicted", 0.6, Nearest(0, 0, 8, 0.5, ((0, 7),))
)
PIECE = JudgedPiece(0, 20, "4 weeks\x1b[31m of it. ", SENTENCE, 0.7, (SPAN,))
FINE = JudgedPiece(20, 26, "Fine. ", Sentence(20, 25, "Fine.", None, (), None, "supported", 0.02), 0.7)
ODD = replace(
    FINE,
    text="Odd. ",
    sentence=replace(FINE.sentence, text="Odd.", status="not judged"),
    unlike=(Unlike("surprise", "unlikely", decides=True),),
)
BLANK = JudgedPiece(26, 28, "\n\n")


def shown(*pieces: JudgedPiece, terminal: bool = False) -> str:
    out = io.StringIO()
    colours = "256" if terminal else None
    printer = PiecePrinter(Console(file=out, force_terminal=terminal, color_system=colours, width=80))
    printer.begin("one")
    for piece in pieces:
        printer(piece)
    printer.finish()
    return out.getvalue()


def test_probabilities_and_what_contradicts_are_told() -> None:
    found = shown(PIECE, BLANK, ODD)
    for words in (
        "one",
        "[60.0 %]",
        "[2.0 %]",
        "passage 1 has",
        "2 weeks",
        "unlike the training data",
        "60.0 %",
    ):
        assert words in found
    assert "\x1b" not in found, "what was written is shown and not obeyed"


def test_a_terminal_shows_colours_and_their_meaning() -> None:
    found = shown(PIECE, terminal=True)
    assert "P(hallucinated)" in found
    assert "48;5;214" in found
    assert "[60.0 %]" not in found


def test_json_counts_passages_from_one() -> None:
    found = record_piece(PIECE)
    (told,) = found["contradictions"]
    assert (told["text"], told["passage"], told["instead"]) == ("4 weeks", 1, "2 weeks")
    assert (found["start"], found["end"], found["probability"], found["suspect"]) == (0, 20, 0.6, True)
    assert (found["status"], found["so_far"], found["abstained"]) == ("contradicted", 0.7, False)
    assert found["nearest"]["passage"] == 1


def test_every_piece_has_a_status() -> None:
    told = [record_piece(one) for one in (FINE, ODD, BLANK)]
    assert [(one["status"], one["probability"]) for one in told] == [
        ("supported", 0.02),
        ("not judged", 0.02),
        ("states nothing", None),
    ]
    assert [(one["suspect"], one["abstained"]) for one in told] == [
        (False, False),
        (False, True),
        (False, False),
    ]


@pytest.mark.parametrize("action", ["mark", "disclose", "escalate", "withhold"])
def test_what_is_withheld_is_told_nowhere(action: Action) -> None:
    piece = Piece(PIECE.start, PIECE.end, PIECE.text, "prose")
    decided = Decided(action, "contradicted", "claims.contradicted")
    found = DecidedSentence(piece, decided, PIECE).record()
    assert (found["status"], found["suspect"]) == ("contradicted", True)
    (told,) = found["contradictions"]
    let_out = action in ("mark", "disclose")
    assert (told["text"] == "4 weeks", told["instead"]) == (let_out, "2 weeks")
    assert found["nearest"]["words"] == ([[0, 7]] if let_out else [])
    assert ("4 weeks" in str(found)) == let_out
