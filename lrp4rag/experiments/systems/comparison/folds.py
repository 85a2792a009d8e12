"""One baseline in one fold: what it makes of the rows to be judged, as arrays over responses and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.token_model import Tokens
from lrp4rag.experiments.systems.baseline import Baseline, Score
from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.training.folds import Split
from lrp4rag.training.localisation import Line, Marking, line_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.search import Outcome

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class FoldScores:
    """Of R rows, by number: `probabilities`, `flagged` and `answered` (R,); of their tokens, one response
    after the other: `suspicion` and `marked` (N,), both empty where the baseline scores no parts.

    `asked` and `unanswered` (R,) count questions to a model and those without a usable reply.
    `outside_rows` and `outside` (M,) are rows learned from and their probabilities by models that did not
    learn from them.
    """

    rows: Numbers
    probabilities: Scores
    flagged: Flags
    answered: Flags
    suspicion: Scores
    marked: Flags
    outside_rows: Numbers
    outside: Scores
    chosen: str
    asked: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    unanswered: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """All folds together; of rows that no fold judged, numbers are NaN and flags False. `marking` is None for
    a baseline that scores no parts, `answered` (R,) says of which responses it had something to go by.
    `outside` has for each fold the rows judged, the rows learned from whose probabilities are known, and
    these."""

    outcome: Outcome
    marking: Marking | None
    answered: Flags
    outside: tuple[tuple[Numbers, Numbers, Scores], ...]
    asked: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    unanswered: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def unreadable(self, rows: Numbers) -> float:
        """The part of the questions about some rows that had no usable reply; 0 where none was asked."""
        asked = int(self.asked[rows].sum()) if len(self.asked) else 0
        return float(self.unanswered[rows].sum()) / asked if asked else 0.0

    def marks(self, tokens: Numbers) -> bool:
        """Whether all of these tokens were scored."""
        return self.marking is not None and bool(np.isfinite(self.marking.scores[tokens]).all())

    def line(self, part: Rows, tokens: Tokens, chosen: Numbers, resamples: int) -> Line | None:
        """Metrics of tokens, spans and sentences of rows, `part`, whose numbers are `chosen`; None where not
        all of them were scored."""
        if self.marking is None or not self.marks(tokens.within(chosen)):
            return None
        return line_of(part, tokens, chosen, self.marking, resamples)


def run_fold(baseline: Baseline, rows: Rows, split: Split, kit: Kit) -> FoldScores:
    """Learn from the training rows, then judge the others."""
    own = rows.select(split.test)
    scorer = baseline.fit(rows.select(split.train), kit)
    scores = scorer.score(own, kit) if len(own) else []  # of a small sample, a fold may have nothing
    offsets = [one.encoded.response_offsets for one in own.relevances]
    spread = [over_tokens(score, tokens) for score, tokens in zip(scores, offsets, strict=True)]
    parts = [one for one in spread if one is not None]
    return FoldScores(
        rows=split.test,
        probabilities=np.array([one.probability for one in scores]),
        flagged=np.array([one.flagged for one in scores], dtype=bool),
        answered=np.array([one.answered for one in scores], dtype=bool),
        suspicion=np.concatenate([one[0] for one in parts]) if parts else np.zeros(0),
        marked=np.concatenate([one[1] for one in parts]) if parts else np.zeros(0, dtype=bool),
        outside_rows=split.train[scorer.outside.rows],
        outside=scorer.outside.probabilities,
        chosen=scorer.chosen,
        asked=np.array([one.asked for one in scores], dtype=np.intp),
        unanswered=np.array([one.unanswered for one in scores], dtype=np.intp),
    )


def over_tokens(score: Score, offsets: Sequence[tuple[int, int]]) -> tuple[Scores, Flags] | None:
    """Suspicion and marks of t tokens: the highest of the parts that they share a character with. A token
    that is in none is as little suspect as the least of them."""
    if score.suspects is None:
        return None
    values = [one.score for one in score.suspects]
    found = np.full(len(offsets), min(values, default=0.0))
    marked = np.zeros(len(offsets), dtype=bool)
    for one in score.suspects:
        inside = tokens_in(offsets, [(one.start, one.end)])
        found[inside] = np.maximum(found[inside], one.score)
        marked |= inside & one.marked
    return found, marked


def gathered(folds: Iterable[FoldScores], tokens: Tokens) -> Judged:
    """Every row at most once. A sentence is marked where one of its tokens is."""
    rows, count = len(tokens.labels), len(tokens.flags)
    probabilities, flagged = np.full((1, rows), np.nan), np.zeros((1, rows), dtype=bool)
    answered = np.zeros(rows, dtype=bool)
    suspicion, marked = np.full(count, np.nan), np.zeros(count, dtype=bool)
    chosen, outside = [], []
    asked, unanswered = np.zeros(rows, dtype=np.intp), np.zeros(rows, dtype=np.intp)
    for fold in folds:
        if len(fold.asked):
            asked[fold.rows], unanswered[fold.rows] = fold.asked, fold.unanswered
        probabilities[0, fold.rows], flagged[0, fold.rows] = fold.probabilities, fold.flagged
        answered[fold.rows] = fold.answered
        if len(fold.suspicion):
            own = tokens.within(fold.rows)
            suspicion[own], marked[own] = fold.suspicion, fold.marked
        chosen.append(fold.chosen)
        outside.append((fold.rows, fold.outside_rows, fold.outside))
    scored = bool(np.isfinite(suspicion).any())
    marking = Marking(suspicion, marked, _sentences(marked, tokens.sentence)) if scored else None
    outcome = Outcome(probabilities, flagged, tuple(chosen))
    return Judged(outcome, marking, answered, tuple(outside), asked, unanswered)


def _sentences(marked: Flags, sentence: Numbers) -> Flags:
    inside = sentence >= 0
    found = np.zeros(len(marked), dtype=bool)
    if inside.any():
        found[inside] = (np.bincount(sentence[inside], marked[inside]) > 0)[sentence[inside]]
    return found
