"""What is counted, of which decision, and that no label holds a text."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lrp4rag.guard.checks.registry import CHECKS
from lrp4rag.guard.service import judging as server
from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.reviews import corrects
from lrp4rag.guard.service.worker import ModelWorker
from lrp4rag.util.errors import InputError
from tests.guard.service.conftest import PASSAGES, QUESTION, asked
from tests.guard.service.scripted_upstream import Script, events
from tests.guard.service.test_reviews import ESCALATING
from tests.guard.service.test_worker import Idle

ONE = {"question": QUESTION, "passages": PASSAGES, "response": "It is 31 metres tall. See [9]."}
CHAT = "/v1/chat/completions"
Series = tuple[str, frozenset[tuple[str, str]]]


def samples(text: str) -> dict[Series, float]:
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def read() -> dict[Series, float]:
    return samples(metrics.exposition(metrics.collected(waiting=0, most_waiting=1, reviews=0)).decode())


@contextmanager
def counting() -> Iterator[Callable[..., float]]:
    """What was added within, of all series that have some labels; other tests count in the same process."""
    before, after = read(), dict[Series, float]()

    def count(name: str, **labels: str) -> float:
        wanted = set(labels.items())
        return sum(
            value - before.get((one, pairs), 0)
            for (one, pairs), value in after.items()
            if one == name and wanted <= pairs
        )

    yield count
    after.update(read())


def test_a_response_is_counted_as_its_reply_tells(client) -> None:
    with counting() as count:
        reply = client.post("/v1/judge", json=ONE).json()
    decision = {name: reply["decision"][name] for name in ("action", "reason")}
    assert count("lrp4rag_decisions_total", kind="response", **decision) == 1
    assert count("lrp4rag_decisions_total") == 1
    for name, share in (("faithfulness", reply["faithfulness"]), ("fact_score", reply["fact_score"])):
        assert count(f"lrp4rag_{name}_count", kind="response") == (share is not None)
        assert count(f"lrp4rag_{name}_sum", kind="response") == pytest.approx(share or 0)
    for check in CHECKS:
        told = sum(one["check"] == check for one in reply["findings"])
        assert count("lrp4rag_findings_total", kind="response", check=check) == told
    assert count("lrp4rag_findings_total", finding="fabricated") == 1
    for stage in ("verdict", "checks", "audit", "whole"):
        assert count("lrp4rag_stage_seconds_count", stage=stage, kind="response") == 1
    whole, parts = (
        sum(count("lrp4rag_stage_seconds_sum", stage=one) for one in stages)
        for stages in (["whole"], ["verdict", "checks", "audit"])
    )
    assert 0 < parts <= whole
    assert count("lrp4rag_queue_seconds_count") == 1
    assert count("lrp4rag_unavailable_total") == 0


def test_a_streamed_answer_is_counted_with_its_sentences(client, script: Script, judged: list[str]) -> None:
    script.stream = events("It is 31 metres tall. ", "It is WRONG. ", "It is ODD [7].")
    with counting() as count:
        reply = client.post(CHAT, json=asked()).json()
    actions = [one["action"] for one in reply["lrp4rag"]["sentences"]]
    assert len(actions) == 3
    for action in set(actions):
        found = count("lrp4rag_decisions_total", kind="sentence", action=action)
        assert found == actions.count(action)
    assert count("lrp4rag_decisions_total", kind="answer", action=reply["lrp4rag"]["action"]) == 1
    assert count("lrp4rag_abstained_total", kind="sentence") == 1
    assert count("lrp4rag_abstained_total", kind="answer") == 1
    for kind in ("sentence", "answer"):
        assert count("lrp4rag_findings_total", kind=kind, check="citations", finding="fabricated") == 1
    assert count("lrp4rag_faithfulness_count", kind="answer") == 1
    times = {("reading", "answer"): 1, ("first token", "answer"): 1, ("checks", "answer"): 1}
    times |= {(stage, "sentence"): 3 for stage in ("verdict", "checks", "held", "audit")}
    for (stage, kind), number in times.items():
        assert count("lrp4rag_stage_seconds_count", stage=stage, kind=kind) == number, stage


def test_verdicts_that_do_not_come(client, script: Script, judged: list[str], monkeypatch) -> None:
    script.stream = events("It is BROKEN. ", "It is tall.")
    with counting() as count:
        client.post(CHAT, json=asked())
    assert count("lrp4rag_unavailable_total", kind="sentence", part="verdict") == 1
    assert count("lrp4rag_unavailable_total", kind="answer", part="verdict") == 1
    assert count("lrp4rag_decisions_total", kind="answer", reason="unavailable") == 1
    monkeypatch.setattr(server.Detector, "judge", lambda *_: 1 / 0)
    with counting() as count:
        assert client.post("/v1/judge", json=ONE).status_code == 503
        client.post("/v1/judge/batch", json={"requests": [ONE, ONE]})
    assert count("lrp4rag_unavailable_total", kind="response", part="verdict") == 3
    assert count("lrp4rag_refused_total", status="503") == 1


def test_what_is_the_requests_fault_is_not_unavailable(client) -> None:
    with counting() as count:
        assert client.post("/v1/judge", json=ONE | {"response": " "}).status_code == 422
        assert client.post("/v1/judge", json=ONE | {"response": "x " * 9_000}).status_code == 422
    assert count("lrp4rag_unavailable_total") == 0
    assert count("lrp4rag_refused_total", status="422") == 2


def test_an_upstream_that_fails_is_no_reader_that_fails(client, script: Script, judged: list[str]) -> None:
    with counting() as count:
        for stream in (b"", events("It is tall. ", "It is")[:-200]):
            script.stream, script.status = stream, 200 if stream else 500
            assert client.post(CHAT, json=asked()).status_code == 502
    assert count("lrp4rag_unavailable_total", part="upstream") == 2
    assert count("lrp4rag_unavailable_total", part="verdict") == 0


def test_a_check_that_does_not_finish(start, script: Script, judged: list[str]) -> None:
    policy = {"budget": 1e-9, "abstained": "mark", "unavailable": "mark"}
    script.stream = events("It is 31 metres tall [1].")
    with start(policy=policy) as client, counting() as count:
        told = client.post("/v1/judge", json=ONE).json()["unavailable"]
        client.post(CHAT, json=asked())
        client.post("/v1/retrieval/check", json={"question": QUESTION, "passages": PASSAGES})
    assert told
    for check in told:
        for kind in ("response", "answer"):
            assert count("lrp4rag_unavailable_total", kind=kind, part=check) == 1, check
    assert count("lrp4rag_unavailable_total", kind="sentence", part="citations") == 1
    assert count("lrp4rag_unavailable_total", kind="retrieval", part="retrieval") == 1


def test_what_cannot_be_recorded_is_not_told(client, script: Script, judged: list[str], monkeypatch) -> None:
    from lrp4rag.guard.audit import AuditLog

    def full(*_: object) -> None:
        raise InputError("it cannot be written to", path="/srv/secret/audit.db")

    script.stream = events("It is tall. It is old.")
    known = {"question": QUESTION, "passages": PASSAGES}
    texts = {"texts": ["It is tall."], "input_type": "response", "additional_provider_specific_params": known}
    routes = {"/v1/judge": ONE, CHAT: asked(), "/beta/litellm_basic_guardrail_api": texts}
    with counting() as count:
        monkeypatch.setattr(AuditLog, "append", full)
        for route, body in routes.items():
            reply = client.post(route, json=body)
            assert reply.status_code == 503, route
            assert "secret" not in reply.text
            assert "tall" not in reply.text
    assert count("lrp4rag_audit_failures_total") >= len(routes)
    assert count("lrp4rag_decisions_total") == 0, "what is not on disk was not decided"


def test_a_passage_that_cannot_be_recorded_is_the_request_s_fault(start) -> None:
    """It rings no bell about the log, whose alert says that decisions are lost."""
    with start(upstream=None, keep_texts=True) as client, counting() as count:
        for name in ("text", "title", "version"):
            half = json.dumps({"question": QUESTION, "passages": [{"text": "Two.", name: "\ud800"}]})
            headers = {"Content-Type": "application/json"}
            reply = client.post("/v1/retrieval/check", content=half, headers=headers)
            assert reply.status_code == 422
            assert reply.json()["errors"][0]["field"] == "passages.0"
            assert "surrogate" in reply.json()["errors"][0]["message"]
    assert count("lrp4rag_audit_failures_total") == 0


def test_who_is_turned_away_by_the_queue() -> None:
    async def crowd(owner: ModelWorker) -> None:
        busy = asyncio.create_task(owner.run(lambda _: time.sleep(0.05), 5))
        await asyncio.sleep(0.01)
        owner.mean_seconds = 10.0
        for most, seconds in ((1, 100), (9, 1)):
            owner.most_waiting = most
            with pytest.raises(Problem):
                owner.admit(seconds)
        await busy

    with counting() as count, ModelWorker(Idle(), most_waiting=3) as owner:
        asyncio.run(crowd(owner))
    assert [count("lrp4rag_queue_refused_total", why=one) for one in ("full", "late")] == [1, 1]


@pytest.mark.parametrize(
    ("said", "reason", "expected"),
    [
        ("grounded", "grounded", False),
        ("hallucinated", "grounded", True),
        ("grounded", "suspect", True),
        ("grounded", "misattributed citation", True),
        ("hallucinated", "insufficient evidence", False),
        ("unclear", "grounded", None),
        ("hallucinated", "unavailable", None),
        ("grounded", "unlike training data", None),
        ("grounded", "conflict", None),
    ],
)
def test_when_a_person_corrects_a_decision(said, reason: str, expected: bool | None) -> None:
    assert corrects(said, {"reason": reason, "rule": "bands[1]"}) is expected
    assert corrects(said, {"reason": "knowledge gap", "rule": "rules.null"}) is None


def test_what_people_say_is_counted(start) -> None:
    policy = ESCALATING
    with start(upstream=None, policy=policy) as client:
        uncited = ONE | {"response": "It is 30 metres tall."}
        id, other = (client.post("/v1/judge", json=uncited).json()["decision"] for _ in range(2))
        with counting() as count:
            assert samples(client.get("/metrics").text)["lrp4rag_reviews_waiting", frozenset()] == 2
            review = {"decision": id["id"], "reviewer": "Ann", "said": "grounded"}
            client.post("/v1/reviews", json=review)
            client.post("/v1/feedback", json={"decision": other["id"], "said": "unclear"})
            client.post("/v1/feedback", json={"decision": "none", "said": "grounded"})
            assert samples(client.get("/metrics").text)["lrp4rag_reviews_waiting", frozenset()] == 1
    corrected = "open" if id["reason"] == "unlike training data" else "yes"
    assert count("lrp4rag_said_total", kind="review", said="grounded", correction=corrected) == 1
    assert count("lrp4rag_said_total", kind="feedback", said="unclear", correction="open") == 1
    assert count("lrp4rag_said_total") == 2


def test_what_alerts_look_at_begins_at_zero() -> None:
    """A first event would show no increase otherwise."""
    found = read()

    def has(name: str, **labels: str) -> bool:
        return (name, frozenset(labels.items())) in found

    for kind in ("answer", "response", "sentence"):
        citation = {"kind": kind, "check": "citations"}
        assert has("lrp4rag_findings_total", finding="fabricated", **citation)
        assert has("lrp4rag_unavailable_total", kind=kind, part="verdict")
    assert has("lrp4rag_findings_total", kind="retrieval", check="retrieval", finding="null")
    assert has("lrp4rag_said_total", kind="review", said="grounded", correction="yes")
    assert has("lrp4rag_audit_failures_total")
    assert has("lrp4rag_queue_refused_total", why="full")


def label_values(text: str) -> set[tuple[str, str]]:
    """All labels with their values, but for the numbers of buckets and the process's own."""
    return {
        (label, value)
        for (name, labels) in samples(text)
        if not name.startswith("lrp4rag_process")
        for label, value in labels
        if label != "le"
    }


