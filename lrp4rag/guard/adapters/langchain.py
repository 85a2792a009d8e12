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
"""Under which names a chain has each of them; the first that is there."""
ASKED = ("question", "documents")


@dataclass(frozen=True, slots=True)
class Keys:
    """The names in use."""

    of: Mapping[str, Sequence[str]]

    def find(self, given: Mapping[str, Any], name: str) -> Any:
        return next((given[key] for key in self.of[name] if given.get(key) is not None), None)

    def asked(self, given: Mapping[str, Any]) -> tuple[str, list[Source]]:
        """Question and documents. Raises `InputError` where one is missing, or is none."""
        question, documents = (self.find(given, name) for name in ASKED)
        if missing := [name for name in ASKED if self.find(given, name) is None]:
            raise InputError(
                f"the chain has none; give its key: AnswerJudge({missing[0]}=…)", field=missing[0]
            )
        documents = [documents] if isinstance(documents, str | Document) else documents
        return text_of(question), [_source(one) for one in documents]


def text_of(given: object) -> str:
    """Of a text or a message; none is empty."""
    if isinstance(given, BaseMessage):
        return str(given.text)
    if given is None or isinstance(given, str):
        return given or ""
    raise InputError(f"a text or a message is needed, not {type(given).__name__}")


def require_mapping(given: object) -> Mapping[str, Any]:
    """Raise `InputError` unless it is the output of a chain with several keys; an answer alone is not."""
    if not isinstance(given, Mapping):
        raise InputError(
            f"a dict with question, documents and answer is needed, not {type(given).__name__}: begin the "
            'chain with {"documents": retriever, "question": RunnablePassthrough()}, and let '
            "RunnablePassthrough.assign(answer=…) add the answer"
        )
    return given


@dataclass(frozen=True, slots=True)
class Origin:
    """The id and the usage of an answer's message; other metadata may hold words of it."""

    id: str | None = None
    usage: UsageMetadata | None = None

    @classmethod
    def of(cls, answer: object) -> Origin:
        """Both are None for anything but a message."""
        if not isinstance(answer, BaseMessage):
            return cls()
        return cls(answer.id, answer.usage_metadata if isinstance(answer, AIMessage) else None)

    def then(self, later: Origin) -> Origin:
        """With that of the next chunk: usage adds up."""
        usage = self.usage if later.usage is None else add_usage(self.usage, later.usage)
        return Origin(self.id or later.id, usage)


def _source(given: object) -> Source:
    if isinstance(given, Document):
        return source_of(given.page_content, given.metadata)
    if isinstance(given, str | Source):
        return given if isinstance(given, Source) else Source(given)
    raise InputError(f"a Document or a text is needed, not {type(given).__name__}", field="documents")


class Coming:
    """An answer that comes in chunks, after its question and its documents."""

    def __init__(self, guard: Guard, keys: Keys) -> None:
        self._guard, self._keys = guard, keys
        self._known, self._waiting = AddableDict(), ""
        self._stream: GuardedStream | None = None
        self.origin = Origin()
        """The origin of the answer's message, so far."""

    def wanted(self, chunks: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the chunks until the answer is over: what is withheld then is not asked for."""
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
        asked = {key for name in ASKED for key in self._keys.of[name]} & require_mapping(chunk).keys()
        if asked and self._stream is not None:
            raise InputError("it came after the answer began; let it come before", field=min(asked))
        self._known += AddableDict({key: chunk[key] for key in asked})
        answer = self._keys.find(chunk, "answer")
        self._waiting += text_of(answer)
        self.origin = self.origin.then(Origin.of(answer))
        if self._waiting and all(self._keys.find(self._known, name) is not None for name in ASKED):
            yield from self._judged()

    def _end(self) -> Iterator[Part]:
        yield from self._judged()
        assert self._stream is not None
        yield from self._stream.end()

    def _judged(self) -> Iterator[Part]:
        if self._stream is None:
            self._stream = GuardedStream(self._guard, *self._keys.asked(self._known))
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

    def _whole(self, given: dict[str, Any]) -> AIMessage:
        answer = self._keys.find(require_mapping(given), "answer")
        found = self.guard.judge(*self._keys.asked(given), text_of(answer))
        origin, metadata = Origin.of(answer), {EXTENSION: found.record()}
        return AIMessage(found.shown, id=origin.id, usage_metadata=origin.usage, response_metadata=metadata)


def _chunk(part: Part, origin: Origin) -> AIMessageChunk:
    """Chunks add up to a message with the decision on the answer, and those on its sentences in a list; the
    last has the usage of the answer's message."""
    decision = part.record if part.whole else {"sentences": [part.record]}
    return AIMessageChunk(
        content=part.text,
        id=origin.id,
        usage_metadata=origin.usage if part.whole else None,
        response_metadata={EXTENSION: decision} if part.record else {},
    )
