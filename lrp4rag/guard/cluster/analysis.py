"""Analysis by many machines: a record for each response, in the order of DATA."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Protocol

from lrp4rag import __version__
from lrp4rag.classifiers import FittedDetector
from lrp4rag.data import json_line
from lrp4rag.example import Example
from lrp4rag.guard.cluster.groups import Groups, Numbered
from lrp4rag.guard.cluster.work import Workers, spread
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.judge import Detector
from lrp4rag.reader.encoding import Truncation
from lrp4rag.reader.reader import Reader
from lrp4rag.report.record import record
from lrp4rag.report.terminal import render_line
from lrp4rag.training.extractor import Group
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.files import present, write_atomically
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.progress import track
from lrp4rag.util.strict_json import finite_or_none, read_record, require_seal, sealed

VERDICTS = "verdicts"
"""The folder of a store that verdicts are kept in."""


class Opening(Protocol):
    """What opens a detector and its reader in the process that needs them."""

    def __call__(self) -> tuple[FittedDetector | None, Reader]: ...


@dataclass(frozen=True)
class Analysing:
    """What a worker needs to know. `kept` is the folder that keeps what is analysed, None: nowhere."""

    open: Opening
    policy: Policy | None
    composite: str | None
    truncation: Truncation
    max_memory: int | None
    max_new_tokens: int
    threads: int
    kept: Path | None


@dataclass(frozen=True, slots=True)
class Analysed:
    """What became of one response: its record and line, or why it failed and the exit code for that."""

    id: str
    record: dict[str, Any] | None
    line: str
    error: str
    code: int


def analyse_all(groups: Groups, plan: Analysing, workers: Workers) -> Iterator[Analysed]:
    """Each response in the order of DATA, as soon as those before it are there."""
    following = 0
    done = track(spread(groups, AnalysisWorker, plan, workers), groups.examples, "judging responses")
    with tempfile.TemporaryFile(prefix="lrp4rag-") as file:
        waiting = _Waiting(file)
        for row in done:
            waiting.add(row)
            while following in waiting.complete:
                for one in waiting.take(following):
                    told = json.loads(one["record"]) if one["record"] else None
                    yield Analysed(one["id"], told, one["line"], one["error"], one["code"])
                following += 1


class _Waiting:
    """What waits for responses that stand before it in DATA, by the number of its row: in a file, for
    it may be most of a run."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._places = file, dict[int, list[int]]()
        self.complete: set[int] = set()

    def add(self, row: dict[str, Any]) -> None:
        number = int(row["row"])
        self._places.setdefault(number, []).append(self._file.seek(0, os.SEEK_END))
        self._file.write(json.dumps(row).encode() + b"\n")
        if row["last"]:
            self.complete.add(number)

    def take(self, number: int) -> Iterator[dict[str, Any]]:
        for place in self._places.pop(number):
            self._file.seek(place)
            yield json.loads(self._file.readline())
        self.complete.discard(number)
        if not self._places:
            self._file.truncate(0)


class AnalysisWorker:
    """A detector and its reader."""

    def __init__(self, plan: Analysing) -> None:
        import torch

        torch.set_num_threads(plan.threads)
        self._plan = plan
        model, reader = plan.open()
        self._detector = Detector(
            model, reader, composite=plan.composite, truncation=plan.truncation, max_memory=plan.max_memory
        )
        self._detector.__enter__()  # as long as the process: the reader's model is nobody else's
        self._kept = None if plan.kept is None else plan.kept / VERDICTS / self._key(reader)
        if self._kept is not None:
            self._kept.mkdir(parents=True, exist_ok=True)

    def _key(self, reader: Reader) -> str:
        """What verdicts depend on, beside the example."""
        plan, model = self._plan, self._detector.model
        known = [__version__, reader.identity.as_dict(), plan.composite, plan.truncation, plan.max_new_tokens]
        card = None if model is None else model.card.model_dump_json()
        prevalence = None if model is None else model.prevalence
        # Passages expire: what a policy says holds for a day.
        today = datetime.now(UTC).date().isoformat()
        policy = None if plan.policy is None else [plan.policy.model_dump_json(), today]
        return json_hash([*known, card, prevalence, policy])[:32]

    def run(self, group: Group, numbered: Sequence[Numbered]) -> Iterator[dict[str, Any]]:
        """A row each: what `Analysed` is made of, and where its response stands in DATA."""
        found = self._read(group)
        if found is None:
            found = [self._one(example) for example in group.examples]
            self._write(group, found)
        places = [row for row, _, _ in numbered]
        for place, after, told in zip(places, [*places[1:], -1], found, strict=True):
            yield {**told, "row": place, "last": place != after}

    def _one(self, example: Example) -> dict[str, Any]:
        plan, decision = self._plan, None
        try:
            found = self._detector.analyse(example, max_new_tokens=plan.max_new_tokens)
            if plan.policy is not None and self._detector.model is not None:
                decision = assess(plan.policy, found.example, found)
        # RuntimeError: torch, for example when memory runs out on one long row.
        except (LRP4RAGError, RuntimeError, IndexError, ValueError) as error:
            code = getattr(error, "exit_code", 1)
            failed = {"record": "", "line": "", "error": str(error), "code": code}
            return {"id": example.id, **failed, "whole": False}
        row = record(found, prevalence=found.prevalence, decision=decision)
        told = json.dumps(finite_or_none(row))
        line = render_line(found).plain
        whole = decision is None or not decision.checked.unavailable
        return {"id": example.id, "record": told, "line": line, "error": "", "code": 0, "whole": whole}

    def _path(self, group: Group) -> Path | None:
        lines = [json_line(example) for example in group.examples]
        return None if self._kept is None else self._kept / f"{json_hash(lines)[:32]}.json"

    def _read(self, group: Group) -> list[dict[str, Any]] | None:
        """What an earlier run kept of these; None where that is missing, damaged, or has failures, also of a
        check."""
        path = self._path(group)
        if path is None or not present(path):
            return None
        try:
            kept = read_record(path, "verdicts")
            require_seal(kept, path, "this file")
            found: list[dict[str, Any]] = kept["rows"]
        except (InputError, KeyError):
            return None
        return None if len(found) != len(group.examples) or not all(row["whole"] for row in found) else found

    def _write(self, group: Group, found: list[dict[str, Any]]) -> None:
        path = self._path(group)
        if path is not None:
            write_atomically(path, json.dumps(sealed({"rows": found})) + "\n")
