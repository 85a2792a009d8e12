"""`JudgedAnswer`: drives a `GuardedAnswer` by the upstream's text, the reader's thread and the audit log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from lrp4rag.example import Example
from lrp4rag.guard.policy import Assessment, GuardedAnswer
from lrp4rag.guard.policy.answer import DecidedSentence, Pending
from lrp4rag.guard.policy.decision import unjudged
from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.models import Decision
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.recording import counted, evidence_of, labels, new_id, results_of, texts_of
from lrp4rag.guard.service.state import State
from lrp4rag.guard.service.upstream import Delta
from lrp4rag.judge import Detector
from lrp4rag.streaming import StreamingDetector

UPSTREAM_FAILED = (502, 504)
"""Statuses that only a failure of the upstream has."""


@dataclass(frozen=True, slots=True)
class RecordedPart:
    """Text that may leave, with its decision, which is in the audit log; text that says nothing has none."""

    text: str
    decision: Decision | None = None
    sentence: DecidedSentence | None = None

    def extension(self) -> dict[str, Any]:
        """Return the record of the part that the client gets."""
        decision: dict[str, Any] = {} if self.decision is None else self.decision.model_dump()
        return decision if self.sentence is None else decision | self.sentence.record()


@dataclass(slots=True)
class JudgedAnswer:
    """An answer of the upstream, of which each sentence waits until it is judged and recorded.

    `finish_reason` and `usage` are the upstream's; they, `decision` and `assessment` are known once `parts`
    has ended. A refusal is text like any other.
    """

    server: State
    example: Example
    by: str
    language: str = "en"
    topic: str | None = None
    id: str = field(default_factory=new_id)
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    decision: Decision | None = None
    assessment: Assessment | None = None

    async def parts(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[RecordedPart]:
        """Yield the parts, each once it is judged and recorded. Raises a problem where the reader has no time
        or the upstream fails, and where the audit log cannot be written; text not judged by then is not
        released."""
        with self.server.access.answering(self.by):
            async with aclosing(self._parts(deltas)) as parts:
                async for part in parts:
                    yield part

    async def _parts(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[RecordedPart]:
        policy, example = self.server.settings.policy, self.example
        answer = await run_in_threadpool(GuardedAnswer, policy, example.question, example.sources)
        if answer.unfit is not None:  # the upstream is not asked
            metrics.took("checks", "answer", answer.unfit.checked.took)
            await deltas.aclose()
            self.finish_reason = "content_filter"
            await self._finish(answer, answer.unfit)
            yield RecordedPart(answer.conclude(answer.unfit), self.decision)
            return
        with metrics.missing("answer"):
            answer.begin(await self.server.worker.run(self._read_prompt, self.server.settings.seconds))
        try:
            async with aclosing(self._sentences(answer, deltas)) as parts:
                async for part in parts:
                    yield part
        except Exception as error:
            self.finish_reason = "failed"
            if isinstance(error, Problem) and error.status in UPSTREAM_FAILED:
                metrics.missed("answer", "upstream")
            await self._finish(answer, None)
            raise
        self.finish_reason = "content_filter" if answer.stopped else self.finish_reason
        assessment = await self._assess(answer) if answer.text.strip() else None
        await self._finish(answer, assessment)
        if assessment is not None and answer.actions and (last := answer.conclude(assessment)):
            yield RecordedPart(last, self.decision)

    def _read_prompt(self, detector: Detector) -> StreamingDetector:
        with metrics.timed("reading", "answer"):
            reading = detector.reading_of(self.example, language=self.language)
            reading.prepare()
        return reading

    async def _sentences(
        self, answer: GuardedAnswer, deltas: AsyncGenerator[Delta]
    ) -> AsyncGenerator[RecordedPart]:
        started = time.monotonic()
        until, silent = started + self.server.settings.answer_seconds, True
        delta: Delta | None = Delta()
        async with aclosing(deltas):
            while delta is not None:
                delta = await _next(deltas, until)
                if delta is None:
                    answer.end()
                else:
                    if silent and delta.content:
                        silent = False
                        metrics.took("first token", "answer", time.monotonic() - started)
                    self._take(answer, delta)
                while (due := answer.next()) is not None:
                    _require_time(until)
                    with metrics.timed("held", "sentence"):
                        part = await self._recorded(answer, due)
                    yield part
                if answer.over:
                    return

    def _take(self, answer: GuardedAnswer, delta: Delta) -> None:
        self.finish_reason = delta.finish_reason or self.finish_reason
        self.usage = delta.usage or self.usage
        if len(answer.text) + len(delta.content) > self.server.settings.longest_answer:
            raise Problem(502, "The upstream failed", "its answer is longer than is allowed")
        answer.write(delta.content)

    async def _recorded(self, answer: GuardedAnswer, due: str | Pending) -> RecordedPart:
        """Decide on a sentence, and record the decision before its text leaves."""
        if isinstance(due, str):
            return RecordedPart(due)

        def job(_: Detector) -> DecidedSentence:
            started = time.monotonic()
            sentence = answer.decide(due)
            metrics.took("verdict", "sentence", time.monotonic() - started - sentence.checked.took)
            metrics.took("checks", "sentence", sentence.checked.took)
            return sentence

        try:
            sentence = await self.server.worker.run(job, self.server.settings.seconds, admitted=True)
        except Exception:  # whatever fails is no clean verdict
            sentence = answer.unavailable(due)
            metrics.missed("sentence")
        judged = sentence.judged
        decision = await self.server.recorder.decide(
            "sentence",
            sentence.decided.action,
            sentence.decided.reason,
            by=self.by,
            answer=self.id,
            start=due.piece.start,
            end=due.piece.end,
            probability=judged and judged.probability,
            status=judged and judged.status,
            so_far=judged and judged.so_far,
            abstained=judged is not None and judged.abstained,
            findings=counted(sentence.checked.every),
            unavailable=dict(sentence.checked.unavailable),
        )
        return RecordedPart(answer.release(sentence), decision, sentence)

    async def _assess(self, answer: GuardedAnswer) -> Assessment:
        def job(detector: Detector) -> Assessment:
            return answer.assess(detector.card.threshold)

        try:
            assessment = await self.server.worker.run(job, self.server.settings.seconds, admitted=True)
        except Exception:  # whatever fails is no clean verdict
            metrics.missed("answer")
            return await run_in_threadpool(answer.assess_unjudged)
        metrics.took("checks", "answer", assessment.checked.took)
        if answer.missed:
            metrics.missed("answer")
        return assessment

    async def _finish(self, answer: GuardedAnswer, assessment: Assessment | None) -> None:
        """Record the answer as a whole; without an assessment it is unavailable."""
        self.assessment = assessment
        decided = unjudged(self.server.settings.policy) if assessment is None else assessment.decided
        self.decision = await self.server.recorder.decide(
            "answer",
            decided.action,
            decided.reason,
            by=self.by,
            rule=decided.rule,
            answer=self.id,
            sentences=dict(answer.actions),
            **labels(
                self.server.settings,
                self.example.sources,
                answer.text,
                sentences=answer.actions.total(),
                topic=self.topic,
                generator=self.server.settings.model or self.example.generator,
            ),
            **results_of(assessment),
            threshold=self.server.worker.detector.card.threshold,
            abstained=answer.abstained,
            finish_reason=self.finish_reason,
            evidence=evidence_of(
                [piece for piece in answer.judged if piece.sentence is not None],
                [span for piece in answer.judged for span in piece.spans],
            ),
            texts=texts_of(self.example.question, self.example.passages, answer.text),
            sources=self.example.sources,
        )


async def _next(deltas: AsyncGenerator[Delta], until: float) -> Delta | None:
    """Return the next delta, None after the last; raises a problem (504) where it does not come in time."""
    try:
        async with asyncio.timeout(until - time.monotonic()) as timeout:
            delta = await anext(deltas, None)
    except TimeoutError:
        if timeout.expired():
            _require_time(0)
        raise
    _require_time(until)
    return delta


def _require_time(until: float) -> None:
    """Raise a problem (504) after the deadline; also within one delta, which may hold many sentences."""
    if time.monotonic() > until:
        raise Problem(504, "The upstream failed", "its answer takes longer than is allowed")
