"""Our detectors as the comparison sees them: the token models of a study, from its cache where it was run."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.systems.comparison.scores import System, SystemScores
from experiments.systems.facts import OURS, Facts
from experiments.tokens.blocks import FAST_BLOCKS, FULL_BLOCKS, blocks_named
from experiments.tokens.extraction import SIGNALS, STATES
from experiments.tokens.trials import VERSION, CrossValidation, Trial
from lrp4rag.classifiers.operating import DEFAULT_POINT, RULES
from lrp4rag.features.blocks import PLAIN_BLOCKS
from lrp4rag.features.parts import READING
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import Marking
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome

DETECTOR, WITH_RELEVANCE, FAST = "lrp4rag", "lrp4rag with relevance", "lrp4rag with one tangent"
OF_SAMPLE = "lrp4rag, learned from the sample"
TRIALS = {
    DETECTOR: Trial(PLAIN_BLOCKS),
    WITH_RELEVANCE: Trial(FULL_BLOCKS),
    FAST: Trial(FAST_BLOCKS),
}
BUNDLED = {DETECTOR: "default"}
"""The detector that comes with the package, whose cost is its; there it learned from further data too."""

_PLAIN = Facts(
    "",
    OURS,
    "reader's states",
    "annotated spans",
    "the reader's; networks on likelihoods, states and values contrasted with the passages'",
    needs=(READING,),
)
_RELEVANCE = replace(
    _PLAIN,
    weights="the reader's; networks on relevance, likelihood, attention and states",
    needs=(SIGNALS, STATES),
)
FACTS = {DETECTOR: _PLAIN, WITH_RELEVANCE: _RELEVANCE, FAST: _RELEVANCE, OF_SAMPLE: _PLAIN}


def our_systems(rows: Rows, sample: NDArray[np.intp], folder: Path, jobs: int) -> dict[str, System]:
    """The detector on all rows, that which reads relevance too, and that which reads it with one tangent; and
    the first that learned from rows of the sample only, as slow baselines do. Running one raises `InputError`
    where the store lacks what it reads.
    """
    made = {
        name: System(_key(trial, rows), partial(_run, trial, rows, folder, jobs))
        for name, trial in TRIALS.items()
    }
    if len(sample) < len(rows):
        trial, few = TRIALS[DETECTOR], rows.select(sample)
        made[OF_SAMPLE] = System(
            _key(trial, few) | {"among": rows.digest},
            lambda: _spread(_run(trial, few, folder, jobs), sample, rows),
        )
    return made


def _key(trial: Trial, rows: Rows) -> dict[str, Any]:
    return {
        "study": VERSION,
        "trial": asdict(trial),
        "point": RULES[DEFAULT_POINT].words,
        "blocks": {name: asdict(block) for name, block in blocks_named(trial.blocks).items()},
        "rows": rows.digest,
        "protocol": ONCE.words,
    }


def _run(trial: Trial, rows: Rows, folder: Path, jobs: int) -> SystemScores:
    validation = CrossValidation.open(rows, folder, blocks_named(trial.blocks), jobs)
    found = validation.run({"": trial}, "our detector")[""]
    folds = zip(validation.folds(trial), validation.out_of_fold(trial), strict=True)
    return SystemScores(
        outcome=found.outcome,
        marking=Marking(found.probabilities, found.marked, found.sentences),
        answered=np.isfinite(found.outcome.probabilities[0]),
        outside=tuple((split.test, split.train, probabilities) for split, probabilities in folds),
    )


def _spread(scores: SystemScores, sample: NDArray[np.intp], rows: Rows) -> SystemScores:
    """The same with the numbers of all rows; those outside the sample have no answer."""
    probabilities, flagged = np.full((1, len(rows)), np.nan), np.zeros((1, len(rows)), dtype=bool)
    probabilities[:, sample], flagged[:, sample] = scores.outcome.probabilities, scores.outcome.flagged
    answered = np.zeros(len(rows), dtype=bool)
    answered[sample] = True
    outside = tuple((sample[test], sample[train], values) for test, train, values in scores.outside)
    return SystemScores(Outcome(probabilities, flagged, scores.outcome.chosen), None, answered, outside)
