"""How the project's small torch networks are trained: inputs in, one logit a row out.

Weights travel as numpy arrays by name, so that whoever keeps them needs no torch to be saved.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

Weights = dict[str, NDArray[np.float32]]
Inputs = NDArray[np.float32]

LARGEST_GRADIENT = 1.0


@dataclass(frozen=True, slots=True)
class Training:
    """How to train: Adam, mini-batches, and when to stop."""

    learning_rate: float
    batch_size: int
    max_epochs: int
    patience: int
    seed: int
    weight_decay: float = 0.0


def train(
    make: Callable[[], nn.Module],
    inputs: Inputs,
    labels: NDArray[np.bool_],
    held_out: tuple[Inputs, NDArray[np.bool_]],
    how: Training,
) -> tuple[Weights, list[float]]:
    """The weights of the epoch with the lowest loss on the rows held out, and every epoch's loss there.

    The same seed gives the same weights, and torch's own random state is left as it was.
    """
    with torch.enable_grad(), seeded(how.seed):
        network = make()
        optimiser = torch.optim.AdamW(network.parameters(), how.learning_rate, weight_decay=how.weight_decay)
        rows, targets = torch.from_numpy(inputs), torch.from_numpy(labels).float()
        best, losses = copy.deepcopy(network.state_dict()), list[float]()
        for _ in range(how.max_epochs):
            network.train()
            for batch in torch.randperm(len(rows)).split(how.batch_size):
                optimiser.zero_grad()
                binary_cross_entropy_with_logits(network(rows[batch]), targets[batch]).backward()
                nn.utils.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT)
                optimiser.step()
            losses.append(_loss(network, *held_out, how.batch_size))
            epoch = int(np.argmin(losses))
            if epoch == len(losses) - 1:
                best = copy.deepcopy(network.state_dict())
            elif len(losses) - 1 - epoch >= how.patience:
                break
    return {name: tensor.numpy() for name, tensor in best.items()}, losses


def logits(
    make: Callable[[], nn.Module], weights: Weights, inputs: Inputs, at_once: int
) -> NDArray[np.float64]:
    """The logit of each row, (rows,)."""
    with seeded(0):  # the weights that a new network draws are replaced
        network = make()
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
    return _logits(network, inputs, at_once)


@torch.no_grad()
def _logits(network: nn.Module, inputs: Inputs, at_once: int) -> NDArray[np.float64]:
    network.eval()
    parts = torch.from_numpy(inputs).split(at_once)
    values: NDArray[np.float64] = torch.cat([network(part) for part in parts]).double().numpy()
    return values


def _loss(network: nn.Module, inputs: Inputs, labels: NDArray[np.bool_], at_once: int) -> float:
    found = torch.from_numpy(_logits(network, inputs, at_once))
    return float(binary_cross_entropy_with_logits(found, torch.from_numpy(labels).double()))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
