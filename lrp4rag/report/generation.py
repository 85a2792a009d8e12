"""A generated response on a terminal and as JSON: by tokens with their relevance, or by judged sentences.

A token's background is the share of its relevance that comes from the passages. Both ink and
background are set, so that it can be read with any colours of the terminal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.generation import GeneratedToken, Generation, from_passages
from lrp4rag.lrp.relevance import Array
from lrp4rag.reader.encoding import FIRST_PASSAGE
from lrp4rag.report.numbers import percent
from lrp4rag.report.record import contradiction_record, nearest_record, passages_record
from lrp4rag.report.words import time_words, token_words
from lrp4rag.streaming import JudgedPiece
from lrp4rag.util.text import one_line, visible

# From orange (nothing from the passages) to blue (everything), of a 256-colour terminal; the pair is
# distinct also for people who do not see red or green.
STYLES = ("on color(214)", "on color(223)", "on color(254)", "on color(153)", "on color(75)")
INK = "color(16)"
BANDS = ((0.1, "on color(75)"), (0.25, "on color(153)"), (0.5, "on color(223)"), (1.01, "on color(214)"))
"""Probabilities and the colours up to them, of a 256-colour terminal, from blue to orange."""
LEGEND = ("under 10 %", "25 %", "50 %", "more")


class TokenPrinter:
    """Prints tokens as they come, each when its characters are whole; on a terminal, lines break between
    words."""

    def __init__(self, console: Console) -> None:
        self._console, self._column = console, 0
        self._waiting: Array | None = None
        self._begun, self._length = False, 0

    def __call__(self, token: GeneratedToken) -> None:
        """Print the text that this token completes; the tokens of one character count together."""
        summed = token.by_segment if self._waiting is None else self._waiting + token.by_segment
        self._waiting = None if token.text else summed
        self._length += len(token.text)
        # A response often starts with a space or an empty line, which belong to no word.
        text = token.text if self._begun else token.text.lstrip()
        self._begun |= bool(text)
        self._write(Text(visible(text), style=style(from_passages(summed))))

    def finish(self, generation: Generation) -> None:
        """Print the characters that tokens left incomplete at the end."""
        shade = "" if self._waiting is None else style(from_passages(self._waiting))
        self._write(Text(visible(generation.response[self._length :]), style=shade))
        self._console.print()

    def _write(self, text: Text) -> None:
        width = cell_len(text.plain.rstrip())
        if self._console.is_terminal and self._column + width > self._console.width and text.plain[:1] == " ":
            text, self._column = Text("\n") + text[1:], 0
        _, newline, last = text.plain.rpartition("\n")
        self._column = cell_len(last) + (0 if newline else self._column)
        self._console.print(text, end="", soft_wrap=True)
        self._console.file.flush()


def style(share: float) -> str:
    """Return the style of a token by the share of its relevance from the passages."""
    return f"{INK} {STYLES[min(int(share * len(STYLES)), len(STYLES) - 1)]}"


def render_legend(console: Console) -> Text | None:
    """Explain the colours; None without colours."""
    if console.no_color or console.color_system is None:
        return None
    text = Text("relevance from the passages: ", style="dim")
    step = 100 // len(STYLES)
    for k in range(len(STYLES)):
        text.append(f" {k * step}-{(k + 1) * step}% ", style=f"not dim {style(k / len(STYLES))}")
    return text


def render_totals(generation: Generation, stopped: str = "stopped by its condition") -> RenderableType:
    """Render each segment's relevance, the leading passage, and how the response ended."""
    encoded = generation.relevance.encoded
    endings = {
        "end": "ended by itself",
        "length": "cut at the limit of new tokens",
        "window": "cut at the end of the reader's window",
        "stop": stopped,
    }
    words = f"{token_words(encoded)}; {endings[generation.ending]}; {time_words(generation.seconds)}"
    return Group(_table(generation), _leading(generation), Text(""), Text(words, style="dim"))


def record_token(token: GeneratedToken) -> dict[str, Any]:
    """Return a token as JSON values: its relevance in logits, by segment and in total."""
    return {
        "token": token.id,
        "text": token.text,
        "relevance": _by_name(token.segment_names, token.by_segment),
        "total": _number(token.total),
        "from_passages": _number(token.from_passages),
        "logit": _number(token.logit),
    }


def record_generation(generation: Generation) -> dict[str, Any]:
    """Return the response as JSON values; `relevance` and `total` are sums over its tokens, in logits.

    `passage` counts from 1, and is null where no passage has positive relevance.
    """
    relevance, by_segment = generation.relevance, generation.by_segment
    return {
        "id": generation.example.id,
        "response": generation.response,
        "ending": generation.ending,
        "relevance": _by_name(relevance.encoded.segment_names, by_segment),
        "total": _number(by_segment.sum()),
        "from_passages": _number(from_passages(by_segment)),
        "passage": None if generation.passage is None else generation.passage + 1,
        "tokens": [record_token(token) for token in generation.tokens],
        "reader": dict(relevance.reader),
        "composite": relevance.composite,
        "target": relevance.target,
        "prompt_tokens": len(relevance.encoded.prompt_ids),
        "response_tokens": len(relevance.encoded.response_ids),
        "dropped": relevance.encoded.dropped,
        "seconds": {stage: round(seconds, 3) for stage, seconds in generation.seconds.items()},
    }


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
    """Return a judged piece as JSON values; passages count from 1."""
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
        "read": passages_record(piece.read),
    }


def _table(generation: Generation) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("segment", no_wrap=True)
    table.add_column("relevance", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    names, by_segment = generation.relevance.encoded.segment_names, generation.by_segment
    absolute = float(np.abs(by_segment).sum()) or 1.0
    # The passages first: they are what is asked for.
    for k in (*range(FIRST_PASSAGE, len(names)), *reversed(range(FIRST_PASSAGE))):
        leads = k - FIRST_PASSAGE == generation.passage
        value = float(by_segment[k])
        cells = (names[k], f"{value:+.2f}", f"{value / absolute:.0%}")
        table.add_row(*(Text(cell, style="bold" if leads else "") for cell in cells))
    table.add_row(Text("whole prompt"), Text(f"{by_segment.sum():+.2f}"), Text(""), style="dim")
    return table


def _leading(generation: Generation) -> Text:
    share = from_passages(generation.by_segment)
    leads = "no passage has positive relevance"
    if generation.passage is not None:
        leads = f"passage {generation.passage + 1} leads"
    return Text(f"{share:.0%} from the passages; {leads}", style="bold")


def _by_name(names: tuple[str, ...], by_segment: Array) -> dict[str, float]:
    return {name: _number(value) for name, value in zip(names, by_segment, strict=True)}


def _number(value: float) -> float:
    """Return a float with the digits of a float32."""
    return float(str(np.float32(value)))
