"""What analyses on a cluster wait for, and which of those kept they use again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lrp4rag.guard.cluster import analysis as module
from lrp4rag.guard.cluster.analysis import Analysing, AnalysisWorker, _Waiting
from lrp4rag.guard.policy import Policy
from lrp4rag.reader import Reader
from lrp4rag.training.extract import groups_of
from tests.cli.plain_detector import plain_detector
from tests.training.jobs import responses


def test_rows_wait_on_disk_for_those_before_them() -> None:
    with tempfile.TemporaryFile() as file:
        waiting = _Waiting(file)
        waiting.add({"row": 1, "id": "b", "last": True})
        waiting.add({"row": 0, "id": "a-1", "last": False})
        assert waiting.complete == {1}
        waiting.add({"row": 0, "id": "a-2", "last": True})
        assert [row["id"] for row in waiting.take(0)] == ["a-1", "a-2"]
        assert [row["id"] for row in waiting.take(1)] == ["b"]
        assert (waiting.complete, file.seek(0, 2)) == (set(), 0)


@contextmanager
def day(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[None]:
    with monkeypatch.context() as patch:
        now = datetime(2026, 11, number, tzinfo=UTC)
        patch.setattr(module, "datetime", SimpleNamespace(now=lambda _: now))
        yield


@pytest.mark.parametrize("policy", [None, Policy()])
def test_what_a_policy_says_is_kept_for_a_day(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Policy | None
) -> None:
    detector = plain_detector(tiny_reader)
    plan = Analysing(lambda: (detector, tiny_reader), policy, None, "error", None, 16, 1, tmp_path)
    for number in (2, 2, 3):
        with day(monkeypatch, number):
            AnalysisWorker(plan)
    assert len(list((tmp_path / "verdicts").iterdir())) == (1 if policy is None else 2)


def test_what_a_check_did_not_finish_is_judged_again(tiny_reader: Reader, tmp_path: Path) -> None:
    detector, examples = plain_detector(tiny_reader), responses(1, 2)
    plan = Analysing(lambda: (detector, tiny_reader), Policy(), None, "error", None, 16, 1, tmp_path)
    (group,) = groups_of(examples, examples)
    numbered = [(k, 0, one) for k, one in enumerate(examples)]

    def judged(plan: Analysing) -> list[dict[str, Any]]:
        return list(AnalysisWorker(plan).run(group, numbered))

    first = judged(plan)
    assert all(row["whole"] for row in first)
    assert judged(plan) == first  # with its seconds: it was kept
    (kept,) = (tmp_path / "verdicts").rglob("*.json")
    hurried = replace(plan, policy=Policy(budget=1e-9))
    late = judged(hurried)
    assert not any(row["whole"] for row in late)
    assert json.loads(late[0]["record"])["decision"]["unavailable"]
    assert judged(hurried) != late
    assert kept.exists()
