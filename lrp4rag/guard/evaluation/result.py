"""`Result`: the verdict and the decision on a labelled example, stored for later comparisons; and measures of
the verdicts, sentences, spans and decisions of many results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.example import LONGEST_EXAMPLE, LONGEST_NAME, Example
from lrp4rag.guard.policy import Action, Assessment, Reason
from lrp4rag.guard.policy.simulate import Row, Share
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.training.metrics import (
    RESAMPLES,
    Draws,
    Overlap,
    Scores,
    Values,
    characters,
    intervals_of,
    sentences,
    weighted_token_metrics,
)
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.types import Count, Probability

Outcome = Literal["judged", "abstained", "failed"]
"""With a verdict; without, since it is unlike the training data; without, since it could not be read."""
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
                "labels": _labels(example),
                "probability": None if verdict is None else verdict.probability,
                "flagged": None if verdict is None else verdict.hallucinated,
                "faithfulness": assessment.measures.faithfulness,
                "action": assessment.decided.action,
                "reason": assessment.decided.reason,
                **outcome,
            }
        )

    def is_of(self, example: Example) -> bool:
        """Say whether the example has the same input and labels."""
        return self.judged == judged_hash(example) and self.labels == _labels(example)

    @property
    def hallucinated(self) -> bool:
        """Say whether it is hallucinated, by its labels."""
        return bool(self.labels)

    @property
    def right(self) -> bool | None:
        """Say whether verdict and labels agree; None without a verdict."""
        return None if self.flagged is None else self.flagged == self.hallucinated

    @property
    def row(self) -> Row:
        """Return the decision as a row of a simulation."""
        return Row(self.action, self.hallucinated, self.generator)

    @property
    def located(self) -> bool:
        """Say whether its labels tell where: a label over the whole response only tells that it is
        hallucinated."""
        return (0, self.length) not in self.labels

    def overlaps(self) -> tuple[Overlap, Overlap]:
        """Count its characters, and its sentences, that are suspect, that are labelled, and that are both."""
        suspect = np.array([flag for *_, flag in self.sentences], dtype=bool)
        labelled = tokens_in([(start, end) for start, end, _ in self.sentences], self.labels)
        return characters(self.spans, self.labels, self.length), sentences(suspect, labelled)


class Judged(BaseModel):
    """The result of an example, with what else is kept of its verdict: the features for which it abstains,
    each with its words, and the threshold and the prevalence that decided; none of what could not be
    judged."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    result: Result
    unlike: tuple[tuple[str, str], ...] = ()
    threshold: Probability | None = None
    prevalence: Probability | None = None


def _labels(example: Example) -> tuple[Span, ...]:
    return tuple((label.start, label.end) for label in example.labels or ())


def judged_hash(example: Example) -> str:
    """Hash everything that verdicts and decisions rest on, so not id and labels."""
    sources = [asdict(source) for source in example.sources]
    spans = [asdict(span) for span in example.spans]
    inputs = [example.question, sources, example.prompt, spans, example.response, example.generator]
    return json_hash(inputs)[:32]


Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure's words, and which of its values are better: "neither" where that depends on the answers, so
    that nothing fails by it."""

    words: str
    better: Literal["higher", "lower", "neither"] = "higher"


MEASURES = {
    "auroc": Measure("AUROC of verdicts"),
    "balanced_accuracy": Measure("balanced accuracy"),
    "accuracy": Measure("accuracy"),
    "precision": Measure("precision"),
    "recall": Measure("recall"),
    "f1": Measure("F1"),
    "sentence_f1": Measure("F1 of sentences"),
    "span_f1": Measure("F1 of spans"),
    "with_verdict": Measure("with a verdict"),
    "hallucinated_served": Measure("hallucinated among served", "lower"),
    "faithful_withheld": Measure("faithful withheld", "lower"),
    "served": Measure("served", "neither"),
    "faithfulness": Measure("mean faithfulness", "neither"),
}
"""The measures, by their names in JSON. Verdicts are measured on the examples that have one."""
_OF_VERDICTS = ("auroc", "balanced_accuracy", "accuracy", "precision", "recall", "f1")


def measured(results: Sequence[Result], among: Flags | None = None) -> Callable[[Scores], Values]:
    """Return a function of weights (W, R) of these R results that returns each measure, (W,); NaN where it is
    undefined. Measures of verdicts count the results `among` them that have a verdict (default: all)."""
    judged = np.array([result.flagged is not None for result in results])
    if among is not None:
        judged &= among
    labels = np.array([result.hallucinated for result in results])
    flagged = np.array([bool(result.flagged) for result in results])
    scores = np.array([result.probability or 0.0 for result in results])
    served = np.array([result.row.served for result in results])
    faithful = np.array([result.faithfulness is not None for result in results]) & judged
    overlaps = [result.overlaps() for result in results]
    located = judged & np.array([result.located for result in results])
    span_f1, sentence_f1 = (
        np.array([[2 * overlap.both, overlap.marked + overlap.annotated] for overlap in column]).T * located
        for column in zip(*overlaps, strict=True)
    )
    quotients = {
        "sentence_f1": tuple(sentence_f1),
        "span_f1": tuple(span_f1),
        "with_verdict": (np.array([result.flagged is not None for result in results]), np.ones(len(results))),
        "hallucinated_served": (labels & served, served),
        "faithful_withheld": (~labels & ~served, ~labels),
        "served": (served, np.ones(len(results))),
        "faithfulness": (np.array([result.faithfulness or 0.0 for result in results]) * faithful, faithful),
    }

    def measure(weights: Scores) -> Values:
        values = dict.fromkeys(_OF_VERDICTS, np.full(len(weights), np.nan))
        if judged.any():
            values |= weighted_token_metrics(
                labels[judged], scores[judged], flagged[judged], weights[:, judged]
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            values |= {
                name: (weights @ dividend) / (weights @ divisor)
                for name, (dividend, divisor) in quotients.items()
            }
        return {name: values[name] for name in MEASURES}

    return measure


def groups_of(results: Sequence[Result]) -> NDArray[np.str_]:
    """Return the source of each result, (R,)."""
    return np.array([result.source for result in results])


def measures_of(results: Sequence[Result], *, resamples: int = RESAMPLES) -> Metrics:
    """Return each measure with its 95 % bootstrap interval over sources."""
    return intervals_of(Draws.of(groups_of(results), resamples).values(measured(results)))


def flagged_by_kind(examples: Sequence[Example], results: Sequence[Result]) -> dict[str, Share]:
    """Count by the kind of a label the examples with a verdict, and the flagged among them; empty where
    labels have no kinds."""
    kinds: dict[str, list[bool]] = {}
    for example, result in zip(examples, results, strict=True):
        if result.flagged is not None:
            for kind in dict.fromkeys(label.kind for label in example.labels or () if label.kind):
                kinds.setdefault(kind, []).append(result.flagged)
    return {kind: Share(sum(flags), len(flags)) for kind, flags in sorted(kinds.items())}
