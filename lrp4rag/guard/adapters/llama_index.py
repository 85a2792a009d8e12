"""LlamaIndex: a query engine whose answers are judged, also while they are written; an evaluator of answers;
and the retrieval gate as a postprocessor of nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any

from lrp4rag.guard.adapters.guard import EXTENSION, Guard
from lrp4rag.guard.adapters.sources import library, source_of
from lrp4rag.guard.adapters.stream import GuardedStream
from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.gate import GateResult, RetrievalGate
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError

with library("llama_index.core", "llama-index"):
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.response.schema import (
        RESPONSE_TYPE,
        AsyncStreamingResponse,
        Response,
        StreamingResponse,
    )
    from llama_index.core.bridge.pydantic import Field, model_validator
    from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle


class GroundedEvaluator(BaseEvaluator):
    """Whether an answer is grounded in its contexts: `passing` is the detector's verdict, `score` is 1 less
    the probability that it is hallucinated, and `feedback` names what is suspect. Where there is no verdict,
    the result is invalid, and says why."""

    def __init__(self, guard: Guard | None = None) -> None:
        self.guard = guard or Guard()

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """Judge a response. Raises `InputError` where query, response or contexts are missing."""
        if query is None or response is None or contexts is None:
            raise InputError("query, response and contexts are needed to judge an answer")
        guarded = self.guard.judge(query, contexts, response)
        none, probability = guarded.grounded is None, guarded.probability
        return EvaluationResult(
            query=query,
            response=response,
            contexts=list(contexts),
            passing=guarded.grounded,
            score=None if none or probability is None else 1 - probability,
            feedback=guarded.words,
            invalid_result=none,
            invalid_reason=guarded.words if none else None,
        )

    async def aevaluate(self, *args: Any, **kwargs: Any) -> EvaluationResult:
        return await asyncio.to_thread(self.evaluate, *args, **kwargs)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        """Do nothing: there are no prompts."""


class RetrievalGatePostprocessor(BaseNodePostprocessor):
    """Keeps the nodes that an answer may rest on, the best first: docs/retrieval-gate.md. What it reads of a
    node beside its text and score are the metadata `title`, `version`, `effective` and `expires`."""

    minimum: float = Field(default=0.6, description="The lowest score that passes, from 0 to 1.")
    time_zone: str | None = Field(default=None, description="Of dates that have none: its IANA name.")

    @model_validator(mode="after")
    def _can_gate(self) -> RetrievalGatePostprocessor:
        try:
            self._gate()
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @classmethod
    def class_name(cls) -> str:
        return "RetrievalGatePostprocessor"

    def _gate(self) -> RetrievalGate:
        return RetrievalGate(self.minimum, self.time_zone)

    def decide(self, nodes: Sequence[NodeWithScore], query: str) -> GateResult:
        """Return which nodes are kept and dropped, by their numbers from 0, and why."""
        return self._gate().decide(CheckInput(query, tuple(source_of_node(node) for node in nodes)))

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = "" if query_bundle is None else query_bundle.query_str
        return [nodes[number] for number in self.decide(nodes, query).kept]


def source_of_node(node: NodeWithScore) -> Source:
    """Return a node as a passage."""
    return source_of(node.node.get_content(), node.node.metadata, score=node.score)


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
        """Return a response of any engine, judged by its source nodes."""
        sources = [source_of_node(node) for node in response.source_nodes]
        metadata = dict(response.metadata or {})
        if isinstance(response, StreamingResponse):
            stream = GuardedStream(self.guard, query, sources)
            return StreamingResponse(_texts(stream, response, metadata), response.source_nodes, metadata)
        if isinstance(response, AsyncStreamingResponse):
            stream = GuardedStream(self.guard, query, sources)
            return AsyncStreamingResponse(
                _atexts(stream, response, metadata), response.source_nodes, metadata
            )
        guarded = self.guard.judge(query, sources, str(response))
        metadata[EXTENSION] = guarded.record()
        return Response(guarded.shown, response.source_nodes, metadata)


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
