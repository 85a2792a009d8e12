"""`Ensemble`: small networks that score tokens, each by one block of features, and a stacker over them.

Blocks differ in size and in how easily a network overfits them: one network for all of them did worse than
one for each (docs/localisation.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from torch import nn

from lrp4rag.classifiers.calibration import logistic_weights
from lrp4rag.classifiers.network import Perceptron, fit_network, loaded, logits
from lrp4rag.features.units import ends_of, smoothed
from lrp4rag.util.errors import InputError

Table = NDArray[np.float32]
Blocks = Mapping[str, Table]
Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]
Folds = Sequence[tuple[Numbers, Numbers]]
Arrays = Mapping[str, NDArray[Any]]

HIDDEN = 32
WINDOWS = (1, 9, 41)
"""Tokens around one whose scores say something of it: a clause, and a sentence or two."""
PENALTY = 0.1
FAITHFUL = 3.0
LARGEST = 10.0
"""In standard deviations: features are clipped there."""
AT_ONCE = 8192
EPOCHS, PATIENCE = 20, 3
LARGEST_BATCH, SMALLEST_BATCH, BATCHES = 1024, 32, 64
"""A batch is of 1024 tokens, of fewer where an epoch would have fewer than 64 batches."""
WIDE = 500
NARROW_BLOCK, WIDE_BLOCK = (0.1, 1e-2), (0.3, 0.1)
"""Dropout and weight decay for blocks of up to `WIDE` columns, and for wider ones: hidden states."""
MOST_CELLS = 150_000_000
"""Rows times columns that one network learns from: more took time and memory, and changed little."""


@dataclass(frozen=True, eq=False)
class Network:
    """A fitted perceptron on standardised columns: one hidden layer beside a linear path."""

    mean: Table
    scale: Table
    weights: dict[str, Table]

    @classmethod
    def fit(
        cls, inputs: Table, flags: Flags, weights: Scores, train: Numbers, held_out: Numbers, seed: int
    ) -> Network:
        """Learn from the rows `train`, which count as their `weights` (N,) say; the epoch with the lowest log
        loss on the rows `held_out` is kept.

        Where there are more than `MOST_CELLS`, rows are drawn: flagged ones first, up to half of them.
        """
        dropout, weight_decay = NARROW_BLOCK if inputs.shape[1] <= WIDE else WIDE_BLOCK
        train, held_out = (
            _drawn(flags, rows, MOST_CELLS // inputs.shape[1], seed) for rows in (train, held_out)
        )
        rows = inputs[train].astype(np.float32)
        mean, scale = rows.mean(0, dtype=np.float64), rows.std(0, dtype=np.float64)
        mean, scale = mean.astype(np.float32), np.where(scale > 0, scale, 1.0).astype(np.float32)
        unfitted = cls(mean, scale, {})
        learned, _ = fit_network(
            lambda: Perceptron(inputs.shape[1], HIDDEN, dropout),
            unfitted._standardised(rows),
            flags[train],
            (unfitted._standardised(inputs[held_out]), flags[held_out]),
            learning_rate=1e-3,
            batch_size=min(LARGEST_BATCH, max(SMALLEST_BATCH, len(train) // BATCHES)),
            max_epochs=EPOCHS,
            patience=PATIENCE,
            seed=seed,
            weight_decay=weight_decay,
            weights=(weights[train], weights[held_out]),
        )
        return cls(mean, scale, learned)

    def log_odds(self, inputs: Table) -> Scores:
        """Return the log odds that each row is hallucinated, (N,)."""
        return logits(self._perceptron, self._standardised(inputs), AT_ONCE)

    @cached_property
    def _perceptron(self) -> nn.Module:
        """Build the network, once: a verdict calls two hundred of them several times."""
        return loaded(lambda: Perceptron(len(self.mean), HIDDEN), self.weights)

    def _standardised(self, inputs: Table) -> Table:
        if inputs.shape[1] != len(self.mean):
            raise InputError(
                f"a network of the detector takes {len(self.mean)} features, and is given {inputs.shape[1]}"
            )
        rows = inputs.astype(np.float32)  # states may be stored in float16
        rows -= self.mean
        rows /= self.scale
        return np.clip(rows, -LARGEST, LARGEST, out=rows)


def _drawn(flags: Flags, rows: Numbers, most: int, seed: int) -> Numbers:
    """Return the `rows`, or `most` of them, of which half or fewer are flagged where others are left out."""
    if len(rows) <= most:
        return rows
    random = np.random.default_rng(seed)
    flagged, unflagged = rows[flags[rows]], rows[~flags[rows]]
    count = min(len(flagged), max(most // 2, most - len(unflagged)))
    drawn = [
        random.choice(flagged, count, replace=False),
        random.choice(unflagged, most - count, replace=False),
    ]
    return np.sort(np.concatenate(drawn))


class BaseModel(Protocol):
    """A base model: it scores tokens by their features in one block, as a `Network` does."""

    def log_odds(self, inputs: Table) -> Scores: ...


Fit = Callable[[Table, Flags, Scores, Numbers, Numbers, int], BaseModel]
"""Fits a base model, as `Network.fit` does: of features, flags and weights, with the numbers of the rows to
learn from, those of the rows held out, and a seed."""
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """Log odds that each of N tokens is hallucinated: of the token by itself (`alone`), from which a
    response's probability is made, and from its neighbours too (`among`), by which text is marked."""

    alone: Scores
    among: Scores


