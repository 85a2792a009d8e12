"""A detector on disk: a folder with its card (JSON) and its estimator (skops). Nothing is unpickled."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.features import FEATURE_VERSION
from lrp4rag.errors import InputError

FORMAT = 2
CARD, ESTIMATOR = "card.json", "estimator.skops"
BUNDLED = "default"
PLACES = {BUNDLED: "detector", "fast": "fast"}
"""The detectors that come with the package, by name: the full one and the quick one."""

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


def write(folder: str | Path, card: Card, estimator: Any) -> Path:
    """Write the folder, whole or not at all; raises `InputError` where other files are in it."""
    import skops.io

    folder = Path(folder)
    check_target(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One hidden folder beside the target, so that both renames stay on its disk.
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        new, old = work / "new", work / "old"
        new.mkdir()
        skops.io.dump(estimator, new / ESTIMATOR, compression=8)
        digest = hashlib.sha256((new / ESTIMATOR).read_bytes()).hexdigest()
        card = card.model_copy(update={"estimator_sha256": digest})
        (new / CARD).write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def read(folder: str | Path = BUNDLED) -> tuple[Card, Any]:
    """The card and the estimator; raises `InputError` for a missing or corrupt file."""
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
        return card, skops.io.loads(content, trusted=TRUSTED)
    except Exception as error:  # skops raises many kinds for a file it cannot or will not read
        raise InputError(f"not a detector: {error}", path=folder / ESTIMATOR) from error


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
    if str(name) in PLACES:
        return Path(str(resources.files("lrp4rag"))) / "data" / PLACES[str(name)]
    return Path(name)
