"""Analysis by many machines: a record for each response, in the order of DATA."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from lrp4rag import __version__
from lrp4rag.classifiers import FittedDetector
from lrp4rag.data import json_line
from lrp4rag.example import Example
from lrp4rag.guard.cluster.workers import Rows, Workers, map_groups
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.judge import Detector
from lrp4rag.reader.encoding import Truncation
from lrp4rag.reader.reader import Reader
from lrp4rag.report.record import record
from lrp4rag.report.terminal import render_line
from lrp4rag.training.extract import groups_of
from lrp4rag.training.extractor import Group
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.files import present, write_atomically
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.progress import track
from lrp4rag.util.strict_json import finite_or_none, read_record, require_seal, sealed

VERDICTS = "verdicts"
"""The folder of a store that keeps verdicts."""


Load = Callable[[], tuple[FittedDetector | None, Reader]]
"""Opens a detector (None: evidence without a verdict) and its reader in the process that needs them."""


@dataclass(frozen=True)
class Plan:
    """How a worker analyses a response. `store` is a folder that keeps verdicts for the next run."""

    load: Load
    policy: Policy | None
    composite: str | None
    truncation: Truncation
    max_memory: int | None
    max_new_tokens: int
    store: Path | None


@dataclass(frozen=True, slots=True)
class Analysed:
    """The record of a response and its line, or an error and the exit code for that."""

    id: str
    record: dict[str, Any] | None
    line: str
    error: str
    code: int


def analyse_on_cluster(examples: Sequence[Example], plan: Plan, workers: Workers) -> Iterator[Analysed]:
    """Yield each response in the order of DATA, as soon as those before it are done."""
    groups = groups_of(examples, examples)
    position = {example.id: number for number, example in enumerate(examples)}
    ready: dict[int, Analysed] = {}
    following = 0
    results = map_groups(groups, partial(AnalysisWorker, plan, workers.cpus), workers)
    for number, rows in track(results, len(groups), "judging responses"):
        for example, row in zip(groups[number].examples, rows, strict=True):
            fields = {name: row[name] for name in ("record", "line", "error", "code")}
            ready[position[example.id]] = Analysed(example.id, **fields)
        while following in ready:
            yield ready.pop(following)
            following += 1


class AnalysisWorker:
    """A detector and its reader."""

    def __init__(self, plan: Plan, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self._plan = plan
        model, reader = plan.load()
        self._detector = Detector(
            model, reader, composite=plan.composite, truncation=plan.truncation, max_memory=plan.max_memory
        )
        self._detector.__enter__()  # never left: the reader's model is this process's alone
        self._store = None if plan.store is None else plan.store / VERDICTS / self._key(reader)
        if self._store is not None:
            self._store.mkdir(parents=True, exist_ok=True)

    def run(self, group: Group) -> Rows:
        """Return a row for each response: the fields of `Analysed` but its id, and whether it is `complete`,
        so that the next run may use it. Equal groups of an earlier run are read from the store."""
        path = self._path(group)
        rows = None if path is None else _stored(path)
        if rows is None or len(rows) != len(group.examples):
            rows = [self._row(example) for example in group.examples]
            if path is not None:
                write_atomically(path, json.dumps(sealed({"rows": rows})) + "\n")
        return rows

    def _row(self, example: Example) -> dict[str, Any]:
        plan, model = self._plan, self._detector.model
        try:
            verdict = self._detector.analyse(example, max_new_tokens=plan.max_new_tokens)
            decision = None
            if plan.policy is not None and model is not None:
                decision = assess(plan.policy, verdict.example, verdict)
        # RuntimeError: torch, for example when memory runs out on one long row.
        except (LRP4RAGError, RuntimeError, IndexError, ValueError) as error:
            code = getattr(error, "exit_code", 1)
            return {"record": None, "line": "", "error": str(error), "code": code, "complete": False}
        return {
            "record": finite_or_none(record(verdict, prevalence=verdict.prevalence, decision=decision)),
            "line": render_line(verdict).plain,
            "error": "",
            "code": 0,
            "complete": decision is None or not decision.checked.unavailable,
        }

    def _key(self, reader: Reader) -> str:
        """A hash of all that verdicts depend on, beside the example."""
        plan, model = self._plan, self._detector.model
        settings: list[Any] = [__version__, reader.identity.as_dict()]
        settings += [plan.composite, plan.truncation, plan.max_new_tokens]
        card = None if model is None else [model.card.model_dump_json(), model.prevalence]
        # Passages expire: what a policy decides holds for a day.
        today = datetime.now(UTC).date().isoformat()
        policy = None if plan.policy is None else [plan.policy.model_dump_json(), today]
        return json_hash([*settings, card, policy])[:32]

    def _path(self, group: Group) -> Path | None:
        lines = [json_line(example) for example in group.examples]
        return None if self._store is None else self._store / f"{json_hash(lines)[:32]}.json"


def _stored(path: Path) -> Rows | None:
    """The rows of an earlier run; None where they are missing, damaged or incomplete."""
    if not present(path):
        return None
    try:
        stored = read_record(path, "verdicts")
        require_seal(stored, path, "this file")
        rows: Rows = stored["rows"]
    except (InputError, KeyError):
        return None
    return rows if all(row["complete"] for row in rows) else None
