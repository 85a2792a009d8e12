"""Linear classifiers on the reader's internal states: hidden states and attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrp4rag.training.tabular import Contenders, logistic

if TYPE_CHECKING:
    from lrp4rag.training.rows import Rows

# Neighbouring layers say nearly the same, and each costs as much as another classifier.
LAYER_STEP = 6
# There are about as many columns as rows: without a strong penalty the rows are learned by heart.
PENALTIES = (1e-4, 1e-3, 1e-2)


def hidden_probe(rows: Rows) -> Contenders:
    """Logistic regression on one layer's hidden state (d), at the last response token or their mean.

    Every sixth layer contends (0 is the embedding), and the last.
    """
    made: Contenders = ()
    for signal, place in (("hidden_mean", "mean"), ("hidden_last", "last token")):
        states = rows.signal(signal)
        top = len(states[0]) - 1
        for layer in sorted({*range(LAYER_STEP, top, LAYER_STEP), top}):
            inputs = np.stack([row[layer] for row in states])
            made += logistic(inputs, f"hidden state of layer {layer}, {place}", PENALTIES)
    return made


def lookback(rows: Rows) -> Contenders:
    """Logistic regression on each head's mean lookback ratio (layers x heads): the share of its attention
    that is on the prompt rather than on the response so far (Chuang et al., arXiv 2407.07071)."""
    inputs = np.stack([row.mean(axis=-1).ravel() for row in rows.signal("lookback")])
    return logistic(inputs, "lookback ratios", PENALTIES)
