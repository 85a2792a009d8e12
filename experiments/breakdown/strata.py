"""Where a system is good: by length, by how much is hallucinated, by kind of span, and by prevalence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from experiments.breakdown.stored import Labels, Numbers, StoredRows
from experiments.metrics import compare
from lrp4rag.classifiers.card import Metrics
from lrp4rag.example import Example
from lrp4rag.training.localisation import ALL
from lrp4rag.training.metrics import Draws, intervals_of, outcome_metrics

OURS, LENGTH, NOVEL = "lrp4rag", "length", "novel-words"
SYSTEMS = (OURS, NOVEL, LENGTH)
THIRDS = ("shortest third", "middle third", "longest third")
SHARES = ((0.0, 0.1), (0.1, 0.3), (0.3, 1.0))
PREVALENCES = (0.05, 0.1, 0.25, 0.5)
LENGTHS, SHARE, KINDS = "length in words", "characters hallucinated", "kind of span"


@dataclass(frozen=True, slots=True)
class Stratum:
    """Some rows: how many, how many hallucinated, the metrics of systems, and by what ours beats others."""

    by: str
    name: str
    generator: str
    rows: int
    hallucinated: int
    systems: dict[str, Metrics]
    ahead: dict[str, Metrics]


@dataclass(frozen=True, slots=True)
class AtPrevalence:
    """Precision, recall and F1 where this part of responses is hallucinated, at the stored threshold."""

    generator: str
    prevalence: float
    systems: dict[str, Metrics]


@dataclass(frozen=True, slots=True)
class Here:
    """Precision, recall and F1 of all responses: as many of them hallucinated as there are, and as many as in
    the published test set."""

    metrics: Metrics
    published: Metrics


def strata(rows: StoredRows, resamples: int) -> list[Stratum]:
    """Of each generator and of all. A stratum of hallucinated rows stands beside all faithful ones."""
    return [
        _measured(rows, by, name, generator, np.intersect1d(inside, part), resamples)
        for generator, part in rows.parts.items()
        for by, named in _named(rows).items()
        for name, inside in named.items()
    ]


def _named(rows: StoredRows) -> dict[str, dict[str, Numbers]]:
    faithful = ~rows.labels
    kinds = sorted({label.kind for example in rows.examples for label in example.labels or ()})
    share = np.array([share_of(example) for example in rows.examples])
    return {
        LENGTHS: {f"{name} ({low} to {high})": numbers for name, low, high, numbers in thirds(rows.examples)},
        SHARE: {
            f"{low:.0%} to {high:.0%}": np.flatnonzero(faithful | (share > low) & (share <= high))
            for low, high in SHARES
        },
        KINDS: {
            kind: np.flatnonzero(faithful | np.array([has_kind(one, kind) for one in rows.examples]))
            for kind in kinds
        },
    }


def thirds(examples: Sequence[Example]) -> list[tuple[str, int, int, Numbers]]:
    """Name, shortest and longest length in words, and rows, of each third by length."""
    lengths = np.array([len((example.response or "").split()) for example in examples])
    place = np.searchsorted(np.quantile(lengths, [1 / 3, 2 / 3]), lengths)
    found = []
    for k, name in enumerate(THIRDS):
        numbers = np.flatnonzero(place == k)
        found.append((name, int(lengths[numbers].min()), int(lengths[numbers].max()), numbers))
    return found


def share_of(example: Example) -> float:
    """The part of a response's characters that lie in a labelled span."""
    response = example.response or ""
    mask = np.zeros(len(response), dtype=bool)
    for label in example.labels or ():
        mask[label.start : label.end] = True
    return float(mask.mean()) if len(mask) else 0.0


def has_kind(example: Example, kind: str) -> bool:
    return any(label.kind == kind for label in example.labels or ())


def _measured(
    rows: StoredRows, by: str, name: str, generator: str, chosen: Numbers, resamples: int
) -> Stratum:
    labels, groups = rows.labels[chosen], rows.groups[chosen]
    outcomes = {system: rows.scores[system].outcome.select(chosen) for system in SYSTEMS}
    return Stratum(
        by,
        name,
        generator,
        len(chosen),
        int(labels.sum()),
        {
            system: outcome_metrics(one, labels, groups, resamples=resamples)
            for system, one in outcomes.items()
        },
        {
            system: compare(outcomes[OURS], one, labels, groups, resamples=resamples)
            for system, one in outcomes.items()
            if system != OURS
        },
    )


def at_prevalences(rows: StoredRows, resamples: int) -> list[AtPrevalence]:
    """The rates of hits and of false alarms stay, the classes are weighed anew."""
    return [
        AtPrevalence(
            generator,
            prevalence,
            {
                system: _weighed(
                    rows.labels[part],
                    rows.scores[system].outcome.flagged[0, part],
                    rows.groups[part],
                    prevalence,
                    resamples,
                )
                for system in SYSTEMS
            },
        )
        for generator, part in rows.parts.items()
        if generator == ALL
        for prevalence in PREVALENCES
    ]


def here(rows: StoredRows, names: Sequence[str], prevalence: float, resamples: int) -> dict[str, Here]:
    """Of systems that judged all responses, which stay as they are but for their classes' weights."""
    share = float(rows.labels.mean())
    found = {}
    for name in names:
        flagged = rows.scores[name].outcome.flagged[0]
        given = rows.labels, flagged, rows.groups
        found[name] = Here(_weighed(*given, share, resamples), _weighed(*given, prevalence, resamples))
    return found


def _weighed(
    labels: Labels, flagged: Labels, groups: NDArray[np.str_], prevalence: float, resamples: int
) -> Metrics:
    def measured(weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        recall = weights @ (labels & flagged) / (weights @ labels)
        alarms = weights @ (~labels & flagged) / (weights @ ~labels)
        hits = prevalence * recall
        precision = hits / (hits + (1 - prevalence) * alarms)
        return {
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / (precision + recall),
        }

    with np.errstate(divide="ignore", invalid="ignore"):
        return intervals_of(Draws.of(groups, resamples).values(partial(measured)))


def relaxed(examples: Sequence[Example]) -> Labels:
    """(R,), True where a span is marked that is not `implicit_true`."""
    return np.array([any(not label.implicit_true for label in example.labels or ()) for example in examples])


@dataclass(frozen=True, slots=True)
class CountedFaithful:
    """The same verdicts with responses whose spans are all `implicit_true` counted as faithful."""

    rows: int
    hallucinated: int
    changed: int
    strict: Mapping[str, Metrics]
    relaxed: Mapping[str, Metrics]


def implicit(rows: StoredRows, resamples: int) -> dict[str, CountedFaithful]:
    others = relaxed(rows.examples)
    found = {}
    for generator, part in rows.parts.items():
        strict, other, groups = rows.labels[part], others[part], rows.groups[part]
        outcomes = {system: rows.scores[system].outcome.select(part) for system in SYSTEMS}
        found[generator] = CountedFaithful(
            rows=len(part),
            hallucinated=int(strict.sum()),
            changed=int((strict & ~other).sum()),
            strict={
                name: outcome_metrics(one, strict, groups, resamples=resamples)
                for name, one in outcomes.items()
            },
            relaxed={
                name: outcome_metrics(one, other, groups, resamples=resamples)
                for name, one in outcomes.items()
            },
        )
    return found
