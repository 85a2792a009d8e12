"""`State`: what a running server holds, made in one place and closed in one place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx
from starlette.concurrency import run_in_threadpool

from lrp4rag.judge import Detector
from lrp4rag.service.access import Access
from lrp4rag.service.audit import AuditLog
from lrp4rag.service.owner import Owner
from lrp4rag.service.recording import Recorder
from lrp4rag.service.settings import Settings
from lrp4rag.service.upstream import HttpUpstream, ReaderUpstream, Upstream


@dataclass(frozen=True, slots=True)
class State:
    """`upstream` is None where answers are only judged."""

    settings: Settings
    owner: Owner
    recorder: Recorder
    access: Access
    upstream: Upstream | None


def load_detector(settings: Settings) -> Detector:
    """Raises `InputError` for a detector and a reader that do not belong together."""
    return Detector.load(
        settings.detector,
        reader=settings.reader,
        device=settings.device,
        dtype=settings.dtype,
        prompt_bytes=settings.prompt_bytes,
    )


@asynccontextmanager
async def running(settings: Settings, detector: Detector | None = None) -> AsyncIterator[State]:
    """Load the reader (unless a `detector` is given) and open the audit log; the end waits for the job that
    runs."""
    async with AsyncExitStack() as stack:
        log = await run_in_threadpool(_log, settings)
        stack.callback(log.close)
        loaded = await run_in_threadpool(load_detector, settings) if detector is None else detector
        owner = stack.enter_context(Owner(loaded, most_waiting=settings.most_waiting))
        upstream: Upstream | None = None
        if settings.demo:
            upstream = ReaderUpstream(owner, settings.upstream_seconds)
        elif settings.upstream is not None:
            timeout = httpx.Timeout(settings.upstream_seconds, connect=10)
            client = await stack.enter_async_context(httpx.AsyncClient(timeout=timeout))
            key = None if settings.upstream_key is None else settings.upstream_key.get_secret_value()
            upstream = HttpUpstream(client, str(settings.upstream), key=key, model=settings.model)
        yield State(
            settings,
            owner,
            Recorder(log, loaded, settings.policy),
            Access(settings.tokens, settings.per_minute),
            upstream,
        )


def _log(settings: Settings) -> AuditLog:
    return AuditLog.open(settings.audit, key=settings.audit_key, texts=settings.keep_texts)
