"""OpenAI's chat completions through the guardrail: nothing leaves that was not judged."""

from __future__ import annotations

import json
import logging
from random import Random
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.guard.service.conftest import (
    CORRECTION,
    MARK,
    PASSAGES,
    TEXTS,
    UNAVAILABLE,
    UNSUPPORTED,
    WITHHOLDING,
    asked,
    recorded,
)
from tests.guard.service.scripted_upstream import Script, chunk, events, whole

ANSWER = ("It is 31 me", "tres tall. It is WR", "ONG. Fish is sold near", "by. It is OTH", "ER.")
ROUTE = "/v1/chat/completions"
JSON = {"Content-Type": "application/json"}


def streamed(client: TestClient, **more: Any) -> list[dict[str, Any]]:
    """The chunks of a stream that ends as it should, or with an error."""
    with client.stream("POST", ROUTE, json=asked(stream=True, **more)) as reply:
        lines = [line for line in reply.iter_lines() if line]
        assert reply.status_code == 200, lines
    assert all(line.startswith("data: ") for line in lines)
    found = [line.removeprefix("data: ") for line in lines]
    if found[-1] == "[DONE]":
        found.pop()
    else:
        assert "error" in json.loads(found[-1])
    return [json.loads(one) for one in found]


def text_of(chunks: list[dict[str, Any]]) -> str:
    deltas = [choice["delta"] for one in chunks for choice in one.get("choices", ())]
    return "".join(delta.get("content", "") for delta in deltas)


def test_a_stream_is_let_out_sentence_by_sentence(client, script: Script, judged: list[str]) -> None:
    script.stream = events(*ANSWER)
    chunks = streamed(client, stream_options={"include_usage": True})
    sentences = f"It is 31 metres tall. It is WRONG.{MARK} Fish is sold nearby. It is OTHER.{CORRECTION}"
    told = "This answer could not be confirmed in full. The answer says “OTHER”; passage 1 says “31 metres”."
    assert text_of(chunks) == f"{sentences}\n\n{told}"
    assert "".join(judged) == "".join(ANSWER)
    decisions = [one["lrp4rag"] for one in chunks if "lrp4rag" in one]
    actions = [one["action"] for one in decisions]
    assert actions == ["serve", "mark", "serve", "disclose", "disclose", "disclose"]
    reasons = [one["reason"] for one in decisions]
    assert reasons == ["grounded", "unsupported", "grounded", *["contradicted"] * 3]
    statuses = [one["status"] for one in decisions if "status" in one]
    assert statuses == ["supported", "unsupported", "supported", "contradicted"]
    assert decisions[-1]["faithfulness"] == 0.5
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["total_tokens"] == 3
    (sent,) = script.asked
    assert "lrp4rag" not in sent
    assert sent["stream"] is True
    assert sent["messages"] == asked()["messages"]


def test_a_whole_answer_has_the_same_decisions(start, script: Script, judged: list[str]) -> None:
    script.stream = events(*ANSWER, finish="length")
    with start(policy=WITHHOLDING) as client:
        reply = client.post(ROUTE, json=asked()).json()
    (choice,) = reply["choices"]
    assert "WRONG" not in choice["message"]["content"]
    assert choice["message"]["content"].startswith("The answer could not be confirmed from the available")
    assert choice["finish_reason"] == "length"
    actions = [one["action"] for one in reply["lrp4rag"]["sentences"]]
    assert actions == ["serve", "withhold", "serve", "disclose"]
    assert (reply["lrp4rag"]["action"], reply["lrp4rag"]["reason"]) == ("withhold", "unsupported")
    assert reply["usage"]["total_tokens"] == 3


def test_every_decision_is_in_the_audit_log_before_its_text_leaves(
    start, script: Script, judged: list[str], tmp_path
) -> None:
    script.stream = events(*ANSWER)
    with start() as client:
        chunks = streamed(client)
        for one in (chunk["lrp4rag"] for chunk in chunks if "lrp4rag" in chunk):
            record = client.get(f"/v1/decisions/{one['id']}").json()["record"]
            assert (record["action"], record["policy"]) == (one["action"], one["policy"])
        script.stream = chunk("It is tall. It is o").encode()
        streamed(client)
    *records, failed = recorded(tmp_path / "audit.db")
    assert [one["kind"] for one in records] == ["sentence"] * 4 + ["answer", "sentence"]
    assert (failed["kind"], failed["finish_reason"]) == ("answer", "failed")
    everything = (tmp_path / "audit.db").read_bytes()
    assert not any(word.encode() in everything for word in ("WRONG", "lighthouse", "nearby"))


