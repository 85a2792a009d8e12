"""`Verdict`: what a detector says of one response, with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lrp4rag.classifiers.decision import Flags, top_mean
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.errors import RelevanceError
from lrp4rag.features.units import smoothed
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.reader.encoding import Encoded, tokens_in
from lrp4rag.sentences import split_sentences
from lrp4rag.values.nearest import Nearest


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What passage `passage` (an index) has in place of characters `start` to `end` of the response, `text`.

    It has `instead`, at its characters `passage_start` to `passage_end`. `margin` is by how many nats the
    reader finds that likelier, with what follows, and `relevance` the contrastive relevance of the passage,
    in logits: what it speaks for that, less what it speaks for the text; None where it was not pulled.
    """

    start: int
    end: int
    text: str
    instead: str
    passage: int
    passage_start: int
    passage_end: int
    margin: float
    relevance: float | None = None


@dataclass(frozen=True, slots=True)
class SuspectSpan:
    """Characters `start` to `end` (exclusive) of the response, and that `text`.

    `probability` is the mean of its tokens (of a token detector), `relevance` their smoothed mean, None where
    none was pushed, and `passage` the index of the main source, None where it has none or is not known.
    `contradictions` are values in it that a passage has otherwise.
    """

    start: int
    end: int
    text: str
    relevance: float | None = None
    probability: float | None = None
    passage: int | None = None
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def kind(self) -> Literal["contradicted", "unsupported"]:
        return "contradicted" if self.contradictions else "unsupported"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the response, its `text`, and what it rests on; relevance in logits.

    `relevance` is that of the whole prompt (None where it was not computed), and `by_passage` of each
    passage, summed over prompt tokens and averaged over the sentence's tokens; `passage` the index of the
    largest, None where none is positive or passages were not attributed. It is `suspect` where half of its
    tokens are (of a vector detector), or where its `probability` is high enough. `nearest` is the sentence of
    the passages that has most of its words, None where none has any or nobody looked.
    """

    start: int
    end: int
    text: str
    relevance: float | None
    by_passage: tuple[float, ...]
    passage: int | None
    suspect: bool
    probability: float | None = None
    nearest: Nearest | None = None

    def attributed(self, relevance: float, by_passage: Sequence[float]) -> Sentence:
        """The same with relevance of the prompt and of its passages."""
        given = tuple(map(float, by_passage))
        return replace(self, relevance=relevance, by_passage=given, passage=_leading(given))


@dataclass(frozen=True, slots=True)
class Reason:
    """A feature that moved a verdict: by how much, in log odds of a hallucination, and its value in one
    sentence, beside quantiles (5, 25, 50, 75, 95 %) of it in faithful sentences."""

    feature: str
    moved: float
    sentence: int
    value: float
    faithful: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TokenMarks:
    """What a token detector makes of t tokens, and where its verdicts on tokens and sentences begin."""

    probabilities: Array
    threshold: float
    sentence_top: int
    sentence_threshold: float

    def sentence(self, inside: Flags) -> float:
        """The probability of a sentence whose tokens are those `inside` (t,); it is suspect from
        `sentence_threshold` on."""
        return top_mean(self.probabilities[inside].astype(np.float64), self.sentence_top)


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """`probability` that the response is hallucinated; it is called so from `threshold` on.

    Without a detector (evidence only) both are None and nothing is suspect. Where the example is `unlike`
    the training data in a way that decides, there is a probability and no verdict (`abstained`).
    `token_relevance` (t) is the smoothed relevance of the prompt, which marks the suspect tokens of a vector
    detector, None where none was pushed; `marks` are a token detector's. `shift` is what the known
    generator adds to the log odds.
    """

    probability: float | None
    threshold: float | None
    token_relevance: Array | None
    token_threshold: float | None
    spans: tuple[SuspectSpan, ...]
    sentences: tuple[Sentence, ...]
    marks: TokenMarks | None = None
    reasons: tuple[Reason, ...] = ()
    unlike: tuple[Unlike, ...] = ()
    shift: float = 0.0

    def __post_init__(self) -> None:
        """What is no number compares as below any threshold: it must not pass for "grounded"."""
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise RelevanceError(f"no verdict: the probability is {self.probability}, which is none")

    @property
    def abstained(self) -> bool:
        return any(one.decides for one in self.unlike)

    @property
    def hallucinated(self) -> bool | None:
        if self.probability is None or self.threshold is None or self.abstained:
            return None
        return self.probability >= self.threshold


def judge(
    encoded: Encoded,
    relevance: Relevance | None = None,
    *,
    probability: float | None = None,
    threshold: float | None = None,
    token_threshold: float | None = None,
    marks: TokenMarks | None = None,
    contradictions: Sequence[Contradiction] = (),
) -> Verdict:
    """Put probability and evidence together. Tokens are suspect by `marks`, or where smoothed relevance is
    below `token_threshold`; `contradictions` tell what kind a suspect span is of."""
    text, offsets = encoded.response, encoded.response_offsets
    smooth = None if relevance is None else smoothed(relevance.total)
    if marks is not None:
        suspect = marks.probabilities >= marks.threshold
    elif smooth is not None:
        suspect = smooth < (-np.inf if token_threshold is None else token_threshold)
    else:
        suspect = np.zeros(len(offsets), dtype=bool)
    spans, sentences = [], []
    for start, end in merged_spans(suspect, offsets, text):
        inside = tokens_in(offsets, [(start, end)])
        spans.append(
            SuspectSpan(
                start,
                end,
                text[start:end],
                None if smooth is None else float(smooth[inside].mean()),
                None if marks is None else float(marks.probabilities[inside].mean()),
                _leading(_by_passage(relevance, inside)),
                tuple(one for one in contradictions if one.start < end and one.end > start),
            )
        )
    for start, end in split_sentences(text):
        inside = tokens_in(offsets, [(start, end)])
        if not inside.any():
            continue
        by_passage = _by_passage(relevance, inside)
        if marks is None:
            score, marked = None, bool(suspect[inside].mean() >= 0.5)
        else:
            score = marks.sentence(inside)
            marked = score >= marks.sentence_threshold
        sentences.append(
            Sentence(
                start,
                end,
                text[start:end],
                None if relevance is None else float(relevance.total[inside].mean()),
                by_passage,
                _leading(by_passage),
                suspect=marked,
                probability=score,
            )
        )
    return Verdict(
        probability=probability,
        threshold=threshold,
        token_relevance=None if smooth is None else smooth.astype(np.float32),
        token_threshold=token_threshold,
        spans=tuple(spans),
        sentences=tuple(sentences),
        marks=marks,
    )


def _by_passage(relevance: Relevance | None, inside: Flags) -> tuple[float, ...]:
    if relevance is None or relevance.by_segment is None:
        return ()
    return tuple(map(float, relevance.by_segment[2:, inside].mean(1)))


def _leading(by_passage: tuple[float, ...]) -> int | None:
    return int(np.argmax(by_passage)) if by_passage and max(by_passage) > 0 else None


def merged_spans(suspect: Flags, offsets: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
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
