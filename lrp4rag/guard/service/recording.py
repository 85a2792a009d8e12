"""`Recorder`: decisions as entries of the audit log, written before the answer leaves."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from lrp4rag.classifiers.verdict import Sentence, SuspectSpan
from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.checks.check import Finding
from lrp4rag.guard.policy import Action, Assessment, Policy, Reason
from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.models import Decision
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.reviews import KINDS, QUEUED, Queue
from lrp4rag.guard.service.settings import Settings
from lrp4rag.judge import Detector
from lrp4rag.report.record import nearest_record
from lrp4rag.source import Source
from lrp4rag.streaming import JudgedPiece
from lrp4rag.util.errors import LRP4RAGError

LOG = logging.getLogger("lrp4rag.service")
MOST_SPANS = 500
"""Sentences, and contradicted values, of one answer in an entry."""
OTHER = "other"
"""Recorded for a topic or a generator that the settings do not list."""


def new_id() -> str:
    """Return a random id of a decision or an answer, which tells nothing."""
    return secrets.token_hex(12)


class Recorder:
    """Appends decisions to the audit `log`, with the versions that made them."""

    def __init__(self, log: AuditLog, detector: Detector, policy: Policy, *, keep_texts: bool) -> None:
        self.log, self._policy, self._keeps_texts = log, policy, keep_texts
        self._appending, self._catching_up = threading.Lock(), threading.Lock()
        self._queue = Queue()
        self._catch_up()
        self.on_decision: Callable[[Decision, Mapping[str, str], Sequence[Source]], None] | None = None
        """Called with each decision on an answer, its texts and its passages; returns at once."""
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
        sources: Sequence[Source] = (),
        **more: Any,
    ) -> Decision:
        """Write a decision made for the client `by`; `more` are scores and numbers, and only `texts` hold
        what people wrote; `sources` are for `on_decision`. Once this returns, the decision is on disk; raises
        a problem (503) where it cannot be written."""
        decision = Decision(id=new_id(), action=action, reason=reason, policy=self._policy.hash, rule=rule)
        outcome = {"action": action, "reason": reason, **({} if rule is None else {"rule": rule})}
        record = {"id": decision.id, "kind": kind, **outcome, "client": by, **self._versions, **more}
        await self._append(kind, record, texts)
        metrics.decided(record)
        if self.on_decision is not None and kind in KINDS and texts:
            self.on_decision(decision, texts, sources)
        return decision

    async def note(
        self, kind: metrics.Note, *, by: str, texts: Mapping[str, str] | None = None, **more: Any
    ) -> str:
        """Write a statement on a decision, and return the id of its entry. Raises a problem as `decide`
        does."""
        id = new_id()
        await self._append(kind, {"id": id, "kind": kind, "client": by, **more}, texts)
        return id

    async def _append(
        self, kind: metrics.Kind | metrics.Note, record: dict[str, Any], texts: Mapping[str, str] | None
    ) -> None:
        def append() -> None:
            with self._appending:
                self.log.append(record, dict(texts or {}) if self._keeps_texts else {})

        try:
            with metrics.timed("audit", kind):
                await run_in_threadpool(append)
        except Exception as error:  # no fault of the request, and the message may tell where the log is
            metrics.AUDIT_FAILURES.inc()
            LOG.error("a decision could not be recorded: %s", type(error).__name__)
            raise Problem(503, "Unavailable", "the decision could not be recorded") from None

    def waiting(self) -> dict[str, Mapping[str, Any]]:
        """Return the escalated answers that wait for a reviewer, by their id, the oldest first, also those of
        other servers that write to this log; where it cannot be read, the answers that waited before."""
        with self._catching_up:
            try:
                self._catch_up()
            except LRP4RAGError as error:
                LOG.error("the audit log could not be read: %s", type(error).__name__)
            return dict(self._queue.waiting)

    @property
    def last_waiting(self) -> int:
        """The number of answers that `waiting` returned last."""
        return len(self._queue.waiting)

    def require_writable(self) -> None:
        """Raise a problem (503) where no decision could be recorded now."""
        try:
            self.log.require_writable()
        except Exception as error:  # its message may tell where the log is
            LOG.error("the audit log cannot be written: %s", type(error).__name__)
            raise Problem(503, "Unavailable", "the audit log cannot be written") from None

    def _catch_up(self) -> None:
        for entry in self.log.entries(kinds=QUEUED, after=self._queue.last):
            self._queue.note(entry)


def labels(
    settings: Settings,
    sources: Sequence[Source],
    response: str | None = None,
    *,
    sentences: int | None = None,
    topic: str | None = None,
    generator: str | None = None,
) -> dict[str, Any]:
    """Return sizes, the retrieval's best score, topic and generator; unknown ones are left out.

    No words of a request are among them: topic and generator are of those that the settings list, or "other".
    Without a topic, it is that of the passages, where they agree.
    """
    topics = {source.topic for source in sources}
    if topic is None and len(topics) == 1:
        (topic,) = topics
    models = settings.generators if settings.model is None else (*settings.generators, settings.model)
    fields = {
        "topic": _listed(topic, settings.topics),
        "generator": _listed(generator, models),
        "passages": len(sources),
        "retrieval_score": max(
            (source.score for source in sources if source.score is not None), default=None
        ),
        "characters": None if response is None else len(response),
        "sentence_count": sentences,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _listed(name: str | None, names: Sequence[str]) -> str | None:
    if name is None or not names:
        return None
    return name if name in names else OTHER


def texts_of(question: str, passages: Iterable[str], response: str | None = None) -> dict[str, str]:
    """Return the texts of people and models, by their names in the log."""
    texts = {"question": question} | {f"passage {k}": text for k, text in enumerate(passages, start=1)}
    return texts if response is None else texts | {"response": response}


def results_of(assessment: Assessment | None) -> dict[str, Any]:
    """Return the measures and findings of an assessment."""
    return {
        "probability": assessment and assessment.measures.probability,
        "faithfulness": assessment and assessment.measures.faithfulness,
        "statuses": assessment and assessment.measures.statuses,
        "fact_score": assessment and assessment.measures.facts,
        "findings": counted(assessment.checked.every) if assessment else {},
        "unavailable": dict(assessment.checked.unavailable) if assessment else {},
    }


def counted(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the number of findings of each kind, without their words: they may quote a request."""
    return dict(Counter(f"{finding.check}: {finding.kind}" for finding in findings))


def evidence_of(sentences: Sequence[Sentence | JudgedPiece], spans: Iterable[SuspectSpan]) -> dict[str, Any]:
    """Return the characters of an answer that are suspect, and those of the passages that contradict or
    resemble them, for a reviewer. Numbers only; passages count from 1."""
    return {
        "sentences": [
            {
                "start": sentence.start,
                "end": sentence.end,
                "probability": None if sentence.probability is None else float(sentence.probability),
                "suspect": bool(sentence.suspect),
                "status": sentence.status,
                "nearest": _without_words(nearest_record(sentence.nearest)),
            }
            for sentence in sentences[:MOST_SPANS]
        ],
        "contradictions": [
            {
                "start": contradiction.start,
                "end": contradiction.end,
                "passage": contradiction.passage + 1,
                "passage_start": contradiction.passage_start,
                "passage_end": contradiction.passage_end,
            }
            for span in spans
            for contradiction in span.contradictions
        ][:MOST_SPANS],
    }


def _without_words(nearest: dict[str, Any] | None) -> dict[str, Any] | None:
    return nearest and {name: value for name, value in nearest.items() if name != "words"}
