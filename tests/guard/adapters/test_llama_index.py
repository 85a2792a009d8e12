"""LlamaIndex's own engines and streams around our evaluator, gate and engine."""

from __future__ import annotations

import asyncio

import pytest

from lrp4rag.guard.adapters import Guard
from lrp4rag.util.errors import InputError
from tests.guard.adapters.conftest import ACTIONS, ANSWER, PASSAGES, QUESTION, SENTENCES

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed: make test-adapters")

from llama_index.core import get_response_synthesizer
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from lrp4rag.guard.adapters.llama_index import (
    GroundedEvaluator,
    JudgedQueryEngine,
    RetrievalGatePostprocessor,
)

OLD, NEW = {"title": "Policy", "expires": "2020-12-31"}, {"title": "Policy", "effective": "2021-01-01"}


def node(text: str, score: float | None = 0.9, **metadata: str) -> NodeWithScore:
    return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=score)


NODES = [node(text) for text in PASSAGES]


class Canned(CustomLLM):
    """Says one thing, a character at a time where it is streamed."""

    says: str = ANSWER

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="canned")

    def complete(self, prompt: str, formatted: bool = False, **_):
        return CompletionResponse(text=self.says)

    def stream_complete(self, prompt: str, formatted: bool = False, **_):
        for end in range(1, len(self.says) + 1):
            yield CompletionResponse(text=self.says[:end], delta=self.says[end - 1])


class Retriever(BaseRetriever):
    def _retrieve(self, query_bundle):
        return NODES


def engine_of(guard: Guard, *, streaming: bool, says: str = ANSWER) -> JudgedQueryEngine:
    synthesizer = get_response_synthesizer(llm=Canned(says=says), streaming=streaming)
    return JudgedQueryEngine(RetrieverQueryEngine(Retriever(), response_synthesizer=synthesizer), guard)


def test_an_answer_is_the_engines_or_what_is_said_in_its_place(guard: Guard) -> None:
    good = engine_of(guard, streaming=False, says="It is 31 metres tall.").query(QUESTION)
    assert isinstance(good, Response)
    assert (str(good), good.metadata["lrp4rag"]["action"]) == ("It is 31 metres tall.", "serve")
    assert [one.node_id for one in good.source_nodes] == [one.node_id for one in NODES]
    bad = asyncio.run(engine_of(guard, streaming=False, says="It is WRONG.").aquery(QUESTION))
    assert "WRONG" not in f"{bad}{bad.metadata}"
    assert bad.metadata["lrp4rag"]["action"] == "withhold"


def test_a_stream_hands_on_sentences_when_they_are_judged(guard: Guard, judged: list[str]) -> None:
    response = engine_of(guard, streaming=True).query(QUESTION)
    assert isinstance(response, StreamingResponse)
    seen = [(text, len(judged)) for text in response.response_gen]
    assert seen[:4] == [(text, k + 1) for k, text in enumerate(SENTENCES)]
    assert [one["action"] for one in response.metadata["lrp4rag"]["sentences"]] == ACTIONS


def test_a_stream_that_is_awaited(guard: Guard) -> None:
    async def run() -> tuple[list[str], dict]:
        response = await engine_of(guard, streaming=True).aquery(QUESTION)
        assert isinstance(response, AsyncStreamingResponse)
        return [text async for text in response.async_response_gen()], response.metadata

    found, metadata = asyncio.run(run())
    assert found[:4] == SENTENCES
    assert metadata["lrp4rag"]["action"] == "disclose"


def test_an_evaluation_says_what_is_suspect(guard: Guard) -> None:
    judge = GroundedEvaluator(guard)
    good = judge.evaluate(QUESTION, "It is 31 metres tall.", PASSAGES)
    assert (good.passing, good.score, good.invalid_result) == (True, 0.95, False)
    bad = judge.evaluate_response(QUESTION, Response("It is WRONG.", source_nodes=NODES))
    assert (bad.passing, bad.contexts) == (False, PASSAGES)
    assert bad.score == pytest.approx(0.1)
    assert '"WRONG": unsupported' in bad.feedback
    for answer, contexts, why in (
        ("BROKEN.", PASSAGES, "failed: RuntimeError"),
        ("Yes.", [], "nothing to judge"),
    ):
        none = judge.evaluate(QUESTION, answer, contexts)
        assert (none.passing, none.score, none.invalid_result) == (None, None, True)
        assert why in none.invalid_reason
    with pytest.raises(InputError, match="query, response and contexts"):
        judge.evaluate(QUESTION, "Yes.")


def test_the_gate_keeps_what_an_answer_may_rest_on() -> None:
    nodes = [
        node("Leave is 12 weeks.", 0.95, **OLD),
        node("Leave is asked for in writing.", 0.7),
        node("Leave is 16 weeks.", 0.9, **NEW),
        node("The canteen opens at noon.", 0.2),
    ]
    gate = RetrievalGatePostprocessor()
    assert gate.postprocess_nodes(nodes, query_str="How long is leave?") == [nodes[2], nodes[1]]
    assert gate.postprocess_nodes(nodes) == [nodes[2], nodes[1]]
    assert dict(gate.decide(nodes, "How long is leave?").dropped) == {0: "expired", 3: "below minimum"}
    assert asyncio.run(gate.apostprocess_nodes(nodes, query_str="How long was leave in 2019?")) == [
        nodes[0],
        nodes[1],
    ]
    assert RetrievalGatePostprocessor(minimum=0.92).postprocess_nodes(nodes) == []
    assert gate.postprocess_nodes([]) == []


def test_a_setting_that_there_is_not_is_refused() -> None:
    for given in ({"minimum": 2}, {"time_zone": "Mars/Base"}):
        with pytest.raises(ValueError, match=next(iter(given))):
            RetrievalGatePostprocessor(**given)


def test_where_the_gate_keeps_nothing_no_answer_is_shown(guard: Guard) -> None:
    engine = engine_of(guard, streaming=True)
    engine.engine._node_postprocessors = [RetrievalGatePostprocessor(minimum=0.99)]
    assert str(engine.query(QUESTION)) == "The available documents do not answer this question."
