"""`Detector`: features, a calibrated classifier, and the card that says where both come from."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from lrp4rag.classifiers.calibration import Fitted, fit_calibrated
from lrp4rag.classifiers.card import Card, package_versions
from lrp4rag.classifiers.features import FEATURE_VERSION, Features
from lrp4rag.classifiers.localise import token_threshold
from lrp4rag.classifiers.verdict import Verdict, judge
from lrp4rag.errors import InputError, LRP4RAGWarning
from lrp4rag.generator.reader import reader_name
from lrp4rag.lrp.relevance import Relevance

FORMAT = 1
CARD, ESTIMATOR = "card.json", "estimator.skops"
BUNDLED = "default"

# The only types beyond skops' own list of safe ones that a detector file may hold.
TRUSTED = [
    "lrp4rag.classifiers.flatten.Flatten",
    "lrp4rag.classifiers.lstm.LSTMClassifier",
    "lrp4rag.classifiers.threshold.ThresholdClassifier",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
]


@dataclass(frozen=True)
class Detector:
    """A fitted detector. Make one with `Detector.fit`, or read one with `Detector.load`."""

    estimator: Any
    card: Card

    @property
    def features(self) -> Features:
        return Features(self.card.vector, self.card.length, self.card.mode)

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
    ) -> Detector:
        """Fit a detector; `labels` are True for hallucinated responses.

        Calibration never splits a group (default: every row its own). `token_flags` (t booleans a
        row, True for hallucinated tokens) set the threshold below which tokens are suspect; without
        them none is. `lrp4rag.experiments.train` adds cross-validated metrics to the card.
        """
        features = features or Features()
        for relevance in relevances:
            _require_embeddings(relevance)
        origin = {(row.reader["digest"], row.composite, row.target) for row in relevances}
        if len(origin) != 1:
            raise InputError("training needs relevance of one reader, composite and target")
        rows = np.array(groups if groups is not None else [str(k) for k in range(len(relevances))])
        fitted = fit_calibrated(classifier, features(relevances), labels, rows)
        first = relevances[0]
        card = Card(
            format=FORMAT,
            classifier=classifier,
            settings=fitted.settings,
            reader=first.reader,
            composite=first.composite,
            target=first.target,
            vector=features.vector,
            length=features.length,
            mode=features.mode,
            feature_version=FEATURE_VERSION,
            threshold=threshold,
            token_threshold=None if token_flags is None else token_threshold(relevances, token_flags),
            rows=len(relevances),
            hallucinated=int(labels.sum()),
            versions=package_versions(),
        )
        return cls(fitted.model, card)

    def predict_proba(self, relevances: Sequence[Relevance]) -> NDArray[np.float64]:
        """The probability that each response is hallucinated, (rows,).

        Raises `InputError` for relevance of another reader, composite or target.
        """
        for relevance in relevances:
            self.require(relevance.reader, relevance.composite, relevance.target)
            _require_embeddings(relevance)
        if not relevances:
            return np.zeros(0)
        return Fitted(self.estimator, self.card.settings).predict(self.features(relevances))

    def predict(self, relevance: Relevance) -> Verdict:
        """The verdict on one response, with suspect spans and sentences."""
        return judge(
            relevance,
            probability=float(self.predict_proba([relevance])[0]),
            threshold=self.card.threshold,
            token_threshold=self.card.token_threshold,
        )

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
        if self.card.reader["dtype"] != reader["dtype"]:
            message = f"the detector was trained in {self.card.reader['dtype']}, this is {reader['dtype']}"
            warnings.warn(message, LRP4RAGWarning, stacklevel=2)

    def save(self, folder: str | Path) -> Path:
        """Write a folder with the card (JSON) and the estimator (skops), whole or not at all."""
        import skops.io

        folder = Path(folder)
        check_target(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        # One hidden folder beside the target, so that both renames stay on its disk.
        work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            new, old = work / "new", work / "old"
            new.mkdir()
            skops.io.dump(self.estimator, new / ESTIMATOR, compression=8)
            digest = hashlib.sha256((new / ESTIMATOR).read_bytes()).hexdigest()
            card = self.card.model_copy(update={"estimator_sha256": digest})
            (new / CARD).write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
            if folder.exists():
                folder.rename(old)
            new.rename(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        return folder

    @classmethod
    def load(cls, folder: str | Path = BUNDLED) -> Detector:
        """Read a detector folder, or the bundled one ("default"). Nothing is unpickled.

        Raises `InputError` for a missing or corrupt file and for another feature version.
        """
        import skops.io

        folder = _folder(folder)
        card = load_card(folder)
        try:
            content = (folder / ESTIMATOR).read_bytes()
        except OSError as error:
            raise InputError(f"cannot read the detector: {error}", path=folder) from error
        if hashlib.sha256(content).hexdigest() != card.estimator_sha256:
            message = "the detector file is corrupt: it does not have the hash in its card"
            raise InputError(message, path=folder / ESTIMATOR)
        try:
            estimator = skops.io.loads(content, trusted=TRUSTED)
        except Exception as error:  # skops raises many kinds for a file it cannot or will not read
            raise InputError(f"not a detector: {error}", path=folder / ESTIMATOR) from error
        return cls(estimator, card)


def check_target(folder: Path) -> None:
    """Raise `InputError` unless a detector can be written to `folder`: new, empty, or a detector's own."""
    if folder.exists() and not folder.is_dir():
        raise InputError("this is a file; name a folder", path=folder)
    if folder.is_dir() and {path.name for path in folder.iterdir()} - {CARD, ESTIMATOR}:
        raise InputError("this folder has other files in it; name another", path=folder)


def load_card(folder: str | Path = BUNDLED) -> Card:
    """The card of a detector folder, or of the bundled one."""
    folder = _folder(folder)
    path = folder / CARD
    try:
        card = Card.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"no detector here ({CARD} cannot be read)", path=folder) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(f"not a detector card: {first['msg']}", path=path, field=field) from error
    except ValueError as error:
        raise InputError(f"not a detector card: {error}", path=path) from error
    if card.format != FORMAT or card.feature_version != FEATURE_VERSION:
        raise InputError(
            f"the detector has format {card.format} and feature version {card.feature_version}, "
            f"and this lrp4rag reads {FORMAT} and {FEATURE_VERSION}; train it again",
            path=folder,
        )
    return card


def _folder(name: str | Path) -> Path:
    if str(name) == BUNDLED:
        return Path(str(resources.files("lrp4rag"))) / "data" / "detector"
    return Path(name)


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
