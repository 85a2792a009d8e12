"""What a token classifier reads of a plain pass: columns (`PlainTable`), and hidden states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from lrp4rag.features import alignment, claims, entailment
from lrp4rag.features.feature import Feature
from lrp4rag.features.record import Record, Values
from lrp4rag.features.units import ends_of, sentence_numbers
from lrp4rag.reader.reading import LIKELIHOODS
from lrp4rag.util.errors import InputError

Table = NDArray[np.float32]
STATE_DEPTH = 0.65
"""Layer 19 of 30: where a probe of the passages' part was best on 300 responses (docs/features.md)."""


@dataclass(frozen=True, slots=True)
class Group:
    """Features that are computed together: `of` gives all of them, (features, t)."""

    features: tuple[Feature, ...]
    of: Callable[[Record], Values]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)


def likelihoods(record: Record) -> Values:
    """Return the reader's likelihoods, (6, t), in nats."""
    return np.array([np.log1p(record[name]) if name == "rank" else record[name] for name in LIKELIHOODS])


def entailments(record: Record) -> Values:
    """Return what the comparer makes of each token's word, and of its sentence, (3, t), in nats."""
    rows = np.zeros((len(entailment.FEATURES), len(record)))
    offsets, numbers = record.encoded.response_offsets, sentence_numbers(record)
    for token, number in enumerate(numbers):
        if number >= 0:
            first, _ = record.encoded.sentences[number]
            start, end = (place - first for place in offsets[token])
            entailed = record.entailments[number]
            rows[:, token] = entailed.highest(start, end), entailed.unsupported, entailed.contradicted
    return rows


ENTAILMENT = "entailment"
"""The group of features of a comparer."""
GROUPS: dict[str, Group] = {
    "likelihoods": Group(
        (
            Feature("log-probability", "0 or less", "of the token", "nat"),
            Feature("entropy", "0 or more", "of what could follow", "nat"),
            Feature("log rank", "0 or more", "log(1 + number of likelier tokens)"),
            Feature("best other", "any", "log-probability of the likeliest other token, less its own", "nat"),
            Feature("best other in a passage", "any", "the same among tokens of the passages", "nat"),
            Feature("others in passages", "0 to 1", "probability of all other tokens of the passages"),
        ),
        likelihoods,
    ),
    "alignment": Group(alignment.FEATURES, alignment.alignment),
    "claims": Group(claims.FEATURES, claims.claim_features),
    ENTAILMENT: Group(entailment.FEATURES, entailments),
}
READ = ("likelihoods", "alignment", "claims")
"""The groups that need no comparer."""
FEATURES = {feature.name: feature for group in GROUPS.values() for feature in group.features}
CONTEXT = frozenset(
    (
        "stop word", "digit", "capital", "sentence's words", "place in the sentence", "one sentence",
        "one passage", "asked at the place", *claims.KINDS, "rivals", "value asked", "scored", "best's lead",
        "margin a token", "tail margin", "best's tail", "alternatives", "same polarity", "same number",
        "negated", "sentence's similarity", "support of it",
    )
)  # fmt: skip
"""What a token is, or another reading of a feature that says more: no reason of a verdict."""


@dataclass(frozen=True, slots=True)
class PlainTable:
    """Which columns: those of `groups`, and of the tokens before and after those of `beside`: a sentence's
    last token has none after it."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    groups: tuple[str, ...] = READ
    beside: tuple[str, ...] = ("likelihoods", "alignment")

    def __post_init__(self) -> None:
        for name in (*self.groups, *self.beside):
            if name not in GROUPS:
                raise InputError(f"unknown group of features '{name}'; choose from {', '.join(GROUPS)}")
        if not set(self.beside) <= set(self.groups):
            raise InputError("what is read of neighbours is read of the token itself too")

    def __call__(self, record: Record) -> Table:
        """Return the columns of a record's tokens, (t, columns)."""
        by_group = {name: group_of(name, record) for name in self.groups}
        rows = [by_group[name] for name in self.groups]
        rows += [_shifted(by_group[name], 1) for name in self.beside]
        following = [_shifted(by_group[name], -1) for name in self.beside]
        if following:
            last = ends_of(sentence_numbers(record)) == np.arange(len(record)) + 1
            following = [np.where(last, 0.0, shifted) for shifted in following]
        return np.concatenate(rows + following).T.astype(np.float32)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(name for group in self.groups for name in GROUPS[group].names)

    @property
    def telling(self) -> tuple[str, ...]:
        """Those that can be a verdict's reason."""
        return tuple(name for name in self.features if name not in CONTEXT)

    def own_column(self, feature: str) -> int:
        """Return the number of the token's own column."""
        return self.features.index(feature)

    def columns_of(self, feature: str) -> list[int]:
        """Return the numbers of a feature's columns: the token's, and its neighbours' where they are read."""
        columns, start = [self.own_column(feature)], len(self.features)
        beside = [name for group in self.beside for name in GROUPS[group].names]
        if feature in beside:
            columns += [start + beside.index(feature), start + len(beside) + beside.index(feature)]
        return columns

    def columns(self, record: Record) -> list[str]:
        """Return their names."""
        beside = [name for group in self.beside for name in GROUPS[group].names]
        before = [f"{name}, token before" for name in beside]
        return [*self.features, *before, *(f"{name}, token after" for name in beside)]


def group_of(name: str, record: Record) -> Values:
    """Return a group's features, computed once: several blocks, and a verdict's reasons, ask for the same."""
    if name not in record.groups:
        record.groups[name] = GROUPS[name].of(record)
        record.groups[name].flags.writeable = False
    return record.groups[name]


def _shifted(rows: Values, by: int) -> Values:
    """Give each token what its neighbour has; 0 where there is none."""
    shifted = np.zeros_like(rows)
    if by > 0:
        shifted[:, by:] = rows[:, :-by]
    else:
        shifted[:, :by] = rows[:, -by:]
    return shifted


@dataclass(frozen=True, slots=True)
class StateBlock:
    """The states of a plain pass before each token and at it, after the layer at `depth` (0 to 1).

    `part` and `window` have one value; cards name them.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    part: Literal["around"]
    depth: float = STATE_DEPTH
    window: int = 1

    def __post_init__(self) -> None:
        if self.part != "around" or self.window != 1:
            raise InputError(
                "states of passes in relevance mode are no longer read; train the detector again"
            )
        if not 0 <= self.depth <= 1:
            raise InputError("a state's depth must be 0 to 1")

    def __call__(self, record: Record) -> NDArray[np.float32]:
        """Return (t, 2d); raises `InputError` where the record has no states."""
        states = np.asarray(record.state(self.part)[-1], dtype=np.float32)
        return np.concatenate([states[:-1], states[1:]], axis=1)
