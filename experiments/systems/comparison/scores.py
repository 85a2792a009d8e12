"""The scores of each system for every response and token, in a file of its own beside a page. Whoever
compares on the same rows reads them, rather than run for hours what others have run."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import cache
from experiments.records import UNREADABLE, from_json, rounded_to, to_json
from lrp4rag.classifiers.card import Located, package_versions
from lrp4rag.classifiers.decision import best_threshold
from lrp4rag.classifiers.features import FEATURE_VERSION
from lrp4rag.training.localisation import Marking, line_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import Tokens
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import read_bytes, remove_leftovers, write_atomically
from lrp4rag.util.strict_json import parse

FORMAT = 1
LARGEST = 1 << 28  # bytes of a file's content, which is compressed
DIGITS, TOKEN_DIGITS = 5, 3
"""Significant digits of numbers, and of tokens' probabilities: there are half a million of these."""

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class SystemScores:
    """All folds together; of rows that no fold judged, numbers are NaN and flags False. `marking` is None for
    a baseline that scores no parts, `answered` (R,) says of which responses it had something to go by.
    `outside` has for each fold the rows judged, the rows learned from whose probabilities are known, and
    these."""

    outcome: Outcome
    marking: Marking | None
    answered: Flags
    outside: tuple[tuple[Numbers, Numbers, Scores], ...]
    asked: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    unanswered: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def unreadable(self, rows: Numbers) -> float:
        """The part of the questions about some rows that had no usable reply; 0 where none was asked."""
        asked = int(self.asked[rows].sum()) if len(self.asked) else 0
        return float(self.unanswered[rows].sum()) / asked if asked else 0.0

    def marks(self, tokens: Numbers) -> bool:
        """Whether all of these tokens were scored."""
        return self.marking is not None and bool(np.isfinite(self.marking.scores[tokens]).all())

    @property
    def trained_on(self) -> int:
        """How many responses a fold's weights learned from, on average: those that are neither judged nor
        fresh."""
        judged = int(np.isfinite(self.outcome.probabilities[0]).sum())
        return round(float(np.mean([judged - len(test) - len(fresh) for test, fresh, _ in self.outside])))

    def tuned(self, owner: Numbers, flags: Flags) -> tuple[Flags, tuple[float, ...]]:
        """Marks of N tokens, of these responses (N,) and labels (N,), where each fold's threshold is the
        one with the best F1 of tokens of the other folds; and the thresholds.

        Raises `ValueError` for a system that scores no tokens.
        """
        if self.marking is None:
            raise ValueError("no scores of tokens")
        scores, marked, thresholds = self.marking.scores, np.zeros(len(owner), dtype=bool), []
        for test, _, _ in self.outside:
            own = np.isin(owner, test)
            threshold = best_threshold(scores[~own], flags[~own])
            marked[own] = scores[own] >= threshold
            thresholds.append(float(threshold))
        return marked, tuple(thresholds)

    def line(self, part: Rows, tokens: Tokens, chosen: Numbers, resamples: int) -> Located | None:
        """Metrics of tokens, spans and sentences of rows, `part`, whose numbers are `chosen`; None where not
        all of them were scored."""
        if self.marking is None or not self.marks(tokens.within(chosen)):
            return None
        return line_of(part, tokens, chosen, self.marking, resamples)


@dataclass(frozen=True, slots=True)
class System:
    """`key` says everything that its scores depend on, `run` computes them."""

    key: dict[str, Any]
    run: Callable[[], SystemScores]


@dataclass(frozen=True, slots=True)
class StoredScores:
    """Scores, and the versions of the packages that made them."""

    scores: SystemScores
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class ScoreFolder:
    """A folder of files NAME.json.xz, with a system's scores of R responses, whose `ids` these are, and of
    their N `tokens`: arrays are in the order of the ids, tokens one response after the other."""

    folder: Path
    ids: tuple[str, ...]
    tokens: int

    def read(self, name: str, key: dict[str, Any]) -> StoredScores | None:
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
            scores: SystemScores = from_json(SystemScores, record["scores"])
            self._require_whole(scores)
            return StoredScores(scores, {str(name): str(one) for name, one in record["versions"].items()})
        except (lzma.LZMAError, EOFError, *UNREADABLE) as error:
            raise InputError(f"not the scores of a system; delete it ({error})", path=path) from error

    def write(self, name: str, key: dict[str, Any], scores: SystemScores) -> StoredScores:
        """What was written, which is rounded: what is shown is what can be read again."""
        value = rounded_to(to_json(scores), DIGITS)
        if scores.marking is not None and _probabilities(scores.marking.scores):
            value["marking"]["scores"] = rounded_to(value["marking"]["scores"], TOKEN_DIGITS)
        return self.keep(name, key, StoredScores(from_json(SystemScores, value), package_versions()))

    def keep(self, name: str, key: dict[str, Any], stored: StoredScores) -> StoredScores:
        """Write what was read elsewhere."""
        record = {
            "format": FORMAT,
            "system": name,
            "key": _whole(key),
            "versions": stored.versions,
            "ids": self.ids,
            "scores": to_json(stored.scores),
        }
        content = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()
        self.prepare()
        write_atomically(self.path(name), lzma.compress(content))
        return stored

    def prepare(self) -> None:
        """Raises `OSError` where nothing can be written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)

    def path(self, name: str) -> Path:
        return self.folder / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.json.xz"

    def _require_whole(self, scores: SystemScores) -> None:
        """Raises `ValueError` where arrays have not the lengths of the rows and tokens."""
        rows, outcome, marking = len(self.ids), scores.outcome, scores.marking
        inside = (numbers for test, train, _ in scores.outside for numbers in (test, train))
        if not (
            outcome.probabilities.shape == outcome.flagged.shape == (1, rows)
            and scores.answered.shape == (rows,)
            and {scores.asked.shape, scores.unanswered.shape} <= {(0,), (rows,)}
            and all(((one >= 0) & (one < rows)).all() for one in inside)
            and all(len(train) == len(known) for _, train, known in scores.outside)
            and all(map(_probabilities, (outcome.probabilities, *(one for _, _, one in scores.outside))))
        ):
            raise ValueError("responses are missing, or a probability is none")
        if marking is not None and {
            one.shape for one in (marking.scores, marking.marked, marking.sentences)
        } != {(self.tokens,)}:
            raise ValueError("tokens are missing")


@dataclass(frozen=True, slots=True, eq=False)
class KnownScores:
    """The scores of a system, of the responses that have these ids, whatever settings made them."""

    system: str
    ids: tuple[str, ...]
    scores: SystemScores


def known_scores(path: Path) -> KnownScores:
    """What `ScoreFolder.write` wrote, for those who have no store; raises `InputError` for anything else."""
    try:
        record = parse(_unpacked(read_bytes(path, LARGEST)))
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}")
        scores: SystemScores = from_json(SystemScores, record["scores"])
        ids = tuple(map(str, record["ids"]))
        count = 0 if scores.marking is None else len(scores.marking.scores)
        ScoreFolder(path.parent, ids, count)._require_whole(scores)
        return KnownScores(str(record["system"]), ids, scores)
    except (lzma.LZMAError, EOFError, *UNREADABLE) as error:
        raise InputError(f"not the scores of a system ({error})", path=path) from error


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
