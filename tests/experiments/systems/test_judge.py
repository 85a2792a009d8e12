"""Who is asked, and what is made of the replies."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest
import torch

from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.experiments.systems import judge
from lrp4rag.experiments.systems.chat import TOP_LOGPROBS, LocalChat, RemoteChat
from lrp4rag.experiments.systems.judge import Graded, read_grade, read_vote
from lrp4rag.experiments.systems.scoring import log_odds
from lrp4rag.reader import Reader
from tests.experiments.systems.stand_ins import ScriptedChat
from tests.tiny import bridge_example

# Reading replies.


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("PASS: all of it is in passage 1", Graded("PASS", "all of it is in passage 1")),
        ("FAIL - the year\n is in no passage", Graded("FAIL", "the year is in no passage")),
        ("UNCERTAIN. It may be.", Graded("UNCERTAIN", "It may be.")),
        ("**FAIL**: the year", Graded("FAIL", "the year")),
        ("**PASS:** the year", Graded("PASS", "the year")),
        (' "FAIL: x"', Graded("FAIL", 'x"')),
        ('FAIL: "1912" is new', Graded("FAIL", '"1912" is new')),
    ],
)
def test_a_grade_is_read_with_its_reason(reply: str, expected: Graded) -> None:
    assert read_grade(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "PASS",
        "FAIL:",
        "FAIL: ...",
        "PASSED: all of it",
        "fail: x",
        "PASS/FAIL: x",
        "PASS (yes), FAIL",
        "PASS, FAIL or UNCERTAIN",
        "PASS: yes, FAIL: no",
        "PASS (yes), FAIL (no) or UNCERTAIN, then a colon and a short reason.",
        "UNCERTAIN: PASS or\nFAIL",
        "I say FAIL: x",
        "It was opened.",
    ],
)
def test_what_is_no_grade_with_a_reason_is_not_read(reply: str) -> None:
    assert read_grade(reply) is None


def test_the_last_verdict_is_the_vote() -> None:
    assert read_vote("The year is new.\nVerdict: Yes") is True
    assert read_vote("Verdict: yes?\nI think again.\n**Verdict:** No.") is False


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Yes",
        "Verdict:",
        "Verdict: Not known",
        "My verdict is that yes",
        "Verdict: Yes or No",
        "Verdict: Yes/No",
        judge.CHAIN,
    ],
)
def test_what_is_no_line_with_a_verdict_is_no_vote(reply: str) -> None:
    assert read_vote(reply) is None


def test_log_odds() -> None:
    assert log_odds(0.75) == pytest.approx(np.log(3))
    assert log_odds(0.5) == 0
    assert log_odds(1.0) == pytest.approx(np.log(1e6), rel=1e-5)  # finite
    assert log_odds(0.0) == pytest.approx(-np.log(1e6), rel=1e-5)
    assert np.isnan(log_odds(None))


# Asking.


def test_passages_come_first_so_that_responses_to_a_source_begin_alike() -> None:
    first = judge.case_of(bridge_example(1, response="It was 1901."))
    other = judge.case_of(bridge_example(1, response="Nobody knows."))
    places = [first.index(part) for part in ("The old stone bridge 1", "When was bridge 1", "It was 1901.")]
    assert places == sorted(places)
    assert first.replace("It was 1901.", "Nobody knows.") == other


def test_two_answers_give_log_odds_of_no() -> None:
    given = {"It was 1901.": 0.8, "Nobody knows.": None}
    chat = ScriptedChat(chosen=lambda message: next(p for text, p in given.items() if text in message))
    found = judge.two_answers([bridge_example(1, response=text) for text in given], chat)
    assert found[0].numbers == pytest.approx(np.log(4))
    assert np.isnan(found[1].numbers).tolist() == [True]
    assert [(one.asked, one.unanswered) for one in found] == [(1, 0), (1, 1)]
    assert len(chat.asked) == 1  # all at once


def test_only_what_could_not_be_read_is_asked_again() -> None:
    def reply(message: str, time: int) -> str:
        if "contradict" in message and time == 0:
            return "I am not sure what to say."
        return "FAIL: x" if "names, numbers" in message else "PASS: y"

    chat = ScriptedChat(reply)
    (found,) = judge.rubric([bridge_example()], chat)
    assert found.numbers.tolist() == [0.2]
    assert (found.asked, found.unanswered) == (5, 0)
    assert [len(messages) for messages in chat.asked] == [5, 1]
    assert judge.RUBRIC["contradiction"] in chat.asked[1][0]
    (first, again) = chat.options
    assert first == (judge.REASON_TOKENS, 0.0, 0)
    assert again[1] == judge.RETRY_TEMPERATURE  # at temperature 0 it would say the same
    assert again[2] != first[2]


def test_a_question_that_is_never_answered_is_not_scored() -> None:
    def reply(message: str, time: int) -> str:
        if judge.RUBRIC["question"] in message:
            return "Who knows?"
        return "UNCERTAIN: x" if judge.RUBRIC["support"] in message else "FAIL: x"

    chat = ScriptedChat(reply)
    (found,) = judge.rubric([bridge_example()], chat)
    assert found.numbers == pytest.approx((0.5 + 3) / 4)  # of the four that were answered
    assert (found.asked, found.unanswered) == (5, 1)
    assert found.notes[0] == "support: UNCERTAIN: x"
    assert len(found.notes) == 4
    assert [len(messages) for messages in chat.asked] == [5] + [1] * (judge.TRIES - 1)


@pytest.mark.parametrize("form", [judge.rubric, judge.chain_poll])
def test_without_any_answer_there_is_no_number(form: Callable[..., list]) -> None:
    (found,) = form([bridge_example()], ScriptedChat())
    assert np.isnan(found.numbers).tolist() == [True]
    assert found.unanswered == found.asked > 0


def test_chain_poll_is_the_share_of_votes() -> None:
    votes = iter(["Verdict: Yes", "hm", "so. Verdict: No", "Verdict: Yes"])
    chat = ScriptedChat(lambda message, time: next(votes))
    (found,) = judge.chain_poll([bridge_example()], chat)
    assert found.numbers == pytest.approx(2 / 3)
    assert (found.asked, found.unanswered) == (3, 0)
    assert [len(messages) for messages in chat.asked] == [3, 1]
    assert chat.options[0][:2] == (judge.VOTE_TOKENS, judge.VOTE_TEMPERATURE)


def test_responses_to_one_source_are_asked_about_together() -> None:
    said = {"Bridge one.": "FAIL: x", "Bridge two.": "PASS: x", "Bridge three.": "UNCERTAIN: x"}
    responses = [bridge_example(1, response=text) for text in said]
    chat = ScriptedChat(lambda message, time: said[message.split("Answer: ")[1].split("\n")[0]])
    assert [float(one.numbers[0]) for one in judge.rubric(responses, chat)] == [1, 0, 0.5]
    assert [len(messages) for messages in chat.asked] == [15]


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


@pytest.mark.parametrize(("status", "body"), [(400, {}), (200, {"choices": []}), (200, {}), (200, "<html>")])
def test_a_server_that_fails_is_an_error_of_ours(script: Script, status: int, body: Any) -> None:
    script.replies.append((status, body))
    with pytest.raises(LRP4RAGError, match=r"m at http.* did not answer"):
        RemoteChat("m", script.url).replies(["a"], max_tokens=9, temperature=0, seed=0)


def test_without_a_key_nothing_is_asked(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(LRP4RAGError, match="OPENAI_API_KEY"):
        RemoteChat("m", script.url).replies(["a"], max_tokens=9, temperature=0, seed=0)
    assert script.asked == []
