"""A detector on disk: a folder with its card (JSON) and its arrays (safetensors). Nothing is unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.vectors import FEATURE_VERSION
from lrp4rag.util.errors import InputError, first_line
from lrp4rag.util.files import check_folder, folder_written_whole, read_bytes
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.strict_json import read_record, require_seal, sealed
from lrp4rag.util.types import first_fault, not_finite

FORMAT = 7
CARD, ESTIMATOR = "card.json", "estimator.safetensors"
FORMER = "estimator.skops"
"""The name of that file up to format 3: it may be replaced, and is not read."""
LARGEST = 512 * 2**20
"""Bytes of what was learned. The bundled detector takes less than two million."""
BUNDLED, TEXT = "default", "text"
"""The names of the detectors that come with the package; the second needs no reader."""
KINDS = ("float32", "float64", "int32", "int64")


def write_detector(folder: str | Path, card: Card, learned: Mapping[str, NDArray[Any]]) -> Path:
    """Write the folder, whole or not at all; raises `InputError` where other files are in it."""
    folder = Path(folder)
    check_target(folder)
    content = save({name: np.asarray(array, order="C") for name, array in sorted(learned.items())})
    with folder_written_whole(folder, replace=True) as new:
        (new / ESTIMATOR).write_bytes(content)
        card = card.model_copy(update={"estimator_sha256": hash_of(content)})
        record = sealed(card.model_dump(mode="json"))
        (new / CARD).write_text(json.dumps(record, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return folder


def read_detector(folder: str | Path = BUNDLED) -> tuple[Path, Card, dict[str, NDArray[Any]]]:
    """Return the folder, the card and what was learned; raises `InputError` for a missing or corrupt file."""
    folder = _folder(folder)
    card = load_card(folder)
    return folder, card, _arrays(folder, card)


def _arrays(folder: Path, card: Card) -> dict[str, NDArray[Any]]:
    path = folder / ESTIMATOR
    try:
        content = read_bytes(path, LARGEST)
    except OSError as error:
        raise InputError(f"cannot read the detector: {error}", path=folder) from error
    if hash_of(content) != card.estimator_sha256:
        raise InputError("the detector file is corrupt: it does not have the hash in its card", path=path)
    try:
        learned: dict[str, NDArray[Any]] = load(content)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:  # KeyError: an unknown dtype
        raise InputError(f"not a detector: {first_line(error)}", path=path) from error
    for name, array in learned.items():
        if array.dtype.name not in KINDS:
            raise InputError(f"not a detector: an array of {array.dtype.name}", path=path, field=name)
    if (where := not_finite(learned)) is not None:
        raise InputError("what was learned holds NaN or Inf", path=path, field=where)
    return learned


def check_target(folder: Path) -> None:
    """Raise `InputError` unless a detector can be written to `folder`: new, empty, or a detector's own, and
    not called like one of the package, which would be read in its place, or "none"."""
    if str(folder) in (BUNDLED, TEXT, "none"):
        raise InputError(
            f"'{folder}' has a meaning of its own as a detector; name another folder", path=folder
        )
    check_folder(folder, replace=True)
    if not folder.is_dir() or not (names := {path.name for path in folder.iterdir()}):
        return
    is_detector = names <= {CARD, ESTIMATOR, FORMER} and all((folder / name).is_file() for name in names)
    record = {}
    with suppress(InputError, OSError):
        record = read_record(folder / CARD, "a detector card")  # of this version or another
    if not is_detector or not {"format", "classifier", "estimator_sha256"} <= record.keys():
        raise InputError("this folder has other files in it; name another", path=folder)


def load_card(folder: str | Path = BUNDLED) -> Card:
    """Return the card of a detector folder, or of the bundled one."""
    folder = _folder(folder)
    path = folder / CARD
    try:
        record = read_record(path, "a detector card")
    except OSError as error:
        raise InputError(f"no detector here ({CARD} cannot be read)", path=folder) from error
    version, features = record.get("format", FORMAT), record.get("feature_version", FEATURE_VERSION)
    if (version, features) != (FORMAT, FEATURE_VERSION):
        raise InputError(
            f"the detector has format {version} and feature version {features}, "
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
    if str(name) in (BUNDLED, TEXT):
        return Path(str(resources.files("lrp4rag"))) / "classifiers" / "bundled" / str(name)
    return Path(name)
