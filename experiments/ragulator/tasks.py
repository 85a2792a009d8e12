"""Which sentences are judged, and what is true of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.systems.ragulator.labels import simulated
from experiments.systems.scoring import PartScores
from lrp4rag.example import Example
from lrp4rag.training.metrics import annotated_sentences
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError

SHARES = {"learn": 0.6, "tune": 0.15, "test": 0.25}
"""Of the sources: to learn from, to choose thresholds on, to be judged."""

Flags = NDArray[np.bool_]


class Split(NamedTuple):
    """Rows by what they are for; no source is in two parts."""

    learn: Rows
    tune: Rows
    test: Rows


def split_by_source(rows: Rows, seed: int) -> Split:
    """Raises `InputError` where a part has no hallucinated or no faithful response."""
    order = np.random.default_rng(seed).permutation(np.unique(rows.groups))
    ends = np.round(np.cumsum(list(SHARES.values())) * len(order)).astype(int)[:-1]
    parts = [rows.select(np.isin(rows.groups, sources)) for sources in np.split(order, ends)]
    for name, part in zip(SHARES, parts, strict=True):
        if len(set(part.labels.tolist())) < 2:
            raise InputError(
                f"of {len(order)} sources, those to {name} have only one kind of response; extract more"
            )
    return Split(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """R responses to be scored. Of each, `kept` are the numbers of the sentences that count, `out` whether
    they are out of context, and `groups` what bootstraps draw whole."""

    examples: tuple[Example, ...]
    kept: tuple[NDArray[np.intp], ...]
    out: tuple[Flags, ...]
    groups: tuple[str, ...]

    @property
    def labels(self) -> Flags:
        """Of all N sentences, (N,)."""
        return np.concatenate(self.out)

    @property
    def sentence_groups(self) -> NDArray[np.str_]:
        return np.repeat(np.array(self.groups), [len(one) for one in self.out])

    def scores(self, parts: Sequence[PartScores]) -> NDArray[np.float64]:
        """Those of the sentences that count, (N,), from the scores of each response's sentences."""
        return np.concatenate([one.scores[own] for one, own in zip(parts, self.kept, strict=True)])


def annotated(rows: Rows) -> Task:
    """A sentence that an annotated span touches is out of context."""
    out = tuple(annotated_sentences(example).astype(bool) for example in rows.examples)
    every = tuple(np.arange(len(one)) for one in out)
    return Task(rows.examples, every, out, tuple(example.source for example in rows.examples))


def pairs(rows: Rows, seed: int) -> Task:
    """A sentence beside its own passages is in context, beside those of another source out of it; labels are
    not looked at (arXiv 2411.03920, section 3.1)."""
    made = simulated(rows.examples, seed)
    far = [one.elsewhere for one in made]
    kept = [*(one.own for one in made), *(np.arange(len(one.own)) for one in made)]
    out = [np.full(len(own), k >= len(made)) for k, own in enumerate(kept)]
    couples = [one.couple for one in made]
    return Task((*rows.examples, *far), tuple(kept), tuple(out), (*couples, *couples))
