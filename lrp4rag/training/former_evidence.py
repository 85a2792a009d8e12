"""Whether a new detector is better than a former one, on responses that neither learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lrp4rag.classifiers.card import FormerEvidence
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.example import Example
from lrp4rag.training.folds import labels_of
from lrp4rag.training.metrics import RESAMPLES, compare, outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.seen import seen_examples
from lrp4rag.training.tokens import stored_records
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Former:
    """A detector and what it is called."""

    name: str
    detector: FittedDetector

    def unseen(self, examples: Sequence[Example]) -> list[int]:
        """The numbers of the examples whose sources it did not learn from; raises `InputError` where these
        are not both faithful and hallucinated."""
        seen = {example.id for example in seen_examples(self.detector.card, examples)}
        found = [k for k, example in enumerate(examples) if example.id not in seen]
        if len(set(labels_of([examples[k] for k in found]))) < 2:
            raise InputError(
                f"there is nothing to compare with '{self.name}' on: faithful and hallucinated responses are "
                f"needed whose question and passages it did not learn from, and it learned from those of "
                f"{len(seen)} of {len(examples)}"
            )
        return found


def former_evidence(
    former: Former, rows: Rows, outcome: Outcome, *, resamples: int = RESAMPLES
) -> FormerEvidence:
    """The former detector on rows (R), beside the `outcome` of one repeat of cross-validation on them."""
    unseen = former.unseen(rows.examples)
    part, now = rows.select(unseen), outcome.select(np.array(unseen))
    records = stored_records(part, former.detector.needs)
    probabilities = np.array([[former.detector.assess(record).probability or 0.0 for record in records]])
    before = Outcome(probabilities, probabilities >= former.detector.card.threshold)
    return FormerEvidence(
        former=former.name,
        sha256=former.detector.card.sha256,
        responses=len(part),
        hallucinated=int(part.labels.sum()),
        sources=len(set(part.groups)),
        left_out=len(rows) - len(part),
        before=outcome_metrics(before, part.labels, part.groups, resamples=resamples),
        now=outcome_metrics(now, part.labels, part.groups, resamples=resamples),
        difference=compare(now, before, part.labels, part.groups, resamples=resamples),
    )
