"""The network behind a committee's members, in torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Perceptron(nn.Module):
    """One hidden layer beside a linear path: the hidden units need not learn what is linear."""

    def __init__(self, features: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 1)
        self.hidden = nn.Sequential(
            SharedDropout(dropout), nn.Linear(features, hidden_size), nn.ReLU(), nn.Linear(hidden_size, 1)
        )

    def forward(self, rows: Tensor) -> Tensor:
        """(rows, features) to logits (rows,)."""
        logits: Tensor = (self.linear(rows) + self.hidden(rows))[:, 0]
        return logits


class SharedDropout(nn.Module):
    """Dropout whose masks are shared by every 64th row of a shuffled batch: drawing a number for each element
    took half of the training time."""

    masks = 64

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, rows: Tensor) -> Tensor:
        if not self.training or not self.p:
            return rows
        kept = (torch.rand(self.masks, rows.shape[1]) >= self.p).to(rows.dtype) / (1 - self.p)
        return rows * kept[torch.arange(len(rows)) % self.masks]
