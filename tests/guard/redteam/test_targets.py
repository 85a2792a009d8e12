"""What a guardrail is asked and what it answers: here, and as a server, which may answer anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from lrp4rag.guard.policy import Policy
from lrp4rag.guard.redteam import LocalTarget, NotJudged, load_cases, run
from lrp4rag.guard.redteam.report import record
from lrp4rag.guard.redteam.server import LARGEST_REPLY, ServerTarget
from lrp4rag.guard.service.access import new_token
from lrp4rag.util.errors import InputError
from tests.guard.redteam.conftest import case

REPLY: dict[str, Any] = {
    "decision": {
        "id": "d",
        "action": "withhold",
        "reason": "knowledge gap",
        "policy": "p",
        "rule": "bands[4]",
    },
    "shown": "no",
    "faithfulness": 0.0,
    "fact_score": None,
    "findings": [{"check": "facts", "kind": "grounded", "words": "quiet"}, {"kind": "null", "words": "loud"}],
    "verdict": {"probability": 0.9, "more": 1},
}


def replied(**decision: str) -> httpx.Response:
    """A reply with another decision; what it holds is written in ASCII."""
    return httpx.Response(200, text=json.dumps({**REPLY, "decision": {**REPLY["decision"], **decision}}))


def target(answer: Callable[[httpx.Request], httpx.Response], **more: Any) -> ServerTarget:
    client = httpx.Client(transport=httpx.MockTransport(answer))
    return ServerTarget("http://guard.test/v1", "token", client=client, **more)


def test_a_server_does_what_the_same_detector_does_here(detector, start) -> None:
    """All fields, and the versions, for cases of each kind."""
    cases = load_cases()[::29]
    policy = Policy()
    with detector:
        local = LocalTarget(detector, policy)
        here = [local.judge(one) for one in cases]
        versions = dict(local.versions)
    with start(upstream=None) as client:
        there = ServerTarget(str(client.base_url), client=client)
        found = [there.judge(one) for one in cases]
        assert there.versions == versions
    for one, other in zip(here, found, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=1e-5)
        assert (one.action, one.reason, one.rule, one.findings, one.shown) == (
            (other.action, other.reason, other.rule, other.findings, other.shown)
        )  # fmt: skip


def test_a_server_wants_its_token(start) -> None:
    token, hash = new_token()
    with start(upstream=None, open=False, tokens={"red": hash}) as client:
        url = str(client.base_url)
        assert ServerTarget(url, token, client=client).judge(case()).action
        with pytest.raises(InputError, match="LRP4RAG_TOKEN"):
            ServerTarget(url, "other", client=client).judge(case())


def test_the_reply_is_read_and_the_token_is_in_the_header_alone() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=REPLY)

    found = target(answer).judge(case())
    assert (found.action, found.rule, found.findings) == ("withhold", "bands[4]", ("loud",))
    assert asked[0].url.path == "/v1/judge"
    assert asked[0].headers["authorization"] == "Bearer token"
    assert b"token" not in asked[0].content


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (httpx.Response(422, json={"error": {"message": "too \x1b[31mlong"}}), "422: too ␛"),
        (httpx.Response(500, text="<html>"), "500: no problem document"),
        (httpx.Response(200, text="[1]"), "valid dictionary"),
        (httpx.Response(200, text='{"a": NaN}'), "NaN"),
        (httpx.Response(200, json={**REPLY, "decision": {**REPLY["decision"], "action": "sell"}}), "action"),
        (httpx.Response(200, json={**REPLY, "verdict": {"probability": 7}}), "probability"),
        (replied(reason="x" * 20_001), "decision.reason: .* at most 20000"),
        (replied(reason="\ud800"), "decision.reason"),
        (replied(rule="\ud800"), "decision.rule"),
        (replied(id="../../admin?a=b"), "decision.id"),
        (replied(id="a\r\nHost: b"), "decision.id"),
        (
            httpx.Response(200, text=json.dumps({**REPLY, "findings": [{"kind": "k", "words": "\ud800"}]})),
            r"0.\.words",
        ),
        (httpx.Response(200, content=b"x" * (LARGEST_REPLY + 1)), "larger"),
    ],
)
def test_a_reply_that_is_none_is_no_verdict(reply: httpx.Response, words: str) -> None:
    with pytest.raises(NotJudged, match=words):
        target(lambda _: reply).judge(case())


def test_versions_that_are_none_are_shown_and_written() -> None:
    replies = iter(
        [httpx.Response(200, json=REPLY), httpx.Response(200, text='{"record": {"reader": "a\\ud800\\n"}}')]
    )
    asked = target(lambda _: next(replies))
    found = record(list(run([case()], asked)), asked, 1.0)
    assert json.loads(json.dumps(found))["versions"] == {"policy": "p", "reader": "a\ufffd"}


@pytest.mark.parametrize("status", [404, 405])
def test_another_server_is_no_target(status: int) -> None:
    with pytest.raises(InputError, match="no /v1/judge"):
        target(lambda _: httpx.Response(status)).judge(case())


def test_a_busy_server_is_asked_again() -> None:
    waits: list[float] = []
    busy = [httpx.Response(429, headers={"retry-after": text}) for text in ("2", "1e9", "soon")]
    replies = iter([*busy, httpx.Response(200, json=REPLY), httpx.Response(404)])
    assert target(lambda _: next(replies), sleep=waits.append).judge(case()).action == "withhold"
    assert waits == [2.0, 60.0, 1.0]
    with pytest.raises(NotJudged, match="429"):
        target(lambda _: httpx.Response(429), sleep=lambda _: None).judge(case())


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (httpx.ConnectError("refused"), InputError, "is the server running"),
        (httpx.ReadTimeout("slow"), NotJudged, "ReadTimeout"),
    ],
)
def test_a_server_that_does_not_answer(error: Exception, kind: type[Exception], words: str) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(kind, match=words):
        target(fail).judge(case())


@pytest.mark.parametrize(
    "url",
    [
        "nowhere",
        "ftp://x",
        "http://",
        "file:///etc/passwd",
        "http://a:b",
        "http://me:secret@x",
        "http://x/?token=secret",
        "http://x/#secret",
        "http://x/?",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="address") as error:
        ServerTarget(url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("token", ["", " ", "one two", "secret\n", "secret\r", "secr\u00e9t", "\0"])
def test_what_no_header_can_hold_is_no_token(token: str) -> None:
    with pytest.raises(InputError, match="field 'LRP4RAG_TOKEN': no token") as error:
        ServerTarget("http://x", token)
    assert "secr" not in str(error.value)


def test_a_name_that_no_host_can_have_is_told() -> None:
    with pytest.raises(InputError, match=r"http://a\.\.b does not answer"):
        ServerTarget("http://a..b").judge(case())


def test_a_server_that_goes_costs_a_case_and_not_the_run() -> None:
    there = iter([True, False, False, True])  # the second asks for versions

    def answer(_: httpx.Request) -> httpx.Response:
        if not next(there):
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json=REPLY)

    found = list(run([case("a"), case("b"), case("c")], target(answer)))
    assert [one.action for one in found] == ["withhold", "not judged", "withhold"]
    assert str(found[1].error).endswith(": refused")
