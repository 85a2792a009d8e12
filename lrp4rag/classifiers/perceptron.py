"""The network behind the token classifier, in torch."""

from __future__ import annotations

from torch import Tensor, nn


class Perceptron(nn.Module):
    """One hidden layer beside a linear path: the hidden units need not learn what is linear."""

    def __init__(self, features: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 1)
        self.hidden = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(features, hidden_size), nn.ReLU(), nn.Linear(hidden_size, 1)
        )

    def forward(self, rows: Tensor) -> Tensor:
        """(rows, features) to logits (rows,)."""
        logits: Tensor = (self.linear(rows) + self.hidden(rows))[:, 0]
        return logits
