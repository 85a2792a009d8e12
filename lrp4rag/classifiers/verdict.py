"""`Verdict`: what a detector says of one response, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lrp4rag.classifiers.localise import merged_spans
from lrp4rag.features.windows import smoothed
from lrp4rag.generator.encoding import tokens_in
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.sentences import split_sentences


@dataclass(frozen=True, slots=True)
class SuspectSpan:
    """Characters `start` to `end` (exclusive) of the response; `relevance` is the smoothed mean."""

    start: int
    end: int
    relevance: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the response and what it rests on, relevance in logits.

    `relevance` is that of the whole prompt, and `by_passage` of each passage, summed over prompt tokens
    and averaged over the sentence's tokens; `passage` the index of the largest, None where none is
    positive or passages were not attributed. `suspect` when half of its tokens are.
    """

    start: int
    end: int
    relevance: float
    by_passage: tuple[float, ...]
    passage: int | None
    suspect: bool


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """`probability` that the response is hallucinated; it is called so from `threshold` on.

    Without a detector (evidence only) both are None and nothing is suspect.
    `token_relevance` (t) is the smoothed relevance of the prompt that marks suspect tokens.
    """

    probability: float | None
    threshold: float | None
    token_relevance: Array
    token_threshold: float | None
    spans: tuple[SuspectSpan, ...]
    sentences: tuple[Sentence, ...]

    @property
    def hallucinated(self) -> bool | None:
        if self.probability is None or self.threshold is None:
            return None
        return self.probability >= self.threshold


def judge(
    relevance: Relevance,
    *,
    probability: float | None = None,
    threshold: float | None = None,
    token_threshold: float | None = None,
) -> Verdict:
    """Put probability and evidence together."""
    encoded = relevance.encoded
    smooth = smoothed(relevance.total)
    suspect = smooth < (-np.inf if token_threshold is None else token_threshold)
    spans = []
    for start, end in merged_spans(suspect, encoded.response_offsets, encoded.response):
        inside = tokens_in(encoded.response_offsets, [(start, end)])
        spans.append(SuspectSpan(start, end, float(smooth[inside].mean())))
    sentences = []
    for start, end in split_sentences(encoded.response):
        inside = tokens_in(encoded.response_offsets, [(start, end)])
        if inside.any():
            sentences.append(_sentence(relevance, suspect, inside, start, end))
    return Verdict(
        probability=probability,
        threshold=threshold,
        token_relevance=smooth.astype(np.float32),
        token_threshold=token_threshold,
        spans=tuple(spans),
        sentences=tuple(sentences),
    )


def _sentence(
    relevance: Relevance,
    suspect: np.ndarray,
    inside: np.ndarray,
    start: int,
    end: int,
) -> Sentence:
    by_passage: tuple[float, ...] = ()
    if relevance.by_segment is not None:
        by_passage = tuple(map(float, relevance.by_segment[2:, inside].mean(1)))
    passage = int(np.argmax(by_passage)) if by_passage and max(by_passage) > 0 else None
    return Sentence(
        start=start,
        end=end,
        relevance=float(relevance.total[inside].mean()),
        by_passage=by_passage,
        passage=passage,
        suspect=bool(suspect[inside].mean() >= 0.5),
    )
