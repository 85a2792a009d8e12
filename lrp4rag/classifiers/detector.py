"""`FittedDetector`: a fitted model, and the card that says where it comes from."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import fit_calibrated, probability_of
from lrp4rag.classifiers.card import Card, TokenInput, VectorInput, package_versions
from lrp4rag.classifiers.committee import Committee
from lrp4rag.classifiers.domain import unlike
from lrp4rag.classifiers.explain import reasons_of
from lrp4rag.classifiers.features import FEATURE_VERSION, Features
from lrp4rag.classifiers.folder import BUNDLED, FORMAT, read, write
from lrp4rag.classifiers.localise import token_threshold
from lrp4rag.classifiers.operating import threshold_at
from lrp4rag.classifiers.reading import Reading
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.classifiers.vector_model import VectorModel
from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.errors import InputError, LRP4RAGWarning, RelevanceError, first_line
from lrp4rag.features.record import Record
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.identity import reader_name
from lrp4rag.types import not_finite

_OPTIONAL = ("by_segment", "prompt", "resampled")

Evidence = Relevance | Record
"""What a detector reads: relevance, and for a token detector also signals."""


@dataclass(frozen=True)
class FittedDetector:
    """A fitted detector. Make one with `FittedDetector.fit` or `experiments.train`, or read one with
    `FittedDetector.load`."""

    model: VectorModel | TokenModel
    card: Card

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that it reads."""
        return self.model.needs

    @classmethod
    def fit(
        cls,
        relevances: Sequence[Relevance],
        labels: NDArray[np.bool_],
        *,
        groups: Sequence[str] | None = None,
        token_flags: Sequence[NDArray[np.bool_]] | None = None,
        features: Features | None = None,
        classifier: str = "svm",
        threshold: float = 0.5,
    ) -> FittedDetector:
        """Fit a detector on a vector; `labels` are True for hallucinated responses.

        Calibration never splits a group (default: every row its own). `token_flags` (t booleans a
        row, True for hallucinated tokens) set the threshold below which tokens are suspect; without
        them none is. `lrp4rag.training.train` adds cross-validated metrics to the card.
        """
        features = features or Features()
        first = one_origin(relevances)
        rows = np.array(groups if groups is not None else [str(k) for k in range(len(relevances))])
        fitted = fit_calibrated(classifier, features(relevances), labels, rows)
        suspect = None if token_flags is None else token_threshold(relevances, token_flags)
        card = Card(
            format=FORMAT,
            classifier=classifier,
            settings=fitted.settings,
            reader=first.reader,
            composite=first.composite,
            target=first.target,
            input=VectorInput(
                vector=features.vector, length=features.length, mode=features.mode, token_threshold=suspect
            ),
            feature_version=FEATURE_VERSION,
            threshold=threshold,
            rows=len(relevances),
            hallucinated=int(labels.sum()),
            versions=package_versions(),
        )
        return cls(VectorModel(features, fitted.model, suspect), card)

    def predict_proba(self, given: Sequence[Evidence]) -> NDArray[np.float64]:
        """The probability that each response is hallucinated, (rows,).

        Raises `InputError` for relevance of another reader, composite or target, or where signals that the
        detector reads are missing, and `RelevanceError` where a probability is no number.
        """
        records = [self._record(one) for one in given]
        found = self.model.probabilities(records) if records else np.zeros(0)
        if not ((found >= 0) & (found <= 1)).all():
            raise RelevanceError("no verdict: a probability of the detector is none")
        return found

    def predict(self, given: Evidence) -> Verdict:
        """The verdict on one response, with suspect spans and sentences, and what moved it.

        Raises `InputError` as `predict_proba` does.
        """
        record = self._record(given)
        verdict = self.model.judge(record, self.card.threshold)
        if isinstance(self.model, VectorModel):
            return verdict
        return replace(
            verdict,
            unlike=unlike(self.card.domain, record),
            reasons=reasons_of(self.model, record, verdict, self.card.reference),
        )

    def at(self, point: str | float) -> FittedDetector:
        """The same at an operating point of its card, or at a target false-positive rate (0 to 1).

        Raises `InputError` for a point that the card does not have.
        """
        card = self.card
        if not card.operating_points or not card.faithful_quantiles:
            raise InputError("this detector has no operating points; train one that reads tokens")
        if isinstance(point, float):
            threshold = threshold_at(point, card.faithful_quantiles)
        elif point in card.operating_points:
            threshold = card.operating_points[point].threshold
        else:
            known = ", ".join(card.operating_points)
            raise InputError(f"no operating point '{point}'; choose from {known}")
        return FittedDetector(self.model, card.model_copy(update={"threshold": threshold}))

    def require(self, reader: dict[str, Any], composite: str, target: str) -> None:
        """Refuse relevance that this detector was not trained on; another dtype only warns."""
        card = self.card
        checks = (
            (
                "reader",
                card.reader["digest"] == reader["digest"],
                reader_name(card.reader),
                reader_name(reader),
            ),
            ("composite", card.composite == composite, card.composite, composite),
            ("target", card.target == target, card.target, target),
        )
        for what, same, trained, given in checks:
            if not same:
                raise InputError(
                    f"the detector was trained with {what} {trained}, and this is {what} {given}; "
                    f"use that {what}{_framing_hint(self.card.reader, reader)}, train a detector for this "
                    "one (lrp4rag train --help), or ask for evidence without a verdict (--detector none)"
                )
        trained, given = card.reader["dtype"], reader["dtype"]
        if trained != given and isinstance(self.model, VectorModel):
            message = f"the detector was trained in {trained}, this is {given}"
            warnings.warn(message, LRP4RAGWarning, stacklevel=2)

    def save(self, folder: str | Path) -> Path:
        """Write a folder with the card (JSON) and what was learned (skops), whole or not at all."""
        model = self.model
        learned = model.estimator if isinstance(model, VectorModel) else model.committee.arrays()
        return write(folder, self.card, learned)

    @classmethod
    def load(cls, folder: str | Path = BUNDLED) -> FittedDetector:
        """Read a detector folder, or the bundled one ("default"). Nothing is unpickled.

        Raises `InputError` for a missing or corrupt file and for another feature version.
        """
        card, learned = read(folder)
        given = card.input
        if isinstance(given, VectorInput):
            features = Features(given.vector, given.length, given.mode)
            _require_classifier(learned, features, Path(folder))
            return cls(VectorModel(features, learned, given.token_threshold), card)
        return cls(_token_model(given, learned, Path(folder)), card)

    def _record(self, given: Evidence) -> Record:
        record = given if isinstance(given, Record) else Record(given)
        relevance = record.relevance
        self.require(relevance.reader, relevance.composite, relevance.target)
        _require_embeddings(relevance)
        own = {name: getattr(relevance, name) for name in ("response", "logits", *_OPTIONAL)}
        known = {name: array for name, array in own.items() if array is not None}
        for arrays in (known, record.signals, record.states, record.sentences):
            if (name := not_finite(arrays)) is not None:
                raise RelevanceError(f"no verdict: '{name}' holds NaN or Inf")
        return record


