"""What the page shades the prompt by: rows of relevance per sentence or per response token."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.report.pieces import Piece, inside, sum_over

LEVELS = 10
"""Steps of shading on either side of zero."""

Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class View:
    """Per item (sentence or response token): prompt pieces' relevance and segments' relevance.

    `scale` is the relevance shaded most; `mean` and `mean_bars` are shown while nothing is chosen.
    `rows` (items, pieces) or `bars` (items, segments) have no column where that was not attributed.
    """

    rows: Rows
    bars: Rows
    mean: Rows
    mean_bars: Rows
    scale: float

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": rounded(self.rows, self.scale),
            "bars": rounded(self.bars),
            "mean": rounded(self.mean, self.scale),
            "meanBars": rounded(self.mean_bars),
            "scale": self.scale,
        }


def sentence_view(analysis: Analysis, pieces: list[Piece]) -> View:
    """By sentence: the mean over its tokens; from the token rows where there are no sentence rows."""
    offsets = analysis.relevance.encoded.response_offsets
    masks = [inside(offsets, sentence.start, sentence.end) for sentence in analysis.verdict.sentences]
    weights = np.array([mask / mask.sum() for mask in masks]).reshape(-1, len(offsets))
    rows = np.zeros((len(masks), 0))
    if analysis.sentence_rows is not None:
        rows = sum_over(analysis.sentence_rows, pieces)
    elif analysis.token_rows is not None:
        rows = weights @ sum_over(analysis.token_rows, pieces)
    bars = np.zeros((len(masks), 0))
    if analysis.relevance.by_segment is not None:
        bars = weights @ np.asarray(analysis.relevance.by_segment, np.float64).T
    return _view(rows, bars)


def token_view(analysis: Analysis, pieces: list[Piece], response_pieces: list[Piece]) -> View | None:
    """By piece of the response: the sum over its tokens (most often one); None without token rows."""
    if analysis.token_rows is None:
        return None
    rows = sum_over(sum_over(analysis.token_rows, pieces).T, response_pieces).T
    bars = np.zeros((len(rows), 0))
    if analysis.relevance.by_segment is not None:
        bars = sum_over(analysis.relevance.by_segment, response_pieces).T
    return _view(rows, bars)


def _view(rows: Rows, bars: Rows) -> View:
    # Relevance is heavy-tailed (control tokens above all): the largest would leave the rest blank.
    scale = float(np.quantile(np.abs(rows), 0.98)) if rows.size else 0.0
    if not scale and rows.size:
        scale = float(np.abs(rows).max())
    return View(
        rows=rows,
        bars=bars,
        mean=rows.mean(0) if len(rows) else rows.sum(0),
        mean_bars=bars.mean(0) if len(bars) else bars.sum(0),
        scale=significant(scale) or 1.0,
    )


def level(value: float, scale: float) -> int:
    """The step of shading, -LEVELS..LEVELS; as the page's script computes it."""
    steps = min(math.floor(abs(value) / scale * LEVELS + 0.5), LEVELS)
    return int(math.copysign(steps, value))


def significant(value: float) -> float:
    """The value with 3 significant digits."""
    return float(f"{value:.3g}")


def rounded(values: Rows, scale: float | None = None) -> Any:
    """Nested lists, rounded to keep the page small: 4 significant digits of `scale`, or of the largest."""
    largest = float(np.abs(values).max()) if values.size else 0.0
    if not largest:
        return np.zeros(values.shape, dtype=int).tolist()
    decimals = 3 - math.floor(math.log10(scale or largest))
    return (np.round(values, decimals) + 0.0).tolist()
