"""The figures that LRP4RAG reports (arXiv 2408.15533), to print beside ours.

RAGTruth question answering, 989 responses of each generator (both splits), five-fold cross-validation. All
values are fractions. The paper's folds are not grouped by source and its thresholds and lengths were chosen
on the rows they are reported on.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

SOURCE = "LRP4RAG, arXiv 2408.15533"
RESPONSES = 989
LLAMA_7B, LLAMA_13B = "llama-2-7b-chat", "llama-2-13b-chat"

Kind = Literal["lrp4rag", "baseline"]


@dataclass(frozen=True, slots=True)
class Published:
    """A row of Table 2 for one generator. `classifier` is our name of it where we have one."""

    classifier: str
    kind: Kind
    generator: str
    accuracy: float
    precision: float
    recall: float
    f1: float
    source: str = f"{SOURCE}, Table 2"

    @property
    def prevalence(self) -> float:
        """The share of hallucinated rows that accuracy, precision and recall imply."""
        alarms = self.recall * (1 - self.precision) / self.precision
        return (1 - self.accuracy) / (1 - self.recall + alarms)

    @property
    def metrics(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in ("accuracy", "precision", "recall", "f1")}


Percent = tuple[float, float, float, float]

# As printed: accuracy, precision, recall, F1 of the 7b and of the 13b generator.
_TABLE_2: dict[tuple[str, Kind], tuple[Percent, Percent]] = {
    ("forest", "lrp4rag"): ((60.36, 60.04, 69.19, 64.21), (64.41, 61.92, 30.35, 40.52)),
    ("mlp", "lrp4rag"): ((63.59, 64.24, 66.01, 65.10), (65.42, 58.90, 46.40, 51.77)),
    ("svm", "lrp4rag"): ((69.16, 69.35, 72.13, 70.64), (63.60, 54.56, 56.65, 55.49)),
    ("lstm", "lrp4rag"): ((58.75, 58.64, 72.83, 63.76), (69.87, 68.26, 47.19, 55.56)),
    ("prompt llama-2-7b", "baseline"): ((52.38, 52.64, 76.08, 62.23), (49.65, 41.02, 56.64, 47.58)),
    ("prompt gpt-3.5", "baseline"): ((54.39, 56.91, 47.65, 51.87), (57.84, 47.58, 44.36, 45.91)),
    ("SelfCheckGPT llama-2-7b", "baseline"): ((53.79, 53.32, 83.53, 65.09), (50.76, 43.66, 75.94, 55.44)),
    ("SelfCheckGPT gpt-3.5", "baseline"): ((54.29, 53.27, 92.54, 67.62), (47.93, 43.01, 89.47, 58.10)),
    ("fine-tuned llama-2-7b", "baseline"): ((61.57, 62.50, 65.75, 63.58), (64.90, 63.70, 27.92, 37.62)),
    ("fine-tuned qwen-2-7b", "baseline"): ((60.46, 61.76, 64.34, 61.90), (63.80, 63.55, 25.93, 35.89)),
}


def _fractions(percents: Percent) -> Percent:
    accuracy, precision, recall, f1 = (round(value / 100, 4) for value in percents)
    return accuracy, precision, recall, f1


TABLE_2: tuple[Published, ...] = tuple(
    Published(classifier, kind, generator, *_fractions(percents))
    for (classifier, kind), pair in _TABLE_2.items()
    for generator, percents in zip((LLAMA_7B, LLAMA_13B), pair, strict=True)
)

BEST_THRESHOLDS = {("response", LLAMA_7B): (0.54, 0.697), ("response", LLAMA_13B): (0.53, 0.587)}
"""Tables 1 and 5: the best threshold on the scaled mean of a vector and its F1, chosen by that F1 on the rows
it is reported on."""


def best_published(kind: Kind, generator: str, starting: str = "", other_than: str = "") -> Published:
    """The row of Table 2 with the highest accuracy, of the classifiers whose names begin so, but for one."""
    rows = [row for row in TABLE_2 if (row.kind, row.generator) == (kind, generator)]
    named = [one for one in rows if one.classifier.startswith(starting) and one.classifier != other_than]
    return max(named, key=attrgetter("accuracy"))


def published(classifier: str, generator: str) -> Published | None:
    """What the paper reports of this classifier on this generator; None where it has nothing."""
    return next((row for row in TABLE_2 if (row.classifier, row.generator) == (classifier, generator)), None)
