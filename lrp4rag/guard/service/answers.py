"""`JudgedAnswer`: an answer of the upstream, of which only judged text is let out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from lrp4rag.example import Example
from lrp4rag.guard.policy import Assessment, Decided, DecidingAlong
from lrp4rag.guard.policy.along import DecidedPiece, record_decided
from lrp4rag.guard.policy.assess import assess_passages, assess_unjudged
from lrp4rag.guard.policy.notices import says_nothing
from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.access import Access
from lrp4rag.guard.service.labels import labels
from lrp4rag.guard.service.models import Decision
from lrp4rag.guard.service.owner import Owner
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.recording import Recorder, counted, evidence_of, new_id, texts_of
from lrp4rag.guard.service.settings import Settings
from lrp4rag.guard.service.upstream import Delta
from lrp4rag.judge import Detector
from lrp4rag.streaming import ReadingAlong
from lrp4rag.util.sentences import Piece

UPSTREAM_FAILED = (502, 504)
"""Statuses that only a failure of the upstream has."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is let out for a piece of the answer: `text` is the piece, with a mark, or a notice in its place.
    What says nothing has no decision."""

    text: str
    decision: Decision | None = None
    found: DecidedPiece | None = None

    def extension(self) -> dict[str, Any]:
        """What a client that asks for it is told."""
        found: dict[str, Any] = {} if self.decision is None else self.decision.model_dump()
        return found if self.found is None else found | record_decided(self.found)


@dataclass(slots=True)
class JudgedAnswer:
    """Holds each sentence of an answer until it is judged, decided on and recorded.

    `finish_reason` and `usage` are the upstream's, known when `parts` has ended; `refused`: its text is a
    refusal, which is judged like any other.
    """

    owner: Owner
    recorder: Recorder
    access: Access
    settings: Settings
    example: Example
    language: str
    by: str
    topic: str | None = None
    id: str = field(default_factory=new_id)
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    refused: bool = False
    decision: Decision | None = None
    assessment: Assessment | None = None
    _along: DecidingAlong = field(init=False)

    def __post_init__(self) -> None:
        self._along = DecidingAlong(self.settings.policy, self.example)

    async def parts(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Part]:
        """Raises a problem where the reader has no time for it or the upstream fails, and what the audit log
        raises where it cannot be written. What was not judged by then is not let out."""
        with self.access.answering(self.by):
            async with aclosing(self._parts(deltas)) as parts:
                async for part in parts:
                    yield part

    async def _parts(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Part]:
        refused = await run_in_threadpool(
            assess_passages, self.settings.policy, self.example.question, self.example.sources
        )
        if refused is not None:  # no answer is asked for
            metrics.took("checks", "answer", refused.checked.took)
            await deltas.aclose()
            self.finish_reason = "content_filter"
            await self._finish("", refused)
            yield Part(refused.message, self.decision)
            return
        with metrics.missing("answer"):
            reading = await self.owner.run(self._begin, self.settings.seconds)
        try:
            async with aclosing(self._pieces(reading, deltas)) as pieces:
                async for piece, followed in pieces:
                    with metrics.timed("held", "sentence"):
                        part = await self._part(reading, piece, followed=followed)
                    yield part
                    if self._along.stops:
                        self.finish_reason = "content_filter"
                        break
        except Exception as error:
            self.finish_reason = "failed"
            if isinstance(error, Problem) and error.status in UPSTREAM_FAILED:
                metrics.missed("answer", "upstream")
            await self._finish(reading.text, None)
            raise
        await self._finish(reading.text, await self._assess(reading))
        if self.assessment is not None and self.assessment.below and self._along.actions:
            yield Part(f"\n\n{self.assessment.below}", self.decision)

    async def _pieces(
        self, reading: ReadingAlong, deltas: AsyncGenerator[Delta]
    ) -> AsyncGenerator[tuple[Piece, bool]]:
        started, silent = time.monotonic(), True
        until = started + self.settings.answer_seconds
        async with aclosing(deltas):
            while (delta := await _next(deltas, until)) is not None:
                if silent and delta.content:
                    silent = False
                    metrics.took("first token", "answer", time.monotonic() - started)
                self.finish_reason = delta.finish_reason or self.finish_reason
                self.usage = delta.usage or self.usage
                self.refused = self.refused or delta.refusal
                if len(reading.text) + len(delta.content) > self.settings.longest_answer:
                    raise Problem(502, "The upstream failed", "its answer is longer than is allowed")
                for piece in reading.ready(delta.content):
                    _require_time(until)
                    yield piece
        for piece in reading.ready(None):
            _require_time(until)
            yield piece

    def _begin(self, detector: Detector) -> ReadingAlong:
        with metrics.timed("reading", "answer"):
            reading = detector.reading_of(self.example, language=self.language)
            reading.prepare()
        return reading

    async def _part(self, reading: ReadingAlong, piece: Piece, *, followed: bool) -> Part:
        if says_nothing(piece):
            return Part(piece.text)

        def job(_: Detector) -> DecidedPiece:
            started = time.monotonic()
            found = self._along.decide(reading, piece, followed=followed)
            metrics.took("verdict", "sentence", time.monotonic() - started - found.checked.took)
            metrics.took("checks", "sentence", found.checked.took)
            return found

        try:
            found = await self.owner.run(job, self.settings.seconds, admitted=True)
        except Exception:  # whatever fails is no clean verdict
            found = self._along.unavailable(piece)
            metrics.missed("sentence")
        judged = found.judged
        decision = await self.recorder.decide(
            "sentence",
            found.decided.action,
            found.decided.reason,
            by=self.by,
            answer=self.id,
            start=piece.start,
            end=piece.end,
            probability=judged and judged.probability,
            status=judged and judged.status,
            so_far=judged and judged.so_far,
            abstained=judged is not None and judged.abstained,
            findings=counted(found.checked.every),
            unavailable=dict(found.checked.unavailable),
        )
        return Part(self._along.let_out(found), decision, found)

    async def _assess(self, reading: ReadingAlong) -> Assessment | None:
        """The answer as a whole, of the sentences as they were judged, or as one that could not be judged;
        None where there is none."""
        if not reading.text.strip():
            return None
        example = self.example

        def job(detector: Detector) -> Assessment:
            return self._along.assess(reading.text, detector.card.threshold)

        try:
            found = await self.owner.run(job, self.settings.seconds, admitted=True)
        except Exception:  # whatever fails is no clean verdict
            metrics.missed("answer")
            return await run_in_threadpool(
                assess_unjudged, self.settings.policy, example.question, example.sources
            )
        metrics.took("checks", "answer", found.checked.took)
        if self._along.missed:
            metrics.missed("answer")
        return found

    def _labels(self, text: str) -> dict[str, Any]:
        return labels(
            self.settings,
            self.example.sources,
            text,
            sentences=sum(self._along.actions.values()),
            topic=self.topic,
            generator=self.settings.model or self.example.generator,
        )

    async def _finish(self, text: str, found: Assessment | None) -> None:
        """Record the answer as a whole."""
        self.assessment = found
        unavailable = Decided(self.settings.policy.unavailable, "unavailable", "unavailable")
        decided = unavailable if found is None else found.decided
        self.decision = await self.recorder.decide(
            "answer",
            decided.action,
            decided.reason,
            by=self.by,
            rule=decided.rule,
            answer=self.id,
            sentences=dict(self._along.actions),
            **self._labels(text),
            probability=found and found.measures.probability,
            threshold=self.owner.detector.card.threshold,
            abstained=self._along.abstained,
            faithfulness=found and found.measures.faithfulness,
            statuses=found and found.measures.statuses,
            fact_score=found and found.measures.facts,
            findings=counted(found.checked.every) if found else {},
            unavailable=dict(found.checked.unavailable) if found else {},
            finish_reason=self.finish_reason,
            evidence=evidence_of(
                [one for one in self._along.judged if one.sentence is not None],
                [span for one in self._along.judged for span in one.spans],
            ),
            texts=texts_of(self.example, text),
        )


async def _next(deltas: AsyncGenerator[Delta], until: float) -> Delta | None:
    """None after the last; raises a problem (504) where it does not come by then."""
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
    """Also within one delta, which may hold many sentences."""
    if time.monotonic() > until:
        raise Problem(504, "The upstream failed", "its answer takes longer than is allowed")
