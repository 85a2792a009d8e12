"""LangChain: `AnswerJudge`, a `Runnable` that stands behind a chain of question, documents and answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lrp4rag.guard.adapters.guard import EXTENSION, Guard
from lrp4rag.guard.adapters.sources import library, source_of
from lrp4rag.guard.adapters.stream import GuardedStream, Part, in_thread
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError

with library("langchain_core", "langchain"):
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
    from langchain_core.messages.ai import UsageMetadata, add_usage
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.runnables.utils import AddableDict


KEYS = {
    "question": ("question", "input", "query"),
    "documents": ("documents", "context"),
    "answer": ("answer", "output"),
}
"""The names under which a chain has each of them; the first that it has counts."""
INPUTS = ("question", "documents")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys under which a chain has its question, documents and answer."""

    of: Mapping[str, Sequence[str]]

    def find(self, values: Mapping[str, Any], name: str) -> Any:
        return next((values[key] for key in self.of[name] if values.get(key) is not None), None)

    def inputs(self, values: Mapping[str, Any]) -> tuple[str, list[Source]]:
        """Return question and documents. Raises `InputError` where one is missing, or of another type."""
        question, documents = (self.find(values, name) for name in INPUTS)
        if missing := [name for name in INPUTS if self.find(values, name) is None]:
            raise InputError(
                f"the chain has none; give its key: AnswerJudge({missing[0]}=…)", field=missing[0]
            )
        documents = [documents] if isinstance(documents, str | Document) else documents
        return text_of(question), [_source(document) for document in documents]


def text_of(message: object) -> str:
    """Return the text of a text or a message; that of None is empty."""
    if isinstance(message, BaseMessage):
        return str(message.text)
    if message is None or isinstance(message, str):
        return message or ""
    raise InputError(f"a text or a message is needed, not {type(message).__name__}")


def require_mapping(output: object) -> Mapping[str, Any]:
    """Raise `InputError` unless the output of a chain has several keys; an answer alone has none."""
    if not isinstance(output, Mapping):
        raise InputError(
            f"a dict with question, documents and answer is needed, not {type(output).__name__}: begin the "
            'chain with {"documents": retriever, "question": RunnablePassthrough()}, and let '
            "RunnablePassthrough.assign(answer=…) add the answer"
        )
    return output


@dataclass(frozen=True, slots=True)
class Origin:
    """The id and the usage of an answer's message; other metadata may hold words of it."""

    id: str | None = None
    usage: UsageMetadata | None = None

    @classmethod
    def of(cls, answer: object) -> Origin:
        """Return the origin of an answer; that of anything but a message has neither id nor usage."""
        if not isinstance(answer, BaseMessage):
            return cls()
        return cls(answer.id, answer.usage_metadata if isinstance(answer, AIMessage) else None)

    def then(self, later: Origin) -> Origin:
        """Combine the origin with that of the next chunk: usage adds up."""
        usage = self.usage if later.usage is None else add_usage(self.usage, later.usage)
        return Origin(self.id or later.id, usage)


def _source(document: object) -> Source:
    if isinstance(document, Document):
        return source_of(document.page_content, document.metadata)
    if isinstance(document, str | Source):
        return document if isinstance(document, Source) else Source(document)
    raise InputError(f"a Document or a text is needed, not {type(document).__name__}", field="documents")