def one_origin(relevances: Sequence[Relevance]) -> Relevance:
    """The first; raises `InputError` unless all have one reader, composite and target."""
    for relevance in relevances:
        _require_embeddings(relevance)
    origin = {(row.reader["digest"], row.composite, row.target) for row in relevances}
    if len(origin) != 1:
        raise InputError("training needs relevance of one reader, composite and target")
    return relevances[0]


def _require_classifier(learned: Any, features: Features, folder: Path) -> None:
    """In another order, classes would call a hallucination faithful; the rest shows on a vector of zeros."""
    try:
        right = list(learned.classes_) == [False, True] and np.asarray(learned.classes_).dtype == bool
        if right:
            found = probability_of(learned, np.zeros((1, *features.shape)))
            right = found.shape == (1,) and bool(np.isfinite(found).all())
    except Exception as error:  # scikit-learn raises many kinds for what was not fitted on this
        raise InputError(f"not a vector detector: {first_line(error)}", path=folder) from error
    if not right:
        raise InputError("not a vector detector: it does not tell False from True", path=folder)


def _token_model(given: TokenInput, learned: Any, folder: Path) -> TokenModel:
    try:
        committee = Committee.of(learned)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"not a token detector: {error!r}", path=folder) from error
    for name, members in committee.members.items():
        for member in members:
            if not (member.scale > 0).all():
                raise InputError(f"not a token detector: a scale of '{name}' is not positive", path=folder)
            try:
                member.log_odds(np.zeros((1, len(member.mean)), dtype=np.float32))
            except (KeyError, RuntimeError, TypeError, ValueError) as error:
                what = f"not a token detector: a network of '{name}' does not work: {first_line(error)}"
                raise InputError(what, path=folder) from error
    if set(committee.members) != set(given.blocks):
        raise InputError("not a token detector: its networks are not of the blocks in its card", path=folder)
    reading = Reading(**given.reading.model_dump())
    return TokenModel(dict(given.blocks), committee, reading)


def _require_embeddings(relevance: Relevance) -> None:
    if relevance.layer:
        raise InputError(
            f"a detector works on the embeddings' relevance, and this is of layer {relevance.layer}; "
            "attribute with layer=0"
        )


def _framing_hint(trained: dict[str, Any], given: dict[str, Any]) -> str:
    if trained["chat_template"] == given["chat_template"]:
        return ""
    return " (--chat-template)" if trained["chat_template"] else " (--no-chat-template)"
