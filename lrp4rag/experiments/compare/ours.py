"""Our detectors as the comparison sees them: the token models of a study, from its cache where it was run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrp4rag.experiments.baselines.baseline import Facts
from lrp4rag.experiments.compare.folds import Judged
from lrp4rag.experiments.localisation import Marking
from lrp4rag.experiments.rows import Rows
from lrp4rag.experiments.study.trials import Trial, Workshop
from lrp4rag.experiments.tokens import Located
from lrp4rag.features.blocks import FAST_BLOCKS, FULL_BLOCKS, blocks_named
from lrp4rag.parts import SIGNALS, STATES

DETECTOR, FAST = "lrp4rag", "lrp4rag --fast"
OF_SAMPLE = "lrp4rag, learned from the sample"
TRIALS = {DETECTOR: Trial(FULL_BLOCKS), FAST: Trial(FAST_BLOCKS)}
BUNDLED = {DETECTOR: "default", FAST: "fast"}
"""The detectors that come with the package, whose cost is theirs."""

_FACTS = Facts(
    "",
    "this project",
    "reader's states",
    "annotated spans",
    "the reader's; networks on relevance, likelihood, attention and states",
    needs=(SIGNALS, STATES),
)
FACTS = dict.fromkeys((DETECTOR, FAST, OF_SAMPLE), _FACTS)


def judged_by_ours(rows: Rows, sample: NDArray[np.intp], folder: Path, jobs: int) -> dict[str, Judged]:
    """The full and the fast detector on all rows; and the full one that learned from rows of the sample only,
    as slow baselines do. Raises `InputError` where the store lacks signals or states."""
    blocks = blocks_named([*FULL_BLOCKS, *FAST_BLOCKS])
    shop = Workshop.open(rows, folder, blocks, jobs)
    made = {name: _judged(shop, TRIALS[name], one) for name, one in shop.run(TRIALS, "detectors").items()}
    if len(sample) < len(rows):
        few = Workshop.open(rows.select(sample), folder, blocks_named(FULL_BLOCKS), jobs)
        located = few.run({OF_SAMPLE: TRIALS[DETECTOR]}, "detector of the sample")[OF_SAMPLE]
        made[OF_SAMPLE] = _spread(_judged(few, TRIALS[DETECTOR], located), sample, rows)
    return made


def _judged(shop: Workshop, trial: Trial, found: Located) -> Judged:
    return Judged(
        outcome=found.outcome,
        marking=Marking(found.probabilities, found.marked, found.sentences),
        answered=np.isfinite(found.outcome.probabilities[0]),
        outside=tuple(
            (split.test, split.train, probabilities)
            for split, probabilities in zip(shop.folds(trial), shop.outside(trial), strict=True)
        ),
    )


def _spread(judged: Judged, sample: NDArray[np.intp], rows: Rows) -> Judged:
    """The same with the numbers of all rows; those outside the sample have no answer."""
    from lrp4rag.experiments.search import Outcome

    probabilities, flagged = np.full((1, len(rows)), np.nan), np.zeros((1, len(rows)), dtype=bool)
    probabilities[:, sample], flagged[:, sample] = judged.outcome.probabilities, judged.outcome.flagged
    answered = np.zeros(len(rows), dtype=bool)
    answered[sample] = True
    outside = tuple((sample[test], sample[train], values) for test, train, values in judged.outside)
    return Judged(Outcome(probabilities, flagged, judged.outcome.chosen), None, answered, outside)