@dataclass(frozen=True, slots=True, eq=False)
class Logistic:
    """Logistic regression: weights of columns, and a bias."""

    weights: Table
    bias: float

    @classmethod
    def fit(cls, columns: Scores, flags: Flags) -> Logistic:
        """Fit on standardised columns (N, k); the weights are those of the columns as they are."""
        weights, bias = logistic_weights(columns, flags, PENALTY)
        return cls(weights.astype(np.float32), float(np.float32(bias)))

    def __call__(self, columns: Scores) -> Scores:
        total: Scores = columns @ self.weights.astype(np.float64) + self.bias
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Stacker:
    """Combines the blocks' scores: `alone` those of a token itself, `among` those of its neighbours too."""

    alone: Logistic
    among: Logistic

    @classmethod
    def fit(cls, scores: Scores, flags: Flags, owner: Numbers, sentence: Numbers) -> Stacker:
        """Fit on scores (N, blocks) by base models that did not learn from the tokens; otherwise as
        called."""
        beside = with_neighbours(scores, owner, sentence)
        return cls(Logistic.fit(scores, flags), Logistic.fit(beside, flags))

    def __call__(self, scores: Scores, owner: Numbers, sentence: Numbers) -> TokenScores:
        """Score tokens; `owner` (N,) is the number of each one's response, which rises, and `sentence` (N,)
        of its sentence, -1 for none."""
        return TokenScores(self.alone(scores), self.among(with_neighbours(scores, owner, sentence)))


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """`networks` by block, each fitted without another fold, and the stacker over the blocks."""

    networks: dict[str, tuple[Network, ...]]
    stacker: Stacker

    def __call__(self, blocks: Blocks, sentence: Numbers) -> TokenScores:
        """Score the tokens of one response, with the number of each one's `sentence` (t,); raises `KeyError`
        where a block is missing."""
        scores = np.stack([mean_log_odds(each, blocks[name]) for name, each in self.networks.items()], axis=1)
        return self.stacker(scores, np.zeros(len(scores), dtype=np.intp), sentence)

    def weight(self, name: str) -> float:
        """Return the weight of a block's score of the token itself."""
        return float(self.stacker.alone.weights[list(self.networks).index(name)])

    def arrays(self) -> dict[str, Table]:
        """Return all that was learned, by name; `of` reads it back."""
        arrays: dict[str, Table] = {}
        for kind, logistic in (("alone", self.stacker.alone), ("among", self.stacker.among)):
            arrays[f"stacker/{kind}"] = np.append(logistic.weights, logistic.bias).astype(np.float32)
        for name, networks in self.networks.items():
            arrays |= arrays_of(networks, f"networks/{name}")
        return arrays

    @classmethod
    def of(cls, arrays: Arrays, blocks: Sequence[str]) -> Ensemble:
        """Read them; raises `KeyError`, `RuntimeError` or `ValueError` for arrays that `arrays` did not give
        for these blocks."""
        networks = {name: tuple(networks_of(arrays, f"networks/{name}")) for name in blocks}
        pairs = (arrays[f"stacker/{kind}"] for kind in ("alone", "among"))
        alone, among = (Logistic(row[:-1], float(row[-1])) for row in pairs)
        if len(alone.weights) != len(networks) or len(among.weights) != len(networks) * 2 * len(WINDOWS):
            raise ValueError("the stacker is not of these blocks")
        ensemble = cls(networks, Stacker(alone, among))
        if ensemble.arrays().keys() != arrays.keys():
            raise ValueError("its networks are not of the blocks in its card")
        return ensemble


