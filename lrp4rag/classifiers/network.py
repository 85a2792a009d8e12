"""The project's small torch networks and how they are fitted: inputs in, one logit a row out.

Weights are numpy arrays by name, so that they can be saved without torch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

Weights = dict[str, NDArray[np.float32]]
Inputs = NDArray[np.float32]

LARGEST_GRADIENT = 1.0


class Perceptron(nn.Module):
    """One hidden layer beside a linear path: the hidden units need not learn what is linear."""

    def __init__(self, features: int, hidden_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 1)
        self.hidden = nn.Sequential(
            SharedDropout(dropout), nn.Linear(features, hidden_size), nn.ReLU(), nn.Linear(hidden_size, 1)
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Map (rows, features) to logits (rows,)."""
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
        masks = (torch.rand(self.masks, rows.shape[1]) >= self.p).to(rows.dtype) / (1 - self.p)
        return rows * masks[torch.arange(len(rows)) % self.masks]


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
        """Map (rows, steps, features) to logits (rows,)."""
        states, _ = self.lstm(sequences)
        logits: Tensor = self.head(states.amax(1))[:, 0]
        return logits


@torch.no_grad()
def _initialise(name: str, parameter: Tensor) -> None:
    """Draw weights as Keras does, each gate by itself: torch's own small ones need several times the
    epochs."""
    for gate, weights in enumerate(parameter.chunk(4)):
        if "weight_hh" in name:
            nn.init.orthogonal_(weights)
        elif "weight_ih" in name:
            nn.init.xavier_uniform_(weights)
        else:
            # Gates are input, forget, cell and output; there are two biases, which add up.
            nn.init.constant_(weights, 0.5 if gate == 1 else 0.0)


def fit_network(
    make: Callable[[], nn.Module],
    inputs: Inputs,
    labels: NDArray[np.bool_],
    held_out: tuple[Inputs, NDArray[np.bool_]],
    *,
    learning_rate: float,
    batch_size: int,
    max_epochs: int,
    patience: int,
    seed: int,
    weight_decay: float = 0.0,
    weights: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None,
) -> tuple[Weights, list[float]]:
    """Return the weights of the epoch with the lowest loss on the rows held out, and every epoch's loss
    there.

    AdamW on mini-batches; `weights` say how much each row counts, and each row held out. Training ends after
    `patience` epochs without a lower loss. The same seed gives the same weights, and torch's own random state
    is left as it was.
    """
    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make()
        optimiser = torch.optim.AdamW(network.parameters(), learning_rate, weight_decay=weight_decay)
        rows, targets = torch.from_numpy(inputs), torch.from_numpy(labels).float()
        held_targets = torch.from_numpy(held_out[1]).double()
        counts = None if weights is None else _relative(weights[0]).float()
        held_counts = None if weights is None else _relative(weights[1])
        best, losses = copy.deepcopy(network.state_dict()), list[float]()
        for _ in range(max_epochs):
            network.train()
            for batch in torch.randperm(len(rows)).split(batch_size):
                optimiser.zero_grad()
                outputs = network(rows[batch])
                count = None if counts is None else counts[batch]
                binary_cross_entropy_with_logits(outputs, targets[batch], count).backward()
                nn.utils.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT)
                optimiser.step()
            outputs = torch.from_numpy(logits(network, held_out[0], batch_size))
            losses.append(float(binary_cross_entropy_with_logits(outputs, held_targets, held_counts)))
            epoch = int(np.argmin(losses))
            if epoch == len(losses) - 1:
                best = copy.deepcopy(network.state_dict())
            elif len(losses) - 1 - epoch >= patience:
                break
    return {name: tensor.numpy() for name, tensor in best.items()}, losses


def _relative(weights: NDArray[np.floating]) -> Tensor:
    """Divide weights by their mean."""
    return torch.from_numpy(weights / weights.mean()).double()


def loaded(make: Callable[[], nn.Module], weights: Weights) -> nn.Module:
    """Return a network with its weights, to be called. Raises `RuntimeError` where the weights are not the
    network's."""
    with torch.device("meta"):  # no weights are drawn, and none of a forged size are allocated
        network = make()
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}
    network.load_state_dict(tensors, assign=True)
    return network.eval()


def recurrent_logits(weights: Weights, sequences: Inputs) -> NDArray[np.float64]:
    """Return the logits of a `Recurrent` whose sizes show in its weights; raises `KeyError` or `RuntimeError`
    for others."""
    layers = sum(name.startswith("lstm.weight_ih") for name in weights)
    hidden_size = weights["head.weight"].shape[-1]
    network = loaded(lambda: Recurrent(sequences.shape[-1], hidden_size, layers), weights)
    return logits(network, sequences, 256)


@torch.no_grad()
def logits(network: nn.Module, inputs: Inputs, batch_size: int) -> NDArray[np.float64]:
    """Return the logit of each row, (rows,)."""
    network.eval()
    batches = torch.from_numpy(inputs).split(batch_size)
    values: NDArray[np.float64] = torch.cat([network(batch) for batch in batches]).double().numpy()
    return values
