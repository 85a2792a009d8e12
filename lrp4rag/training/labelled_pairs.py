"""Pairs of labelled answers: their sentences, each beside the passages' as a comparer will read it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sklearn.utils.parallel import Parallel, delayed

from lrp4rag.claims.answer import Span
from lrp4rag.claims.stating import stating_of
from lrp4rag.example import Example, Label
from lrp4rag.features.entailment import pairs_of_each
from lrp4rag.reader.comparer import Pair
from lrp4rag.util.progress import track

Told = Literal["e", "c", "n", "not_e"]
"""What evidence says of a claim: it supports it, contradicts it, does not tell it, or one of the last two."""
CONTRADICTED = frozenset(
    ("number", "name", "date or unit", "negation", "Evident Conflict", "Subtle Conflict")
)
NOT_TOLD = frozenset(("invention", "Evident Baseless Info", "Subtle Baseless Info"))
"""Kinds of faults that are known to be one of the two: of others, a comparer may take either."""
FALSE_ALARMS, FEWEST = 0.06, 9
"""The part of right sentences above whose scores a fault is found, and faults by which a kind is measured."""
CHUNK = 200
"""Responses that a process reads at once."""


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A pair and what is known of it: `spans` are the wrong characters of its claim, None where nobody said
    which they are, and `kind` is that of the longest. `set` is where it comes from, and pairs of one `source`
    are learned from by the same networks."""

    pair: Pair
    label: Told
    spans: tuple[Span, ...] | None
    source: str
    set: str
    kind: str = ""

    @property
    def wrong(self) -> bool:
        return self.label != "e"


def answer_pairs(examples: Sequence[Example], name: str) -> list[LabelledPair]:
    """Return the pairs of a set's labelled responses, by all cores; sentences that state nothing are left
    out: a label says nothing of them."""
    chunks = [examples[first : first + CHUNK] for first in range(0, len(examples), CHUNK)]
    pool = Parallel(n_jobs=min(os.cpu_count() or 1, max(len(chunks), 1)), return_as="generator")
    tasks = (delayed(pairs_of_answers)(chunk, name) for chunk in chunks)
    found = track(pool(tasks), len(chunks), f"reading the answers of {name}")
    return [pair for pairs in found for pair in pairs]


def pairs_of_answers(examples: Iterable[Example], name: str) -> list[LabelledPair]:
    """Return the pairs of some responses, in their order."""
    return [
        _labelled(pair, start, end, example, name)
        for example, sentences, pairs in pairs_of_each(examples)
        for pair, (start, end), states in zip(
            pairs, sentences, stating_of(example.response or "", sentences), strict=True
        )
        if states != "nothing"
    ]


def _labelled(pair: Pair, start: int, end: int, example: Example, name: str) -> LabelledPair:
    labels = [
        Label(max(label.start, start) - start, min(label.end, end) - start, label.kind)
        for label in example.labels or ()
        if label.start < end and start < label.end
    ]
    kind = max(labels, key=lambda label: label.end - label.start).kind if labels else ""
    spans = tuple((label.start, label.end) for label in labels)
    return LabelledPair(pair, label_of(kind) if labels else "e", spans, example.source, name, kind)


def label_of(kind: str) -> Told:
    """Return what the evidence says of a claim with a fault of this kind."""
    return "c" if kind in CONTRADICTED else "n" if kind in NOT_TOLD else "not_e"


def one_in(examples: Iterable[Example], every: int) -> list[Example]:
    """Take the responses to one in so many sources, by their names, in the order of the data."""
    given = list(examples)
    sources = set(sorted({one.source for one in given})[::every])
    return [one for one in given if one.source in sources]


def distinct(pairs: Iterable[LabelledPair]) -> list[LabelledPair]:
    """Leave out what was there before: edited passages leave most sentences of an answer as they were."""
    found = dict[object, LabelledPair]()
    for one in pairs:
        found.setdefault((one.pair, one.label, one.spans, one.source), one)
    return list(found.values())
