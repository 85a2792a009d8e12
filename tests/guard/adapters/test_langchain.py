"""LangChain's own chains, models and streams before `AnswerJudge`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from lrp4rag.guard.adapters import Guard
from lrp4rag.util.errors import InputError
from tests.guard.adapters.conftest import (
    ACTIONS,
    ANSWER,
    MARK,
    PASSAGES,
    QUESTION,
    SENTENCES,
    TOLD,
    UNSUPPORTED,
)

pytest.importorskip(
    "langchain_core", reason="langchain-core is not installed: pip install 'lrp4rag[langchain]'"
)

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableGenerator, RunnableLambda, RunnablePassthrough

from lrp4rag.guard.adapters.langchain import AnswerJudge

DOCUMENTS = [Document(text, metadata={"source": f"{k}.pdf"}) for k, text in enumerate(PASSAGES)]
GIVEN = {"question": QUESTION, "documents": DOCUMENTS}


def chain_of(guard: Guard, answer: str = ANSWER, **keys: str) -> Runnable:
    """As people write it; the model streams single characters."""
    prompt = ChatPromptTemplate.from_template("{context} {input}")
    model = prompt | FakeListChatModel(responses=[answer]) | StrOutputParser()
    retriever = RunnableLambda(lambda _: DOCUMENTS)
    retrieved = RunnablePassthrough.assign(context=retriever).assign(answer=model)
    return retrieved | AnswerJudge(guard, **keys)


def test_a_chain_gives_the_answer_or_what_is_said_in_its_place(guard: Guard) -> None:
    message = chain_of(guard, "It is 31 metres tall.").invoke({"input": QUESTION})
    assert isinstance(message, AIMessage)
    assert message.content == "It is 31 metres tall."
    assert message.response_metadata["lrp4rag"]["action"] == "serve"
    withheld = chain_of(guard, "It is WRONG.").invoke({"input": QUESTION})
    assert "WRONG" not in f"{withheld}"
    assert withheld.response_metadata["lrp4rag"]["reason"] == "unsupported"
    assert "“0.pdf”" in withheld.content, "the closest source, by its metadata"
    text = (chain_of(guard, "It is 31 metres tall.") | StrOutputParser()).invoke({"input": QUESTION})
    assert text == "It is 31 metres tall."


def test_a_stream_hands_on_sentences_when_they_are_judged(guard: Guard, judged: list[str]) -> None:
    seen: list[tuple[str, int]] = []
    whole = None
    for chunk in chain_of(guard).stream({"input": QUESTION}):
        seen.append((chunk.content, len(judged)))
        whole = chunk if whole is None else whole + chunk
    assert seen[:4] == [(text, k + 1) for k, text in enumerate(SENTENCES)], "each before the next is judged"
    assert isinstance(whole, AIMessageChunk)
    decision = whole.response_metadata["lrp4rag"]
    assert (decision["action"], decision["reason"]) == ("disclose", "contradicted")
    assert [one["action"] for one in decision["sentences"]] == ACTIONS
    assert seen[4][0] == f"\n\n{TOLD}"
    assert "OTHER" not in f"{whole.content}{decision}".replace(TOLD, "")


def test_a_stream_that_is_awaited(guard: Guard) -> None:
    async def run() -> list[str]:
        return [chunk.content async for chunk in chain_of(guard).astream({"input": QUESTION})]

    async def at_once() -> list[list[str]]:
        return await asyncio.gather(*(run() for _ in range(3)))

    for found in asyncio.run(at_once()):
        assert found[:4] == SENTENCES
        assert len(found) == 5
    message = asyncio.run(chain_of(guard, "It is 31 metres tall.").ainvoke({"input": QUESTION}))
    assert message.content == "It is 31 metres tall."


@pytest.mark.parametrize(
    "answer",
    [ANSWER, AIMessage(ANSWER), AIMessage([{"type": "text", "text": ANSWER}])],
    ids=["text", "message", "parts"],
)
def test_an_answer_may_be_a_text_or_a_message(guard: Guard, answer: object) -> None:
    found = AnswerJudge(guard).stream({**GIVEN, "answer": answer})
    assert [chunk.content for chunk in found][:4] == SENTENCES


@pytest.mark.parametrize(
    "documents",
    [PASSAGES, "\n\n".join(PASSAGES), DOCUMENTS[0], DOCUMENTS],
    ids=["texts", "text", "document", "documents"],
)
def test_documents_may_be_texts(guard: Guard, documents: object) -> None:
    given = {"question": HumanMessage(QUESTION), "documents": documents, "answer": "It is 31 metres tall."}
    assert AnswerJudge(guard).invoke(given).content == "It is 31 metres tall."


def test_no_documents_are_a_knowledge_gap(guard: Guard, judged: list[str]) -> None:
    given = {"question": QUESTION, "documents": [], "answer": ANSWER}
    for message in (AnswerJudge(guard).invoke(given), *AnswerJudge(guard).stream(given)):
        assert message.response_metadata["lrp4rag"]["reason"] == "knowledge gap"
        assert message.content == "The available documents do not answer this question."
    assert judged == []


def test_what_is_missing_is_named(guard: Guard) -> None:
    for given, name in (
        ({"documents": DOCUMENTS, "answer": ANSWER}, "question"),
        ({"question": QUESTION, "answer": ANSWER}, "documents"),
    ):
        for ask in (AnswerJudge(guard).invoke, lambda one: list(AnswerJudge(guard).stream(one))):
            with pytest.raises(InputError, match=rf"field '{name}': .*AnswerJudge\({name}=…\)"):
                ask(given)
    with pytest.raises(InputError, match="there is no prompt; there are question, documents, answer"):
        AnswerJudge(guard, prompt="p")
    with pytest.raises(InputError, match="a Document or a text is needed, not int"):
        AnswerJudge(guard).invoke({**GIVEN, "documents": [1], "answer": ANSWER})
    asked = {"ask": QUESTION, "context": PASSAGES, "said": "It is 31 metres tall."}
    assert AnswerJudge(guard, question="ask", answer="said").invoke(asked).content == asked["said"]


def test_an_answer_waits_for_its_documents(guard: Guard) -> None:
    def late(chunks: Iterator[object]) -> Iterator[dict[str, object]]:
        for _ in chunks:
            yield {"answer": "It is WRONG. It is"}
            yield {"question": QUESTION}
            yield {"documents": DOCUMENTS}
            yield {"answer": " 31 metres tall."}

    found = [chunk.content for chunk in (RunnableGenerator(late) | AnswerJudge(guard)).stream(None)]
    assert found[:2] == [f"{UNSUPPORTED} ", "It is 31 metres tall."]

    def later(chunks: Iterator[object]) -> Iterator[dict[str, object]]:
        for _ in chunks:
            yield GIVEN
            yield {"answer": "It is 31 metres tall. It"}
            yield {"documents": DOCUMENTS}

    with pytest.raises(InputError, match="it came after the answer began"):
        list((RunnableGenerator(later) | AnswerJudge(guard)).stream(None))


@pytest.mark.parametrize("awaited", [False, True])
def test_what_is_over_is_not_asked_for(strict: Guard, awaited: bool) -> None:
    taken: list[str] = []

    def texts(chunks: Iterator[object]) -> Iterator[dict[str, object]]:
        for _ in chunks:
            yield GIVEN
            for text in ("It is WRONG. ", "It is ", "tall. ", "It is old."):
                taken.append(text)
                yield {"answer": text}

    async def atexts(chunks: AsyncIterator[object]) -> AsyncIterator[dict[str, object]]:
        async for _ in chunks:
            for one in texts(iter([None])):
                yield one

    chain = RunnableGenerator(texts, atexts) | AnswerJudge(strict)

    async def run() -> list[str]:
        return [chunk.content async for chunk in chain.astream(None)]

    found = asyncio.run(run()) if awaited else [chunk.content for chunk in chain.stream(None)]
    assert found[0] == f"{UNSUPPORTED} "
    assert MARK not in found[0]
    assert len(found) == 2
    assert len(taken) <= 3, "the sentence ends with the word after it"


def test_an_error_upstream_is_an_error(guard: Guard) -> None:
    def broken(chunks: Iterator[object]) -> Iterator[dict[str, object]]:
        for _ in chunks:
            yield {**GIVEN, "answer": "It is 31 metres tall. It is W"}
            raise RuntimeError("no more")

    found: list[str] = []
    with pytest.raises(RuntimeError, match="no more"):
        found.extend(chunk.content for chunk in (RunnableGenerator(broken) | AnswerJudge(guard)).stream(None))
    assert "W" not in "".join(found)


@pytest.mark.parametrize("given", [ANSWER, AIMessage(ANSWER), DOCUMENTS, None], ids=type)
def test_an_answer_alone_is_refused_with_what_to_do(guard: Guard, given: object) -> None:
    judge = AnswerJudge(guard)

    async def awaited() -> None:
        await judge.ainvoke(given)

    for ask in (judge.invoke, lambda one: list(judge.stream(one)), lambda _: asyncio.run(awaited())):
        with pytest.raises(InputError, match=r"not \w+: begin the chain with .*RunnablePassthrough"):
            ask(given)


USAGE = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
METADATA = {"model_name": "m-1", "logprobs": {"content": [{"token": "WRONG", "logprob": -0.1}]}}


@pytest.mark.parametrize("answer", ["It is 31 metres tall.", "It is WRONG."])
def test_the_message_keeps_its_id_and_its_usage_and_no_word(strict: Guard, answer: str) -> None:
    given = AIMessage(answer, id="run-1", usage_metadata=USAGE, response_metadata=METADATA)
    message = AnswerJudge(strict).invoke({**GIVEN, "answer": given})
    assert (message.id, message.usage_metadata) == ("run-1", USAGE)
    assert list(message.response_metadata) == ["lrp4rag"]
    assert "WRONG" not in f"{message!r}"
    (text,) = {AnswerJudge(strict).invoke({**GIVEN, "answer": answer}).content}
    assert text == message.content


def test_chunks_of_a_stream_add_up_to_the_message_with_its_usage(guard: Guard) -> None:
    """Usage may come in parts."""
    half = {"input_tokens": 7, "output_tokens": 0, "total_tokens": 7}
    rest = {"input_tokens": 0, "output_tokens": 5, "total_tokens": 5}

    def texts(chunks: Iterator[object]) -> Iterator[dict[str, object]]:
        for _ in chunks:
            yield GIVEN
            yield {"answer": AIMessageChunk("", id="run-1", usage_metadata=half)}
            for word in ANSWER.split(" "):
                yield {"answer": AIMessageChunk(f"{word} ", id="run-1")}
            yield {"answer": AIMessageChunk("", id="run-1", usage_metadata=rest, response_metadata=METADATA)}

    found = list((RunnableGenerator(texts) | AnswerJudge(guard)).stream(None))
    assert {chunk.id for chunk in found} == {"run-1"}
    whole = found[0]
    for chunk in found[1:]:
        whole = whole + chunk
    assert whole.usage_metadata == USAGE
    assert [one["action"] for one in whole.response_metadata["lrp4rag"]["sentences"]] == ACTIONS
