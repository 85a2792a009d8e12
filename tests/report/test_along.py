"""Sentences that were judged while they were written, on a terminal and as JSON."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from lrp4rag.classifiers.along import JudgedPiece
from lrp4rag.classifiers.verdict import Contradiction, SuspectSpan
from lrp4rag.report.along import PiecePrinter, record_piece

SAID = Contradiction(0, 7, "4 weeks", "2 weeks", 0, 0, 7, 1.0)
SPAN = SuspectSpan(0, 7, "4 weeks", None, 0.6, 0, (SAID,))
PIECE = JudgedPiece(0, 20, "4 weeks\x1b[31m of it. ", 0.6, True, 0.7, (SPAN,))


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
    blank = replace(PIECE, text="\n\n", probability=None, spans=())
    found = shown(PIECE, blank, replace(PIECE, text="Fine. ", probability=0.02, spans=(), abstained=True))
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