def arrays_of(networks: Sequence[Network], prefix: str) -> dict[str, Table]:
    """Return what networks have learned, by names that begin with `prefix`; `networks_of` reads it back."""
    return {
        f"{prefix}/{k}/{key}": array
        for k, network in enumerate(networks)
        for key, array in {"mean": network.mean, "scale": network.scale, **network.weights}.items()
    }


def networks_of(arrays: Arrays, prefix: str) -> list[Network]:
    """Read the networks whose names begin with `prefix`; raises as `Ensemble.of` does."""
    networks: list[Network] = []
    while (start := f"{prefix}/{len(networks)}/") + "mean" in arrays:
        learned = {
            name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
        }
        network = Network(learned.pop("mean"), learned.pop("scale"), learned)
        if network.mean.ndim != 1 or network.scale.shape != network.mean.shape:
            raise ValueError(f"mean and scale of '{start}' are not those of columns")
        if not (network.scale > 0).all():
            raise ValueError(f"a scale of '{start}' is not positive")
        network.log_odds(np.zeros((1, len(network.mean)), dtype=np.float32))
        networks.append(network)
    if not networks:
        raise ValueError(f"there is no network '{prefix}'")
    return networks


def mean_log_odds(models: Sequence[BaseModel], inputs: Table) -> Scores:
    """Return the mean of a block's base models for each token, (N,)."""
    means: Scores = np.mean([model.log_odds(inputs) for model in models], axis=0)
    return means


def with_neighbours(scores: Scores, owner: Numbers, sentence: Numbers) -> Scores:
    """Average scores (N, blocks), and the probabilities they stand for, over `WINDOWS` within responses, up
    to the end of the token's sentence: (N, 2 x windows x blocks)."""
    both = np.concatenate([scores, expit(scores)], axis=1)
    edges = np.flatnonzero(np.diff(owner)) + 1
    tables = []
    for table, numbers in zip(np.split(both, edges), np.split(sentence, edges), strict=True):
        ends = ends_of(numbers)
        tables.append(np.concatenate([smoothed(table.T, window, ends) for window in WINDOWS]).T)
    return np.concatenate(tables)


def token_weights(flags: Flags, owner: Numbers) -> Scores:
    """Return how much each of N tokens counts where base models learn, (N,): by the square root of how few
    tokens of its class its response has (`owner` is the response's number, which rises).

    A wrong number is one token and an invented paragraph a hundred: if tokens counted alike, networks would
    learn of paragraphs only; if responses did, they would mark text worse. `FAITHFUL` is what all faithful
    tokens of a response weigh, beside 1 for all of the others.
    """
    numbers = np.unique(owner, return_inverse=True)[1]
    bad, good = np.bincount(numbers, flags), np.bincount(numbers, ~flags)
    weights: Scores = np.sqrt(np.where(flags, 1.0, FAITHFUL) / np.where(flags, bad[numbers], good[numbers]))
    return weights


def fit_folds(
    fit: Callable[..., M], inputs: Table, flags: Flags, weights: Scores, folds: Folds, seed: int = 0
) -> tuple[tuple[M, ...], Scores]:
    """Fit one block's base models, one for each fold (see `Fit`), and return them and their out-of-fold log
    odds (N,).

    `folds` have row numbers to learn from and to hold out; every row is held out once. A fold that is held
    out also decides when its model stops learning.
    """
    out_of_fold = np.zeros(len(flags))
    models = []
    for k, (train, held_out) in enumerate(folds):
        model = fit(inputs, flags, weights, train, held_out, seed + k)
        out_of_fold[held_out] = model.log_odds(inputs[held_out])
        models.append(model)
    return tuple(models), out_of_fold
