"""`Result`: the verdict and the decision on a labelled example, stored for later comparisons."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.example import LONGEST_EXAMPLE, LONGEST_NAME, Example
from lrp4rag.guard.policy import Action, Assessment, Reason
from lrp4rag.guard.policy.simulate import Row
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.training.metrics import Overlap, characters, sentences
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.types import Count, Probability

Outcome = Literal["judged", "abstained", "failed"]
"""With a verdict; unlike the training data; not readable."""
Name = Annotated[str, Field(max_length=LONGEST_NAME)]
Span = tuple[Count, Count]


class Result(BaseModel):
    """One example: what it is known by, its labels, what the detector said and what the policy does with it.

    `judged` is a hash of everything that was looked at. `spans` are suspect characters of the response and
    `sentences` all of its sentences, with whether they are suspect. `flagged` is None where there is no
    verdict, and `why` then says why.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    id: Name
    judged: Name
    source: Name
    generator: Name | None
    length: Annotated[int, Field(ge=1, le=LONGEST_EXAMPLE)]
    labels: tuple[Span, ...]
    outcome: Outcome
    why: str
    probability: Probability | None
    flagged: bool | None
    spans: tuple[Span, ...]
    sentences: tuple[tuple[Count, Count, bool], ...]
    faithfulness: Probability | None
    action: Action
    reason: Reason

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if (self.outcome == "judged") != (self.flagged is not None):
            raise ValueError("what is judged is flagged or not, and nothing else is")
        if self.flagged is not None and self.probability is None:
            raise ValueError("what is judged has a probability")
        ends = (*self.labels, *self.spans, *((start, end) for start, end, _ in self.sentences))
        if any(not start < end <= self.length for start, end in ends):
            raise ValueError(f"a span lies outside the response, which has {self.length} characters")
        return self

    @classmethod
    def of(cls, example: Example, verdict: Verdict | None, assessment: Assessment, why: str = "") -> Result:
        """Build the result of a labelled example; without a verdict, `why` says the reason."""
        outcome: dict[str, object] = {"outcome": "failed", "why": why, "spans": (), "sentences": ()}
        if verdict is not None:
            facets = ", ".join(feature.facet for feature in verdict.unlike if feature.decides)
            outcome = {
                "outcome": "abstained" if verdict.abstained else "judged",
                "why": facets,
                "spans": tuple((span.start, span.end) for span in verdict.spans),
                "sentences": tuple(
                    (sentence.start, sentence.end, sentence.suspect) for sentence in verdict.sentences
                ),
            }
        return cls.model_validate(
            {
                "id": example.id,
                "judged": judged_hash(example),
                "source": example.source,
                "generator": example.generator,
                "length": len(example.response or ""),
                "labels": tuple((label.start, label.end) for label in example.labels or ()),
                "probability": None if verdict is None else verdict.probability,
                "flagged": None if verdict is None else verdict.hallucinated,
                "faithfulness": assessment.measures.faithfulness,
                "action": assessment.decided.action,
                "reason": assessment.decided.reason,
                **outcome,
            }
        )

    @property
    def hallucinated(self) -> bool:
        """By its labels."""
        return bool(self.labels)

    @property
    def right(self) -> bool | None:
        """True where verdict and labels agree; None without a verdict."""
        return None if self.flagged is None else self.flagged == self.hallucinated

    @property
    def row(self) -> Row:
        """The decision as a row of a simulation."""
        return Row(self.action, self.hallucinated, self.generator)

    @property
    def located(self) -> bool:
        """True where its labels say where: one over the whole response only says that it is hallucinated."""
        return (0, self.length) not in self.labels

    def overlaps(self) -> tuple[Overlap, Overlap]:
        """Count its characters, and its sentences, that are suspect, labelled, and both."""
        suspect = np.array([flag for *_, flag in self.sentences], dtype=bool)
        labelled = tokens_in([(start, end) for start, end, _ in self.sentences], self.labels)
        return characters(self.spans, self.labels, self.length), sentences(suspect, labelled)


def judged_hash(example: Example) -> str:
    """Hash everything that verdicts and decisions rest on, which id and labels are not."""
    sources = [asdict(part) for part in example.sources]
    places = [asdict(part) for part in example.spans]
    looked_at = [example.question, sources, example.prompt, places, example.response, example.generator]
    return json_hash(looked_at)[:32]
