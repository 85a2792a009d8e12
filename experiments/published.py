"""Figures that papers report, from published.yaml, to print beside ours. Table 2's values are fractions."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import yaml

PUBLISHED: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
SOURCE, RESPONSES = PUBLISHED["lrp4rag"]["source"], PUBLISHED["lrp4rag"]["responses"]
LLAMA_7B, LLAMA_13B = "llama-2-7b-chat", "llama-2-13b-chat"
BEST_THRESHOLDS = {
    ("response", name): tuple(pair) for name, pair in PUBLISHED["lrp4rag"]["best_thresholds"].items()
}
"""By vector and generator: the best threshold and its F1."""

Kind = Literal["lrp4rag", "baseline"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of Table 2 for one generator."""

    classifier: str
    kind: Kind
    generator: str
    accuracy: float
    precision: float
    recall: float
    f1: float

    @property
    def prevalence(self) -> float:
        """The share of hallucinated responses that accuracy, precision and recall imply."""
        alarms = self.recall * (1 - self.precision) / self.precision
        return (1 - self.accuracy) / (1 - self.recall + alarms)

    @property
    def metrics(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in ("accuracy", "precision", "recall", "f1")}


TABLE_2 = tuple(
    Row(classifier, kind, generator, *(round(value / 100, 4) for value in values))
    for kind, classifiers in PUBLISHED["lrp4rag"]["table_2"].items()
    for classifier, generators in classifiers.items()
    for generator, values in generators.items()
)


def best_published(kind: Kind, generator: str, starting: str = "", other_than: str = "") -> Row:
    """The row of Table 2 with the highest accuracy, of the classifiers whose names begin so, but for one."""
    rows = [row for row in TABLE_2 if (row.kind, row.generator) == (kind, generator)]
    named = [row for row in rows if row.classifier.startswith(starting) and row.classifier != other_than]
    return max(named, key=attrgetter("accuracy"))


def published(classifier: str, generator: str) -> Row | None:
    """The row of this classifier on this generator, if there is one."""
    return next((row for row in TABLE_2 if (row.classifier, row.generator) == (classifier, generator)), None)


def other_systems() -> list[list[str]]:
    """System, figure and source: Table 2's baselines, then the systems' own papers."""
    figure = "accuracy {0.accuracy:.4f}, F1 {0.f1:.4f} ({0.generator}, RAGTruth QA, folds not grouped)"
    rows = [row for row in TABLE_2 if row.kind == "baseline"]
    systems: list[list[str]] = PUBLISHED["systems"]
    return [[row.classifier, figure.format(row), f"{SOURCE}, Table 2"] for row in rows] + systems
