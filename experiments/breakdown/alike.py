"""Like beside like: systems that are one, slow systems beside ours that learned from as few responses, and
LettuceDetect with a threshold chosen as the others' are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from experiments.breakdown.stored import Labels, Numbers, StoredRows
from experiments.breakdown.strata import OURS
from experiments.metrics import compare
from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.verdict import merged_spans
from lrp4rag.reader.encoding import Offsets, tokens_in
from lrp4rag.training.localisation import ALL
from lrp4rag.training.metrics import characters, outcome_metrics, overlap_metrics

OF_SAMPLE, LETTUCE = "lrp4rag-learned-from-the-sample", "lettucedetect"
CONTROLS = ("novel-words", "length", "lexical", "log-probability")
"""Of the comparison: each knows the generator and flags where precision equals recall, as ours does."""
PUBLISHED_TOO = (
    LETTUCE,
    "entailment",
    "ragulator-annotated",
    "ragulator-lightgbm",
    "ragulator-forest",
    "grounded-in-context",
)
"""Of the comparison: what others published, with small models that were trained here."""
MARKS = 0.5


@dataclass(frozen=True, slots=True)
class Line:
    """A system on some rows, by what another beats it, and the part of the rows that it had something to go
    by for."""

    metrics: Metrics
    ahead: Metrics
    answered: float


def twins(rows: StoredRows) -> list[tuple[str, ...]]:
    """Names of systems that gave every response the same probability: one system under several names."""
    pairs = [
        (first, second)
        for first, second in combinations(rows.scores, 2)
        if np.array_equal(
            rows.scores[first].outcome.probabilities,
            rows.scores[second].outcome.probabilities,
            equal_nan=True,
        )
    ]
    return [tuple(sorted(pair)) for pair in pairs]


def counted(rows: StoredRows) -> int:
    """How many systems there are beside ours, each once."""
    others = {name for name in rows.scores if not name.startswith(OURS)}
    return len(others - {second for _, second in twins(rows)})


def beside_published(rows: StoredRows) -> list[str]:
    """What stands beside published systems, of what has scores of all responses; ours first."""
    every = (OURS, *PUBLISHED_TOO, *CONTROLS)
    count = len(rows.examples)
    return [name for name in every if name in rows.scores and len(rows.judged_by(name)) == count]


def lines(rows: StoredRows, ours: str, names: Sequence[str], resamples: int) -> dict[str, dict[str, Line]]:
    """By generator and system, on the rows that `ours` and the system judged; `ours` stands first."""
    found: dict[str, dict[str, Line]] = {}
    for generator, part in rows.parts.items():
        found[generator] = {}
        for name in (ours, *names):
            both = np.intersect1d(np.intersect1d(rows.judged_by(ours), rows.judged_by(name)), part)
            if not len(both):
                continue
            given = rows.labels[both], rows.groups[both]
            outcome = rows.scores[name].outcome.select(both)
            found[generator][name] = Line(
                outcome_metrics(outcome, *given, resamples=resamples),
                compare(rows.scores[ours].outcome.select(both), outcome, *given, resamples=resamples),
                float(rows.scores[name].answered[both].mean()),
            )
    return {generator: some for generator, some in found.items() if some}


def slow(rows: StoredRows) -> list[str]:
    """The systems that judged the sample only, but for ours."""
    count = len(rows.examples)
    return [name for name in rows.scores if len(rows.judged_by(name)) < count and name != OF_SAMPLE]


# LettuceDetect's threshold.


@dataclass(frozen=True, slots=True, eq=False)
class Marked:
    """Metrics of spans and tokens by generator, as published and with a threshold from the other folds."""

    published: dict[str, Metrics]
    tuned: dict[str, Metrics]
    thresholds: tuple[float, ...]


def lettuce(rows: StoredRows, offsets: Sequence[Offsets], resamples: int) -> Marked:
    """Each fold's threshold is the one with the best F1 of tokens of the other folds, by scores of models
    that had not learned from these."""
    owner = np.repeat(np.arange(len(offsets)), [len(one) for one in offsets])
    marking = rows.marking(LETTUCE, len(owner))
    flags = np.concatenate(
        [
            tokens_in(one, [(label.start, label.end) for label in example.labels or ()])
            for one, example in zip(offsets, rows.examples, strict=True)
        ]
    )
    tuned, chosen = rows.scores[LETTUCE].tuned(owner, flags)
    return Marked(
        # As the folds marked: scores are stored with three digits, so that 0.4996 is 0.5 here.
        spans_of(rows, offsets, owner, marking.marked, resamples),
        spans_of(rows, offsets, owner, tuned, resamples),
        chosen,
    )


def spans_here(
    rows: StoredRows, names: Sequence[str], offsets: Sequence[Offsets], resamples: int
) -> dict[str, Metrics]:
    """Characters of all responses as each system marks them, of those that mark any."""
    owner = np.repeat(np.arange(len(offsets)), [len(one) for one in offsets])
    marked = {name: one.marking.marked for name in names if (one := rows.scores[name]).marking is not None}
    return {name: spans_of(rows, offsets, owner, one, resamples)[ALL] for name, one in marked.items()}


def spans_of(
    rows: StoredRows, offsets: Sequence[Offsets], owner: Numbers, marked: Labels, resamples: int
) -> dict[str, Metrics]:
    """Precision, recall and F1 of characters, by generator."""
    found = []
    for k, (one, example) in enumerate(zip(offsets, rows.examples, strict=True)):
        first, last = np.searchsorted(owner, [k, k + 1])
        text = example.response or ""
        annotated = [(label.start, label.end) for label in example.labels or ()]
        found.append(characters(merged_spans(marked[first:last], one, text), annotated, len(text)))
    return {
        generator: overlap_metrics([found[k] for k in part], rows.groups[part], resamples=resamples)
        for generator, part in rows.parts.items()
    }
