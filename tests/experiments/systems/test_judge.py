"""Who is asked, and what is made of the replies."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
import torch

from experiments.systems import judge
from experiments.systems.chat import TOP_LOGPROBS, LocalChat, RemoteChat
from experiments.systems.judge import read_grade, read_vote
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.experiments.systems.stand_ins import ScriptedChat
from tests.tiny import bridge_example


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("PASS: all of it is in passage 1", "PASS"),
        ("FAIL - the year\n is in no passage", "FAIL"),
        ("UNCERTAIN. It may be.", "UNCERTAIN"),
        ("**FAIL**: the year", "FAIL"),
        ("**PASS:** the year", "PASS"),
        (' "FAIL: x"', "FAIL"),
        ('FAIL: "1912" is new', "FAIL"),
        ("", None),
        ("PASS", None),
        ("FAIL:", None),
        ("FAIL: ...", None),
        ("PASSED: all of it", None),
        ("fail: x", None),
        ("PASS/FAIL: x", None),
        ("PASS (yes), FAIL", None),
        ("PASS, FAIL or UNCERTAIN", None),
        ("PASS: yes, FAIL: no", None),
        ("PASS (yes), FAIL (no) or UNCERTAIN, then a colon and a short reason.", None),
        ("UNCERTAIN: PASS or\nFAIL", None),
        ("I say FAIL: x", None),
        ("It was opened.", None),
    ],
)
def test_a_grade_is_read_with_its_reason(reply, expected):
    assert read_grade(reply) == expected


@pytest.mark.parametrize(
    ("reply", "vote"),
    [
        ("The year is new.\nVerdict: Yes", True),
        ("Verdict: yes?\nI think again.\n**Verdict:** No.", False),  # the last one
        ("", None),
        ("Yes", None),
        ("Verdict:", None),
        ("Verdict: Not known", None),
        ("My verdict is that yes", None),
        ("Verdict: Yes or No", None),
        ("Verdict: Yes/No", None),
        (judge.CHAIN, None),
    ],
)
def test_a_line_with_a_verdict_is_a_vote(reply, vote):
    assert read_vote(reply) is vote


def test_passages_come_first_so_that_responses_to_a_source_begin_alike():
    first = judge.case_of(bridge_example(1, response="It was 1901."))
    other = judge.case_of(bridge_example(1, response="Nobody knows."))
    places = [first.index(part) for part in ("The old stone bridge 1", "When was bridge 1", "It was 1901.")]
    assert places == sorted(places)
    assert first.replace("It was 1901.", "Nobody knows.") == other


def test_two_answers_give_log_odds_of_no():
    given = {"It was 1901.": 0.8, "Nobody knows.": None}
    chat = ScriptedChat(chosen=lambda message: next(p for text, p in given.items() if text in message))
    found = judge.two_answers([bridge_example(1, response=text) for text in given], chat)
    assert [one.numbers[0] for one in found] == pytest.approx([np.log(4), np.nan], nan_ok=True)
    assert [(one.asked, one.unanswered) for one in found] == [(1, 0), (1, 1)]
    assert len(chat.asked) == 1  # all at once


def test_only_what_could_not_be_read_is_asked_again():
    def reply(message, time):
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


def test_a_question_that_is_never_answered_is_not_scored():
    def reply(message, time):
        if judge.RUBRIC["question"] in message:
            return "Who knows?"
        return "UNCERTAIN: x" if judge.RUBRIC["support"] in message else "FAIL: x"

    chat = ScriptedChat(reply)
    (found,) = judge.rubric([bridge_example()], chat)
    assert found.numbers == pytest.approx((0.5 + 3) / 4)  # of the four that were answered
    assert (found.asked, found.unanswered) == (5, 1)
    assert [len(messages) for messages in chat.asked] == [5] + [1] * (judge.TRIES - 1)


@pytest.mark.parametrize("form", [judge.rubric, judge.chain_poll])
def test_without_any_answer_there_is_no_number(form):
    (found,) = form([bridge_example()], ScriptedChat())
    assert np.isnan(found.numbers).tolist() == [True]
    assert found.unanswered == found.asked > 0


def test_chain_poll_is_the_share_of_votes():
    votes = iter(["Verdict: Yes", "hm", "so. Verdict: No", "Verdict: Yes"])
    chat = ScriptedChat(lambda message, time: next(votes))
    (found,) = judge.chain_poll([bridge_example()], chat)
    assert found.numbers == pytest.approx(2 / 3)
    assert (found.asked, found.unanswered) == (3, 0)
    assert [len(messages) for messages in chat.asked] == [3, 1]
    assert chat.options[0][:2] == (judge.VOTE_TOKENS, judge.VOTE_TEMPERATURE)


def test_responses_to_one_source_are_asked_about_together():
    said = {"Bridge one.": "FAIL: x", "Bridge two.": "PASS: x", "Bridge three.": "UNCERTAIN: x"}
    chat = ScriptedChat(lambda message, time: said[message.split("Answer: ")[1].split("\n")[0]])
    found = judge.rubric([bridge_example(1, response=text) for text in said], chat)
    assert [float(one.numbers[0]) for one in found] == [1, 0, 0.5]
    assert [len(messages) for messages in chat.asked] == [15]


MESSAGES = [f"the old bridge was opened {end}" for end in ("in the year", "under the river, so what", "")]


def test_the_reader_chooses_by_the_answers_first_tokens(tiny_reader):
    chat = LocalChat(tiny_reader)
    first = [tiny_reader.tokenizer(answer)["input_ids"][0] for answer in ("No", "Yes")]
    for message, found in zip(MESSAGES, chat.choose(MESSAGES, ("No", "Yes")), strict=True):
        ids = torch.tensor([tiny_reader.encode_message(message)])
        with torch.no_grad():
            expected = tiny_reader.model(ids).logits[0, -1, first].softmax(0).tolist()
        (other,) = chat.choose([message], ("Yes", "No"))
        assert [found, other] == pytest.approx(expected, abs=1e-4)
    with pytest.raises(InputError, match="'Not' and 'No' begin with the same token"):
        chat.choose(MESSAGES, ("Not", "No"))


def test_the_reader_replies_as_it_generates(tiny_reader):
    example, chat = bridge_example(), LocalChat(tiny_reader)
    (reply,) = chat.replies([example.prompt], max_tokens=8, temperature=0, seed=0)
    assert reply == tiny_reader.generate(example, max_new_tokens=8).response
    assert len(set(chat.replies(["the bridge"] * 3, max_tokens=8, temperature=1.5, seed=0))) == 3


def test_a_reader_is_named_by_its_weights_and_precision(tiny_reader):
    name = LocalChat(tiny_reader).name
    assert tiny_reader.identity.digest in name
    other = replace(tiny_reader, identity=replace(tiny_reader.identity, dtype="bfloat16"))
    assert LocalChat(other).name != name


class Script:
    """A server on this machine: answers with `replies` one after the other, and keeps what it was asked."""

    def __init__(self):
        self.replies = []
        self.asked = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                script.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                status, body = script.replies.pop(0)
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.chat = RemoteChat("m", f"http://127.0.0.1:{self.server.server_port}/v1")

    def says(self, text, logprobs=None):
        """`logprobs` are those of tokens at the first place."""
        found = None
        if logprobs is not None:
            tops = [{"token": one, "logprob": math.log(p), "bytes": None} for one, p in logprobs.items()]
            found = {"content": [{"token": "x", "logprob": 0.0, "bytes": None, "top_logprobs": tops}]}
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": found}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        self.replies.append((200, body))


@pytest.fixture
def script(monkeypatch):
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


def test_an_endpoint_chooses_by_log_probabilities(script):
    # Of one answer's spellings with and without a space, the likelier counts; "no" is another word.
    script.says("Yes", {" Yes": 0.6, "No": 0.2, "no": 0.1, "Yes": 0.05})
    script.says("Yes", {"Yes": 0.9})
    script.says("Well", {"Well": 0.9, "So": 0.05})
    found = script.chat.choose(["a", "b", "c"], ("No", "Yes"))
    assert found[0] == pytest.approx(0.25)
    assert found[1:] == [0.0, None]
    options = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": TOP_LOGPROBS}
    for text, asked in zip("abc", script.asked, strict=True):
        assert asked == {"model": "m", "messages": [{"role": "user", "content": text}]} | options
    script.says("Yes")
    with pytest.raises(LRP4RAGError, match=r"m at http.* gives no log-probabilities"):
        script.chat.choose(["a"], ("No", "Yes"))


def test_an_endpoint_replies(script):
    script.says(" Verdict: Yes\n")
    script.says(None)
    replies = script.chat.replies(["a", "a"], max_tokens=9, temperature=0.5, seed=4)
    assert replies == ["Verdict: Yes", ""]
    # Equal messages are told apart by their seeds.
    options = [(one["max_tokens"], one["temperature"], one["seed"]) for one in script.asked]
    assert options == [(9, 0.5, 4000), (9, 0.5, 4001)]


@pytest.mark.parametrize(("status", "body"), [(400, {}), (200, {"choices": []}), (200, {}), (200, "<html>")])
def test_a_server_that_fails_is_an_error_of_ours(script, status, body):
    script.replies.append((status, body))
    with pytest.raises(LRP4RAGError, match=r"m at http.* did not answer"):
        script.chat.replies(["a"], max_tokens=9, temperature=0, seed=0)


def test_without_a_key_nothing_is_asked(script, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(LRP4RAGError, match="OPENAI_API_KEY"):
        script.chat.replies(["a"], max_tokens=9, temperature=0, seed=0)
    assert script.asked == []
