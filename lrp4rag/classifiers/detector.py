"""`FittedDetector`: a fitted model, and the card that says where it comes from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.domain import unlike
from lrp4rag.classifiers.folder import BUNDLED, read, write
from lrp4rag.classifiers.model import Model
from lrp4rag.classifiers.operating import precision_at, threshold_at
from lrp4rag.classifiers.prevalence import at_prevalence, check_prevalence, estimated_prevalence
from lrp4rag.classifiers.verdict import Assessment, Evidence, Judgement, Verdict, shifted
from lrp4rag.features.record import Record
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.identity import reader_name
from lrp4rag.util.errors import InputError, LRP4RAGWarning, RelevanceError
from lrp4rag.util.types import not_finite

ARRAYS = ("response", "logits", "by_segment", "prompt", "resampled")

Input = Relevance | Record
"""What a detector reads: relevance, or a record of it with signals."""


@dataclass(frozen=True)
class FittedDetector:
    """A fitted detector. Read one with `FittedDetector.load`, or train one with `lrp4rag.training`."""

    model: Model
    card: Card
    prevalence: float | None = None
    """Of hallucinated responses, where probabilities are meant for another one than the card's."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that it reads."""
        return self.model.needs

    @property
    def assumed_prevalence(self) -> float:
        """The part of hallucinated responses where its probabilities hold; raises `InputError` where its card
        has none."""
        return self.prevalence or self._trained()

    def predict_proba(self, given: Sequence[Input]) -> NDArray[np.float64]:
        """The probability that each response is hallucinated, (rows,), 0 where it states nothing; raises as
        `assess` does."""
        return np.array([self.assess(one).probability or 0.0 for one in given], dtype=np.float64)

    def predict(self, given: Input) -> Verdict:
        """The verdict on one response, with suspect spans and sentences, and what moved it.

        Raises as `assess` does.
        """
        record = as_record(given)
        judgement = self.judgement(record, self.assess(record))
        return judgement.verdict(Evidence(reasons=self.model.reasons(record, judgement)), Verdict)

    def judgement(self, record: Record, assessment: Assessment) -> Judgement:
        """Say of each sentence of a record what the model's assessment of it makes of it."""
        return Judgement.of(
            record.encoded,
            assessment,
            self.card.threshold,
            relevance=record.relevance,
            unlike=unlike(self.card.domain, record),
        )

    def assess(self, given: Input) -> Assessment:
        """What the model says of one response.

        Raises `InputError` for relevance of another reader, composite or target, or where signals that the
        detector reads are missing, and `RelevanceError` where a number is NaN or Inf.
        """
        record = as_record(given)
        known: dict[str, NDArray[Any]] = {}
        relevance = record.relevance
        if relevance is None or self.model.plain:
            self.require(record.reader)
        else:
            self.require(relevance.reader, relevance.composite, relevance.target)
            require_embeddings(relevance)
            pairs = ((name, getattr(relevance, name)) for name in ARRAYS)
            known = {name: array for name, array in pairs if array is not None}
        for arrays in (known, record.signals, record.states):
            if (name := not_finite(arrays)) is not None:
                raise RelevanceError(f"no verdict: '{name}' holds NaN or Inf")
        assessment = self.model.assess(record)
        probabilities = [] if assessment.probability is None else [assessment.probability]
        probabilities += [] if assessment.claims is None else assessment.claims.probabilities.tolist()
        if not all(0 <= one <= 1 for one in probabilities):
            raise RelevanceError("no verdict: the detector returned an invalid probability")
        if self.prevalence is None:
            return assessment
        return shifted(
            assessment, partial(at_prevalence, trained=self._trained(), prevalence=self.prevalence)
        )

    def at(self, point: str | float) -> FittedDetector:
        """The same at an operating point of its card, or at a target false-positive rate (0 to 1).

        Raises `InputError` for a point that the card does not have.
        """
        card, known = self.card, ", ".join(self.card.operating_points)
        if not card.operating_points or not card.faithful_quantiles:
            raise InputError("this detector has no operating points; train one that reads tokens")
        if isinstance(point, float):
            threshold = threshold_at(point, card.faithful_quantiles)
        elif point in card.operating_points:
            threshold = card.operating_points[point].threshold
        else:
            raise InputError(f"no operating point '{point}'; choose from {known}")
        return replace(self, card=card.model_copy(update={"threshold": threshold}))

    def at_prevalence(self, prevalence: float) -> FittedDetector:
        """The same where that part of responses is hallucinated: probabilities and thresholds shift, so
        that the same responses are flagged, and the operating points state their precision there.

        Raises `InputError` for what is no prevalence, and for a detector whose card has none.
        """
        wanted, trained = check_prevalence(prevalence), self.assumed_prevalence

        shift = partial(at_prevalence, trained=trained, prevalence=wanted)
        points = {
            name: point.model_copy(
                update={
                    "threshold": float(shift(point.threshold)),
                    "precision": precision_at(wanted, point.recall, point.false_positive_rate),
                }
            )
            for name, point in self.card.operating_points.items()
        }
        card = self.card.model_copy(
            update={
                "threshold": float(shift(self.card.threshold)),
                "operating_points": points,
                "faithful_quantiles": shift(self.card.faithful_quantiles).tolist(),
            }
        )
        return FittedDetector(self.model, card, wanted)

    def at_estimated_prevalence(
        self, judgements: Sequence[Judgement]
    ) -> tuple[FittedDetector, list[Judgement]]:
        """The same at the prevalence that is estimated from unlabelled responses, and their judgements there
        (Saerens et al. 2002). Raises `InputError` for too few."""
        probabilities = [one.assessment.probability for one in judgements]
        known = [one for one in probabilities if one is not None]
        prevalence = estimated_prevalence(known, self.assumed_prevalence)
        there = self.at_prevalence(prevalence)
        shift = partial(at_prevalence, trained=self.assumed_prevalence, prevalence=prevalence)
        return there, [one.at(shift, there.card.threshold) for one in judgements]

    def _trained(self) -> float:
        if not self.card.prevalence:
            raise InputError("this detector's card has no prevalence; train one that reads tokens")
        return self.card.prevalence

    def require(
        self, reader: Mapping[str, Any], composite: str | None = None, target: str | None = None
    ) -> None:
        """Refuse a reader, or relevance, that this detector was not trained on; another dtype only warns."""
        known = self.card.reader
        pairs = {
            name: (trained, given)
            for name, trained, given in (
                ("composite", self.card.composite, composite),
                ("target", self.card.target, target),
            )
            if given is not None
        }
        if known["digest"] != reader["digest"]:
            pairs = {"reader": (reader_name(known), reader_name(dict(reader))), **pairs}
        framing = (
            ""
            if known["chat_template"] == reader["chat_template"]
            else f" (chat_template={known['chat_template']})"
        )
        for what, (trained, given) in pairs.items():
            if trained != given:
                raise InputError(
                    f"the detector was trained with {what} {trained}, and this is {what} {given}; use that "
                    f"{what}{framing}, train a detector for this one, or analyse with detector=None, for "
                    "evidence without a verdict"
                )
        if known["dtype"] != reader["dtype"] and self.model.dtype_matters:
            message = f"the detector was trained in {known['dtype']}, this is {reader['dtype']}"
            warnings.warn(message, LRP4RAGWarning, stacklevel=2)

    def save(self, folder: str | Path) -> Path:
        """Write a folder with the card (JSON) and what was learned (safetensors), whole or not at all."""
        return write(folder, self.card, self.model.arrays())

    @classmethod
    def load(cls, folder: str | Path = BUNDLED) -> FittedDetector:
        """Read a detector folder, or a bundled one by name. Nothing is unpickled.

        Raises `InputError` for a missing or corrupt file and for another format or feature version.
        """
        card, model = read(folder)
        return cls(model, card)


def as_record(given: Input) -> Record:
    return given if isinstance(given, Record) else Record.of(given)


def require_embeddings(relevance: Relevance) -> None:
    if relevance.layer:
        raise InputError(
            f"a detector works on the embeddings' relevance, and this is of layer {relevance.layer}; "
            "attribute with layer=0"
        )
