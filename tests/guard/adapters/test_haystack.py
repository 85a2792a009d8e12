"""Haystack's own pipelines, generators and streams around our components."""

from __future__ import annotations

import os

import pytest

from lrp4rag.guard.adapters import Guard
from tests.guard.adapters.conftest import ACTIONS, ANSWER, PASSAGES, QUESTION, SENTENCES

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
pytest.importorskip("haystack", reason="haystack-ai is not installed: make test-adapters")

from haystack import Document, Pipeline, component
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk

from lrp4rag.guard.adapters.haystack import AnswerJudge, JudgedChatGenerator

DOCUMENTS = [Document(content=text, meta={"file_name": f"{k}.pdf"}) for k, text in enumerate(PASSAGES)]


@pytest.fixture
def judge(guard: Guard) -> AnswerJudge:
    found = AnswerJudge()
    found.guard = guard
    return found


def generator_of(guard: Guard, says: str = ANSWER) -> JudgedChatGenerator:
    found = JudgedChatGenerator(MockChatGenerator(says))
    found.guard = guard
    return found


def test_replies_are_judged_in_their_order(judge: AnswerJudge) -> None:
    replies = ["It is 31 metres tall.", ChatMessage.from_assistant("It is WRONG.", meta={"model": "m"}), ""]
    found = judge.run(QUESTION, DOCUMENTS, replies)
    assert [one["action"] for one in found["decisions"]] == ["serve", "withhold", "withhold"]
    one, two, _ = found["replies"]
    assert one.text == "It is 31 metres tall."
    assert "WRONG" not in str(two)
    assert "“0.pdf”" in two.text
    assert (two.meta["model"], two.meta["lrp4rag"]) == ("m", found["decisions"][1])


def test_a_pipeline_with_an_answer_builder(judge: AnswerJudge) -> None:
    pipeline = Pipeline()
    pipeline.add_component(
        "prompt", ChatPromptBuilder([ChatMessage.from_user("{{ query }}")], required_variables="*")
    )
    pipeline.add_component("model", MockChatGenerator("It is 31 metres tall."))
    pipeline.add_component("judge", judge)
    pipeline.add_component("answers", AnswerBuilder())
    pipeline.connect("prompt.prompt", "model.messages")
    pipeline.connect("model.replies", "judge.replies")
    pipeline.connect("judge.replies", "answers.replies")
    given = {"query": QUESTION, "documents": DOCUMENTS}
    found = pipeline.run({"prompt": {"query": QUESTION}, "judge": given, "answers": given})
    (answer,) = found["answers"]["answers"]
    assert answer.data == "It is 31 metres tall."
    assert answer.meta["lrp4rag"]["action"] == "serve"


def test_a_stream_hands_on_sentences_when_they_are_judged(guard: Guard, judged: list[str]) -> None:
    seen: list[tuple[str, int]] = []
    chunks: list[StreamingChunk] = []

    def listen(chunk: StreamingChunk) -> None:
        seen.append((chunk.content, len(judged)))
        chunks.append(chunk)

    messages = [ChatMessage.from_user(QUESTION)]
    (reply,) = generator_of(guard).run(messages, QUESTION, DOCUMENTS, listen)["replies"]
    assert seen[:4] == [(text, k + 1) for k, text in enumerate(SENTENCES)]
    assert [chunk.finish_reason for chunk in chunks] == [None] * 4 + ["stop"]
    assert [chunk.meta["lrp4rag"]["action"] for chunk in chunks] == [*ACTIONS, "disclose"]
    assert reply.text == "".join(chunk.content for chunk in chunks)
    assert reply.meta["model"] == "mock-model"
    wrong = "It is WRONG. It is WRONG too. It is 31 metres tall."
    (quiet,) = generator_of(guard, wrong).run(messages, QUESTION, DOCUMENTS)["replies"]
    assert quiet.text.startswith("The answer could not be confirmed"), "nobody has seen a sentence"


@pytest.mark.parametrize("says", [["It is 31 metres tall."], []], ids=["a reply", "none"])
def test_a_generator_that_does_not_stream_is_judged_too(guard: Guard, says: list[str]) -> None:
    @component
    class Whole:
        @component.output_types(replies=list[ChatMessage])
        def run(self, messages: list[ChatMessage], streaming_callback=None):
            return {"replies": [ChatMessage.from_assistant(one) for one in says]}

    generator = JudgedChatGenerator(Whole())
    generator.guard = guard
    (reply,) = generator.run([ChatMessage.from_user(QUESTION)], QUESTION, DOCUMENTS)["replies"]
    assert reply.meta["lrp4rag"]["action"] == ("serve" if says else "withhold")
    assert not says or reply.text == says[0]


def test_where_no_document_is_fit_the_generator_is_not_asked(guard: Guard) -> None:
    def never(_):
        raise AssertionError

    generator = JudgedChatGenerator(MockChatGenerator(response_fn=never))
    generator.guard = guard
    chunks: list[StreamingChunk] = []
    for documents in ([], [Document(content="Fish.", score=0.1)]):
        (reply,) = generator.run([ChatMessage.from_user("?")], QUESTION, documents, chunks.append)["replies"]
        assert reply.text.startswith("The available documents do not answer this question.")
        assert chunks.pop().finish_reason == "content_filter"


def test_a_pipeline_is_written_and_read() -> None:
    pipeline = Pipeline()
    pipeline.add_component("judge", AnswerJudge())
    pipeline.add_component("model", JudgedChatGenerator(MockChatGenerator("Yes.")))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["lrp4rag.guard.adapters.*"])
    assert again == pipeline
    assert isinstance(again.get_component("model").chat_generator, MockChatGenerator)