LABELS = {"kind", "action", "reason", "check", "finding", "part", "stage", "said", "correction", "status"}
HOSTILE = 'xyzzycanary"} 1\nlrp4rag_evil{a="b'


def test_labels_have_values_of_fixed_sets_whatever_is_asked(start, script: Script, judged: list[str]) -> None:
    script.stream = events(f"{HOSTILE}. ", f"It is so [{HOSTILE}].")
    passage = {"text": f"{HOSTILE} 31", "title": HOSTILE, "id": HOSTILE, "version": HOSTILE}
    body = {"question": HOSTILE, "passages": [passage], "response": f"{HOSTILE} [9]", "generator": HOSTILE}
    with start() as client:
        before = label_values(client.get("/metrics").text)
        id = client.post("/v1/judge", json=body).json()["decision"]["id"]
        messages = [{"role": "user", "content": HOSTILE}]
        more = {"passages": [passage]}
        client.post(CHAT, json=asked(model=HOSTILE, messages=messages, lrp4rag=more))
        client.post("/v1/retrieval/check", json={"question": HOSTILE, "passages": [passage]})
        given = {"decision": id, "reviewer": HOSTILE, "said": "grounded", "comment": HOSTILE}
        client.post("/v1/reviews", json=given)
        client.post("/v1/reviews", json={**given, "said": HOSTILE})
        client.get(f"/{quote(HOSTILE)}")
        found = client.get("/metrics").text
    assert "xyzzy" not in found
    assert id not in found
    assert {label for label, _ in label_values(found) - before} <= LABELS
    assert all(value.replace(" ", "").isalnum() for _, value in label_values(found))
    assert len(samples(found)) < 1000, "series of one server"
