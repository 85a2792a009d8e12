"""What a classifier of sentences learns from, by where the labels come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lrp4rag.example import Example
from lrp4rag.experiments.systems.ragulator.features import Features, features_of
from lrp4rag.experiments.systems.ragulator.label_by_prompt import prompted_labels
from lrp4rag.experiments.systems.ragulator.simulate import simulated
from lrp4rag.training.spans import annotated_sentences

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.encoders.entailment import Entailment
    from lrp4rag.experiments.systems.kit import Kit

Source = Literal["simulated", "annotated", "prompted"]


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """P sentences beside contexts: `inputs` (P, 5), `labels` (P,), True for out of context, and `groups` (P,)
    that no fold splits. `group_of` (R,) are the groups of the responses that they were made of."""

    inputs: NDArray[np.float64]
    labels: NDArray[np.bool_]
    groups: NDArray[np.str_]
    group_of: NDArray[np.str_]


def from_simulated(
    examples: Sequence[Example], features: Sequence[Features], model: Entailment, kit: Kit
) -> Lessons:
    """Sentences beside their own context count as in context, be they annotated or not: labels are not
    looked at. Beside another's they are out of it."""
    pairs = simulated(examples, kit.seed)
    far = features_of([pair.elsewhere for pair in pairs], model, kit)
    inputs = [one.numbers[pair.own] for one, pair in zip(features, pairs, strict=True)]
    couples = np.array([pair.couple for pair in pairs])
    return Lessons(
        np.concatenate([*inputs, *(one.numbers for one in far)]),
        np.repeat([False, True], [sum(map(len, inputs)), sum(len(one.numbers) for one in far)]),
        np.repeat(np.tile(couples, 2), [*map(len, inputs), *(len(one.numbers) for one in far)]),
        couples,
    )


def from_spans(
    examples: Sequence[Example], features: Sequence[Features], model: Entailment, kit: Kit
) -> Lessons:
    """A sentence that shares a character with an annotated span is out of context."""
    return _labelled(examples, features, [annotated_sentences(example).astype(float) for example in examples])


def from_replies(
    examples: Sequence[Example], features: Sequence[Features], model: Entailment, kit: Kit
) -> Lessons:
    """By what a model replied; sentences without a usable reply are left out."""
    return _labelled(examples, features, prompted_labels(examples, kit))


Make = Callable[[Sequence[Example], Sequence[Features], "Entailment", "Kit"], Lessons]
SOURCES: dict[Source, Make] = {
    "simulated": from_simulated,
    "annotated": from_spans,
    "prompted": from_replies,
}


def _labelled(
    examples: Sequence[Example], features: Sequence[Features], out: Sequence[NDArray[np.float64]]
) -> Lessons:
    sources = np.array([example.source for example in examples])
    flags = np.concatenate(out)
    known = np.isfinite(flags)
    return Lessons(
        np.concatenate([one.numbers for one in features])[known],
        flags[known] == 1,
        np.repeat(sources, [len(one) for one in out])[known],
        sources,
    )
