"""Haystack: `AnswerJudge`, a component that stands behind a generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lrp4rag.guard.adapters.guard import Guard
from lrp4rag.guard.adapters.library import library
from lrp4rag.guard.adapters.sources import source_of
from lrp4rag.source import Source

with library("haystack", "haystack"):
    from haystack import Document, component
    from haystack.dataclasses import ChatMessage

EXTENSION = "lrp4rag"


@component
class AnswerJudge:
    """Judges replies by the query and the documents: of each it makes a message with the reply, or what the
    policy has in its place, and the decision under "lrp4rag" in its meta."""

    def __init__(self, detector: str = "default", policy: str | None = None) -> None:
        """`detector` is bundled or a folder, `policy` the path of a file."""
        self.detector, self.policy = detector, policy
        self.guard = Guard(detector, policy)

    def warm_up(self) -> None:
        """Loads the reader."""
        _ = self.guard.detector

    @component.output_types(replies=list[ChatMessage], decisions=list[dict[str, Any]])
    def run(
        self, query: str, documents: list[Document], replies: list[ChatMessage] | list[str]
    ) -> dict[str, Any]:
        """The replies in their order, and the decision on each. Raises `InputError` for a document without
        text."""
        sources, judged = sources_of_documents(documents), []
        for reply in replies:
            message = ChatMessage.from_assistant(reply) if isinstance(reply, str) else reply
            found = self.guard.judge(query, sources, message.text or "")
            meta = {**message.meta, EXTENSION: found.record()}
            judged.append(ChatMessage.from_assistant(found.shown, meta=meta))
        return {"replies": judged, "decisions": [one.meta[EXTENSION] for one in judged]}


def sources_of_documents(documents: Sequence[Document]) -> list[Source]:
    return [source_of(one.content or "", one.meta, score=one.score) for one in documents]