def test_streams_leak_nothing(start, script: Script, judged: list[str]) -> None:
    """Whatever way the upstream's bytes are cut."""
    random = Random(0)
    words = ["31 metres", "größer", "塔は高い。", "e.g. 3.5", "🗼🏽", "WRONG", "OTHER", "## Height\n", "Okay"]
    words += ["\n- item", "Dr. No"]
    names = ("mark", "correction", "uncertain", "contradicted", "insufficient", "unchecked")
    claims = {"unsupported": "withhold", "most": None}
    with start(policy={"claims": claims, "texts": dict.fromkeys(names, "")}) as client:
        for number in range(10):
            count = random.randint(1, 30)
            answer = " ".join(random.choice(words) + random.choice(["", ".", "! "]) for _ in range(count))
            cuts = sorted(random.choices(range(len(answer) + 1), k=5))
            parts = [answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
            script.stream, script.seed = events(*parts), number
            judged.clear()
            found = text_of(streamed(client))
            assert "WRONG" not in found, answer
            assert "".join(judged).split() == answer.split(), "all of it was judged"
            kept = [piece for piece in judged if "WRONG" not in piece]
            shown = found.replace(f"- {UNSUPPORTED}", "").replace(UNSUPPORTED, "")
            assert shown.split() == "".join(kept).split(), "and what is grounded is let out"


def test_what_cannot_be_judged_is_withheld(client, script: Script, judged: list[str]) -> None:
    script.stream = events("It is tall. This is BROKEN. This is ODD. It is old.")
    chunks = streamed(client)
    whole = client.post(ROUTE, json=asked()).json()
    script.stream = events("It is tall. This is ODD.")
    odd = client.post(ROUTE, json=asked()).json()
    shown = f"It is tall. {UNAVAILABLE} It is old."
    assert text_of(chunks) == f"{shown}\n\n{TEXTS.unchecked}", "one notice for two sentences"
    assert "it could not be checked" in whole["choices"][0]["message"]["content"]
    assert "how well it is supported could not be told" in odd["choices"][0]["message"]["content"]
    reasons = [one["lrp4rag"]["reason"] for one in chunks if "lrp4rag" in one]
    assert reasons[1:3] == ["unavailable", "unlike training data"]


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b"data: {broken\n\n",
        b'data: {"error": {"message": "SECRET"}}\n\n',
        b"data: \xff\xfe\n\n",
        b"data: [DONE]\n\n",
        b"data: [1]\n\n",
        chunk(choices=[{"delta": {"tool_calls": [{"index": 0}]}}]).encode(),
        chunk(choices=[{"index": 1, "delta": {"content": "x"}}]).encode(),
        chunk(choices=[{"delta": {"content": ["SECRET"], "refusal": ["SECRET"]}}]).encode(),
    ],
)
def test_a_stream_that_breaks_ends_with_an_error_and_nothing_unjudged(
    client, script: Script, judged: list[str], rest: bytes
) -> None:
    script.stream = chunk("It is tall. It is o").encode() + rest
    chunks = streamed(client)
    whole = client.post(ROUTE, json=asked())
    assert text_of(chunks) == "It is tall. "
    assert chunks[-1]["error"]["code"] == 502
    assert "SECRET" not in json.dumps(chunks)
    assert whole.status_code == 502
    assert whole.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("status", "expected"), [(400, 400), (401, 502), (429, 429), (500, 502)])
def test_what_the_upstream_refuses_is_told(client, script: Script, status: int, expected: int) -> None:
    script.status, script.error = status, {"message": "too long"}
    for stream in (True, False):
        reply = client.post(ROUTE, json=asked(stream=stream))
        assert reply.status_code == expected
        assert "too long" not in reply.text, "its words are not passed on"


def test_an_upstream_that_is_not_there(start, caplog, monkeypatch) -> None:
    """The operator is told too, once."""
    # A server in this process sets both.
    monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)
    caplog.set_level("WARNING", logger="uvicorn.error")
    with start(upstream="http://127.0.0.1:9/v1") as client:
        assert client.post(ROUTE, json=asked(stream=True)).status_code == 502
        assert client.get("/readyz").status_code == 502
    (told,) = [record.getMessage() for record in caplog.records if "127.0.0.1:9" in record.getMessage()]
    assert "ConnectError" in told


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (asked(n=2), 400, "one answer"),
        (asked(logprobs=True), 400, "withheld"),
        (asked(tools=[{"type": "function"}]), 400, "tools"),
        ({"messages": []}, 422, "passages"),
        (asked(lrp4rag={"passages": []}), 422, "at least 1 item"),
        (asked(lrp4rag={"passages": [""]}), 422, "passage"),
        (asked(lrp4rag={"passages": ["x"], "more": 1}), 422, "no such field"),
        (asked(messages="x"), 422, "messages"),
        (asked(messages=[{"role": "system", "content": "x"}]), 422, "user"),
        ([], 422, "object"),
    ],
)
def test_what_cannot_be_guarded_is_refused_clearly(client, script: Script, body, status, words) -> None:
    reply = client.post(ROUTE, json=body)
    assert reply.status_code == status
    assert words in json.dumps(reply.json())
    assert not script.asked, "the upstream is not asked"


