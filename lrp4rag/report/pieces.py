"""A text cut into pieces, each shown once, though several tokens may share its characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of a text and the tokens that share them; none between tokens."""

    start: int
    end: int
    tokens: tuple[int, ...]


def cut(offsets: Sequence[tuple[int, int]], length: int) -> list[Piece]:
    """Pieces that cover `length` characters in order, tokens that overlap in one piece.

    Byte-level tokens share characters (an emoji is several tokens with the same offsets). Tokens
    without characters, such as a start-of-text token, are in no piece.
    """
    pieces: list[Piece] = []
    shown = (token for token, (start, end) in enumerate(offsets) if start < end)
    for token in sorted(shown, key=lambda token: offsets[token]):
        start, end = offsets[token]
        if pieces and start < pieces[-1].end:
            last = pieces[-1]
            pieces[-1] = Piece(last.start, max(last.end, end), (*last.tokens, token))
        else:
            pieces.append(Piece(start, end, (token,)))
    return list(_with_gaps(pieces, length))


def _with_gaps(pieces: list[Piece], length: int) -> Iterable[Piece]:
    cursor = 0
    for piece in pieces:
        if cursor < piece.start:
            yield Piece(cursor, piece.start, ())
        yield piece
        cursor = piece.end
    if cursor < length:
        yield Piece(cursor, length, ())


def sum_over(rows: NDArray[np.floating], pieces: Sequence[Piece]) -> NDArray[np.float64]:
    """Sums of the columns of `rows` (k, tokens) over each piece's tokens, (k, pieces with tokens)."""
    held = [piece for piece in pieces if piece.tokens]
    columns = np.array([token for piece in held for token in piece.tokens], dtype=np.intp)
    counts = np.array([len(piece.tokens) for piece in held], dtype=np.intp)
    if not held:
        return np.zeros((len(rows), 0))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    result: NDArray[np.float64] = np.add.reduceat(np.asarray(rows, np.float64)[:, columns], starts, axis=1)
    return result


def inside(offsets: Sequence[tuple[int, int]], start: int, end: int) -> NDArray[np.bool_]:
    """Which tokens share a character with `start` to `end`, (tokens,)."""
    table = np.array(offsets, dtype=np.intp).reshape(-1, 2)
    return (table[:, 0] < end) & (table[:, 1] > start)
