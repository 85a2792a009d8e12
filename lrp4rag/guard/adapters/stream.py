"""`GuardedStream`: drives a `GuardedAnswer` by the text of a library, in the thread that asks for parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from lrp4rag.example import Example
from lrp4rag.guard.adapters.guard import (
    NOTHING,
    Guard,
    Guarded,
    require_text,
    sources_of,
    why_not,
)
from lrp4rag.guard.policy import Assessment, GuardedAnswer
from lrp4rag.guard.policy.answer import Pending
from lrp4rag.source import Source


@dataclass(frozen=True, slots=True)
class Part:
    """Text that is handed on: a sentence, marked or replaced by a notice. `record` has the decision as JSON
    values, and is empty for text that says nothing, such as white space. The last part is on the `whole`
    answer: its text tells the reader of that decision."""

    text: str
    record: dict[str, Any] = field(default_factory=dict)
    whole: bool = False


class GuardedStream:
    """One answer: feed it text as it comes, and hand on the parts.

    `over` says that no more is wanted: no passage is fit to answer from, the policy stops after what was
    withheld, or the answer has ended. `result` is then, after the end, what is done with the whole of it.
    """

    def __init__(self, guard: Guard, question: str, passages: Sequence[str | Source]) -> None:
        """Read the prompt. Raises `InputError` as `Guard.judge` does."""
        require_text(question, "question")
        self._guard, sources = guard, sources_of(passages)
        self.result: Guarded | None = None
        self._records: list[dict[str, Any]] = []
        self._why: str | None = None
        self._answer = GuardedAnswer(guard.policy, question, sources)
        if self._answer.unfit is not None:
            return
        with guard.lock:
            reading = guard.detector.reading_of(Example.of_sources(question, sources))
            with suppress(Exception):  # the first sentence that is judged will tell
                reading.prepare()
        self._answer.begin(reading)

    @property
    def over(self) -> bool:
        return self._answer.over

    @property
    def stopped(self) -> bool:
        """True where the policy wants no more of the answer."""
        return self._answer.stopped

    def run(self, texts: Iterable[str]) -> Iterator[Part]:
        """Yield all parts of an answer that comes in texts; no text is taken once it is over."""
        for text in texts if not self.over else ():
            yield from self.feed(text)
            if self.over:
                break
        yield from self.end()

    async def arun(self, texts: AsyncIterable[str]) -> AsyncIterator[Part]:
        """Yield the parts as `run` does, each judged outside the thread of the event loop."""
        wanted = not self.over
        if wanted:  # by a name: to a type checker `over` stays what it was
            async for text in texts:
                async for part in in_thread(self.feed(text)):
                    yield part
                if self.over:
                    break
        async for part in in_thread(self.end()):
            yield part

    def feed(self, text: str) -> Iterator[Part]:
        """Return the parts that end with this text, each judged when it is asked for."""
        self._answer.write(text)
        return self._parts()

    def end(self) -> Iterator[Part]:
        """Yield the rest, and at last the decision on the answer as a whole, with the notice to its
        reader."""
        self._answer.end()
        yield from self._parts()
        assessment = self._assessment()
        last = self._answer.conclude(assessment)
        probability = assessment.measures.probability if self._why is None else None
        self.result = Guarded(
            self._answer.shown, assessment, probability, tuple(self._records), why=self._why
        )
        record = {name: value for name, value in self.result.record().items() if name != "sentences"}
        yield Part(last, record, whole=True)

    def _parts(self) -> Iterator[Part]:
        while (due := self._answer.next()) is not None:
            yield self._judged(due) if isinstance(due, Pending) else Part(due)

    def _judged(self, due: Pending) -> Part:
        try:
            with self._guard.lock:
                sentence = self._answer.decide(due)
        except Exception as error:  # whatever fails is no clean verdict
            sentence, self._why = self._answer.unavailable(due), why_not(error)
        offsets = {"start": due.piece.start, "end": due.piece.end}
        self._records.append({**offsets, **asdict(sentence.decided), **sentence.record()})
        return Part(self._answer.release(sentence), self._records[-1])

    def _assessment(self) -> Assessment:
        if self._answer.unfit is None and self._answer.text.strip():
            try:
                return self._answer.assess(self._guard.detector.card.threshold)
            except Exception as error:  # whatever fails is no clean verdict
                self._why = why_not(error)
        else:
            self._why = NOTHING
        return self._answer.assess_unjudged()


async def in_thread(parts: Iterator[Part]) -> AsyncIterator[Part]:
    """Yield parts, each judged outside the thread of the event loop."""
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part
