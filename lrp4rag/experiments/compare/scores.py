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

from lrp4rag.classifiers.card import package_versions
from lrp4rag.errors import InputError
from lrp4rag.experiments.compare.folds import Judged
from lrp4rag.experiments.reproduce.records import from_json, rounded_to, to_json
from lrp4rag.files import write_atomically

FORMAT = 1
LARGEST = 1 << 28  # bytes of a file's content, which is compressed
DIGITS, TOKEN_DIGITS = 5, 3
"""Significant digits of probabilities, and of tokens' suspicion: there are half a million of these."""


@dataclass(frozen=True, slots=True)
class System:
    """`key` says everything that its scores depend on, `run` computes them."""

    key: dict[str, Any]
    run: Callable[[], Judged]


@dataclass(frozen=True, slots=True)
class Scores:
    """A folder of files NAME.json.xz, with a system's scores of R responses, whose `ids` these are, and of
    their N `tokens`: arrays are in the order of the ids, tokens one response after the other."""

    folder: Path
    ids: tuple[str, ...]
    tokens: int

    def read(self, name: str, key: dict[str, Any]) -> Judged | None:
        """None where there are none of this key. Raises `InputError` for a file that holds something else."""
        path = self.path(name)
        if not path.is_file():
            return None
        try:
            record = json.loads(_unpacked(path))
            if record["format"] != FORMAT or record["key"] != json.loads(json.dumps(key)):
                return None
            judged: Judged = from_json(Judged, record["scores"])
            if tuple(record["ids"]) != self.ids or not self._fits(judged):
                raise ValueError("responses or tokens are missing")
        except (lzma.LZMAError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"not the scores of a system; delete it ({error})", path=path) from error
        return judged

    def write(self, name: str, key: dict[str, Any], judged: Judged) -> Judged:
        """What was written, which is rounded: what is shown is what can be read again."""
        value = rounded_to(to_json(judged), DIGITS)
        if judged.marking is not None:
            value["marking"]["scores"] = rounded_to(value["marking"]["scores"], TOKEN_DIGITS)
        record = {
            "format": FORMAT,
            "system": name,
            "key": key,
            "versions": package_versions(),
            "ids": self.ids,
            "scores": value,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()
        write_atomically(self.path(name), lzma.compress(content))
        kept: Judged = from_json(Judged, value)
        return kept

    def path(self, name: str) -> Path:
        return self.folder / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.json.xz"

    def _fits(self, judged: Judged) -> bool:
        rows, marking = len(self.ids), judged.marking
        outcome = judged.outcome
        return (
            outcome.probabilities.shape == outcome.flagged.shape == (1, rows)
            and len(judged.answered) == rows
            and (marking is None or len(marking.scores) == len(marking.marked) == self.tokens)
        )


def _unpacked(path: Path) -> bytes:
    """Raises `ValueError` for what is larger than any scores are."""
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=LARGEST)
    content = unpacker.decompress(path.read_bytes(), max_length=LARGEST)
    if not unpacker.eof:
        raise ValueError("it is cut off, or too large")
    return content
