"""The network behind the LSTM classifier, in torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Recurrent(nn.Module):
    """LSTM layers, the largest value of each hidden unit over the steps, and one logit.

    The maximum lets a few telling steps decide wherever they are, which the last state has to remember.
    """

    def __init__(self, features: int, hidden_size: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden_size, layers, batch_first=True)
        self.head = nn.Linear(hidden_size, 1)
        for name, parameter in self.lstm.named_parameters():
            _initialise(name, parameter)

    def forward(self, sequences: Tensor) -> Tensor:
        """(rows, steps, features) to logits (rows,)."""
        states, _ = self.lstm(sequences)
        logits: Tensor = self.head(states.amax(1))[:, 0]
        return logits


@torch.no_grad()
def _initialise(name: str, parameter: Tensor) -> None:
    """As Keras does, each gate by itself: torch's own small weights need several times the epochs."""
    for gate, part in enumerate(parameter.chunk(4)):
        if "weight_hh" in name:
            nn.init.orthogonal_(part)
        elif "weight_ih" in name:
            nn.init.xavier_uniform_(part)
        else:
            # Gates are input, forget, cell and output; there are two biases, which add up.
            nn.init.constant_(part, 0.5 if gate == 1 else 0.0)
