"""RAGulator's classifiers of engineered features: a response is as suspect as its most suspect sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import CALIBRATION_FOLDS, chosen, fit, margin_of
from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.baseline import SPANS, Facts, Outside, Score
from lrp4rag.experiments.systems.calibrated import Calibration
from lrp4rag.experiments.systems.contest import NOTHING
from lrp4rag.experiments.systems.encoders.weights import MINILM_PACKAGE
from lrp4rag.experiments.systems.ragulator.features import Features, features_of
from lrp4rag.experiments.systems.ragulator.labelling import SOURCES, Source
from lrp4rag.experiments.systems.ragulator.trees import Classifier, contenders, outside_scores, split
from lrp4rag.experiments.systems.suspicion import Suspicion, marked, threshold_of

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.encoders.entailment import Entailment
    from lrp4rag.experiments.systems.kit import Kit
    from lrp4rag.training.rows import Rows

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ragulator:
    """`classifiers` contend on sentences whose labels come from `labels`; calibration and threshold come from
    labelled responses. All learn from rows that are fresh to the cross-encoder."""

    facts: Facts
    classifiers: tuple[Classifier, ...]
    labels: Source = "simulated"

    def fit(self, rows: Rows, kit: Kit) -> Fitted:
        """Raises `InputError` where there are too few sources, or a library is missing. Where a model was
        asked for labels and too few of its replies can be used, nothing is learned or gets a score."""
        trained = kit.entailment(rows)
        fresh = np.flatnonzero(trained.fresh)
        own = rows.select(fresh)
        features = features_of(own.examples, trained.model, kit)
        lessons = SOURCES[self.labels](own.examples, features, trained.model, kit)
        candidates = contenders(self.classifiers, lessons.inputs, kit.seed)
        every = np.arange(len(lessons.labels))
        try:
            best, _ = chosen(candidates, lessons.labels, lessons.groups, every, kit.seed)
        except InputError as error:
            sources = len(set(own.groups))
            if self.labels != "prompted" or sources < CALIBRATION_FOLDS:
                pairs = ", and a simulated pair takes two" if self.labels == "simulated" else ""
                raise InputError(
                    f"{sources} sources are fresh to the cross-encoder{pairs}: {error}; extract more sources"
                ) from error
            unknown = np.full(len(own), np.nan)
            calibration = Calibration.of(unknown, own.labels, own.generators, fresh)
            return Fitted(trained.model, None, NOTHING, calibration, np.inf)
        outside = outside_scores(best.estimator, lessons, [one.numbers for one in features], kit.seed)
        suspicions = [Suspicion(one.spans, scores) for one, scores in zip(features, outside, strict=True)]
        return Fitted(
            trained.model,
            fit(best.estimator, lessons.inputs, lessons.labels, lessons.groups),
            best.label + (f", {len(every)} sentences labelled" if self.labels == "prompted" else ""),
            Calibration.of(response_scores(suspicions), own.labels, own.generators, fresh),
            threshold_of(suspicions, own.examples),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The classifier that was chosen (None: there was nothing to learn from), and the cross-encoder that its
    last feature comes from."""

    model: Entailment
    classifier: Any
    chosen: str
    calibration: Calibration
    threshold: float

    @property
    def outside(self) -> Outside:
        return self.calibration.outside

    def score(self, rows: Rows, kit: Kit) -> list[Score]:
        if self.classifier is None:
            return self.calibration.verdicts(np.full(len(rows), np.nan), rows.generators)
        suspicions = self.suspicions(features_of(rows.examples, self.model, kit))
        suspects = [marked(one, self.threshold) for one in suspicions]
        return self.calibration.verdicts(response_scores(suspicions), rows.generators, suspects)

    def suspicions(self, features: Sequence[Features]) -> list[Suspicion]:
        inputs = [one.numbers for one in features]
        scores = split(margin_of(self.classifier, np.concatenate(inputs))[0], inputs)
        return [Suspicion(one.spans, own) for one, own in zip(features, scores, strict=True)]


def response_scores(suspicions: Sequence[Suspicion]) -> Scores:
    """The highest score of a sentence of each response, (R,)."""
    return np.array([one.scores.max() for one in suspicions])


def _facts(which: str, training: str, asks: bool = False) -> Facts:
    return Facts(
        f"RAGulator ({which})",
        "arXiv 2411.03920",
        "text",
        training,
        "MiniLM (22M), cross-encoder trained in the folds" + ("; the judge's" if asks else ""),
        slow=asks,
        choices=("entailment", "judge") if asks else ("entailment",),
        modules=("lightgbm", "snowballstemmer", MINILM_PACKAGE),
    )


SIMULATED = "simulated pairs; cross-encoder: annotated spans"
RAGULATOR_FOREST = Ragulator(_facts("random forest", SIMULATED), ("random forest",))
RAGULATOR_LIGHTGBM = Ragulator(_facts("LightGBM", SIMULATED), ("LightGBM",))
RAGULATOR_ANNOTATED = Ragulator(_facts("annotated", SPANS), ("random forest", "LightGBM"), "annotated")
RAGULATOR_PROMPTED = Ragulator(
    _facts("prompted", "a model's labels; cross-encoder: annotated spans", asks=True),
    ("random forest", "LightGBM"),
    "prompted",
)