def test_only_judged_text_passes_in_other_fields(client, script: Script, judged: list[str]) -> None:
    """Reasons to finish and counts are the upstream's words too."""
    usage = {"prompt_tokens": 1, "completion_tokens": True, "total_tokens": 2**60, "note": "UNJUDGED"}
    script.stream = (
        chunk("It is tall.", finish="UNJUDGED words")
        + chunk(choices=[], usage=usage, lrp4rag={"action": "UNJUDGED"})
        + "data: [DONE]\n\n"
    ).encode()
    chunks = streamed(client, stream_options={"include_usage": True})
    whole = client.post(ROUTE, json=asked()).json()
    assert "UNJUDGED" not in json.dumps([chunks, whole])
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert whole["usage"] == {"prompt_tokens": 1}


def test_half_characters_are_joined(client, script: Script, judged: list[str]) -> None:
    script.stream = (
        b'data: {"choices": [{"delta": {"content": "It is tall \\ud83d"}}]}\n\n'
        b'data: {"choices": [{"delta": {"content": "\\ude00. It is \\udc00 old."}}]}\n\n'
        b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
        b"data: [DONE]\n\n"
    )
    assert text_of(streamed(client)) == "It is tall \U0001f600. It is \ufffd old."


@pytest.mark.parametrize("kind", ["endless event", "endless body", "endless refusal"])
def test_an_upstream_cannot_fill_the_memory(client, script: Script, judged: list[str], kind: str) -> None:
    script.longest = 2**16
    if kind == "endless event":
        script.stream = b"data: " + b"a" * (3 * 2**20)
    elif kind == "endless body":
        script.stream = b"data: a\n" * (2**19)
    else:
        script.status, script.error = 400, {"message": "a" * (3 * 2**20)}
    reply = client.post(ROUTE, json=asked())
    assert reply.status_code == 502


@pytest.mark.parametrize(
    "stream",
    [events(finish="content_filter"), events("<think>It is 31 metres", " tall.", finish="length")],
    ids=["nothing", "reasoning that never ends"],
)
def test_an_answer_with_nothing_in_it_is_no_clean_one(
    client, script: Script, judged: list[str], stream: bytes
) -> None:
    script.stream = stream
    reply = client.post(ROUTE, json=asked()).json()
    assert (reply["lrp4rag"]["action"], reply["lrp4rag"]["reason"]) == ("withhold", "unavailable")
    assert not judged


@pytest.mark.parametrize("more", ['"temperature": NaN', '"temperature": 1e999', '"user": "\\udfff"'])
def test_what_cannot_be_sent_on_is_the_clients_fault(client, script: Script, more: str) -> None:
    body = json.dumps(asked())[:-1] + f", {more}}}"
    assert client.post(ROUTE, content=body, headers=JSON).status_code == 400


def test_without_a_passage_that_is_fit_no_answer_is_asked_for(client, script: Script, judged) -> None:
    script.stream = events(*ANSWER)
    expired = {"passages": [{"text": PASSAGES[0], "title": "Guide", "expires": "2020-01-01"}]}
    chunks = streamed(client, lrp4rag=expired)
    reply = client.post(ROUTE, json=asked(lrp4rag=expired)).json()
    assert chunks[-1]["choices"][0]["finish_reason"] == "content_filter"
    assert script.asked == judged == []
    for text in (text_of(chunks), reply["choices"][0]["message"]["content"]):
        assert text.startswith("The available documents do not answer this question.")
    for decision in (chunks[-1]["lrp4rag"], reply["lrp4rag"]):
        assert (decision["action"], decision["reason"]) == ("withhold", "knowledge gap")
        assert {one["kind"] for one in decision["findings"]} >= {"expired"}


