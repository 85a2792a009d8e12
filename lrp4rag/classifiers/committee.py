"""`Committee`: small networks that each judge tokens by one block of features, and the weights of the votes.

Blocks differ in size and in how easily they are learned by heart: one network for all of them learned worse
than one for each (docs/localisation.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from lrp4rag.progress import track

Table = NDArray[np.float32]
Blocks = Mapping[str, Table]
Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Folds = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]
Arrays = dict[str, NDArray[np.float32]]

HIDDEN = 32
LARGEST = 10.0
"""In standard deviations: a feature further out than any that was learned from says no more than that."""
AT_ONCE = 8192
EPOCHS, PATIENCE = 20, 3
LARGEST_BATCH, SMALLEST_BATCH, BATCHES = 1024, 32, 64
"""A batch is of 1024 tokens, of fewer where an epoch would have fewer than 64 batches."""


@dataclass(frozen=True, slots=True)
class Care:
    """How strongly a network is kept from learning its block by heart."""

    dropout: float
    weight_decay: float


WIDE = 500
FEW, MANY = Care(dropout=0.1, weight_decay=1e-2), Care(dropout=0.3, weight_decay=0.1)
"""For blocks of up to `WIDE` columns and for wider ones: hidden states."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A perceptron on standardised columns: one hidden layer beside a linear path."""

    mean: Table
    scale: Table
    weights: Arrays

    @classmethod
    def fit(
        cls, inputs: Table, flags: Flags, train: NDArray[np.intp], held: NDArray[np.intp], seed: int
    ) -> Member:
        """Learn from the rows `train`; of its epochs, the one with the lowest log loss on `held` is kept."""
        from lrp4rag.classifiers.training import Training
        from lrp4rag.classifiers.training import train as train_network

        care = FEW if inputs.shape[1] <= WIDE else MANY
        own = inputs[train].astype(np.float32)
        mean, scale = own.mean(0, dtype=np.float64), own.std(0, dtype=np.float64)
        mean, scale = mean.astype(np.float32), np.where(scale > 0, scale, 1.0).astype(np.float32)
        member = cls(mean, scale, {})
        weights, _ = train_network(
            lambda: _network(inputs.shape[1], care.dropout),
            member._standardised(own),
            flags[train],
            (member._standardised(inputs[held]), flags[held]),
            Training(
                learning_rate=1e-3,
                batch_size=min(LARGEST_BATCH, max(SMALLEST_BATCH, len(train) // BATCHES)),
                max_epochs=EPOCHS,
                patience=PATIENCE,
                seed=seed,
                weight_decay=care.weight_decay,
            ),
        )
        return cls(mean, scale, weights)

    def log_odds(self, inputs: Table) -> Scores:
        """Of each row being made up, (N,)."""
        from lrp4rag.classifiers.training import logits

        columns = inputs.shape[1]
        return logits(lambda: _network(columns, 0.0), self.weights, self._standardised(inputs), AT_ONCE)

    def _standardised(self, inputs: Table) -> Table:
        rows = inputs.astype(np.float32)  # states may be kept in float16
        rows -= self.mean
        rows /= self.scale
        return np.clip(rows, -LARGEST, LARGEST, out=rows)


@dataclass(frozen=True, slots=True, eq=False)
class Committee:
    """By block: its members, each fitted without another fold, and the weight of their mean log odds."""

    members: dict[str, tuple[Member, ...]]
    weights: dict[str, float]
    bias: float

    def log_odds(self, blocks: Blocks) -> Scores:
        """(N,); raises `KeyError` where a block is missing."""
        return self.bias + sum(
            (self.weights[name] * self.votes(name, blocks[name]) for name in self.members),
            start=np.zeros(len(next(iter(blocks.values())))),
        )

    def votes(self, name: str, inputs: Table) -> Scores:
        """The mean log odds of one block's members, (N,)."""
        every: Scores = np.mean([member.log_odds(inputs) for member in self.members[name]], axis=0)
        return every

    def arrays(self) -> Arrays:
        """All that was learned, by name; `of` reads it back."""
        found = {"bias": np.array([self.bias], dtype=np.float32)}
        for name, members in self.members.items():
            found[f"{name}/weight"] = np.array([self.weights[name]], dtype=np.float32)
            for k, member in enumerate(members):
                found |= {f"{name}/{k}/mean": member.mean, f"{name}/{k}/scale": member.scale}
                found |= {f"{name}/{k}/weights/{key}": array for key, array in member.weights.items()}
        return found

    @classmethod
    def of(cls, arrays: Arrays) -> Committee:
        """Raises `KeyError` or `ValueError` for arrays that `arrays` did not give."""
        names = [key.removesuffix("/weight") for key in arrays if key.count("/") == 1]
        members = {}
        for name in names:
            count = len(
                {key.split("/")[1] for key in arrays if key.startswith(f"{name}/") and key.count("/") > 1}
            )
            members[name] = tuple(
                Member(
                    arrays[f"{name}/{k}/mean"],
                    arrays[f"{name}/{k}/scale"],
                    {
                        key.removeprefix(f"{name}/{k}/weights/"): array
                        for key, array in arrays.items()
                        if key.startswith(f"{name}/{k}/weights/")
                    },
                )
                for k in range(count)
            )
        weights = {name: float(arrays[f"{name}/weight"][0]) for name in names}
        return cls(members, weights, float(arrays["bias"][0]))


def fit_committee(blocks: Blocks, flags: Flags, folds: Folds, seed: int = 0) -> tuple[Committee, Scores]:
    """A member for each block and fold of rows, and the log odds of each row by those that did not learn
    from it, (N,): weighted as the committee weighs, by a logistic regression on them.

    `folds` have row numbers to learn from and to hold out; every row is held out once. A fold that is held
    out also says when its member has learned enough.
    """
    outside = np.zeros((len(flags), len(blocks)))
    members: dict[str, tuple[Member, ...]] = {}
    jobs = [(column, name, k) for column, name in enumerate(blocks) for k in range(len(folds))]
    for column, name, k in track(jobs, len(jobs), "training token classifiers"):
        train, held = folds[k]
        member = Member.fit(blocks[name], flags, train, held, seed + k)
        outside[held, column] = member.log_odds(blocks[name][held])
        members[name] = (*members.get(name, ()), member)
    vote = LogisticRegression().fit(outside, flags)
    weights = dict(zip(blocks, map(float, vote.coef_[0]), strict=True))
    committee = Committee(members, weights, float(vote.intercept_[0]))
    return committee, outside @ vote.coef_[0] + committee.bias


def _network(columns: int, dropout: float):  # type: ignore[no-untyped-def]  # torch is imported late
    from lrp4rag.classifiers.perceptron import Perceptron

    return Perceptron(columns, HIDDEN, dropout)
