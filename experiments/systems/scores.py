"""The scores of a system for every response and token, in a file beside a page of results."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.records import UNREADABLE, from_json, rounded_to, to_json
from experiments.systems.scoring import Flags, Floats
from lrp4rag.classifiers.card import Located, package_versions
from lrp4rag.classifiers.decision import best_threshold
from lrp4rag.training.localisation import Marking, line_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import Tokens
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import read_bytes, write_atomically
from lrp4rag.util.strict_json import parse

FORMAT = 1
LARGEST = 1 << 28  # bytes of a file's content, which is compressed
DIGITS, TOKEN_DIGITS = 5, 3
"""Significant digits of numbers, and of tokens' probabilities: there are half a million of these."""
ENDING = ".json.xz"

Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class SystemScores:
    """All folds together; of rows that no fold judged, numbers are NaN and flags False. `marking` is None for
    a baseline that scores no parts, `answered` (R,) says whether it had something to go by, `asked` and
    `unanswered` (R,) count questions to a model. `outside` has for each fold the rows judged, the rows
    learned from whose probabilities are known, and these."""

    outcome: Outcome
    marking: Marking | None
    answered: Flags
    outside: tuple[tuple[Numbers, Numbers, Floats], ...]
    asked: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    unanswered: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def unreadable(self, rows: Numbers) -> float:
        """The part of the questions about some rows that had no usable reply; 0 where none was asked."""
        asked = int(self.asked[rows].sum()) if len(self.asked) else 0
        return float(self.unanswered[rows].sum()) / asked if asked else 0.0

    @property
    def trained_on(self) -> int:
        """How many responses a fold's weights learned from, on average: those that are neither judged nor
        unseen."""
        judged = int(np.isfinite(self.outcome.probabilities[0]).sum())
        return round(float(np.mean([judged - len(test) - len(unseen) for test, unseen, _ in self.outside])))

    def tuned(self, owner: Numbers, flags: Flags) -> tuple[Flags, tuple[float, ...]]:
        """Marks of N tokens, of these responses (N,) and labels (N,), where each fold's threshold is the one
        with the best F1 of tokens of the other folds; and the thresholds.

        Raises `ValueError` for a system that scores no tokens.
        """
        if self.marking is None:
            raise ValueError("no scores of tokens")
        scores, marked, thresholds = self.marking.scores, np.zeros(len(owner), dtype=bool), []
        for test, _, _ in self.outside:
            inside = np.isin(owner, test)
            threshold = best_threshold(scores[~inside], flags[~inside])
            marked[inside] = scores[inside] >= threshold
            thresholds.append(float(threshold))
        return marked, tuple(thresholds)

    def line(self, part: Rows, tokens: Tokens, indices: Numbers, resamples: int) -> Located | None:
        """Metrics of tokens, spans and sentences of rows, `part`, with these indices; None where not all of
        their tokens were scored."""
        if self.marking is None or not np.isfinite(self.marking.scores[tokens.within(indices)]).all():
            return None
        return line_of(part, tokens, indices, self.marking, resamples)


Key = Mapping[str, Any]
"""All that scores depend on."""


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{re.sub('[^a-z0-9]+', '-', name.lower())}{ENDING}"


def write_scores(
    folder: Path, name: str, key: Key, ids: tuple[str, ...], scores: SystemScores
) -> SystemScores:
    """Write the scores of responses with these ids, and return them as they were written, which is rounded:
    what is shown can be read again."""
    value = rounded_to(to_json(scores), DIGITS)
    if scores.marking is not None and _probabilities(scores.marking.scores):
        value["marking"]["scores"] = rounded_to(value["marking"]["scores"], TOKEN_DIGITS)
    of = {"format": FORMAT, "system": name, "key": key, "versions": package_versions(), "ids": ids}
    record = of | {"scores": value}
    content = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path_of(folder, name), lzma.compress(content))
    rounded: SystemScores = from_json(SystemScores, value)
    return rounded


@dataclass(frozen=True, slots=True, eq=False)
class StoredScores:
    """The scores of a system for the responses with these ids, and all that they depend on."""

    system: str
    key: Key
    ids: tuple[str, ...]
    scores: SystemScores


def read_scores(path: Path) -> StoredScores:
    """Read what `write_scores` wrote; raises `InputError` for anything else."""
    try:
        record = parse(_unpacked(read_bytes(path, LARGEST)))
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}")
        scores: SystemScores = from_json(SystemScores, record["scores"])
        ids = tuple(map(str, record["ids"]))
        _check_shapes(scores, len(ids))
        return StoredScores(str(record["system"]), record.get("key", {}), ids, scores)
    except (lzma.LZMAError, EOFError, *UNREADABLE) as error:
        raise InputError(f"not the scores of a system ({error})", path=path) from error


def stored_scores(
    folders: Sequence[Path], name: str, key: Key, ids: tuple[str, ...], tokens: int
) -> SystemScores | None:
    """The scores of this key, responses and number of tokens in the first of the folders, to which they are
    copied from the others; None where no folder has any. Raises `InputError` for a file of something else."""
    for folder in folders:
        path = path_of(folder, name)
        if not path.is_file():
            continue
        stored = read_scores(path)
        marking = stored.scores.marking
        same = stored.key == json.loads(json.dumps(key)) and stored.ids == ids
        if same and (marking is None or len(marking.scores) == tokens):
            if folder != folders[0]:
                folders[0].mkdir(parents=True, exist_ok=True)
                write_atomically(path_of(folders[0], name), path.read_bytes())
            return stored.scores
    return None


def _check_shapes(scores: SystemScores, rows: int) -> None:
    """Raise `ValueError` where arrays have not the lengths of the rows and tokens."""
    outcome, marking = scores.outcome, scores.marking
    inside = (numbers for test, train, _ in scores.outside for numbers in (test, train))
    if not (
        outcome.probabilities.shape == outcome.flagged.shape == (1, rows)
        and scores.answered.shape == (rows,)
        and {scores.asked.shape, scores.unanswered.shape} <= {(0,), (rows,)}
        and all(((each >= 0) & (each < rows)).all() for each in inside)
        and all(len(train) == len(values) for _, train, values in scores.outside)
        and all(map(_probabilities, (outcome.probabilities, *(values for _, _, values in scores.outside))))
    ):
        raise ValueError("responses are missing, or a probability is invalid")
    if marking is not None and len({len(marking.scores), len(marking.marked), len(marking.sentences)}) > 1:
        raise ValueError("tokens are missing")


def _probabilities(scores: np.ndarray) -> bool:
    finite = scores[np.isfinite(scores)]
    return bool(((finite >= 0) & (finite <= 1)).all())


def _unpacked(packed: bytes) -> bytes:
    """Raises `ValueError` for what is larger than any scores are."""
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=LARGEST)
    content = unpacker.decompress(packed, max_length=LARGEST)
    if not unpacker.eof:
        raise ValueError("it is cut off, or too large")
    return content
