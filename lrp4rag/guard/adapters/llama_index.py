"""LlamaIndex: an evaluator of answers, and the retrieval gate as a postprocessor of nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from lrp4rag.guard.adapters.guard import Guard
from lrp4rag.guard.adapters.library import library
from lrp4rag.guard.adapters.sources import source_of
from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.gate import GateResult, RetrievalGate
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError

with library("llama_index.core", "llama-index"):
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
        """Raises `InputError` where query, response or contexts are missing."""
        if query is None or response is None or contexts is None:
            raise InputError("query, response and contexts are needed to judge an answer")
        found = self.guard.judge(query, contexts, response)
        none, probability = found.grounded is None, found.probability
        return EvaluationResult(
            query=query,
            response=response,
            contexts=list(contexts),
            passing=found.grounded,
            score=None if none or probability is None else 1 - probability,
            feedback=found.words,
            invalid_result=none,
            invalid_reason=found.words if none else None,
        )

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **_: Any,
    ) -> EvaluationResult:
        return await asyncio.to_thread(self.evaluate, query, response, contexts)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        """There are none."""


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
        """What is kept and dropped, by the numbers of the nodes from 0, and why."""
        return self._gate().decide(CheckInput(query, tuple(source_of_node(one) for one in nodes)))

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = "" if query_bundle is None else query_bundle.query_str
        return [nodes[number] for number in self.decide(nodes, query).kept]


def source_of_node(node: NodeWithScore) -> Source:
    """The passage that a node is."""
    return source_of(node.node.get_content(), node.node.metadata, score=node.score)
