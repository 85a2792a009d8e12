"""`JudgedAnswer`: an answer of the upstream, of which only judged text is let out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from lrp4rag.classifiers.along import JudgedPiece, ReadingAlong
from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.report.along import record_piece
from lrp4rag.sentence_stream import Piece
from lrp4rag.service.access import Access
from lrp4rag.service.metrics import HELD
from lrp4rag.service.models import Decision
from lrp4rag.service.notices import in_place, marked, says_nothing
from lrp4rag.service.owner import Owner
from lrp4rag.service.policy import Action, Reason
from lrp4rag.service.problems import Problem
from lrp4rag.service.recording import Recorder, new_id, texts_of
from lrp4rag.service.settings import Settings
from lrp4rag.service.upstream import Delta

GRAVITY: dict[Action, int] = {"serve": 0, "mark": 1, "withhold": 2}


@dataclass(frozen=True, slots=True)
class Part:
    """What is let out for a piece of the answer: `text` is the piece, with a mark, or a notice in its place.
    What says nothing has no decision."""

    text: str
    judged: JudgedPiece | None = None
    decision: Decision | None = None

    def extension(self) -> dict[str, Any]:
        """What a client that asks for it is told."""
        found: dict[str, Any] = {} if self.decision is None else self.decision.model_dump()
        if self.judged is None or self.decision is None:
            return found
        told = record_piece(self.judged)
        if self.decision.action == "withhold":  # what is withheld is not told in another place
            told["contradictions"] = [{**one, "text": None} for one in told["contradictions"]]
        return found | {name: told[name] for name in ("probability", "so_far", "contradictions")}


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
    id: str = field(default_factory=new_id)
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    decision: Decision | None = None
    _decided: Counter[tuple[Action, Reason]] = field(default_factory=Counter)
    _notice: str = ""

    async def parts(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Part]:
        """Raises a problem where the reader has no time for it or the upstream fails, and what the audit log
        raises where it cannot be written. What was not judged by then is not let out."""
        with self.access.answering(self.by):
            async with aclosing(self._parts(deltas)) as parts:
                async for part in parts:
                    yield part

    async def _parts(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Part]:
        until = time.monotonic() + self.settings.answer_seconds
        reading = await self.owner.run(self._begin, self.settings.seconds)
        try:
            async with aclosing(deltas):
                async for delta in deltas:
                    self.finish_reason = delta.finish_reason or self.finish_reason
                    self.usage = delta.usage or self.usage
                    if len(reading.text) + len(delta.content) > self.settings.longest_answer:
                        raise Problem(502, "The upstream failed", "its answer is longer than is allowed")
                    if time.monotonic() > until:
                        raise Problem(504, "The upstream failed", "its answer takes longer than is allowed")
                    for piece in reading.pieces(delta.content):
                        yield await self._part(reading, piece)
            for piece in reading.rest():
                yield await self._part(reading, piece)
        except Exception:
            self.finish_reason = "failed"
            await self._finish(reading)
            raise
        await self._finish(reading)

    def _begin(self, detector: Detector) -> ReadingAlong:
        reading = detector.reading_of(self.example, language=self.language)
        reading.prepare()
        return reading

    async def _part(self, reading: ReadingAlong, piece: Piece) -> Part:
        if says_nothing(piece):
            return Part(piece.text)
        judged: JudgedPiece | None = None
        action: Action
        reason: Reason
        try:
            with HELD.time():
                judged = await self.owner.run(
                    lambda _: reading.judge(piece), self.settings.seconds, admitted=True
                )
        except Exception:  # whatever fails is no clean verdict
            action, reason = self.settings.policy.unavailable, "unavailable"
        else:
            assert judged.probability is not None
            action, reason = self.settings.policy.sentence(
                judged.probability, suspect=judged.suspect, abstained=judged.abstained
            )
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
        )
        self._decided[action, reason] += 1
        return Part(self._shown(piece, action, reason), judged, decision)

    def _shown(self, piece: Piece, action: Action, reason: Reason) -> str:
        """A notice that stands already is not repeated."""
        before, self._notice = self._notice, ""
        if action == "serve":
            return piece.text
        if action == "mark":
            return marked(piece, self.settings.policy.mark)
        self._notice = self.settings.policy.notice_for(reason)
        return in_place(piece, "" if self._notice == before else self._notice)

    async def _finish(self, reading: ReadingAlong) -> None:
        """Record the answer as a whole."""
        actions = Counter[Action]()
        for (action, _), number in self._decided.items():
            actions[action] += number
        count = actions.total()
        # An answer of which nothing was judged has no verdict, and the gravest decision is that of the whole.
        nothing: tuple[Action, Reason] = (self.settings.policy.unavailable, "unavailable")
        action, reason = max(self._decided, key=lambda one: GRAVITY[one[0]], default=nothing)
        self.decision = await self.recorder.decide(
            "answer",
            action,
            reason,
            by=self.by,
            answer=self.id,
            sentences=dict(actions),
            faithfulness=actions["serve"] / count if count else None,
            finish_reason=self.finish_reason,
            texts=texts_of(self.example, reading.text),
        )
