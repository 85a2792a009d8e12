"""`SecondOpinions`: asks for second opinions beside the path of the answers, which never waits for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from lrp4rag.guard.second_opinion.llm_judge import Opinion
from lrp4rag.source import Source

LOG = logging.getLogger("lrp4rag.service")

AT_ONCE, MOST_WAITING = 2, 64
CLOSING_SECONDS = 5.0

OnOpinion = Callable[[str, Opinion], Awaitable[None]]


class Judge(Protocol):
    """A judge such as `LLMJudge`."""

    async def ask(self, question: str, sources: tuple[Source, ...], response: str) -> Opinion: ...


class SecondOpinions:
    """Asks a judge about the answers offered, `AT_ONCE` at a time, and awaits `on_opinion` with each opinion.

    Use it as an asynchronous context manager; its end waits `CLOSING_SECONDS` for accepted answers, and then
    drops the rest.
    """

    def __init__(self, judge: Judge, on_opinion: OnOpinion) -> None:
        self._judge, self._on_opinion = judge, on_opinion
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_ended = False

    def offer(self, decision: str, question: str, sources: tuple[Source, ...], response: str) -> bool:
        """Accept an answer unless `MOST_WAITING` wait or the end has begun, and say whether. Returns at once;
        call it in the thread of the event loop."""
        if self._has_ended or len(self._tasks) >= AT_ONCE + MOST_WAITING:
            return False
        task = asyncio.create_task(self._ask(decision, question, sources, response))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def __aenter__(self) -> SecondOpinions:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        self._has_ended = True
        try:
            if self._tasks and error is None:
                await asyncio.wait(self._tasks, timeout=CLOSING_SECONDS)
        finally:
            tasks = list(self._tasks)
            if late := sum(task.cancel() for task in tasks):
                LOG.warning("second opinions: %d are dropped at the end", late)
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, decision: str, question: str, sources: tuple[Source, ...], response: str) -> None:
        try:
            async with self._at_once:
                await self._on_opinion(decision, await self._judge.ask(question, sources, response))
        except Exception as error:  # one answer's; its message may hold texts
            LOG.error("second opinion on %s: %s", decision, type(error).__name__)
