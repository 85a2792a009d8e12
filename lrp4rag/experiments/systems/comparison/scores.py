"""The scores of each system for every response and token, in a file of its own beside a page. Whoever
compares on the same rows reads them, rather than run for hours what others have run."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lrp4rag.classifiers.card import package_versions
from lrp4rag.classifiers.features import FEATURE_VERSION
from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.comparison.folds import Judged
from lrp4rag.files import read_bytes, remove_leftovers, write_atomically
from lrp4rag.strict_json import parse
from lrp4rag.training import cache
from lrp4rag.training.records import UNREADABLE, from_json, rounded_to, to_json

FORMAT = 1
LARGEST = 1 << 28  # bytes of a file's content, which is compressed
DIGITS, TOKEN_DIGITS = 5, 3
"""Significant digits of numbers, and of tokens' probabilities: there are half a million of these."""


@dataclass(frozen=True, slots=True)
class System:
    """`key` says everything that its scores depend on, `run` computes them."""

    key: dict[str, Any]
    run: Callable[[], Judged]


@dataclass(frozen=True, slots=True)
class Kept:
    """Scores, and the versions of the packages that made them."""

    judged: Judged
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Scores:
    """A folder of files NAME.json.xz, with a system's scores of R responses, whose `ids` these are, and of
    their N `tokens`: arrays are in the order of the ids, tokens one response after the other."""

    folder: Path
    ids: tuple[str, ...]
    tokens: int

    def read(self, name: str, key: dict[str, Any]) -> Kept | None:
        """None where there are none of this key. Raises `InputError` for a file that holds something else."""
        path = self.path(name)
        try:
            content = read_bytes(path, LARGEST)
        except FileNotFoundError:
            return None
        try:
            record = parse(_unpacked(content))
            same = record["format"] == FORMAT and record["key"] == json.loads(json.dumps(_whole(key)))
            if not same or tuple(record["ids"]) != self.ids:
                return None
            judged: Judged = from_json(Judged, record["scores"])
            self._require_whole(judged)
            return Kept(judged, {str(name): str(one) for name, one in record["versions"].items()})
        except (lzma.LZMAError, EOFError, *UNREADABLE) as error:
            raise InputError(f"not the scores of a system; delete it ({error})", path=path) from error

    def write(self, name: str, key: dict[str, Any], judged: Judged) -> Kept:
        """What was written, which is rounded: what is shown is what can be read again."""
        value = rounded_to(to_json(judged), DIGITS)
        if judged.marking is not None and _probabilities(judged.marking.scores):
            value["marking"]["scores"] = rounded_to(value["marking"]["scores"], TOKEN_DIGITS)
        return self.keep(name, key, Kept(from_json(Judged, value), package_versions()))

    def keep(self, name: str, key: dict[str, Any], kept: Kept) -> Kept:
        """Write what was read elsewhere."""
        record = {
            "format": FORMAT,
            "system": name,
            "key": _whole(key),
            "versions": kept.versions,
            "ids": self.ids,
            "scores": to_json(kept.judged),
        }
        content = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()
        self.prepare()
        write_atomically(self.path(name), lzma.compress(content))
        return kept

    def prepare(self) -> None:
        """Raises `OSError` where nothing can be written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)

    def path(self, name: str) -> Path:
        return self.folder / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.json.xz"

    def _require_whole(self, judged: Judged) -> None:
        """Raises `ValueError` where arrays have not the lengths of the rows and tokens."""
        rows, outcome, marking = len(self.ids), judged.outcome, judged.marking
        inside = (numbers for test, train, _ in judged.outside for numbers in (test, train))
        if not (
            outcome.probabilities.shape == outcome.flagged.shape == (1, rows)
            and judged.answered.shape == (rows,)
            and {judged.asked.shape, judged.unanswered.shape} <= {(0,), (rows,)}
            and all(((one >= 0) & (one < rows)).all() for one in inside)
            and all(len(train) == len(known) for _, train, known in judged.outside)
            and all(map(_probabilities, (outcome.probabilities, *(one for _, _, one in judged.outside))))
        ):
            raise ValueError("responses are missing, or a probability is none")
        if marking is not None and {
            one.shape for one in (marking.scores, marking.marked, marking.sentences)
        } != {(self.tokens,)}:
            raise ValueError("tokens are missing")


def _whole(key: dict[str, Any]) -> dict[str, Any]:
    """With what every cell depends on too."""
    return key | {"cells": cache.VERSION, "features": FEATURE_VERSION}


def _probabilities(scores: np.ndarray) -> bool:
    known = scores[np.isfinite(scores)]
    return bool(((known >= 0) & (known <= 1)).all())


def _unpacked(packed: bytes) -> bytes:
    """Raises `ValueError` for what is larger than any scores are."""
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=LARGEST)
    content = unpacker.decompress(packed, max_length=LARGEST)
    if not unpacker.eof:
        raise ValueError("it is cut off, or too large")
    return content
