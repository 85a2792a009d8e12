"""LlamaIndex: `JudgedQueryEngine`, a query engine whose answers are judged, also while they are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any

from lrp4rag.guard.adapters.guard import Guard
from lrp4rag.guard.adapters.library import library
from lrp4rag.guard.adapters.llama_index import source_of_node
from lrp4rag.guard.adapters.stream import GuardedStream

with library("llama_index.core", "llama-index"):
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.response.schema import (
        RESPONSE_TYPE,
        AsyncStreamingResponse,
        Response,
        StreamingResponse,
    )
    from llama_index.core.schema import QueryBundle

EXTENSION = "lrp4rag"


class JudgedQueryEngine(BaseQueryEngine):
    """The answers of another `engine`, or what the policy has in their place; the decision is under "lrp4rag"
    in the metadata of the response. A streaming response hands on each sentence when it has ended and is
    judged; its metadata have the decision at its end."""

    def __init__(self, engine: BaseQueryEngine, guard: Guard | None = None) -> None:
        super().__init__(engine.callback_manager)
        self.engine, self.guard = engine, guard or Guard()

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {"engine": self.engine}

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self.judged(query_bundle.query_str, self.engine.query(query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        answered = await self.engine.aquery(query_bundle)
        return await asyncio.to_thread(self.judged, query_bundle.query_str, answered)

    def judged(self, query: str, response: RESPONSE_TYPE) -> RESPONSE_TYPE:
        """A response of any engine, judged by its source nodes."""
        sources = [source_of_node(one) for one in response.source_nodes]
        metadata = dict(response.metadata or {})
        if isinstance(response, StreamingResponse):
            stream = GuardedStream(self.guard, query, sources)
            return StreamingResponse(_texts(stream, response, metadata), response.source_nodes, metadata)
        if isinstance(response, AsyncStreamingResponse):
            stream = GuardedStream(self.guard, query, sources)
            return AsyncStreamingResponse(
                _atexts(stream, response, metadata), response.source_nodes, metadata
            )
        found = self.guard.judge(query, sources, str(response))
        metadata[EXTENSION] = found.record()
        return Response(found.shown, response.source_nodes, metadata)


def _texts(
    stream: GuardedStream, response: StreamingResponse, metadata: dict[str, Any]
) -> Generator[str, None, None]:
    for part in stream.run(response.response_gen):
        if part.whole and stream.result is not None:
            metadata[EXTENSION] = stream.result.record()
        yield part.text


async def _atexts(
    stream: GuardedStream, response: AsyncStreamingResponse, metadata: dict[str, Any]
) -> AsyncGenerator[str, None]:
    async for part in stream.arun(response.async_response_gen()):
        if part.whole and stream.result is not None:
            metadata[EXTENSION] = stream.result.record()
        yield part.text
