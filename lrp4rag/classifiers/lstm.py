"""The paper's LSTM (LRP4RAG, arXiv 2408.15533, Table 2): two layers on the resampled matrix R*."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from lrp4rag.classifiers.network import NetworkClassifier

if TYPE_CHECKING:
    from torch import nn


class LSTMClassifier(NetworkClassifier):
    """A recurrent network on sequences (rows, steps, features); (rows, steps) has one feature.

    Size and learning rate are the paper's; see `NetworkClassifier` for how it is fitted.
    """

    def __init__(
        self,
        hidden_size: int = 256,
        layers: int = 2,
        learning_rate: float = 5e-4,
        batch_size: int = 64,
        max_epochs: int = 12,
        patience: int = 3,
        validation: float = 0.2,
        random_state: int | None = 0,
    ) -> None:
        self.hidden_size = hidden_size
        self.layers = layers
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation = validation
        self.random_state = random_state

    def _network(self, features: int) -> nn.Module:
        from lrp4rag.classifiers.recurrent import Recurrent

        return Recurrent(features, self.hidden_size, self.layers)

    def _inputs(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows.reshape(*rows.shape[:2], -1)


def lstm() -> dict[str, Any]:
    """One candidate, the paper's; its number of epochs is chosen while it is fitted."""
    return {"2 x 256": LSTMClassifier()}
