"""What is measured of summaries, by kind of fault, with 95 % intervals over their documents."""

from __future__ import annotations

from collections import Counter
from functools import partial
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.elsewhere.judging import Flags, Judged, Scores
from benchmarks.elsewhere.measures import ALL, Figures, above, part, responses
from benchmarks.elsewhere.sets import RIGHT
from benchmarks.kinds.page import RATE, RESAMPLES, Scored, by_kind, decided
from lrp4rag.classifiers.card import Interval
from lrp4rag.training.metrics import UNDEFINED, Draws, intervals_of, outcome_metrics
from lrp4rag.training.validation import Outcome

HALVINGS = 20


def measure_summaries(judged: Judged) -> Figures:
    """All of them, and by kind of fault against all right ones; benchmarks/README.md has the keys."""
    labels, groups, scores = judged.labels, judged.groups, judged.scores
    both = bool(labels.any() and not labels.all())
    return {
        "documents": len(set(groups)),
        "responses": len(judged),
        "unsupported": int(labels.sum()),
        "rate": RATE,
        "abstained": part(judged.abstained, groups),
        "unlike": dict(Counter(name for names in judged.whys for name in names)),
        "excerpts": sum(cell["excerpt"] for cell in judged.cells),
        "seconds": median(cell["seconds"] for cell in judged.cells),
        "lines": responses(judged) if both else {},
        "halves": {way: by_other_half(values, labels, groups) for way, values in scores.items()},
        "flagged": part(judged.flagged[~labels], groups[~labels]),
        "kinds": _kinds(judged) if both else [],
    }


def _kinds(judged: Judged) -> list[Figures]:
    labels, scores = judged.labels, judged.scores
    names = sorted({kind for item in judged.items for kind in item.kinds} - {RIGHT})
    masks = {name: np.array([name in item.kinds for item in judged.items], dtype=bool) for name in names}
    faults, right = {**masks, ALL: labels}, {ALL: ~labels}
    scored = Scored((), labels, judged.groups, scores, faults, right)
    draws = Draws.of(judged.groups, RESAMPLES)
    at_rate = {
        way: intervals_of(draws.values(partial(by_kind, scored, values))) for way, values in scores.items()
    }
    at_own = intervals_of(draws.values(partial(decided, scored, judged.flagged)))
    places = {item.example.id: row for row, item in enumerate(judged.items)}
    pairs = {row: places[item.twin] for row, item in enumerate(judged.items) if item.twin in places}
    found = []
    for kind, mask in faults.items():
        copies = [(int(row), pairs[int(row)]) for row in np.flatnonzero(mask) if int(row) in pairs]
        found.append(
            {
                "kind": kind,
                "responses": int(mask.sum()),
                "auroc": {way: values[f"auroc {kind}"] for way, values in at_rate.items()},
                "flagged": {way: values[f"fault {kind}"] for way, values in at_rate.items()},
                "flagged_by_default": at_own[f"fault {kind}"],
                "pairs": len(copies),
                "above": above(judged, copies),
            }
        )
    return found


def by_other_half(values: Scores, labels: Flags, groups: NDArray[np.str_]) -> Interval:
    """Return balanced accuracy at the threshold that is best on the other half of the sources: the mean of
    `HALVINGS` draws of halves. Undefined where no half has both classes beside another that has."""
    flags = []
    for seed in range(HALVINGS):
        names = np.random.default_rng(seed).permutation(np.unique(groups))
        first = np.isin(groups, names[: len(names) // 2])
        halves = (first, ~first)
        if all(labels[half].any() and not labels[half].all() for half in halves):
            cuts = [best_threshold(values[half], labels[half]) for half in halves]
            flags.append(values >= np.where(first, cuts[1], cuts[0]))
    if not flags:
        return UNDEFINED
    decisions = np.array(flags, dtype=bool)
    outcome = Outcome(np.zeros(decisions.shape), decisions)
    return outcome_metrics(outcome, labels, groups)["balanced_accuracy"]


def best_threshold(values: Scores, labels: Flags) -> float:
    """Return the score from which flagging has the highest balanced accuracy: of several, the lowest."""
    cuts = np.unique(values)
    reached = values >= cuts[:, None]
    gain = reached[:, labels].mean(1) - reached[:, ~labels].mean(1)
    return float(cuts[gain.argmax()])
