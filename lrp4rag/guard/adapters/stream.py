"""`GuardedStream`: an answer that is being written, of which only judged sentences are handed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from lrp4rag.guard.adapters.guard import (
    NOTHING,
    Guard,
    Guarded,
    example_of,
    has_nothing,
    require_text,
    sources_of,
    why_not,
)
from lrp4rag.guard.policy import Assessment, DecidingAlong
from lrp4rag.guard.policy.along import record_decided
from lrp4rag.guard.policy.assess import assess_passages, assess_unjudged
from lrp4rag.guard.policy.notices import says_nothing
from lrp4rag.source import Source
from lrp4rag.util.sentences import Piece


@dataclass(frozen=True, slots=True)
class Part:
    """What is handed on for a sentence: itself, with a mark, or a notice in its place. `record` has what was
    decided, as JSON values; it is empty for what says nothing, such as white space. The last part is of the
    `whole` answer: its text is what is told of that."""

    text: str
    record: dict[str, Any] = field(default_factory=dict)
    whole: bool = False


class GuardedStream:
    """One answer: feed it text as it comes, and hand on the parts.

    `over` says that no more is wanted: no passage is fit to answer from, the policy stops after what was
    withheld, or the answer has ended. `result` is then, after the end, what is done with the whole of it.
    """

    def __init__(
        self, guard: Guard, question: str, passages: Sequence[str | Source], *, language: str = "en"
    ) -> None:
        """Reads the prompt. Raises `InputError` as `Guard.judge` does."""
        require_text(question, "question")
        self._guard, self._question, self._sources = guard, question, sources_of(passages)
        self.over, self.stopped = False, False
        self.result: Guarded | None = None
        self._text, self._parts = "", list[Part]()
        self._why: str | None = None
        self._unfit = assess_passages(guard.policy, question, self._sources)
        if self._unfit is None and has_nothing(self._sources):
            self._unfit = assess_unjudged(guard.policy, question, self._sources)
        if self._unfit is not None:
            self.over = self.stopped = self._unfit.withheld
            return
        example = example_of(question, self._sources)
        self._along = DecidingAlong(guard.policy, example)
        with guard.lock:
            self._reading = guard.detector.reading_of(example, language=language)
            with suppress(Exception):  # the first sentence that is judged will tell
                self._reading.prepare()

    def run(self, texts: Iterable[str]) -> Iterator[Part]:
        """All parts of the answer that some texts make; they are taken until it is over."""
        wanted = not self.over
        if wanted:
            for text in texts:
                yield from self.feed(text)
                if self.over:
                    break
        yield from self.end()

    async def arun(self, texts: AsyncIterable[str]) -> AsyncIterator[Part]:
        """The same, judged in another thread than that of the event loop."""
        wanted = not self.over
        if wanted:
            async for text in texts:
                async for part in in_thread(self.feed(text)):
                    yield part
                if self.over:
                    break
        async for part in in_thread(self.end()):
            yield part

    def feed(self, text: str) -> Iterator[Part]:
        """What ends with this text, each part judged when it is asked for."""
        if self.over:
            return iter(())
        self._text += text
        return iter(()) if self._unfit is not None else self._judged(self._reading.ready(text))

    def end(self) -> Iterator[Part]:
        """The rest, and at last the decision on the answer as a whole, with what its reader is told."""
        if self._unfit is None and not self.over:
            yield from self._judged(self._reading.ready(None))
        self.over, found = True, self._assessment()
        shown = "".join(part.text for part in self._parts)
        if self._unfit is not None:
            last = self._unfit.shown(self._text)
        else:
            last = found.below if shown.strip() else found.message
        if last and shown.strip():
            last = f"\n\n{last}"
        records = tuple(part.record for part in self._parts if part.record)
        probability = found.measures.probability if self._why is None else None
        self.result = Guarded(shown + last, found, probability, records, why=self._why)
        whole = {name: value for name, value in self.result.record().items() if name != "sentences"}
        yield Part(last, whole, whole=True)

    def _judged(self, ready: Iterable[tuple[Piece, bool]]) -> Iterator[Part]:
        for piece, followed in ready:
            if self.over:
                return
            self._parts.append(self._part(piece, followed=followed))
            self.over = self.stopped = self._along.stops
            yield self._parts[-1]

    def _part(self, piece: Piece, *, followed: bool) -> Part:
        if says_nothing(piece):
            return Part(piece.text)
        try:
            with self._guard.lock:
                found = self._along.decide(self._reading, piece, followed=followed)
        except Exception as error:  # whatever fails is no clean verdict
            found, self._why = self._along.unavailable(piece), why_not(error)
        told = {"start": piece.start, "end": piece.end, **asdict(found.decided), **record_decided(found)}
        return Part(self._along.let_out(found), told)

    def _assessment(self) -> Assessment:
        if self._unfit is not None:
            self._why = NOTHING
            return self._unfit
        try:
            if self._text.strip():
                return self._along.assess(self._text, self._guard.detector.card.threshold)
            self._why = NOTHING
        except Exception as error:  # whatever fails is no clean verdict
            self._why = why_not(error)
        return assess_unjudged(self._guard.policy, self._question, self._sources)


async def in_thread(parts: Iterator[Part]) -> AsyncIterator[Part]:
    """The same parts, each judged in another thread than that of the event loop."""
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part
