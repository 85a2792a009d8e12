"""`Committee`: small networks that each judge tokens by one block of features, and the weights of the votes.

Blocks differ in size and in how easily they are learned by heart: one network for all of them learned worse
than one for each (docs/localisation.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from lrp4rag.errors import InputError
from lrp4rag.features.windows import smoothed

Table = NDArray[np.float32]
Blocks = Mapping[str, Table]
Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Folds = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]
Arrays = dict[str, NDArray[np.float32]]

HIDDEN = 32
WINDOWS = (1, 9, 41)
"""Tokens around one whose votes say something of it: a clause, and a sentence or two."""
PENALTY = 0.1
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
        if inputs.shape[1] != len(self.mean):
            raise InputError(
                f"a network of the detector takes {len(self.mean)} features, and is given {inputs.shape[1]}"
            )
        rows = inputs.astype(np.float32)  # states may be kept in float16
        rows -= self.mean
        rows /= self.scale
        return np.clip(rows, -LARGEST, LARGEST, out=rows)


class Judge(Protocol):
    """Whatever judges tokens by their features in one block, as a `Member` does."""

    def log_odds(self, inputs: Table) -> Scores: ...


Learn = Callable[[Table, Flags, NDArray[np.intp], NDArray[np.intp], int], Judge]
"""Learns from rows of features and flags, given the numbers of those to learn from and of those held out, and
a seed."""
J = TypeVar("J", bound=Judge)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What a committee says of N tokens, in log odds of being made up: of each by itself (`alone`), which a
    response's verdict is made of, and in the light of its neighbours (`among`), which text is marked by."""

    alone: Scores
    among: Scores


@dataclass(frozen=True, slots=True, eq=False)
class Vote:
    """Weights of columns, and a bias."""

    weights: Table
    bias: float

    @classmethod
    def fit(cls, columns: Scores, flags: Flags) -> Vote:
        """Logistic regression on standardised columns (N, k), in terms of the columns as they are."""
        scale = columns.std(0)
        scale = np.where(scale > 0, scale, 1.0)
        fitted = LogisticRegression(C=PENALTY).fit(columns / scale, flags)
        return cls((fitted.coef_[0] / scale).astype(np.float32), float(np.float32(fitted.intercept_[0])))

    def __call__(self, columns: Scores) -> Scores:
        total: Scores = columns @ self.weights.astype(np.float64) + self.bias
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Count:
    """How the votes of blocks are counted: `alone` weighs those on a token itself, `among` those on its
    neighbours too."""

    alone: Vote
    among: Vote

    @classmethod
    def fit(cls, votes: Scores, flags: Flags, owner: NDArray[np.intp]) -> Count:
        """From votes (N, blocks) of members that did not learn from the tokens."""
        return cls(Vote.fit(votes, flags), Vote.fit(with_neighbours(votes, owner), flags))

    def __call__(self, votes: Scores, owner: NDArray[np.intp]) -> Judged:
        return Judged(self.alone(votes), self.among(with_neighbours(votes, owner)))


Members = tuple[Member, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Committee:
    """By block: its members, each fitted without another fold; and how their votes are counted."""

    members: dict[str, Members]
    count: Count

    def judge(self, blocks: Blocks, owner: NDArray[np.intp] | None = None) -> Judged:
        """`owner` (N,) is the number of each token's response, which rises; by default there is one.

        Raises `KeyError` where a block is missing.
        """
        votes = np.stack([vote(own, blocks[name]) for name, own in self.members.items()], axis=1)
        return self.count(votes, np.zeros(len(votes), dtype=np.intp) if owner is None else owner)

    def weight(self, name: str) -> float:
        """Of a block's vote on the token itself."""
        return float(self.count.alone.weights[list(self.members).index(name)])

    def arrays(self) -> Arrays:
        """All that was learned, by name; `of` reads it back."""
        found: Arrays = {}
        for kind, vote in (("alone", self.count.alone), ("among", self.count.among)):
            found[f"vote/{kind}"] = np.append(vote.weights, vote.bias).astype(np.float32)
        for name, members in self.members.items():
            for k, member in enumerate(members):
                found |= {f"{name}/{k}/mean": member.mean, f"{name}/{k}/scale": member.scale}
                found |= {f"{name}/{k}/weights/{key}": array for key, array in member.weights.items()}
        return found

    @classmethod
    def of(cls, arrays: Arrays) -> Committee:
        """Raises `KeyError` or `ValueError` for arrays that `arrays` did not give."""
        kept = {key: array for key, array in arrays.items() if not key.startswith("vote/")}
        names = dict.fromkeys(key.split("/")[0] for key in kept)
        members = {name: _members(name, kept) for name in names}
        alone, among = (arrays[f"vote/{kind}"] for kind in ("alone", "among"))
        if len(alone) != len(members) + 1 or len(among) != len(members) * 2 * len(WINDOWS) + 1:
            raise ValueError("the votes are not of these members")
        return cls(members, Count(*(Vote(vote[:-1], float(vote[-1])) for vote in (alone, among))))


def vote(members: Sequence[Judge], inputs: Table) -> Scores:
    """A block's vote on each token, (N,): the mean log odds of its members."""
    every: Scores = np.mean([member.log_odds(inputs) for member in members], axis=0)
    return every


def _members(name: str, arrays: Arrays) -> Members:
    own = {key: array for key, array in arrays.items() if key.startswith(f"{name}/")}
    return tuple(
        Member(
            own[f"{name}/{k}/mean"],
            own[f"{name}/{k}/scale"],
            {
                key.removeprefix(f"{name}/{k}/weights/"): array
                for key, array in own.items()
                if key.startswith(f"{name}/{k}/weights/")
            },
        )
        for k in range(len({key.split("/")[1] for key in own}))
    )


def with_neighbours(votes: Scores, owner: NDArray[np.intp]) -> Scores:
    """Votes (N, blocks), and the probabilities they stand for, averaged over `WINDOWS` within responses:
    (N, 2 x windows x blocks)."""
    both = np.concatenate([votes, expit(votes)], axis=1)
    edges = np.flatnonzero(np.diff(owner)) + 1
    parts = [
        np.concatenate([smoothed(part.T, window) for window in WINDOWS]).T for part in np.split(both, edges)
    ]
    return np.concatenate(parts)


def fit_members(
    learn: Callable[..., J], inputs: Table, flags: Flags, folds: Folds, seed: int = 0
) -> tuple[tuple[J, ...], Scores]:
    """One block's members, each of what `learn` makes of a fold of rows (see `Learn`), and what the member
    that did not learn from it says of each token, (N,).

    `folds` have row numbers to learn from and to hold out; every row is held out once. A fold that is held
    out also says when its member has learned enough.
    """
    outside = np.zeros(len(flags))
    members = []
    for k, (train, held) in enumerate(folds):
        member = learn(inputs, flags, train, held, seed + k)
        outside[held] = member.log_odds(inputs[held])
        members.append(member)
    return tuple(members), outside


def _network(columns: int, dropout: float):  # type: ignore[no-untyped-def]  # torch is imported late
    from lrp4rag.classifiers.perceptron import Perceptron

    return Perceptron(columns, HIDDEN, dropout)
