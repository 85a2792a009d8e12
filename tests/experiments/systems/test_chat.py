"""Whom a prompt is put to: a tiny reader, and a scripted server that speaks the OpenAI protocol."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import torch

from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.experiments.systems.chat import TOP_LOGPROBS, LocalChat, RemoteChat
from lrp4rag.reader import Reader
from tests.tiny import bridge_example

MESSAGES = [f"the old bridge was opened {end}" for end in ("in the year", "under the river, so what", "")]


# The reader.


def test_the_reader_chooses_by_the_answers_first_tokens(tiny_reader: Reader) -> None:
    chat = LocalChat(tiny_reader)
    first = [tiny_reader.tokenizer(answer)["input_ids"][0] for answer in ("No", "Yes")]
    for message, found in zip(MESSAGES, chat.choose(MESSAGES, ("No", "Yes")), strict=True):
        ids = torch.tensor([tiny_reader.encode_message(message)])
        with torch.no_grad():
            no, yes = tiny_reader.model(ids).logits[0, -1, first].softmax(0).tolist()
        assert found == pytest.approx(no, abs=1e-4)
        (other,) = chat.choose([message], ("Yes", "No"))
        assert other == pytest.approx(yes, abs=1e-4)


def test_answers_that_begin_alike_cannot_be_told_apart(tiny_reader: Reader) -> None:
    with pytest.raises(InputError, match="'Not' and 'No' begin with the same token"):
        LocalChat(tiny_reader).choose(MESSAGES, ("Not", "No"))


def test_the_reader_replies_as_it_generates(tiny_reader: Reader) -> None:
    example = bridge_example()
    chat = LocalChat(tiny_reader)
    (reply,) = chat.replies([example.prompt], max_tokens=8, temperature=0, seed=0)
    assert reply == tiny_reader.generate(example, max_new_tokens=8).response
    equal = chat.replies(["the bridge"] * 3, max_tokens=8, temperature=1.5, seed=0)
    assert len(set(equal)) == 3


def test_a_reader_is_named_by_its_weights_and_precision(tiny_reader: Reader) -> None:
    name = LocalChat(tiny_reader).name
    assert tiny_reader.identity.digest in name
    other = replace(tiny_reader, identity=replace(tiny_reader.identity, dtype="bfloat16"))
    assert LocalChat(other).name != name


# An endpoint.


class Script:
    """A server on this machine: answers with `replies` one after the other, and keeps what it was asked."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, Any]] = []
        self.asked: list[dict[str, Any]] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                script.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                status, body = script.replies.pop(0)
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def says(self, text: str | None, logprobs: dict[str, float] | None = None, status: int = 200) -> None:
        tops = [
            {"token": token, "logprob": value, "bytes": None} for token, value in (logprobs or {}).items()
        ]
        content = [{"token": "x", "logprob": 0.0, "bytes": None, "top_logprobs": tops}]
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text},
            "logprobs": None if logprobs is None else {"content": content},
        }
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        self.replies.append((status, body))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = Script()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_an_endpoint_chooses_by_log_probabilities(script: Script) -> None:
    # Of one answer's spellings with and without a space, the likelier counts; "no" is another word.
    script.says(
        "Yes", {tok: math.log(p) for tok, p in [(" Yes", 0.6), ("No", 0.2), ("no", 0.1), ("Yes", 0.05)]}
    )
    script.says("Yes", {"Yes": math.log(0.9)})
    script.says("Well", {"Well": -0.1, "So": -3.0})
    found = RemoteChat("m", script.url).choose(["a", "b", "c"], ("No", "Yes"))
    assert found[0] == pytest.approx(0.25)
    assert found[1:] == [0.0, None]
    assert [one["messages"] for one in script.asked] == [[{"role": "user", "content": x}] for x in "abc"]
    for asked in script.asked:
        assert (asked["model"], asked["max_tokens"], asked["temperature"]) == ("m", 1, 0)
        assert asked["top_logprobs"] == TOP_LOGPROBS
        assert asked["logprobs"] is True


def test_an_endpoint_without_log_probabilities_cannot_choose(script: Script) -> None:
    script.says("Yes")
    with pytest.raises(LRP4RAGError, match=r"m at http.* gives no log-probabilities"):
        RemoteChat("m", script.url).choose(["a"], ("No", "Yes"))


def test_an_endpoint_replies(script: Script) -> None:
    script.says(" Verdict: Yes\n")
    script.says(None)
    replies = RemoteChat("m", script.url).replies(["a", "a"], max_tokens=9, temperature=0.5, seed=4)
    assert replies == ["Verdict: Yes", ""]
    # Equal messages are told apart by their seeds.
    assert [(one["max_tokens"], one["temperature"], one["seed"]) for one in script.asked] == [
        (9, 0.5, 4000),
        (9, 0.5, 4001),
    ]


def test_a_server_that_fails_is_an_error_of_ours(script: Script) -> None:
    script.says("", status=400)
    with pytest.raises(LRP4RAGError, match=r"m at http.* did not answer"):
        RemoteChat("m", script.url).replies(["a"], max_tokens=9, temperature=0, seed=0)


@pytest.mark.parametrize("body", [{"choices": []}, {}, "<html>"])
def test_a_reply_without_choices_is_an_error_of_ours(script: Script, body: Any) -> None:
    script.replies.append((200, body))
    with pytest.raises(LRP4RAGError, match="did not answer"):
        RemoteChat("m", script.url).replies(["a"], max_tokens=9, temperature=0, seed=0)


def test_without_a_key_nothing_is_asked(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(LRP4RAGError, match="OPENAI_API_KEY"):
        RemoteChat("m", script.url).replies(["a"], max_tokens=9, temperature=0, seed=0)
    assert script.asked == []