@pytest.mark.parametrize(
    "nothing",
    ["retry: 3000\n\n", "event: ping\n\n", "id: 7\n\n", "data:\n\n", "data\nid: 8\n\n",
     "event: ping\ndata: \n\n", ": ping\n\n", "data:\ndata:\n\n", "id: 9\r\n\r\n"],
)  # fmt: skip
def test_events_without_data_are_none(client, script: Script, judged: list[str], nothing: str) -> None:
    ends = [chunk("It is 31 me"), chunk("tres tall."), chunk(finish="stop"), "data: [DONE]\n\n"]
    script.stream = (nothing + nothing.join(ends) + nothing).encode()
    assert text_of(streamed(client)) == "It is 31 metres tall."
    assert client.post(ROUTE, json=asked()).status_code == 200


@pytest.mark.parametrize("finish", ["length", None])
def test_an_upstream_that_does_not_stream_is_judged_too(
    client, script: Script, judged: list[str], finish: str | None
) -> None:
    script.stream, script.kind = whole("It is 31 metres tall. It is WRONG.", finish), "application/json"
    chunks = streamed(client)
    reply = client.post(ROUTE, json=asked()).json()
    assert text_of(chunks).startswith(f"It is 31 metres tall. It is WRONG.{MARK}")
    assert chunks[-1]["choices"][0]["finish_reason"] == (finish or "stop")
    assert reply["choices"][0]["message"]["content"] == text_of(chunks)
    assert reply["usage"]["total_tokens"] == 3


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("text/html", b"<html>SECRET</html>", "neither by a stream of events nor by JSON"),
        ("", b"SECRET", "neither by a stream of events nor by JSON"),
        ("application/json", b'{"error": {"message": "SECRET"}}', "reports an error"),
        ("application/json; charset=utf-8", b'["SECRET"]', "no chunk of an answer"),
        ("application/json", b'{"choices": []}', "ended before it was finished"),
        ("application/json", whole(None, tool_calls=[{"id": "SECRET"}]), "calls a tool"),
        ("application/json", b"\xff", "UnicodeDecodeError"),
    ],
)
def test_an_upstream_that_answers_by_something_else_is_named(
    client, script: Script, kind, body, words
) -> None:
    script.stream, script.kind = body, kind
    reply = client.post(ROUTE, json=asked(stream=True))
    assert reply.status_code == 502
    assert words in reply.text
    assert "SECRET" not in reply.text


def test_a_refusal_is_judged_like_an_answer(client, script: Script, judged: list[str]) -> None:
    refusal = "I cannot help with that. It is WRONG."
    deltas = [{"role": "assistant", "content": None}, {"refusal": refusal[:7]}, {"refusal": refusal[7:]}]
    chunks = [chunk(choices=[{"index": 0, "delta": delta}]) for delta in deltas]
    script.stream = "".join([*chunks, chunk(finish="stop"), "data: [DONE]\n\n"]).encode()
    streamed_text = text_of(streamed(client))
    script.kind, script.stream = "application/json", whole(None, refusal=refusal)
    message = client.post(ROUTE, json=asked()).json()["choices"][0]["message"]
    assert "".join(judged) == refusal * 2
    assert message["content"] == streamed_text
    assert streamed_text.startswith(f"I cannot help with that. It is WRONG.{MARK}")


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("<think>It is WRONG. No, <b>31</b>?</think>\n\nIt is 31 metres tall.", "It is 31 metres tall."),
        ("\n <think>\nWRONG\n</think>It is tall.", "It is tall."),
        ("<think></think><think>WRONG</think> It is tall.", "It is tall."),
        (" It is tall.", " It is tall."),
        ("<thin ice> It is tall.", "<thin ice> It is tall."),
        (*["It is tall. It thinks in <think> and </think>."] * 2,),
        ("<thi", "<thi"),
    ],
)  # fmt: skip
def test_reasoning_is_no_part_of_the_answer(
    client, script: Script, judged: list[str], content, shown
) -> None:
    """However the upstream cuts it."""
    for parts in ([content], list(content), [content[:3], content[3:]]):
        judged.clear()
        script.stream = events(*parts)
        assert text_of(streamed(client)) == shown
        assert "".join(judged) == shown


def test_options_of_a_stream_are_sent_where_the_client_streams(client, script: Script, judged) -> None:
    script.stream = events("It is tall.")
    for stream in (False, True):
        assert client.post(ROUTE, json=asked(stream=stream, stream_options={})).status_code == 200
    assert [sent["stream"] for sent in script.asked] == [True, True]
    assert [sent.get("stream_options") for sent in script.asked] == [None, {"include_usage": True}]
