"""A detector on disk: a folder with its card (JSON) and its estimator (skops). Nothing is unpickled."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from sklearn.tree._tree import Tree

from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.features import FEATURE_VERSION
from lrp4rag.errors import InputError, first_line
from lrp4rag.files import check_folder, folder_written_whole, read_bytes
from lrp4rag.strict_json import read_record, require_seal, sealed
from lrp4rag.types import first_fault, not_finite

FORMAT = 3
CARD, ESTIMATOR = "card.json", "estimator.skops"
LARGEST = 512 * 2**20
"""Bytes of what was learned, packed or unpacked. The bundled detectors take less than five million."""
BUNDLED = "default"
BUNDLES = (BUNDLED, "fast")
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
    with folder_written_whole(folder, replace=True) as new:
        skops.io.dump(estimator, new / ESTIMATOR, compression=8)
        digest = hashlib.sha256((new / ESTIMATOR).read_bytes()).hexdigest()
        card = card.model_copy(update={"estimator_sha256": digest})
        record = sealed(card.model_dump(mode="json"))
        (new / CARD).write_text(json.dumps(record, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return folder


def read(folder: str | Path = BUNDLED) -> tuple[Card, Any]:
    """The card and the estimator; raises `InputError` for a missing or corrupt file."""
    import skops.io

    folder = _folder(folder)
    card = load_card(folder)
    try:
        content = read_bytes(folder / ESTIMATOR, LARGEST)
    except OSError as error:
        raise InputError(f"cannot read the detector: {error}", path=folder) from error
    if hashlib.sha256(content).hexdigest() != card.estimator_sha256:
        message = "the detector file is corrupt: it does not have the hash in its card"
        raise InputError(message, path=folder / ESTIMATOR)
    _refuse_bomb(content, folder / ESTIMATOR)
    try:
        learned = skops.io.loads(content, trusted=TRUSTED)
    except Exception as error:  # skops raises many kinds for a file it cannot or will not read
        raise InputError(f"not a detector: {first_line(error)}", path=folder / ESTIMATOR) from error
    if (where := _not_finite(learned)) is not None:
        raise InputError("what was learned holds NaN or Inf", path=folder / ESTIMATOR, field=where)
    return card, learned


def _refuse_bomb(content: bytes, path: Path) -> None:
    """Before anything is unpacked: a few megabytes can stand for many gigabytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
    except zipfile.BadZipFile as error:
        raise InputError(f"not a detector: {error}", path=path) from error
    if size > LARGEST:
        raise InputError(
            f"unpacked, it takes {size / 1e6:,.0f} MB, and at most {LARGEST / 1e6:,.0f} are read", path=path
        )


def _not_finite(learned: Any, where: str = "estimator") -> str | None:
    """Where a number in what was learned is NaN or Inf, by attribute; None where all are finite."""
    if isinstance(learned, float | np.generic | np.ndarray):
        return where if not_finite({where: np.asarray(learned)}) else None
    inside: dict[str, Any] = {}
    if isinstance(learned, dict):
        inside = {f"{where}[{key!r}]": value for key, value in learned.items()}
    elif isinstance(learned, list | tuple):
        inside = {f"{where}[{k}]": value for k, value in enumerate(learned)}
    elif isinstance(learned, Tree):
        inside = {f"{where}.{name}": getattr(learned, name) for name in ("threshold", "value", "impurity")}
    elif hasattr(learned, "__dict__"):
        inside = {f"{where}.{name}": value for name, value in vars(learned).items()}
    return next((found for name, value in inside.items() if (found := _not_finite(value, name))), None)


def check_target(folder: Path) -> None:
    """Raise `InputError` unless a detector can be written to `folder`: new, empty, or a detector's own."""
    check_folder(folder, whole=True)
    if not folder.is_dir() or not (names := {path.name for path in folder.iterdir()}):
        return
    if names - {CARD, ESTIMATOR} or not all((folder / name).is_file() for name in names) or not _ours(folder):
        raise InputError("this folder has other files in it; name another", path=folder)


def _ours(folder: Path) -> bool:
    """Whether the card, if there is one, is a detector's, of this version or another."""
    try:
        record = read_record(folder / CARD, "a detector card")
    except (InputError, OSError):
        return False
    return {"format", "classifier", "estimator_sha256"} <= record.keys()


def load_card(folder: str | Path = BUNDLED) -> Card:
    """The card of a detector folder, or of the bundled one."""
    folder = _folder(folder)
    path = folder / CARD
    try:
        record = read_record(path, "a detector card")
    except OSError as error:
        raise InputError(f"no detector here ({CARD} cannot be read)", path=folder) from error
    made = (record.get("format", FORMAT), record.get("feature_version", FEATURE_VERSION))
    if made != (FORMAT, FEATURE_VERSION):
        raise InputError(
            f"the detector has format {made[0]} and feature version {made[1]}, "
            f"and this lrp4rag reads {FORMAT} and {FEATURE_VERSION}; train it again",
            path=folder,
        )
    try:
        card = Card.model_validate(record)
    except ValidationError as error:
        fault, field = first_fault(error)
        raise InputError(f"not a detector card: {fault}", path=path, field=field) from error
    except InputError as error:  # of a block of features
        raise InputError(f"not a detector card: {error.reason}", path=path, field="input.blocks") from error
    require_seal(record, path, "the card")
    return card


def _folder(name: str | Path) -> Path:
    if str(name) in BUNDLES:
        return Path(str(resources.files("lrp4rag"))) / "classifiers" / "bundled" / str(name)
    return Path(name)
