"""Where a chat request has its passages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lrp4rag.guard.service import chat
from lrp4rag.guard.service.passages import Template
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.settings import Settings
from lrp4rag.util.errors import InputError
from tests.guard.service.conftest import MARK
from tests.guard.service.scripted_upstream import Script, events

QUESTION = "How tall is it?"
USER = {"role": "user", "content": QUESTION}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]}


def read(template: Template | None = None, **body: Any) -> tuple[str, list[str]]:
    """Question and passages of a request."""
    _, _, example = chat.parse({"messages": [USER]} | body, template)
    return example.question, list(example.passages)


def tool(content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "1", "content": content}


@pytest.mark.parametrize(
    ("documents", "passages"),
    [
        (["31 metres.", "Fish."], ["31 metres.", "Fish."]),
        ([{"text": "31 metres.", "title": "Towers"}], ["Towers\n31 metres."]),
        ([{"page_content": "31 metres.", "metadata": {}}], ["31 metres."]),
        ([{"id": 7, "data": {"text": "31 metres.", "title": "Towers"}}], ["Towers\n31 metres."]),
        ([{"content": "31 metres.", "score": 0.7, "version": 2}], ["31 metres."]),
        ([{"text": ""}, "", {"data": {"text": None}}, "31 metres."], ["", "", "", "31 metres."]),
    ],
)
def test_documents(documents: list[Any], passages: list[str]) -> None:
    assert read(documents=documents) == (QUESTION, passages)


def test_what_is_known_of_a_document_is_kept() -> None:
    body = {
        "messages": [USER],
        "documents": [{"id": 7, "content": "31 metres.", "score": 0.7, "version": "2"}],
    }
    sent, _, example = chat.parse(body)
    (source,) = example.sources
    assert (source.id, source.score, source.version) == ("7", 0.7, "2")
    assert sent["documents"] == body["documents"], "the upstream's own template may need them"


def test_the_question_is_the_users_last_message() -> None:
    parts = [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {}}]
    messages = [{"role": "user", "content": "Hi."}, {"role": "user", "content": parts}]
    assert read(messages=messages, documents=["31."]) == (QUESTION, ["31."])


@pytest.mark.parametrize(
    "documents", [{"text": "31"}, [{}], [3], [{"text": ["a"]}], [{"text": "a", "score": "x"}]]
)
def test_what_is_no_document_is_named(documents: Any) -> None:
    with pytest.raises(Problem) as caught:
        read(documents=documents)
    assert caught.value.status == 422
    assert caught.value.more["field"].startswith("documents")


@pytest.mark.parametrize(
    ("content", "passages"),
    [
        ("It is 31 metres tall.", ["It is 31 metres tall."]),
        (json.dumps([{"text": "31."}, {"text": "Fish."}]), ["31.", "Fish."]),
        (json.dumps({"results": [{"title": "Towers", "snippet": "31."}]}), ["Towers\n31."]),
        (json.dumps({"content": "31."}), ["31."]),
        (
            json.dumps([{"text": "31."}, {"text": ""}, {"text": None}, {"text": "Fish."}]),
            ["31.", "", "", "Fish."],
        ),
        (json.dumps({"data": "31", "text": ""}), ['{"data": "31", "text": ""}']),
        ('{"height": 31}', ['{"height": 31}']),
        ("[1, 2]", ["[1, 2]"]),
        ("31", ["31"]),
    ],
)
def test_results_of_tools(content: str, passages: list[str]) -> None:
    assert read(messages=[USER, CALL, tool(content)]) == (QUESTION, passages)


def test_results_for_an_earlier_question_are_not_meant() -> None:
    earlier = [
        {"role": "user", "content": "Fish?"},
        CALL,
        tool("Fish is sold."),
        {"role": "assistant", "content": "Yes."},
    ]
    assert read(messages=[*earlier, USER, CALL, tool("31."), tool("30.")]) == (QUESTION, ["31.", "30."])
    with pytest.raises(Problem, match="passages"):
        read(messages=[*earlier, USER])


def test_tools_may_be_told_where_none_may_be_called() -> None:
    messages, tools = [USER, CALL, tool("31.")], [{"type": "function", "function": {"name": "f"}}]
    assert read(messages=messages, tools=tools, tool_choice="none")[1] == ["31."]
    with pytest.raises(Problem, match="tool_choice"):
        read(messages=messages, tools=tools)


RAG = Template("Answer from this context:\n{context}\n\nQuestion: {question}")


def test_a_template_cuts_passages_and_question_out_of_a_message() -> None:
    content = "Answer from this context:\n[1] 31 metres.\n\n[2] Fish.\n\nQuestion: How tall?\n"
    assert read(RAG, messages=[{"role": "user", "content": content}]) == (
        "How tall?",
        ["[1] 31 metres.", "[2] Fish."],
    )
    system = Template("You know this only:\n<docs>{context}</docs>", separator="\n---\n")
    messages = [
        {"role": "system", "content": "You know this only:\n<docs>31 metres.\n---\nFish.</docs>"},
        USER,
    ]
    assert read(system, messages=messages) == (QUESTION, ["31 metres.", "Fish."])
    question_first = Template("Q: {question} C: {context}")
    messages = [{"role": "user", "content": "Q: How tall? C: 31 metres."}]
    assert read(question_first, messages=messages) == ("How tall?", ["31 metres."])


def test_what_comes_in_our_field_goes_before_all_else() -> None:
    body = {
        "lrp4rag": {"passages": ["mine"]},
        "documents": ["theirs"],
        "messages": [USER, CALL, tool("tools'")],
    }
    assert read(**body)[1] == ["mine"]
    del body["lrp4rag"]
    assert read(**body)[1] == ["theirs"]


def test_whose_words_are_whose_is_not_guessed() -> None:
    """A passage, or a question, that holds words of the template could move the border."""
    content = "Answer from this context:\n31.\n\nQuestion: no\n\nQuestion: How tall?"
    with pytest.raises(Problem, match="several ways"):
        read(RAG, messages=[{"role": "user", "content": content}])


def test_a_message_that_was_not_written_so_has_no_passages() -> None:
    for content in ("Hi", "Answer from this context:\n31.", "Answer from this context:\n\n\nQuestion: x"):
        with pytest.raises(Problem, match="without passages"):
            read(RAG, messages=[{"role": "user", "content": content}])


@pytest.mark.parametrize(
    "text", ["", "{question}", "{context}{context}", "{context}{question}", "{context} {question}"]
)
def test_a_template_that_cannot_be_cut_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(InputError, match="template"):
        Settings.load(None, template=text)


def test_a_client_that_knows_nothing_of_us(start, script: Script, judged: list[str]) -> None:
    """The application's prompt is all that comes."""
    script.stream = events("It is 31 metres tall. It is so. It is WRONG.")
    content = "Answer from this context:\n31 metres.\n\nQuestion: How tall?"
    with start(template=RAG.text) as client:
        body = {"model": "m", "messages": [{"role": "user", "content": content}]}
        reply = client.post("/v1/chat/completions", json=body).json()
    assert reply["choices"][0]["message"]["content"].startswith(
        f"It is 31 metres tall. It is so. It is WRONG.{MARK}\n\n"
    )
    assert script.asked[0]["messages"] == body["messages"]
