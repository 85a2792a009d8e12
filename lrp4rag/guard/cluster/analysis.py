"""Analysis by many machines: a record for each response, in the order of DATA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lrp4rag.example import Example
from lrp4rag.guard.cluster.workers import Rows, Workers, map_groups
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.judge import Detector
from lrp4rag.report.record import record
from lrp4rag.report.terminal import render_line
from lrp4rag.training.extract import groups_of
from lrp4rag.training.extractor import Group
from lrp4rag.util.errors import EXAMPLE_ERRORS
from lrp4rag.util.progress import track
from lrp4rag.util.strict_json import finite_or_none

Load = Callable[[], Detector]
"""Opens a detector with its reader in the process that needs them."""


@dataclass(frozen=True, slots=True)
class Analysed:
    """The record of a response and its line, or an error and the exit code for that."""

    id: str
    record: dict[str, Any] | None
    line: str
    error: str
    code: int


def analyse_on_cluster(
    examples: Sequence[Example], load: Load, policy: Policy | None, workers: Workers, *, max_new_tokens: int
) -> Iterator[Analysed]:
    """Yield each response, and what the policy does with it, in the order of DATA, as soon as those before it
    are done."""
    groups = groups_of(examples, examples)
    position = {example.id: number for number, example in enumerate(examples)}
    ready: dict[int, Analysed] = {}
    following = 0
    results = map_groups(groups, partial(AnalysisWorker, load, policy, max_new_tokens), workers)
    for number, rows in track(results, len(groups), "judging responses"):
        for example, row in zip(groups[number].examples, rows, strict=True):
            ready[position[example.id]] = Analysed(example.id, **row)
        while following in ready:
            yield ready.pop(following)
            following += 1


class AnalysisWorker:
    """A detector and its reader."""

    def __init__(self, load: Load, policy: Policy | None, max_new_tokens: int) -> None:
        self._policy, self._most = policy, max_new_tokens
        self._detector = load()
        self._detector.__enter__()  # never left: the reader's model is this process's alone

    def run(self, group: Group) -> Rows:
        """Return a row for each response: the fields of `Analysed` but its id."""
        return [self._row(example) for example in group.examples]

    def _row(self, example: Example) -> dict[str, Any]:
        try:
            verdict = self._detector.analyse(example, max_new_tokens=self._most)
            decision = None
            if self._policy is not None and self._detector.model is not None:
                decision = assess(self._policy, verdict.example, verdict)
        except EXAMPLE_ERRORS as error:
            code = getattr(error, "exit_code", 1)
            return {"record": None, "line": "", "error": str(error), "code": code}
        return {
            "record": finite_or_none(record(verdict, prevalence=verdict.prevalence, decision=decision)),
            "line": render_line(verdict).plain,
            "error": "",
            "code": 0,
        }
