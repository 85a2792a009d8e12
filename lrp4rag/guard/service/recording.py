"""`Recorder`: decisions as records of the audit log, written before the answer leaves."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from lrp4rag.classifiers.verdict import Sentence, SuspectSpan
from lrp4rag.example import Example
from lrp4rag.guard.audit import AuditLog, Entry
from lrp4rag.guard.checks.check import Finding
from lrp4rag.guard.policy import Action, Assessment, Policy, Reason
from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.models import Decision
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.reviews import KINDS, QUEUED, Queue
from lrp4rag.judge import Detector
from lrp4rag.report.record import nearest_record
from lrp4rag.streaming import JudgedPiece
from lrp4rag.util.errors import LRP4RAGError

LOG = logging.getLogger("lrp4rag.service")
MOST_PLACES = 500
"""Sentences, and contradicted values, of one answer that a record holds."""


def new_id() -> str:
    """Of a decision or an answer: random, so that it tells nothing."""
    return secrets.token_hex(12)


def texts_of(example: Example, response: str) -> dict[str, str]:
    """What people and models wrote, by the names that it has in the log."""
    passages = {f"passage {k}": text for k, text in enumerate(example.passages, start=1)}
    return {"question": example.question, **passages, "response": response}


class Recorder:
    """Appends to the audit log what was decided, by which versions, under which policy."""

    def __init__(self, log: AuditLog, detector: Detector, policy: Policy, *, keep_texts: bool) -> None:
        self._log, self._policy, self._lock = log, policy, threading.Lock()
        self._catching_up = threading.Lock()
        self._keeps_texts = keep_texts
        self._queue = Queue()
        self._catch_up()
        self.told: Callable[[Decision, Mapping[str, str]], None] | None = None
        """Called with each decision on an answer and its texts; returns at once."""
        self._versions = {**detector.versions, "policy": policy.hash}

    async def decide(
        self,
        kind: metrics.Kind,
        action: Action,
        reason: Reason,
        *,
        by: str,
        rule: str | None = None,
        texts: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Decision:
        """Write a decision of a `kind`, made for the client `by`; `more` are scores and numbers, and only
        `texts` hold what people wrote. It is on disk when this returns; raises a problem (503) where it
        cannot be."""
        made = Decision(id=new_id(), action=action, reason=reason, policy=self._policy.hash, rule=rule)
        record = {
            "id": made.id,
            "kind": kind,
            "action": action,
            "reason": reason,
            **({} if rule is None else {"rule": rule}),
            "client": by,
            **self._versions,
            **more,
        }
        with metrics.timed("audit", kind):
            await run_in_threadpool(self._append, record, dict(texts or {}))
        metrics.decided(record)
        if self.told is not None and kind in KINDS and texts:
            self.told(made, texts)
        return made

    async def note(
        self, kind: metrics.Note, *, by: str, texts: Mapping[str, str] | None = None, **more: Any
    ) -> str:
        """Write what was said of a decision; the id of its record. Raises a problem as `decide` does."""
        id = new_id()
        record = {"id": id, "kind": kind, "client": by, **more}
        with metrics.timed("audit", kind):
            await run_in_threadpool(self._append, record, dict(texts or {}))
        return id

    async def waiting(self) -> dict[str, Mapping[str, Any]]:
        """Escalated answers that wait for a reviewer, by their id, the oldest first: also those of other
        servers that write to this log. Where it cannot be read, those that were known before."""
        return await run_in_threadpool(self._waiting)

    async def texts(self, id: str) -> dict[str, str]:
        """What people wrote, where it is kept."""
        return await run_in_threadpool(self._log.texts, id)

    async def questions(self, entries: Iterable[Entry]) -> dict[str, str]:
        """What was asked, by the ids of entries, where it is kept."""
        return await run_in_threadpool(self._log.texts_named, "question", entries)

    async def find(self, id: str) -> Entry | None:
        return await run_in_threadpool(self._log.get, id)

    async def require_writable(self) -> None:
        """Raises a problem (503) where no decision could be recorded now."""
        try:
            await run_in_threadpool(self._log.require_writable)
        except Exception as error:  # its message may tell where the log is
            LOG.error("the audit log cannot be written: %s", type(error).__name__)
            raise Problem(503, "Unavailable", "the audit log cannot be written") from None

    async def latest(self, *, before: int | None, limit: int) -> list[Entry]:
        """The last decisions on answers, or the last before a sequence number, the newest first."""
        return await run_in_threadpool(self._log.latest, KINDS, before=before, limit=limit)

    @property
    def known_waiting(self) -> int:
        """How many `waiting` had last."""
        return len(self._queue.waiting)

    def _waiting(self) -> dict[str, Mapping[str, Any]]:
        with self._catching_up:
            try:
                self._catch_up()
            except LRP4RAGError as error:
                LOG.error("the audit log could not be read: %s", type(error).__name__)
            return dict(self._queue.waiting)

    def _catch_up(self) -> None:
        for entry in self._log.entries(kinds=QUEUED, after=self._queue.last):
            self._queue.note(entry)

    def _append(self, record: dict[str, Any], texts: dict[str, str]) -> None:
        try:
            with self._lock:
                self._log.append(record, texts if self._keeps_texts else {})
        except Exception as error:  # no fault of the request, and the message may tell where the log is
            metrics.audit_failed()
            LOG.error("a decision could not be recorded: %s", type(error).__name__)
            raise Problem(503, "Unavailable", "the decision could not be recorded") from None


def results_of(found: Assessment | None) -> dict[str, Any]:
    """The fields of a record that say what an assessment is made of."""
    return {
        "probability": found and found.measures.probability,
        "faithfulness": found and found.measures.faithfulness,
        "statuses": found and found.measures.statuses,
        "fact_score": found and found.measures.facts,
        "findings": counted(found.checked.every) if found else {},
        "unavailable": dict(found.checked.unavailable) if found else {},
    }


def counted(findings: Iterable[Finding]) -> dict[str, int]:
    """How many findings there are of each kind, without their words: they may quote a request."""
    return dict(Counter(f"{one.check}: {one.kind}" for one in findings))


def evidence_of(sentences: Sequence[Sentence | JudgedPiece], spans: Iterable[SuspectSpan]) -> dict[str, Any]:
    """Which characters of an answer are suspect, and which of the passages contradict or resemble them: what
    a reviewer is shown again. Numbers only; passages count from 1."""
    contradictions = [
        {
            "start": one.start,
            "end": one.end,
            "passage": one.passage + 1,
            "passage_start": one.passage_start,
            "passage_end": one.passage_end,
        }
        for span in spans
        for one in span.contradictions
    ]
    return {
        "sentences": [
            {
                "start": one.start,
                "end": one.end,
                "probability": None if one.probability is None else float(one.probability),
                "suspect": bool(one.suspect),
                "status": one.status,
                "nearest": _without_words(nearest_record(one.nearest)),
            }
            for one in sentences[:MOST_PLACES]
        ],
        "contradictions": contradictions[:MOST_PLACES],
    }


def _without_words(nearest: dict[str, Any] | None) -> dict[str, Any] | None:
    return nearest and {name: value for name, value in nearest.items() if name != "words"}
