"""The network behind the LSTM classifier, in torch: weights in, logits out, and how it is trained.

Weights travel as numpy arrays by name, so that whoever keeps them needs no torch to be saved.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

Weights = dict[str, NDArray[np.float32]]
Sequences = NDArray[np.float32]

ROWS_AT_ONCE = 256
LARGEST_GRADIENT = 1.0


@dataclass(frozen=True, slots=True)
class Training:
    """How to train: Adam, mini-batches, and when to stop."""

    hidden_size: int
    layers: int
    learning_rate: float
    batch_size: int
    max_epochs: int
    patience: int
    seed: int


class Network(nn.Module):
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


def train(
    sequences: Sequences,
    labels: NDArray[np.bool_],
    held_out: tuple[Sequences, NDArray[np.bool_]],
    how: Training,
) -> tuple[Weights, list[float]]:
    """The weights of the epoch with the lowest loss on the rows held out, and every epoch's loss there.

    The same seed gives the same weights, and torch's own random state is left as it was.
    """
    with torch.enable_grad(), _seeded(how.seed):
        network = Network(sequences.shape[2], how.hidden_size, how.layers)
        optimiser = torch.optim.Adam(network.parameters(), how.learning_rate)
        rows, targets = torch.from_numpy(sequences), torch.from_numpy(labels).float()
        best, losses = copy.deepcopy(network.state_dict()), list[float]()
        for _ in range(how.max_epochs):
            for batch in torch.randperm(len(rows)).split(how.batch_size):
                optimiser.zero_grad()
                binary_cross_entropy_with_logits(network(rows[batch]), targets[batch]).backward()
                nn.utils.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT)
                optimiser.step()
            losses.append(_loss(network, *held_out))
            epoch = int(np.argmin(losses))
            if epoch == len(losses) - 1:
                best = copy.deepcopy(network.state_dict())
            elif len(losses) - 1 - epoch >= how.patience:
                break
    return {name: tensor.numpy() for name, tensor in best.items()}, losses


def logits(weights: Weights, sequences: Sequences) -> NDArray[np.float64]:
    """The logit of each row, (rows,)."""
    hidden_size = weights["head.weight"].shape[1]
    layers = sum(name.startswith("lstm.weight_hh") for name in weights)
    with _seeded(0):  # the weights that a new network draws are replaced
        network = Network(sequences.shape[2], hidden_size, layers)
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
    return _logits(network, sequences)


@torch.no_grad()
def _logits(network: Network, sequences: Sequences) -> NDArray[np.float64]:
    parts = torch.from_numpy(sequences).split(ROWS_AT_ONCE)
    values: NDArray[np.float64] = torch.cat([network(part) for part in parts]).double().numpy()
    return values


def _loss(network: Network, sequences: Sequences, labels: NDArray[np.bool_]) -> float:
    logits = torch.from_numpy(_logits(network, sequences))
    return float(binary_cross_entropy_with_logits(logits, torch.from_numpy(labels).double()))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
