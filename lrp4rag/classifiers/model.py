"""`Model`: a fitted detector without its reader: a card, what was learned, and how it scores a response."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import AlarmInput, Card
from lrp4rag.classifiers.domain import unlike
from lrp4rag.classifiers.folder import BUNDLED, TEXT, load_card, read_detector, write_detector
from lrp4rag.classifiers.operating import precision_at, threshold_at
from lrp4rag.classifiers.prevalence import at_prevalence, check_prevalence, estimated_prevalence
from lrp4rag.classifiers.verdict import Assessment, Evidence, Judgement, Reason, Verdict, shifted
from lrp4rag.features.parts import RELEVANCE
from lrp4rag.features.record import Record
from lrp4rag.features.replay import RelevanceReplay, Replay
from lrp4rag.lrp.flow import Flow
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.comparer import EntailmentModel, bundled_comparer
from lrp4rag.reader.identity import reader_name
from lrp4rag.reader.published import Calibration, PublishedComparer
from lrp4rag.reader.reader import Reader, reader_weights
from lrp4rag.util.errors import InputError, LRP4RAGWarning, RelevanceError, first_line
from lrp4rag.util.types import not_finite

RELEVANCE_ARRAYS = ("response", "logits", "by_segment", "prompt", "resampled")

Arrays = Mapping[str, NDArray[Any]]
Input = Relevance | Record
"""What a model judges: relevance, or a record of it with signals."""


@dataclass(frozen=True, eq=False)
class Model(ABC):
    """A fitted model. Read one with `Model.load`, or train one with `lrp4rag.training`.

    A new kind is a subclass of this, which says how to `score` a record; and a subclass of `card.ModelInput`
    of the same `kind`, which says what the card tells of it.
    """

    card: Card
    _: KW_ONLY
    prevalence: float | None = None
    """The proportion of hallucinated responses that probabilities are meant for, if not the card's."""
    replacement: PublishedComparer | None = None
    """What reads sentences in the place of the comparer that it was trained with."""

    kinds: ClassVar[dict[str, type[Model]]] = {}
    """The subclasses, by their `kind`."""
    kind: ClassVar[str]
    plain: ClassVar[bool] = False
    """Whether it reads what plain passes tell, and no relevance: outside of relevance mode."""
    texts: ClassVar[bool] = False
    """Whether it compares texts alone, beside any reader or none."""
    dtype_matters: ClassVar[bool] = False
    """Whether a reader in another dtype than in training deserves a warning."""

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            Model.kinds[cls.kind] = cls

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that it reads (`features.parts`)."""
        return (RELEVANCE,)

    @property
    def comparer(self) -> str:
        """The digest of the comparer whose numbers it reads, "" for none."""
        return self.card.input.comparer if isinstance(self.card.input, AlarmInput) else ""

    @property
    def framing(self) -> bool | None:
        """The `chat_template` of its reader, as `load_reader` takes it: None for that of any reader, if it
        has one."""
        return None if self.texts or self.card.reader["chat_template"] else False

    def dtype(self, chosen: str) -> str:
        """Return the precision of its reader where one is `chosen`: instead of "auto" the one that it learned
        from, where it reads relevance, whose scale depends on it."""
        return str(self.card.reader["dtype"]) if chosen == "auto" and self.dtype_matters else chosen

    @abstractmethod
    def score(self, record: Record) -> Assessment:
        """Score a response at the card's prevalence; raises `InputError` where the record lacks what is
        read."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return everything that was learned and is not in the card; `of` reads it back."""

    @classmethod
    @abstractmethod
    def of(cls, card: Card, arrays: Arrays) -> Self:
        """Build a model; raises `InputError`, `KeyError`, `RuntimeError`, `TypeError` or `ValueError` for
        arrays of another model."""

    def reasons(self, record: Record, judgement: Judgement) -> tuple[Reason, ...]:
        """Return the features that moved the judgement most, strongest first."""
        return ()

    def replay(self, reader: Reader, flow: Flow) -> Replay:
        """Return the replay that computes the relevance it scores, if it reads relevance."""
        return RelevanceReplay(reader, flow, self.needs)

    @property
    def assumed_prevalence(self) -> float:
        """The proportion of hallucinated responses where its probabilities hold; raises `InputError` where
        the card has none."""
        return self.prevalence or self._trained_prevalence()

    def predict_proba(self, inputs: Sequence[Input]) -> NDArray[np.float64]:
        """Return the probability that each response is hallucinated, (rows,), 0 where it states nothing;
        raises as `assess` does."""
        return np.array([self.assess(response).probability or 0.0 for response in inputs], dtype=np.float64)

    def predict(self, response: Input) -> Verdict:
        """Return the verdict on one response, with suspect spans and sentences, and what moved it.

        Raises as `assess` does.
        """
        record = self.record_of(response)
        judgement = self.judgement(record, self.assess(record))
        return judgement.verdict(Evidence(reasons=self.reasons(record, judgement)), Verdict)

    def judgement(self, record: Record, assessment: Assessment) -> Judgement:
        """Say of each sentence of a record what the model's assessment of it makes of it."""
        return Judgement.of(
            record.encoded,
            assessment,
            self.card.threshold,
            relevance=record.relevance,
            unlike=unlike(self.card.domain, record),
        )

    def assess(self, response: Input) -> Assessment:
        """Score one response, at the model's prevalence.

        Raises `InputError` for relevance of another reader, composite or target, or where signals that the
        model reads are missing, and `RelevanceError` where a number is NaN or Inf.
        """
        record = self.record_of(response)
        arrays: dict[str, NDArray[Any]] = {}
        relevance = record.relevance
        if relevance is None or self.plain:
            self.require(record.reader)
        else:
            self.require(relevance.reader, relevance.composite, relevance.target)
            require_embeddings(relevance)
            pairs = ((name, getattr(relevance, name)) for name in RELEVANCE_ARRAYS)
            arrays = {name: array for name, array in pairs if array is not None}
        for group in (arrays, record.signals, record.states):
            if (name := not_finite(group)) is not None:
                raise RelevanceError(f"no verdict: '{name}' holds NaN or Inf")
        assessment = self.score(record)
        probabilities = [] if assessment.probability is None else [assessment.probability]
        probabilities += [] if assessment.claims is None else assessment.claims.probabilities.tolist()
        if not all(0 <= probability <= 1 for probability in probabilities):
            raise RelevanceError("no verdict: the detector returned an invalid probability")
        if self.prevalence is None:
            return assessment
        shift = partial(at_prevalence, trained=self._trained_prevalence(), prevalence=self.prevalence)
        return shifted(assessment, shift)

    def at(self, point: str | float) -> Self:
        """Return the model at an operating point of its card, or at a target false-positive rate (0 to 1).

        Raises `InputError` for a point that the card does not have.
        """
        card, names = self.card, ", ".join(self.card.operating_points)
        if not card.operating_points or not card.faithful_quantiles:
            raise InputError("this detector has no operating points; train one that reads tokens")
        if isinstance(point, float):
            threshold = threshold_at(point, card.faithful_quantiles)
        elif point in card.operating_points:
            threshold = card.operating_points[point].threshold
        else:
            raise InputError(f"no operating point '{point}'; choose from {names}")
        return replace(self, card=card.model_copy(update={"threshold": threshold}))

    def at_prevalence(self, prevalence: float) -> Self:
        """Return the model where that proportion of responses is hallucinated: probabilities and thresholds
        shift, so that the same responses are flagged, and the operating points state their precision there.

        Raises `InputError` for an invalid prevalence, and for a model whose card has none.
        """
        prevalence, trained = check_prevalence(prevalence), self.assumed_prevalence

        shift = partial(at_prevalence, trained=trained, prevalence=prevalence)
        points = {
            name: point.model_copy(
                update={
                    "threshold": float(shift(point.threshold)),
                    "precision": precision_at(prevalence, point.recall, point.false_positive_rate),
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
        return replace(self, card=card, prevalence=prevalence)

    def at_estimated_prevalence(self, judgements: Sequence[Judgement]) -> tuple[Self, list[Judgement]]:
        """Return the model at the prevalence that is estimated from unlabelled responses, and their
        judgements there (Saerens et al. 2002). Raises `InputError` for too few."""
        probabilities = [judgement.assessment.probability for judgement in judgements]
        stated = [probability for probability in probabilities if probability is not None]
        prevalence = estimated_prevalence(stated, self.assumed_prevalence)
        model = self.at_prevalence(prevalence)
        shift = partial(at_prevalence, trained=self.assumed_prevalence, prevalence=prevalence)
        return model, [judgement.at(shift, model.card.threshold) for judgement in judgements]

    def _trained_prevalence(self) -> float:
        if not self.card.prevalence:
            raise InputError("this detector's card has no prevalence; train one that reads tokens")
        return self.card.prevalence

    def require(
        self, reader: Mapping[str, Any], composite: str | None = None, target: str | None = None
    ) -> None:
        """Refuse a reader, or relevance, that the model was not trained on, unless it reads texts alone;
        another dtype only warns."""
        trained = self.card.reader
        pairs = {
            name: (expected, actual)
            for name, expected, actual in (
                ("composite", self.card.composite, composite),
                ("target", self.card.target, target),
            )
            if actual is not None
        }
        if not self.texts and trained["digest"] != reader["digest"]:
            pairs = {"reader": (reader_name(trained), reader_name(dict(reader))), **pairs}
        framing = (
            ""
            if trained["chat_template"] == reader["chat_template"]
            else f" (chat_template={trained['chat_template']})"
        )
        for what, (expected, actual) in pairs.items():
            if expected != actual:
                raise InputError(
                    f"the detector was trained with {what} {expected}, and this is {what} {actual}; use that "
                    f"{what}{framing}, train a detector for this one, or analyse with detector=None, for "
                    "evidence without a verdict"
                )
        self.require_comparer()
        if trained["dtype"] != reader["dtype"] and self.dtype_matters:
            message = f"the detector was trained in {trained['dtype']}, this is {reader['dtype']}"
            warnings.warn(message, LRP4RAGWarning, stacklevel=2)

    def require_comparer(self) -> None:
        """Raise `InputError` where the comparer that it reads is missing, or is another than in training."""
        if self.comparer and self.replacement is None and self.comparer != bundled_comparer().digest:
            raise InputError(
                "the detector was trained with another comparer than this package has; train it again"
            )

    @property
    def entailment(self) -> EntailmentModel | None:
        """What reads sentences, None where it reads no comparer."""
        return self.replacement or (bundled_comparer() if self.comparer else None)

    def with_comparer(self, path: str | Path, device: str | None = None) -> Self:
        """Return the model with a published one in its comparer's place, by a file of `lrp4rag calibrate`.

        Raises `InputError` for another file, other weights, and a detector that reads no comparer, or another
        than the file is calibrated to.
        """
        if not self.comparer:
            raise InputError("this detector reads no comparer; leave it out", field="comparer")
        calibration = Calibration.read(path)
        if calibration.comparer != self.comparer:
            words = (
                "it is calibrated to another comparer than the detector was trained with; calibrate it again"
            )
            raise InputError(words, path=path, field="comparer")
        return replace(self, replacement=calibration.load(device))

    def record_of(self, response: Input) -> Record:
        """Return the record of a response, whose sentences the model's own comparer reads."""
        record = response if isinstance(response, Record) else Record.of(response)
        return record if record.comparer is self.replacement else replace(record, comparer=self.replacement)

    def save(self, folder: str | Path) -> Path:
        """Write a folder with the card (JSON) and what was learned (safetensors), whole or not at all."""
        return write_detector(folder, self.card, self.arrays())

    @staticmethod
    def load(
        folder: str | Path = BUNDLED, comparer: str | Path | None = None, device: str | None = None
    ) -> Model:
        """Read a detector folder, or the bundled one by name. Nothing is unpickled. `comparer` and `device`
        are those of `with_comparer`.

        Raises `InputError` for a missing or corrupt file, for another format or feature version, and where
        the comparer that it reads is not there.
        """
        path, card, arrays = read_detector(folder)
        try:
            model = Model.kinds[card.input.kind].of(card, arrays)
        except (
            InputError,
            AttributeError,
            IndexError,
            KeyError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            what = f"not a {card.input.kind.removesuffix('s')} detector: {first_line(error)}"
            raise InputError(what, path=path) from error
        if comparer is not None:
            model = model.with_comparer(comparer, device)
        model.require_comparer()  # before a reader is loaded
        return model


def require_embeddings(relevance: Relevance) -> None:
    """Raise `InputError` for relevance of another layer."""
    if relevance.layer:
        raise InputError(
            f"a detector works on the embeddings' relevance, and this is of layer {relevance.layer}; "
            "attribute with layer=0"
        )


def detector_beside(detector: str | Path, reader: str | Reader) -> str | Path:
    """Return the detector that judges beside a reader: in the place of the bundled one, that of texts where
    the reader has other weights than in training, or is none. Beside the same weights, `require` refuses
    another framing or tokenizer: nobody chose to do without what the reader tells."""
    if str(detector) != BUNDLED:
        return detector
    weights = reader.identity.weights if isinstance(reader, Reader) else reader_weights(reader)
    return BUNDLED if weights == load_card(BUNDLED).reader["weights"] else TEXT
