"""Measures of a detector and a policy on labelled examples: of verdicts, sentences, spans and decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Metrics
from lrp4rag.example import Example
from lrp4rag.guard.evaluation.result import Result
from lrp4rag.guard.policy.simulate import Share
from lrp4rag.training.metrics import RESAMPLES, Draws, Scores, Values, intervals_of, weighted_token_metrics

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measure:
    """Its words, and which values of it are better; "neither" where that depends on the answers."""

    words: str
    better: Literal["higher", "lower", "neither"] = "higher"

    @property
    def gated(self) -> bool:
        return self.better != "neither"


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
"""By their names in JSON. Verdicts are measured on the examples that have one."""
_OF_VERDICTS = ("auroc", "balanced_accuracy", "accuracy", "precision", "recall", "f1")


def measured(results: Sequence[Result], among: Flags | None = None) -> Callable[[Scores], Values]:
    """Return a function of weights (W, R) of these R results that gives each measure, (W,); NaN where it is
    not defined. Measures of verdicts count the results `among` that have one (default: all)."""
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
    counts = {
        name: np.array(
            [[overlap[k].both, overlap[k].marked + overlap[k].annotated] for overlap in overlaps]
        ).T
        * located
        for k, name in enumerate(("span_f1", "sentence_f1"))
    }
    quotients = {
        "sentence_f1": (2 * counts["sentence_f1"][0], counts["sentence_f1"][1]),
        "span_f1": (2 * counts["span_f1"][0], counts["span_f1"][1]),
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
                name: (weights @ above) / (weights @ below) for name, (above, below) in quotients.items()
            }
        return {name: values[name] for name in MEASURES}

    return measure


def groups_of(results: Sequence[Result]) -> NDArray[np.str_]:
    """(R,), the source of each."""
    return np.array([result.source for result in results])


def measures_of(results: Sequence[Result], *, resamples: int = RESAMPLES) -> Metrics:
    """Return each measure with its 95 % bootstrap interval over sources."""
    return intervals_of(Draws.of(groups_of(results), resamples).values(measured(results)))


def flagged_by_kind(examples: Sequence[Example], results: Sequence[Result]) -> dict[str, Share]:
    """Count the flagged of the examples with a verdict that have a label of a kind; empty where labels
    have no kinds."""
    kinds: dict[str, list[bool]] = {}
    for example, result in zip(examples, results, strict=True):
        if result.flagged is not None:
            for kind in dict.fromkeys(label.kind for label in example.labels or () if label.kind):
                kinds.setdefault(kind, []).append(result.flagged)
    return {kind: Share(sum(flags), len(flags)) for kind, flags in sorted(kinds.items())}