class Coming:
    """An answer that comes in chunks, after its question and its documents."""

    def __init__(self, guard: Guard, keys: Keys) -> None:
        self._guard, self._keys = guard, keys
        self._inputs, self._waiting = AddableDict(), ""
        self._stream: GuardedStream | None = None
        self.origin = Origin()
        """The origin of the answer's message, so far."""

    def wanted(self, chunks: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the chunks until the answer is over: later ones would be withheld, and are not asked for."""
        for chunk in chunks:
            yield chunk
            if self._stream is not None and self._stream.over:
                return

    async def awanted(self, chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        async for chunk in chunks:
            yield chunk
            if self._stream is not None and self._stream.over:
                return

    def parts(self, chunks: Iterator[dict[str, Any]]) -> Iterator[Part]:
        for chunk in chunks:
            yield from self._add(chunk)
        yield from self._end()

    async def aparts(self, chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[Part]:
        async for chunk in chunks:
            async for part in in_thread(self._add(chunk)):
                yield part
        async for part in in_thread(self._end()):
            yield part

    def _add(self, chunk: dict[str, Any]) -> Iterator[Part]:
        keys = {key for name in INPUTS for key in self._keys.of[name]} & require_mapping(chunk).keys()
        if keys and self._stream is not None:
            raise InputError("it came after the answer began; let it come before", field=min(keys))
        self._inputs += AddableDict({key: chunk[key] for key in keys})
        answer = self._keys.find(chunk, "answer")
        self._waiting += text_of(answer)
        self.origin = self.origin.then(Origin.of(answer))
        if self._waiting and all(self._keys.find(self._inputs, name) is not None for name in INPUTS):
            yield from self._judged()

    def _end(self) -> Iterator[Part]:
        yield from self._judged()
        assert self._stream is not None
        yield from self._stream.end()

    def _judged(self) -> Iterator[Part]:
        if self._stream is None:
            self._stream = GuardedStream(self._guard, *self._keys.inputs(self._inputs))
        text, self._waiting = self._waiting, ""
        return self._stream.feed(text)


class AnswerJudge(Runnable[dict[str, Any], AIMessage]):
    """Judges the answer of a chain: of {"question", "documents", "answer"} it makes a message, with the
    answer or what the policy has in its place, and the decision under "lrp4rag" in `response_metadata`. Of an
    answer that is a message, it has the id and the usage.

    Where the chain is streamed, a sentence of its answer is handed on when it has ended and is judged;
    question and documents come before the answer begins. Documents are LangChain's, or texts; an answer is a
    text or a message. Raises `InputError` where one of them is missing.
    """

    def __init__(self, guard: Guard | None = None, **keys: str) -> None:
        """Take the `keys` of the chain that are not among the usual ones, such as question="ask"."""
        if unknown := keys.keys() - KEYS:
            raise InputError(f"there is no {min(unknown)}; there are {', '.join(KEYS)}", field="keys")
        self.guard = guard or Guard()
        self._keys = Keys(KEYS | {name: (key,) for name, key in keys.items()})

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any) -> AIMessage:
        return self._call_with_config(self._judge, input, config)

    def stream(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any
    ) -> Iterator[AIMessage]:
        return self.transform(iter([input]), config)

    async def astream(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any
    ) -> AsyncIterator[AIMessage]:
        async def single() -> AsyncIterator[dict[str, Any]]:
            yield input

        async for message in self.atransform(single(), config):
            yield message

    def transform(
        self, input: Iterator[dict[str, Any]], config: RunnableConfig | None = None, **_: Any
    ) -> Iterator[AIMessage]:
        coming = Coming(self.guard, self._keys)

        def messages(chunks: Iterator[dict[str, Any]]) -> Iterator[AIMessage]:
            return (_chunk(part, coming.origin) for part in coming.parts(chunks))

        return self._transform_stream_with_config(coming.wanted(input), messages, config)

    async def atransform(
        self, input: AsyncIterator[dict[str, Any]], config: RunnableConfig | None = None, **_: Any
    ) -> AsyncIterator[AIMessage]:
        coming = Coming(self.guard, self._keys)

        async def messages(chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[AIMessage]:
            async for part in coming.aparts(chunks):
                yield _chunk(part, coming.origin)

        async for message in self._atransform_stream_with_config(coming.awanted(input), messages, config):
            yield message

    def _judge(self, output: dict[str, Any]) -> AIMessage:
        answer = self._keys.find(require_mapping(output), "answer")
        guarded = self.guard.judge(*self._keys.inputs(output), text_of(answer))
        origin, metadata = Origin.of(answer), {EXTENSION: guarded.record()}
        return AIMessage(guarded.shown, id=origin.id, usage_metadata=origin.usage, response_metadata=metadata)


def _chunk(part: Part, origin: Origin) -> AIMessageChunk:
    """Return a part as a chunk. Chunks add up to a message with the decision on the answer, and those on its
    sentences in a list; the last has the usage of the answer's message."""
    decision = part.record if part.whole else {"sentences": [part.record]}
    return AIMessageChunk(
        content=part.text,
        id=origin.id,
        usage_metadata=origin.usage if part.whole else None,
        response_metadata={EXTENSION: decision} if part.record else {},
    )
