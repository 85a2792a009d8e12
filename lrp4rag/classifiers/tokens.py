"""`TokenClassifier`: the probability that a single response token is made up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrp4rag.classifiers.network import NetworkClassifier

if TYPE_CHECKING:
    from torch import nn


class TokenClassifier(NetworkClassifier):
    """A small perceptron on token features (rows, features); see `NetworkClassifier` for how it is fitted."""

    def __init__(
        self,
        hidden_size: int = 32,
        dropout: float = 0.1,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        batch_size: int = 1024,
        max_epochs: int = 20,
        patience: int = 3,
        validation: float = 0.2,
        random_state: int | None = 0,
    ) -> None:
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation = validation
        self.random_state = random_state

    def _network(self, features: int) -> nn.Module:
        from lrp4rag.classifiers.perceptron import Perceptron

        return Perceptron(features, self.hidden_size, self.dropout)
