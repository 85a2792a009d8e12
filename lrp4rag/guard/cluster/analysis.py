"""Analysis by many machines: a record for each response, in the order of DATA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lrp4rag.classifiers import Model
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
from lrp4rag.util.errors import EXAMPLE_ERRORS
from lrp4rag.util.progress import track
from lrp4rag.util.strict_json import finite_or_none

Load = Callable[[], tuple[Model | None, Reader]]
"""Opens a detector (None: evidence without a verdict) and its reader in the process that needs them."""


@dataclass(frozen=True)
class Plan:
    """The settings of a worker that analyses."""

    load: Load
    policy: Policy | None
    composite: str | None
    truncation: Truncation
    max_memory: int | None
    max_new_tokens: int


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
    results = map_groups(groups, partial(AnalysisWorker, plan), workers)
    for number, rows in track(results, len(groups), "judging responses"):
        for example, row in zip(groups[number].examples, rows, strict=True):
            ready[position[example.id]] = Analysed(example.id, **row)
        while following in ready:
            yield ready.pop(following)
            following += 1


class AnalysisWorker:
    """A detector and its reader."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        model, reader = plan.load()
        self._detector = Detector(
            model, reader, composite=plan.composite, truncation=plan.truncation, max_memory=plan.max_memory
        )
        self._detector.__enter__()  # never left: the reader's model is this process's alone

    def run(self, group: Group) -> Rows:
        """Return a row for each response: the fields of `Analysed` but its id."""
        return [self._row(example) for example in group.examples]

    def _row(self, example: Example) -> dict[str, Any]:
        plan, model = self._plan, self._detector.model
        try:
            verdict = self._detector.analyse(example, max_new_tokens=plan.max_new_tokens)
            decision = None
            if plan.policy is not None and model is not None:
                decision = assess(plan.policy, verdict.example, verdict)
        except EXAMPLE_ERRORS as error:
            code = getattr(error, "exit_code", 1)
            return {"record": None, "line": "", "error": str(error), "code": code}
        return {
            "record": finite_or_none(record(verdict, prevalence=verdict.prevalence, decision=decision)),
            "line": render_line(verdict).plain,
            "error": "",
            "code": 0,
        }
