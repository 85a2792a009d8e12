"""How well marked characters agree with the annotators' spans, and marked sentences with theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Metrics
from lrp4rag.example import Example
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.training.metrics import RESAMPLES, ratios
from lrp4rag.util.sentences import sentences_in

Spans = Sequence[tuple[int, int]]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Counts of one response: characters (or sentences) that are marked, annotated, and both."""

    marked: int
    annotated: int
    both: int


def characters(marked: Spans, annotated: Spans, length: int) -> Overlap:
    """Of a response of `length` characters; a character that several spans have counts once."""
    first, second = _mask(marked, length), _mask(annotated, length)
    return Overlap(int(first.sum()), int(second.sum()), int((first & second).sum()))


def sentences(marked: Flags, annotated: Flags) -> Overlap:
    """Of a response's sentences; see `annotated_sentences`."""
    return Overlap(int(marked.sum()), int(annotated.sum()), int((marked & annotated).sum()))


def annotated_sentences(example: Example, sentences: Spans | None = None) -> Flags:
    """Which of the response's `sentences`, by default those of `sentences_in`, share a character with an
    annotated span."""
    spans = [(label.start, label.end) for label in example.labels or ()]
    return tokens_in(sentences_in(example.response or "") if sentences is None else sentences, spans)


def overlap_metrics(
    overlaps: Sequence[Overlap], groups: NDArray[np.str_], *, resamples: int = RESAMPLES
) -> Metrics:
    """Precision, recall and F1 over all characters (or sentences) together, with intervals over sources.

    The definition of RAGTruth's span-level detection (arXiv 2401.00396) and LettuceDetect's
    (arXiv 2502.17125): counts are summed over responses before they are divided.
    """
    marked, annotated, both = np.array([[one.marked, one.annotated, one.both] for one in overlaps]).T
    quotients = {
        "precision": (both, marked),
        "recall": (both, annotated),
        "f1": (2 * both, marked + annotated),
    }
    return ratios(quotients, groups, resamples=resamples)


def _mask(spans: Spans, length: int) -> Flags:
    mask = np.zeros(length, dtype=bool)
    for start, end in spans:
        mask[start:end] = True
    return mask
