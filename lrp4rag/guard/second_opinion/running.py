"""`SecondOpinions`: asks for second opinions beside the path of the answers, which never waits for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from lrp4rag.guard.second_opinion.llm_judge import Opinion
from lrp4rag.source import Source

LOG = logging.getLogger("lrp4rag.service")

OnOpinion = Callable[[str, Opinion], Awaitable[None]]
_Case = tuple[str, str, tuple[Source, ...], str]


class Judge(Protocol):
    """A judge such as `LLMJudge`."""

    async def ask(self, question: str, sources: tuple[Source, ...], response: str) -> Opinion: ...


class SecondOpinions:
    """Asks a judge about the answers offered, `at_once` at a time, and awaits `on_opinion` with each opinion.

    Use it as an asynchronous context manager; its end waits `closing_seconds` for accepted answers, and then
    drops the rest. `heard` counts opinions, `dropped` answers without an opinion, and `failed` answers at
    which the judge or `on_opinion` raised. In the end each offered answer is in one of these counts.
    """

    def __init__(
        self,
        judge: Judge,
        on_opinion: OnOpinion,
        *,
        most_waiting: int = 64,
        at_once: int = 2,
        closing_seconds: float = 5.0,
    ) -> None:
        """Raise `ValueError` where no answer could wait, or be judged."""
        if most_waiting < 1 or at_once < 1:
            raise ValueError("most_waiting and at_once: give at least 1")
        self.heard = self.dropped = self.failed = 0
        self._judge, self._on_opinion = judge, on_opinion
        self._at_once, self._seconds = at_once, closing_seconds
        self._cases: asyncio.Queue[_Case] = asyncio.Queue(most_waiting)
        self._group, self._workers = asyncio.TaskGroup(), list[asyncio.Task[None]]()
        self._open = False

    @property
    def waiting(self) -> int:
        return self._cases.qsize()

    def offer(self, decision: str, question: str, sources: tuple[Source, ...], response: str) -> bool:
        """Accept an answer unless too many wait or the end has begun, and say whether. Returns at once; call
        it in the thread of the event loop."""
        is_accepted = self._open and not self._cases.full()
        if is_accepted:
            self._cases.put_nowait((decision, question, sources, response))
        else:
            self.dropped += 1
        return is_accepted

    async def __aenter__(self) -> SecondOpinions:
        await self._group.__aenter__()
        self._workers = [self._group.create_task(self._work()) for _ in range(self._at_once)]
        self._open = True
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        self._open = False
        try:
            if error is None:
                await self._drained()
        finally:
            for worker in self._workers:
                worker.cancel()
            # An error is not the workers': the group would wrap it.
            await self._group.__aexit__(None, None, None)
            self.dropped += self._cases.qsize()

    async def _drained(self) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._cases.join()
        except TimeoutError:
            LOG.warning("second opinions: %d are dropped at the end", self._cases.qsize())

    async def _work(self) -> None:
        while True:
            decision, question, sources, response = await self._cases.get()
            try:
                await self._on_opinion(decision, await self._judge.ask(question, sources, response))
                self.heard += 1
            except asyncio.CancelledError:
                self.dropped += 1
                raise
            except Exception as error:
                # An error that ended the worker would end the server. Its message may hold texts.
                self.failed += 1
                LOG.error("second opinion on %s: %s", decision, type(error).__name__)
            finally:
                self._cases.task_done()
