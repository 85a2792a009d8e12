"""SAPLMA: classifiers on the reader's hidden state (Azaria & Mitchell, arXiv 2304.13734, section 4).

The published classifier is a feed-forward network on one layer's state at the last token (ours is stored
where that token is predicted); a linear probe stands beside it. The layer is chosen on inner folds.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.systems.baseline import BestClassifier
from experiments.systems.facts import LABELS, Facts
from experiments.tokens import candidates
from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.calibration import Candidate
from lrp4rag.training.controls import Candidates
from lrp4rag.training.rows import Rows

PAPER = "arXiv 2304.13734"
HIDDEN = (256, 128, 64)
EPOCHS = 5
BATCH = 32
PLACES = (16 / 32, 20 / 32, 24 / 32, 28 / 32, 1.0)
"""Candidate layers, as shares of the reader's: the paper reads these of 32."""


class FewEpochs(MLPClassifier):  # type: ignore[misc]  # scikit-learn has no types
    """Stops after `max_iter` epochs, which are meant to be too few to converge; few rows are one batch."""

    def fit(self, inputs: Any, labels: Any) -> FewEpochs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # convergence, size of a batch
            super().fit(inputs, labels)
        return self


def network(rows: Rows, seed: int = 0) -> Candidates:
    """The paper's network on one layer's state (d) for the last response token, one candidate for each layer.

    Raises `InputError` where a row has no signals.
    """
    states = rows.arrays("hidden_last", SIGNALS)
    top = len(states[0]) - 1
    layers = dict.fromkeys(max(round(place * top), 1) for place in PLACES)
    few = FewEpochs(HIDDEN, batch_size=BATCH, max_iter=EPOCHS, random_state=seed)
    estimator, name = make_pipeline(StandardScaler(), few), "hidden state of layer {}, last token"
    return tuple(
        Candidate(name.format(layer), "network", "", estimator, np.stack([row[layer] for row in states]))
        for layer in layers
    )


SAPLMA_LINEAR = BestClassifier(
    Facts("Hidden states, linear probe", PAPER, "reader's states", LABELS, "the reader's", ("signals",)),
    lambda rows, _: candidates.hidden_probe(rows),
)
SAPLMA_MLP = BestClassifier(
    Facts("SAPLMA", PAPER, "reader's states", LABELS, "the reader's", ("signals",)),
    lambda rows, resources: network(rows, resources.seed),
)
