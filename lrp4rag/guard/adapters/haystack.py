"""Haystack: `AnswerJudge`, a component behind a generator; `JudgedChatGenerator`, around one that streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lrp4rag.guard.adapters.guard import EXTENSION, Guard
from lrp4rag.guard.adapters.sources import library, source_of
from lrp4rag.guard.adapters.stream import GuardedStream, Part
from lrp4rag.source import Source

with library("haystack", "haystack"):
    from haystack import Document, component
    from haystack.components.generators.chat.types import ChatGenerator
    from haystack.dataclasses import (
        ChatMessage,
        ComponentInfo,
        FinishReason,
        StreamingCallbackT,
        StreamingChunk,
        select_streaming_callback,
    )


@component
class AnswerJudge:
    """Judges replies by the query and the documents: of each it makes a message with the reply, or what the
    policy has in its place, and the decision under "lrp4rag" in its meta."""

    def __init__(self, detector: str = "default", policy: str | None = None) -> None:
        """Take the name of a bundled detector or a folder, and the path of a policy."""
        self.detector, self.policy = detector, policy
        self.guard = Guard(detector, policy)

    def warm_up(self) -> None:
        """Load the reader."""
        _ = self.guard.detector

    @component.output_types(replies=list[ChatMessage], decisions=list[dict[str, Any]])
    def run(
        self, query: str, documents: list[Document], replies: list[ChatMessage] | list[str]
    ) -> dict[str, Any]:
        """Return the replies in their order, and the decision on each. Raises `InputError` for a document
        without text."""
        sources, judged = sources_of_documents(documents), []
        for reply in replies:
            message = ChatMessage.from_assistant(reply) if isinstance(reply, str) else reply
            guarded = self.guard.judge(query, sources, message.text or "")
            meta = {**message.meta, EXTENSION: guarded.record()}
            judged.append(ChatMessage.from_assistant(guarded.shown, meta=meta))
        return {"replies": judged, "decisions": [message.meta[EXTENSION] for message in judged]}


@component
class JudgedChatGenerator:
    """Judge the replies of another generator by the query and the documents. A `streaming_callback` gets each
    sentence when it has ended and is judged. The decision is under "lrp4rag" in the meta of chunks and of the
    reply. If no document is fit to answer from, the generator is not called."""

    def __init__(
        self, chat_generator: ChatGenerator, detector: str = "default", policy: str | None = None
    ) -> None:
        """Take the name of a bundled detector or a folder, and the path of a policy."""
        self.detector, self.policy = detector, policy
        self.chat_generator: Any = chat_generator
        self.guard = Guard(detector, policy)

    def warm_up(self) -> None:
        """Load the reader."""
        _ = self.guard.detector
        if hasattr(self.chat_generator, "warm_up"):
            self.chat_generator.warm_up()

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        query: str,
        documents: list[Document],
        streaming_callback: StreamingCallbackT | None = None,
    ) -> dict[str, Any]:
        """Return one judged reply. Raises `InputError` for a document without text."""
        stream = GuardedStream(self.guard, query, sources_of_documents(documents))
        callback = select_streaming_callback(None, streaming_callback, requires_async=False)
        info = ComponentInfo.from_component(self)
        meta: dict[str, Any] = {}

        def hand_on(parts: Iterable[Part]) -> None:
            for part in parts:
                end: FinishReason | None = None
                if part.whole:
                    end = "content_filter" if stream.stopped else "stop"
                decision = {EXTENSION: part.record} if part.record else {}
                if callback is not None:
                    callback(StreamingChunk(part.text, decision, info, index=0, finish_reason=end))

        heard = False

        def listen(chunk: StreamingChunk) -> None:
            nonlocal heard
            heard = True
            hand_on(stream.feed(chunk.content))

        if not stream.over:
            written = self.chat_generator.run(messages=messages, streaming_callback=listen)
            for reply in written["replies"][:1]:
                meta |= reply.meta
                if not heard:  # it does not stream
                    hand_on(stream.feed(reply.text or ""))
        hand_on(stream.end())
        guarded = stream.result
        assert guarded is not None
        # Whoever saw the sentences sees them again; nobody else sees what is withheld as a whole.
        withheld = callback is None and guarded.assessment.withheld
        text = guarded.assessment.message if withheld else guarded.shown
        return {"replies": [ChatMessage.from_assistant(text, meta=meta | {EXTENSION: guarded.record()})]}


def sources_of_documents(documents: Sequence[Document]) -> list[Source]:
    return [source_of(document.content or "", document.meta, score=document.score) for document in documents]
