"""LangChain: `AnswerJudge`, a `Runnable` that stands behind a chain of question, documents and answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from lrp4rag.guard.adapters.guard import Guard
from lrp4rag.guard.adapters.langchain_inputs import KEYS, Coming, Keys, Known, require_mapping, text_of
from lrp4rag.guard.adapters.library import library
from lrp4rag.guard.adapters.stream import Part
from lrp4rag.util.errors import InputError

with library("langchain_core", "langchain"):
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.runnables import Runnable, RunnableConfig

EXTENSION = "lrp4rag"


class AnswerJudge(Runnable[dict[str, Any], AIMessage]):
    """Judges the answer of a chain: of {"question", "documents", "answer"} it makes a message, with the
    answer or what the policy has in its place, and the decision under "lrp4rag" in `response_metadata`. Of an
    answer that is a message, it has the id, the usage and the metadata, without what may hold its words.

    Where the chain is streamed, a sentence of its answer is handed on when it has ended and is judged;
    question and documents come before the answer begins. Documents are LangChain's, or texts; an answer is a
    text or a message. Raises `InputError` where one of them is missing.
    """

    def __init__(self, guard: Guard | None = None, **keys: str) -> None:
        """`keys` are those of the chain where they are not among the usual ones: question="ask"."""
        if unknown := keys.keys() - KEYS:
            raise InputError(f"there is no {min(unknown)}; there are {', '.join(KEYS)}", field="keys")
        self.guard = guard or Guard()
        self._keys = Keys(KEYS | {name: (key,) for name, key in keys.items()})

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any) -> AIMessage:
        return self._call_with_config(self._whole, input, config)

    def stream(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any
    ) -> Iterator[AIMessage]:
        return self.transform(iter([input]), config)

    async def astream(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any
    ) -> AsyncIterator[AIMessage]:
        async def one() -> AsyncIterator[dict[str, Any]]:
            yield input

        async for message in self.atransform(one(), config):
            yield message

    def transform(
        self, input: Iterator[dict[str, Any]], config: RunnableConfig | None = None, **_: Any
    ) -> Iterator[AIMessage]:
        coming = Coming(self.guard, self._keys)

        def messages(chunks: Iterator[dict[str, Any]]) -> Iterator[AIMessage]:
            return (_chunk(part, coming.known) for part in coming.parts(chunks))

        return self._transform_stream_with_config(coming.wanted(input), messages, config)

    async def atransform(
        self, input: AsyncIterator[dict[str, Any]], config: RunnableConfig | None = None, **_: Any
    ) -> AsyncIterator[AIMessage]:
        coming = Coming(self.guard, self._keys)

        async def messages(chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[AIMessage]:
            async for part in coming.aparts(chunks):
                yield _chunk(part, coming.known)

        async for message in self._atransform_stream_with_config(coming.awanted(input), messages, config):
            yield message

    def _whole(self, given: dict[str, Any]) -> AIMessage:
        answer = self._keys.find(require_mapping(given), "answer")
        found = self.guard.judge(*self._keys.asked(given), text_of(answer))
        known = Known.of(answer)
        metadata = {**known.metadata, EXTENSION: found.record()}
        return AIMessage(found.shown, id=known.id, usage_metadata=known.usage, response_metadata=metadata)


def _chunk(part: Part, known: Known) -> AIMessageChunk:
    """Chunks add up to a message with the decision on the answer, and those on its sentences in a list; the
    last has the usage and the metadata of the answer's message."""
    told = part.record if part.whole else {"sentences": [part.record]}
    metadata = {EXTENSION: told} if part.record else {}
    if part.whole:
        metadata = {**known.metadata, **metadata}
    return AIMessageChunk(
        content=part.text,
        id=known.id,
        usage_metadata=known.usage if part.whole else None,
        response_metadata=metadata,
    )
