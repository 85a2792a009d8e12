"""`State`: what a running server holds, opened and closed by one function."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated

import httpx
from fastapi import Depends, Request
from prometheus_client import Metric
from starlette.concurrency import run_in_threadpool

from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.second_opinion import LLMJudge, Opinion, SecondOpinions
from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.access import Access
from lrp4rag.guard.service.models import Decision
from lrp4rag.guard.service.recording import Recorder
from lrp4rag.guard.service.reviews import OPINION
from lrp4rag.guard.service.settings import Settings
from lrp4rag.guard.service.upstream import ReaderUpstream, Upstream, http_upstream
from lrp4rag.guard.service.worker import ModelWorker
from lrp4rag.judge import OF_CARD, Detector
from lrp4rag.source import Source

READY_IN = 5
"""Seconds in which the upstream answers, and for which the check is not repeated."""
LOOKS_IN = 1.0
"""Seconds in which the log says which answers wait for a reviewer; after them, its last word counts."""


@dataclass(slots=True)
class State:
    """What a running server holds; `upstream` is None where answers are only judged."""

    settings: Settings
    worker: ModelWorker
    recorder: Recorder
    access: Access
    upstream: Upstream | None
    _checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _checked_until: float = 0.0
    _fault: Exception | None = None

    async def ready(self) -> None:
        """Raise the fault of the audit log or of the upstream, if there is one. Anybody may ask, so neither
        is checked more often than every few seconds."""
        async with self._checking:
            if time.monotonic() >= self._checked_until:
                try:
                    await self._check()
                    self._fault = None
                except Exception as error:
                    self._fault = error
                self._checked_until = time.monotonic() + READY_IN
        if self._fault is not None:
            raise self._fault

    async def _check(self) -> None:
        await run_in_threadpool(self.recorder.require_writable)
        if self.upstream is not None:
            async with asyncio.timeout(READY_IN):
                await self.upstream.models()

    async def metrics(self) -> list[Metric]:
        """Return what the server has counted, and what it holds now. A log that hangs does not delay this."""
        catching_up = asyncio.ensure_future(run_in_threadpool(self.recorder.waiting))
        await asyncio.wait({catching_up}, timeout=LOOKS_IN)
        return metrics.collected(
            waiting=self.worker.waiting,
            most_waiting=self.worker.most_waiting,
            reviews=self.recorder.last_waiting,
        )


def _state(request: Request) -> State:
    state: State = request.app.state.server
    return state


Server = Annotated[State, Depends(_state)]
"""The server's state, for routes."""


def load_detector(settings: Settings) -> Detector:
    """Load the detector with its reader. Raises `InputError` where the two do not belong together."""
    return Detector.load(
        settings.detector,
        reader=settings.reader or OF_CARD,
        device=settings.device,
        dtype=settings.dtype,
        prompt_bytes=settings.prompt_bytes,
        comparer=settings.comparer,
    )


@asynccontextmanager
async def running(settings: Settings, detector: Detector | None = None) -> AsyncIterator[State]:
    """Load the reader (unless a `detector` is given) and open the audit log; the end waits for the job that
    runs."""
    async with AsyncExitStack() as stack:
        log = await run_in_threadpool(
            AuditLog.open, settings.audit, key=settings.audit_key, texts=settings.keep_texts
        )
        stack.callback(log.close)
        loaded = await run_in_threadpool(load_detector, settings) if detector is None else detector
        worker = stack.enter_context(ModelWorker(loaded, most_waiting=settings.most_waiting))
        upstream: Upstream | None = None
        if settings.demo:
            upstream = ReaderUpstream(worker, settings.upstream_seconds)
        elif settings.upstream is not None:
            upstream = await stack.enter_async_context(http_upstream(settings))
        recorder = Recorder(log, loaded, settings.policy, keep_texts=settings.keep_texts)
        if settings.judge is not None:
            recorder.on_decision = await _second_opinions(stack, settings, recorder)
        access = Access(settings.tokens, settings.per_minute, settings.most_answers)
        yield State(settings, worker, recorder, access, upstream)


async def _second_opinions(
    stack: AsyncExitStack, settings: Settings, recorder: Recorder
) -> Callable[[Decision, Mapping[str, str], Sequence[Source]], None]:
    """Return a function that offers answers to the judge: all that are escalated, and a share of the others.
    The judge's opinions are records of the log, for which no answer waits."""
    client = await stack.enter_async_context(httpx.AsyncClient())
    key = None if settings.judge_key is None else settings.judge_key.get_secret_value()
    judge = LLMJudge(client, str(settings.judge), settings.judge_model, key, seconds=settings.judge_seconds)
    random = secrets.SystemRandom()  # nobody can tell which answers go unwatched
    chosen: dict[str, str] = {}

    async def record_opinion(decision: str, opinion: Opinion) -> None:
        why = chosen.pop(decision, None)
        await recorder.note(
            OPINION, by="judge", of=decision, chosen=why, texts=opinion.texts, **opinion.record
        )

    opinions = await stack.enter_async_context(SecondOpinions(judge, record_opinion))

    def offer(decision: Decision, texts: Mapping[str, str], sources: Sequence[Source]) -> None:
        escalated = decision.action == "escalate"
        if (escalated or random.random() < settings.judge_share) and opinions.offer(
            decision.id, texts["question"], tuple(sources), texts["response"]
        ):
            chosen[decision.id] = "escalated" if escalated else "sampled"

    return offer
