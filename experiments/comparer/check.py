"""How well a network that is being learned does on what it has not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Self, cast

import numpy as np
from sklearn.metrics import roc_auc_score
from torch import Tensor

from lrp4rag.reader.comparer import Comparer, Network
from lrp4rag.training.labelled_pairs import FALSE_ALARMS, FEWEST, LabelledPair

QUESTIONS, WRONG, RIGHT = 60, 500, 400
"""Questions whose answers are read, and of these answers' sentences as many, at most."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Claims, and sentences of answers to questions, that a network does not learn from."""

    claims: Sequence[LabelledPair]
    answers: Sequence[LabelledPair]

    @classmethod
    def of(cls, claims: Sequence[LabelledPair], answers: Sequence[LabelledPair], seed: int = 5) -> Self:
        """Draw from the answers; those whose faults nobody made have no kinds and are left out."""
        random, made = Random(seed), [one for one in answers if one.set.startswith("everyday")]
        sources = sorted({one.source for one in made})
        chosen = set(random.sample(sources, min(QUESTIONS, len(sources))))
        drawn = list[LabelledPair]()
        for wrong, most in ((True, WRONG), (False, RIGHT)):
            some = [one for one in made if one.wrong == wrong and one.source in chosen]
            drawn += random.sample(some, min(most, len(some)))
        return cls(claims, drawn)


def check(network: Network, tokenizer: Any, held: HeldOut) -> str:
    """Say how well a network tells what is wrong. Of kinds: by the whole claim, by its most suspect word, and
    the part that is found where few right sentences are flagged."""

    def read(batch: Tensor) -> tuple[Tensor, Tensor]:
        classes, words = network(batch.to(network.match.weight.device))
        return classes.cpu(), words.cpu()

    comparer = Comparer([cast("Network", read)], tokenizer, {}, (), "")
    of_claims = comparer([one.pair for one in held.claims])
    of_answers = comparer([one.pair for one in held.answers])
    wrong = np.array([one.wrong for one in held.claims], dtype=bool)
    scores = np.array([one.unsupported for one in of_claims])
    parts = (
        [f"claims {_area(wrong, scores)}, right {np.mean((scores > 0) == wrong):.2f}"] if len(wrong) else []
    )
    wrong = np.array([one.wrong for one in held.answers], dtype=bool)
    scores = np.array([one.unsupported for one in of_answers])
    words = np.array([one.highest() for one in of_answers])
    if wrong.any() and not wrong.all():
        kinds = np.array([f"{one.kind} of {one.set}" for one in held.answers])
        parts.append(f"answers {_area(wrong, scores)}/{_area(wrong, words)}")
        bar = np.quantile(scores[~wrong], 1 - FALSE_ALARMS)
        for kind in sorted(set(kinds[wrong])):
            faults = wrong & (kinds == kind)
            if faults.sum() >= FEWEST:
                some = faults | ~wrong
                areas = f"{_area(faults[some], scores[some])}/{_area(faults[some], words[some])}"
                parts.append(f"{kind} {areas}/{np.mean(scores[faults] > bar):.2f}")
    return "; ".join(parts) or "nothing to measure by"


def _area(wrong: Any, scores: Any) -> str:
    return f"{roc_auc_score(wrong, scores):.3f}" if len(set(wrong)) == 2 else "-"
