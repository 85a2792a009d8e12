"""Sentences judged while they are written, on a terminal and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from lrp4rag.report.generation import INK
from lrp4rag.report.numbers import percent
from lrp4rag.report.record import contradiction_record, nearest_record
from lrp4rag.streaming import JudgedPiece
from lrp4rag.util.text import one_line, visible

BANDS = ((0.1, "on color(75)"), (0.25, "on color(153)"), (0.5, "on color(223)"), (1.01, "on color(214)"))
"""Of a 256-colour terminal, from blue to orange: up to which probability."""
LEGEND = ("under 10 %", "25 %", "50 %", "more")


class PiecePrinter:
    """Prints each sentence when it has been judged: its background is its probability, and what contradicts
    it stands below."""

    def __init__(self, console: Console) -> None:
        self._console, self._notes = console, list[str]()
        self._worst = 0.0

    def begin(self, name: str | None) -> None:
        if name is not None:
            self._console.print(Text(one_line(name, 60), style="bold"))
        if self._console.is_terminal:
            legend = Text("P(hallucinated): ", style="dim")
            for words, (_, style) in zip(LEGEND, BANDS, strict=True):
                legend.append(f" {words} ", style=f"{INK} {style}").append(" ")
            self._console.print(legend)
            self._console.print()

    def __call__(self, piece: JudgedPiece) -> None:
        text = visible(piece.text)
        if piece.probability is None:
            self._console.print(Text(text), end="", soft_wrap=True)
            return
        self._worst = max(self._worst, piece.probability)
        style = next(style for most, style in BANDS if piece.probability < most)
        if not piece.suspect:  # by the verdict's threshold, and no other
            style = BANDS[0][1]
        shown = text if self._console.is_terminal else f"{text.rstrip()} [{percent(piece.probability)}] "
        self._console.print(Text(shown, style=f"{INK} {style}"), end="", soft_wrap=True)
        self._console.file.flush()
        if piece.abstained:
            self._notes.append(f"unlike the training data up to here: “{one_line(piece.text.strip(), 60)}”")
        self._notes += [
            f"“{contradiction.text}”: passage {contradiction.passage + 1} has “{contradiction.instead}”"
            for span in piece.spans
            for contradiction in span.contradictions
        ]

    def finish(self) -> None:
        self._console.print("\n")
        for note in self._notes:
            self._console.print(Text(visible(note), style="dim"))
        self._console.print(Text(f"most suspect sentence: {percent(self._worst)}", style="dim"))


def record_piece(piece: JudgedPiece) -> dict[str, Any]:
    """JSON values; passages count from 1."""
    return {
        "start": piece.start,
        "end": piece.end,
        "text": piece.text,
        "status": piece.status,
        "probability": piece.probability,
        "suspect": piece.suspect,
        "so_far": piece.so_far,
        "abstained": piece.abstained,
        "contradictions": [
            {**contradiction_record(contradiction), "instead": contradiction.instead}
            for span in piece.spans
            for contradiction in span.contradictions
        ],
        "nearest": nearest_record(piece.nearest),
    }
