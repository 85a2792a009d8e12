"""The routes that judge whole responses, who may use them, and what they answer to nonsense."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.audit.database import Database
from lrp4rag.guard.service import judging as server
from lrp4rag.guard.service.access import new_token
from lrp4rag.util.errors import InputError
from tests.guard.service.conftest import PASSAGES, QUESTION, asked

RESPONSE = "It is 31 metres tall."
ONE = {"question": QUESTION, "passages": PASSAGES, "response": RESPONSE}
GUARDRAIL = "/beta/litellm_basic_guardrail_api"
CHAT = "/v1/chat/completions"
JSON = {"Content-Type": "application/json"}


def test_a_response_is_judged_and_the_decision_recorded(client, detector) -> None:
    reply = client.post("/v1/judge", json=ONE).json()
    expected = detector.judge(QUESTION, PASSAGES, RESPONSE)
    assert reply["verdict"]["probability"] == pytest.approx(expected.probability, abs=1e-6)
    record = client.get(f"/v1/decisions/{reply['decision']['id']}").json()["record"]
    assert record["probability"] == reply["verdict"]["probability"]
    assert record["client"] == "anyone"
    assert client.get("/v1/decisions/none").status_code == 404


def test_an_empty_passage_is_told_and_the_others_keep_their_numbers(client) -> None:
    passages = [{"text": "", "id": "a"}, *PASSAGES]
    reply = client.post("/v1/judge", json=ONE | {"passages": passages}).json()
    assert reply["findings"][0]["words"] == "Passage 1 (a) has no text."
    assert 1 not in reply["closest"]
    assert reply["verdict"]["sentences"][0]["nearest"]["passage"] == 2
    refused = client.post("/v1/judge", json=ONE | {"passages": ["", " "]})
    assert (refused.status_code, "all passages are empty" in refused.text) == (422, True)


def test_a_batch_keeps_its_order_and_tells_what_failed(client) -> None:
    other = ONE | {"response": "Fish is sold nearby."}
    batch = client.post("/v1/judge/batch", json={"requests": [ONE, ONE | {"response": " "}, other]})
    alone = [client.post("/v1/judge", json=one).json()["verdict"]["probability"] for one in (ONE, other)]
    first, failed, last = batch.json()["replies"]
    assert [first["verdict"]["probability"], last["verdict"]["probability"]] == pytest.approx(alone, abs=1e-5)
    assert failed["problem"]["status"] == 422


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "question"),
        (ONE | {"passages": [1]}, "passages"),
        (ONE | {"more": 1}, "more"),
        (ONE | {"passages": [{"text": "x", "score": "NaN"}]}, "passages"),
        (ONE | {"response": "x" * 300_000}, "response"),
    ],
)
def test_a_request_that_is_none_names_the_field(client, body, field: str) -> None:
    reply = client.post("/v1/judge", json=body)
    assert reply.status_code == 422
    assert reply.headers["content-type"] == "application/problem+json"
    assert any(one["field"].startswith(field) for one in reply.json()["errors"])


@pytest.mark.parametrize(
    ("content", "statuses"),
    [
        (b"{", {422}),
        (b"\xff\xfe", {400, 422}),
        (b"[" * 100_000, {400, 422}),
        (b"x" * 3_000_000, {413}),
        (b'{"texts": 1, "question": "\\ud800"}', {422}),
    ],
    ids=["half", "no text", "deep", "large", "surrogate"],
)
def test_a_body_that_is_no_json_or_too_large(client, content: bytes, statuses: set[int]) -> None:
    for route in ("/v1/judge", GUARDRAIL):
        reply = client.post(route, content=content, headers=JSON)
        assert reply.status_code in statuses, route
        assert reply.headers["content-type"] == "application/problem+json"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(
    ["question", "passages", "response", "messages", "stream", "n", "lrp4rag", "texts", "input_type"]
)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    route=st.sampled_from(["/v1/judge", "/v1/judge/batch", CHAT, GUARDRAIL]),
    body=values | st.dictionaries(fields, values, max_size=6),
    base=st.sampled_from([{}, ONE, asked(), {"requests": [ONE]}]),
)
def test_nonsense_is_no_server_error(client, judged, route, body, base) -> None:
    merged = base | body if isinstance(body, dict) else body
    reply = client.post(route, json=merged)
    assert reply.status_code < 500 or reply.status_code == 502, (merged, reply.text)


def test_only_known_tokens_may_ask(start) -> None:
    token, hash = new_token()
    with start(upstream=None, open=False, tokens={"app": hash}) as client:
        assert client.get("/healthz").status_code == 200
        for headers in (
            {},
            {"Authorization": "Bearer x"},
            {"Authorization": f"Basic {token}"},
            {"x-api-key": "é".encode()},
        ):
            reply = client.post("/v1/judge", json=ONE, headers=headers)
            assert reply.status_code == 401
            assert reply.headers["WWW-Authenticate"] == "Bearer"
        reply = client.post("/v1/judge", json=ONE, headers={"Authorization": f"Bearer {token}"})
        assert reply.status_code == 200
        found = client.get(f"/v1/decisions/{reply.json()['decision']['id']}", headers={"x-api-key": token})
        assert found.json()["record"]["client"] == "app"


def test_too_many_requests_are_refused_until_later(start) -> None:
    with start(upstream=None, per_minute=3) as client:
        replies = [client.get("/v1/decisions/none") for _ in range(5)]
    assert [one.status_code for one in replies] == [404, 404, 404, 429, 429]
    assert int(replies[-1].headers["Retry-After"]) >= 1


def test_it_is_ready_while_the_log_can_be_written(start, tmp_path) -> None:
    """Nothing is added to the log by asking."""
    with start(upstream=None) as client:
        assert client.get("/readyz").status_code == 200
        assert client.get("/v1/decisions").json() == {"decisions": []}
        assert AuditLog.open(tmp_path / "audit.db", read_only=True).verify().whole


def test_it_is_not_ready_while_the_log_cannot_be_written(client, monkeypatch) -> None:
    def full(self: Database) -> None:
        raise InputError("no room is left", path="/srv/secret/audit.db")

    monkeypatch.setattr(Database, "writing", full)
    reply = client.get("/readyz")
    assert reply.status_code == 503
    assert "secret" not in reply.text


def test_litellms_guardrail(start, judged) -> None:
    with start(upstream=None, policy={"abstained": "mark"}) as client:

        def action(**body: object) -> dict:
            return client.post(GUARDRAIL, json=body).json()

        known = {"question": QUESTION, "passages": PASSAGES}
        assert action(texts=["Hello"], input_type="request") == {"action": "NONE"}
        assert action(texts=["Hello"])["status"] == 422, "is it a response?"
        blocked = action(texts=["Hello"], input_type="response")
        assert blocked == {"action": "BLOCKED", "blocked_reason": "no passages came with the response"}
        given = action(texts=[RESPONSE], input_type="response", additional_provider_specific_params=known)
        reply = client.post("/v1/judge", json=ONE).json()
        withheld = reply["decision"]["action"] in ("withhold", "escalate")
        assert (given["action"] == "BLOCKED") is withheld
        if withheld:
            assert given["blocked_reason"] == reply["shown"]
        else:
            assert given.get("texts", [RESPONSE]) == [reply["shown"]]
        empty = action(texts=[" "], input_type="response", additional_provider_specific_params=known)
        assert empty["action"] == "BLOCKED"


CALL = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{}"}}


@pytest.mark.parametrize("texts", [None, [RESPONSE]])
@pytest.mark.parametrize("more", [{"tool_calls": [CALL]}, {"images": ["data:image/png;base64,AA=="]}])
def test_litellms_guardrail_lets_out_nothing_that_cannot_be_judged(client, texts, more) -> None:
    known = {"question": QUESTION, "passages": PASSAGES}
    body = {"texts": texts, "input_type": "response", "additional_provider_specific_params": known, **more}
    found = client.post(GUARDRAIL, json=body).json()
    assert (found["action"], "judged" in found["blocked_reason"]) == ("BLOCKED", True)
    assert client.post(GUARDRAIL, json={**body, "input_type": "request"}).json() == {"action": "NONE"}
    none = {**body, **{name: [] for name in more}}
    assert client.post(GUARDRAIL, json={**none, "texts": None}).json() == {"action": "NONE"}


@pytest.mark.parametrize("route", ["/v1/judge", "/v1/judge/batch", "/v1/feedback", GUARDRAIL, CHAT])
def test_bodies_are_strict_json_and_say_so(client, route: str) -> None:
    """What a browser sends to any server for any web site is none of it."""
    for body in ('{"response": "a", "response": "b"}', '{"x": {"y": 1, "y": 1}}', '{"x": NaN}', "{"):
        reply = client.post(route, content=body, headers=JSON)
        assert reply.status_code == (400 if route == CHAT else 422), body
        assert '"y"' not in body or "'y' stands twice" in reply.json()["detail"]
    for kind in ("text/plain", "", "application/x-www-form-urlencoded", "text/plain;application/json"):
        headers = {"Content-Type": kind} if kind else {}
        assert client.post(route, content=json.dumps(ONE), headers=headers).status_code == 415, kind
    for good in ("application/json; charset=utf-8", "Application/problem+JSON"):
        assert client.post(route, content="[]", headers={"Content-Type": good}).status_code == 422


def test_litellm_may_bring_passages_in_headers(start, judged) -> None:
    headers = {
        "X-LRP4RAG-Passages": '["The lighthouse is 31 metres tall."]',
        "x-lrp4rag-question": '"How tall?"',
    }
    body = {"input_type": "response", "texts": ["It is 31 metres tall."], "request_headers": headers}
    with start(upstream=None, policy={"abstained": "mark"}) as client:
        assert client.post(GUARDRAIL, json={**body, "texts": None}).json() == {"action": "NONE"}
        found = client.post(GUARDRAIL, json=body).json()
        assert "no passages" not in found.get("blocked_reason", "")
        body["request_headers"] = {"x-lrp4rag-passages": "[broken"}
        assert "no passages" in client.post(GUARDRAIL, json=body).json()["blocked_reason"]


def test_passages_are_looked_at_before_an_answer_is_written(client) -> None:
    old = {"text": "Leave is 12 weeks.", "title": "Leave Policy", "version": "2.8"}
    new = {"text": "Leave is 16 weeks.", "title": "Leave Policy", "version": "3.1"}
    route, body = "/v1/retrieval/check", {"question": "How long is leave?"}

    def checked(*passages: object) -> dict:
        return client.post(route, json={**body, "passages": passages}).json()

    found = checked(old, new)
    assert (found["kept"], found["null"], found["prompt_note"]) == ([2], False, "")
    found = checked("Leave is 16 weeks.", "Leave is 14 weeks.")
    assert found["kept"] == [1, 2]
    assert "16 weeks" in found["prompt_note"]
    found = checked({**new, "expires": "2020-01-01"})
    assert (found["null"], found["decision"]["reason"]) == (True, "knowledge gap")
    record = client.get(f"/v1/decisions/{found['decision']['id']}").json()["record"]
    assert (record["kind"], record["action"]) == ("retrieval", "withhold")
    assert checked()["error"]["code"] == 422


CANARY = "xyzzycanary"


def test_texts_are_in_no_log_metric_error_or_record(start, monkeypatch, caplog, capfd, tmp_path) -> None:
    """Whatever is asked, and whatever fails."""

    def failing(*_: object) -> None:
        raise RuntimeError(CANARY)

    body = {"question": CANARY, "passages": [f"{CANARY} 31 metres."], "response": f"{CANARY} 30 metres."}
    with start(upstream="http://127.0.0.1:9/v1") as client:
        told = [client.post("/v1/judge", json=body), client.post("/v1/judge", json=[CANARY])]
        told.append(
            client.post("/v1/chat/completions", json=asked(messages=[{"role": "user", "content": CANARY}]))
        )
        monkeypatch.setattr(server.Detector, "judge", failing)
        told.append(client.post("/v1/judge", json=body))
        told.append(client.post("/v1/judge/batch", json={"requests": [body]}))
        told.append(client.get("/metrics"))
    assert [one.status_code for one in told] == [200, 422, 502, 503, 200, 200]
    out = capfd.readouterr()
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert CANARY.encode() not in written
    for text in (caplog.text, out.out, out.err, *(one.text for one in told[1:])):
        assert CANARY not in text
    assert "RuntimeError" in caplog.text
