"""`JudgedAnswer`: an answer of the upstream, of which only judged text is let out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from lrp4rag.checks.check import CheckInput, Finding
from lrp4rag.checks.registry import Checked, run_checks
from lrp4rag.classifiers.along import JudgedPiece, ReadingAlong, verdict_of
from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.policy import ACTIONS, Action, Assessment, Decided, Reason, assess
from lrp4rag.policy.assess import assess_passages, record_finding
from lrp4rag.policy.decide import rule_of
from lrp4rag.report.along import record_piece
from lrp4rag.sentence_stream import Piece
from lrp4rag.service import metrics
from lrp4rag.service.access import Access
from lrp4rag.service.labels import labels
from lrp4rag.service.models import Decision
from lrp4rag.service.notices import in_place, marked, says_nothing
from lrp4rag.service.owner import Owner
from lrp4rag.service.problems import Problem
from lrp4rag.service.recording import Recorder, counted, new_id, texts_of
from lrp4rag.service.settings import Settings
from lrp4rag.service.upstream import Delta

WITHHELD: tuple[Action, ...] = ("withhold", "escalate")
UNTOLD: tuple[Reason, ...] = ("unavailable", "unlike training data")
UPSTREAM_FAILED = (502, 504)
"""Statuses that only a failure of the upstream has."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is let out for a piece of the answer: `text` is the piece, with a mark, or a notice in its place.
    What says nothing has no decision."""

    text: str
    judged: JudgedPiece | None = None
    decision: Decision | None = None
    findings: tuple[Finding, ...] = ()

    def extension(self) -> dict[str, Any]:
        """What a client that asks for it is told."""
        found: dict[str, Any] = {} if self.decision is None else self.decision.model_dump()
        if self.judged is None or self.decision is None:
            return found
        told = record_piece(self.judged)
        findings = [record_finding(one) for one in self.findings]
        if self.decision.action in WITHHELD:  # what is withheld is not told in another place
            told["contradictions"] = [{**one, "text": None} for one in told["contradictions"]]
            findings = [{name: one[name] for name in ("check", "kind", "passages")} for one in findings]
        found |= {name: told[name] for name in ("probability", "so_far", "contradictions")}
        return found | {"findings": findings}


@dataclass(slots=True)
class JudgedAnswer:
    """Holds each sentence of an answer until it is judged, decided on and recorded.

    `finish_reason` and `usage` are the upstream's, known when `parts` has ended.
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
    decision: Decision | None = None
    assessment: Assessment | None = None
    _judged: list[JudgedPiece] = field(default_factory=list)
    _actions: Counter[Action] = field(default_factory=Counter)
    _missed: bool = False
    _notice: str = ""

    async def parts(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Part]:
        """Raises a problem where the reader has no time for it or the upstream fails, and what the audit log
        raises where it cannot be written. What was not judged by then is not let out."""
        with self.access.answering(self.by):
            async with aclosing(self._parts(deltas)) as parts:
                async for part in parts:
                    yield part

    async def _parts(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Part]:
        refused = await run_in_threadpool(assess_passages, self.settings.policy, self.example)
        if refused is not None:  # no answer is asked for
            metrics.took("checks", "answer", refused.checked.took)
            await deltas.aclose()
            self.finish_reason = "content_filter"
            await self._finish("", refused)
            yield Part(refused.message, None, self.decision)
            return
        with metrics.missing("answer"):
            reading = await self.owner.run(self._begin, self.settings.seconds)
        try:
            async with aclosing(self._pieces(reading, deltas)) as pieces:
                async for piece in pieces:
                    with metrics.timed("held", "sentence"):
                        part = await self._part(reading, piece)
                    yield part
                    if self._stops():
                        self.finish_reason = "content_filter"
                        break
        except Exception as error:
            self.finish_reason = "failed"
            if isinstance(error, Problem) and error.status in UPSTREAM_FAILED:
                metrics.missed("answer", "upstream")
            await self._finish(reading.text, None)
            raise
        await self._finish(reading.text, await self._assess(reading))
        if self.assessment is not None and self.assessment.message and self._actions:
            yield Part(f"\n\n{self.assessment.message}", None, self.decision)

    async def _pieces(self, reading: ReadingAlong, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Piece]:
        started, silent = time.monotonic(), True
        until = started + self.settings.answer_seconds
        async with aclosing(deltas):
            async for delta in deltas:
                if silent and delta.content:
                    silent = False
                    metrics.took("first token", "answer", time.monotonic() - started)
                self.finish_reason = delta.finish_reason or self.finish_reason
                self.usage = delta.usage or self.usage
                if len(reading.text) + len(delta.content) > self.settings.longest_answer:
                    raise Problem(502, "The upstream failed", "its answer is longer than is allowed")
                if time.monotonic() > until:
                    raise Problem(504, "The upstream failed", "its answer takes longer than is allowed")
                for piece in reading.pieces(delta.content):
                    yield piece
        for piece in reading.rest():
            yield piece

    def _begin(self, detector: Detector) -> ReadingAlong:
        with metrics.timed("reading", "answer"):
            reading = detector.reading_of(self.example, language=self.language)
            reading.prepare()
        return reading

    def _stops(self) -> bool:
        most = self.settings.policy.sentences.stop_after
        return most is not None and sum(self._actions[one] for one in WITHHELD) >= most

    async def _part(self, reading: ReadingAlong, piece: Piece) -> Part:
        if says_nothing(piece):
            return Part(piece.text)
        judged: JudgedPiece | None = None
        checked = Checked({}, {}, {})

        def job(_: Detector) -> tuple[JudgedPiece, Checked]:
            with metrics.timed("verdict", "sentence"):
                found = reading.judge(piece)
            return found, self._citations(piece.text)

        try:
            found, checked = await self.owner.run(job, self.settings.seconds, admitted=True)
            metrics.took("checks", "sentence", checked.took)
            action, reason = self._decide(found, checked)
            judged = found
            self._judged.append(found)
        except Exception:  # whatever fails is no clean verdict
            action, reason = self.settings.policy.unavailable, "unavailable"
            self._missed = True
            metrics.missed("sentence")
        decision = await self.recorder.decide(
            "sentence",
            action,
            reason,
            by=self.by,
            answer=self.id,
            start=piece.start,
            end=piece.end,
            probability=judged and judged.probability,
            so_far=judged and judged.so_far,
            abstained=judged is not None and judged.abstained,
            findings=counted(checked.every),
            unavailable=dict(checked.unavailable),
        )
        self._actions[action] += 1
        return Part(self._shown(piece, action, reason), judged, decision, tuple(checked.every))

    def _citations(self, text: str) -> Checked:
        """What the policy wants to know of a sentence's citations."""
        policy = self.settings.policy
        checks = {name: check for name, check in policy.made.items() if name == "citations"}
        given = CheckInput(self.example.question, self.example.sources, text)
        return run_checks(checks, given, budget=policy.budget)

    def _decide(self, judged: JudgedPiece, checked: Checked) -> tuple[Action, Reason]:
        """The graver of what the probability and what the citations say."""
        policy = self.settings.policy
        assert judged.probability is not None
        found = policy.sentence(judged.probability, suspect=judged.suspect, abstained=judged.abstained)
        cited = rule_of(policy, checked, "fabricated", "misattributed")
        graver = cited is not None and ACTIONS.index(cited.action) > ACTIONS.index(found[0])
        return (cited.action, cited.reason) if cited is not None and graver else found

    def _shown(self, piece: Piece, action: Action, reason: Reason) -> str:
        """A notice that stands already is not repeated."""
        before, self._notice = self._notice, ""
        texts = self.settings.policy.texts
        if action == "serve":
            return piece.text
        if action not in WITHHELD:
            return marked(piece, texts.mark)
        self._notice = texts.unavailable_notice if reason in UNTOLD else texts.notice
        return in_place(piece, "" if self._notice == before else self._notice)

    async def _assess(self, reading: ReadingAlong) -> Assessment | None:
        """The answer as a whole, of the sentences as they were judged; None where it could not be decided
        on."""
        if not reading.text.strip():
            return None
        policy, example = self.settings.policy, self.example.with_response(reading.text)

        def job(detector: Detector) -> Assessment:
            verdict = None if self._missed else verdict_of(self._judged, detector.card.threshold)
            abstained = any(one.abstained for one in self._judged)
            return assess(policy, example, verdict, abstained=abstained)

        try:
            found = await self.owner.run(job, self.settings.seconds, admitted=True)
        except Exception:  # whatever fails is no clean verdict
            metrics.missed("answer")
            return None
        metrics.took("checks", "answer", found.checked.took)
        if self._missed:
            metrics.missed("answer")
        return found

    def _labels(self, text: str) -> dict[str, Any]:
        return labels(
            self.settings,
            self.example.sources,
            text,
            sentences=sum(self._actions.values()),
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
            sentences=dict(self._actions),
            **self._labels(text),
            probability=found and found.measures.probability,
            threshold=self.owner.detector.card.threshold,
            abstained=any(one.abstained for one in self._judged),
            faithfulness=found and found.measures.faithfulness,
            fact_score=found and found.measures.facts,
            findings=counted(found.checked.every) if found else {},
            unavailable=dict(found.checked.unavailable) if found else {},
            finish_reason=self.finish_reason,
            texts=texts_of(self.example, text),
        )
