"""Suspect tokens: the prompt's relevance, averaged over neighbours, is low. One threshold, no training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrp4rag.features.windows import TOKEN_WINDOW, smoothed
from lrp4rag.lrp.relevance import Relevance


def token_threshold(
    relevances: Sequence[Relevance], flags: Sequence[NDArray[np.bool_]], window: int = TOKEN_WINDOW
) -> float:
    """The smoothed relevance below which calling a token hallucinated maximises F1 over all tokens."""
    scores = np.concatenate([smoothed(row.total, window) for row in relevances])
    truth = np.concatenate(flags)
    order = np.argsort(scores, kind="stable")
    hits = np.cumsum(truth[order])
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + max(int(truth.sum()), 1))
    # "Below" is strict, so the threshold is the next score up.
    best = int(f1.argmax())
    return float(scores[order[min(best + 1, len(order) - 1)]])


def merged_spans(
    suspect: NDArray[np.bool_], offsets: Sequence[tuple[int, int]], text: str
) -> list[tuple[int, int]]:
    """Character spans of runs of suspect tokens: whole words, no white space around them."""
    spans: list[tuple[int, int]] = []
    running = False
    for flag, (first, last) in zip(suspect, offsets, strict=True):
        start, end = _whole_words(first, last, text)
        running = running and bool(flag)
        if not flag or start == end:
            continue
        if spans and (running or start <= spans[-1][1]):
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
        running = True
    return spans


def _whole_words(start: int, end: int, text: str) -> tuple[int, int]:
    piece = text[start:end]
    if not piece.strip():
        return start, start
    start, end = end - len(piece.lstrip()), start + len(piece.rstrip())
    while start and text[start].isalnum() and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    return start, end
