"""`FittedDetector`: a fitted model, and the card that says where it comes from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.domain import unlike
from lrp4rag.classifiers.folder import BUNDLED, read, write
from lrp4rag.classifiers.model import Assessment, Model
from lrp4rag.classifiers.operating import precision_at, threshold_at
from lrp4rag.classifiers.prevalence import at_prevalence, check_prevalence, estimated_prevalence
from lrp4rag.classifiers.verdict import Verdict, judge
from lrp4rag.features.record import Record
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.identity import reader_name
from lrp4rag.util.errors import InputError, LRP4RAGWarning, RelevanceError
from lrp4rag.util.types import not_finite

ARRAYS = ("response", "logits", "by_segment", "prompt", "resampled")

Evidence = Relevance | Record
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

    def predict_proba(self, given: Sequence[Evidence]) -> NDArray[np.float64]:
        """The probability that each response is hallucinated, (rows,), 0 where it states nothing; raises as
        `assess` does."""
        return np.array([self.assess(one).probability or 0.0 for one in given], dtype=np.float64)

    def predict(self, given: Evidence, *, reasons: bool = True) -> Verdict:
        """The verdict on one response, with suspect spans and sentences, and with `reasons` what moved it.

        Raises as `assess` does.
        """
        record = as_record(given)
        return self.verdict(record, self.assess(record), reasons=reasons)

    def verdict(self, record: Record, found: Assessment, *, reasons: bool = False) -> Verdict:
        """The same of what `assess` found of a record."""
        verdict = judge(
            record.encoded,
            record.relevance,
            probability=found.probability,
            threshold=self.card.threshold,
            token_threshold=found.token_threshold,
            marks=found.marks,
            claims=found.claims,
            contradictions=found.contradictions,
            unlike=unlike(self.card.domain, record),
        )
        return replace(
            verdict,
            shift=found.shift,
            reasons=self.model.reasons(record, verdict) if reasons else (),
        )

    def assess(self, given: Evidence) -> Assessment:
        """What the model says of one response.

        Raises `InputError` for relevance of another reader, composite or target, or where signals that the
        detector reads are missing, and `RelevanceError` where a number is NaN or Inf.
        """
        record = as_record(given)
        known: dict[str, NDArray[Any]] = {}
        if self.model.plain:
            self.require(record.reader)
        else:
            relevance = record.require_relevance()
            self.require(relevance.reader, relevance.composite, relevance.target)
            require_embeddings(relevance)
            pairs = ((name, getattr(relevance, name)) for name in ARRAYS)
            known = {name: array for name, array in pairs if array is not None}
        for arrays in (known, record.signals, record.states, record.sentences):
            if (name := not_finite(arrays)) is not None:
                raise RelevanceError(f"no verdict: '{name}' holds NaN or Inf")
        found = self.model.assess(record)
        made = [] if found.probability is None else [found.probability]
        made += [] if found.claims is None else found.claims.probabilities.tolist()
        if not all(0 <= one <= 1 for one in made):
            raise RelevanceError("no verdict: a probability of the detector is none")
        if self.prevalence is None:
            return found
        trained, wanted = self._trained(), self.prevalence
        if found.probability is not None:
            found = replace(found, probability=float(at_prevalence(found.probability, trained, wanted)))
        if found.claims is not None:
            shifted = at_prevalence(found.claims.probabilities, trained, wanted)
            found = replace(found, claims=replace(found.claims, probabilities=shifted))
        return found

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

        def shifted(values: ArrayLike) -> Any:
            return at_prevalence(values, trained, wanted)

        points = {
            name: point.model_copy(
                update={
                    "threshold": float(shifted(point.threshold)),
                    "precision": precision_at(wanted, point.recall, point.false_positive_rate),
                }
            )
            for name, point in self.card.operating_points.items()
        }
        card = self.card.model_copy(
            update={
                "threshold": float(shifted(self.card.threshold)),
                "operating_points": points,
                "faithful_quantiles": shifted(self.card.faithful_quantiles).tolist(),
            }
        )
        return FittedDetector(self.model, card, wanted)

    def estimated_prevalence(self, probabilities: ArrayLike) -> float:
        """The part of hallucinated responses among unlabelled ones with these probabilities (rows,), which
        this detector gave; raises `InputError` for too few (Saerens et al. 2002)."""
        return estimated_prevalence(probabilities, self.assumed_prevalence)

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


def as_record(given: Evidence) -> Record:
    return given if isinstance(given, Record) else Record.of(given)


def require_embeddings(relevance: Relevance) -> None:
    if relevance.layer:
        raise InputError(
            f"a detector works on the embeddings' relevance, and this is of layer {relevance.layer}; "
            "attribute with layer=0"
        )


def at_estimated_prevalence(
    detector: FittedDetector, verdicts: Sequence[Verdict]
) -> tuple[list[Verdict], float]:
    """The verdicts of a detector at the prevalence that their own probabilities tell, and that prevalence.

    Raises `InputError` for too few.
    """
    known = [one.probability for one in verdicts if one.probability is not None]
    prevalence = detector.estimated_prevalence(known)
    return verdicts_at_prevalence(detector, verdicts, prevalence), prevalence


def verdicts_at_prevalence(
    detector: FittedDetector, verdicts: Sequence[Verdict], prevalence: float
) -> list[Verdict]:
    """The verdicts of a detector as they are at that prevalence: probabilities and the threshold shift.

    Raises as `FittedDetector.at_prevalence` does.
    """
    assumed, there = detector.assumed_prevalence, detector.at_prevalence(prevalence)

    def shifted(probability: float | None) -> float | None:
        return None if probability is None else float(at_prevalence(probability, assumed, prevalence))

    return [
        one
        if one.threshold is None
        else replace(
            one,
            probability=shifted(one.probability),
            threshold=there.card.threshold,
            sentences=tuple(replace(each, probability=shifted(each.probability)) for each in one.sentences),
        )
        for one in verdicts
    ]
