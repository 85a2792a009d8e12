"""Escalated answers wait for a reviewer, and what is said of answers becomes labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.data import load_examples
from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.service.access import new_token
from lrp4rag.guard.service.reviews import labelled

ONE = {
    "question": "How tall is it?",
    "passages": ["It is 31 metres tall."],
    "response": "It is 30 metres tall.",
}
ESCALATING = {
    "abstained": "escalate",
    "unavailable": "escalate",
    "claims": dict.fromkeys(("contradicted", "unsupported", "most"), "escalate"),
    "bands": [{"action": "escalate", "reason": "suspect"}],
}


def test_an_escalated_answer_waits_until_it_is_reviewed(start) -> None:
    with start(upstream=None, policy=ESCALATING, keep_texts=True) as client:
        id = client.post("/v1/judge", json=ONE).json()["decision"]["id"]
        (waiting,) = client.get("/v1/reviews").json()["reviews"]
        assert (waiting["id"], waiting["action"]) == (id, "escalate")
        assert waiting["written"]["response"] == ONE["response"]
        body = {"decision": id, "reviewer": "Ann", "said": "hallucinated", "spans": [{"start": 6, "end": 15}]}
        review = client.post("/v1/reviews", json=body).json()["id"]
        record = client.get(f"/v1/decisions/{review}").json()["record"]
        assert (record["kind"], record["of"], record["reviewer"]) == ("review", id, "Ann")
        assert client.get("/v1/reviews").json()["reviews"] == []
    with start(upstream=None, policy=ESCALATING) as client:
        assert client.get("/v1/reviews").json()["reviews"] == [], "after a restart too"


def test_servers_that_share_a_log_have_one_queue(start) -> None:
    with (
        start(upstream=None, policy=ESCALATING) as one,
        start(upstream=None, policy=ESCALATING) as other,
    ):
        id = one.post("/v1/judge", json=ONE).json()["decision"]["id"]
        assert [found["id"] for found in other.get("/v1/reviews").json()["reviews"]] == [id]
        assert "lrp4rag_reviews_waiting 1.0" in other.get("/metrics").text
        body = {"decision": id, "reviewer": "Ann", "said": "grounded"}
        assert other.post("/v1/reviews", json=body).status_code == 200
        assert one.get("/v1/reviews").json()["reviews"] == []


def test_what_is_said_becomes_labels(start, tmp_path: Path) -> None:
    """A reviewer's word goes before a user's, and the last one before those before it."""
    with start(upstream=None, keep_texts=True) as client:
        ids = [client.post("/v1/judge", json=ONE).json()["decision"]["id"] for _ in range(4)]

        def say(route: str, id: str, said: str, **more: object) -> None:
            reply = client.post(f"/v1/{route}", json={"decision": id, "said": said, **more})
            assert reply.status_code == 200, reply.text

        say("reviews", ids[0], "hallucinated", reviewer="Ann", spans=[{"start": 6, "end": 15}])
        say("feedback", ids[0], "grounded", comment="I measured it.")
        say("feedback", ids[1], "hallucinated")
        say("feedback", ids[1], "grounded")
        say("feedback", ids[2], "hallucinated")
        say("feedback", ids[3], "unclear")
    out = tmp_path / "labels.jsonl"
    found = CliRunner().invoke(
        main, ["audit", "export", str(out), "--labels", "--database", str(tmp_path / "audit.db")]
    )
    assert found.exit_code == 0, found.output
    labels = {one.id: [(x.start, x.end) for x in one.labels or ()] for one in load_examples(out)}
    assert labels == {ids[0]: [(6, 15)], ids[1]: [], ids[2]: [(0, len(ONE["response"]))]}
    assert json.loads(out.read_text().splitlines()[0])["passages"] == ONE["passages"]


def test_only_answers_can_be_reviewed_and_only_by_reviewers(start) -> None:
    (one, first), (other, second) = new_token(), new_token()
    tokens = {"app": first, "ann": second}
    with start(upstream=None, open=False, tokens=tokens, reviewers=["ann"]) as client:
        as_app, as_ann = ({"Authorization": f"Bearer {token}"} for token in (one, other))
        id = client.post("/v1/judge", json=ONE, headers=as_app).json()["decision"]["id"]
        body = {"decision": id, "reviewer": "Ann", "said": "grounded"}
        assert client.post("/v1/reviews", json=body, headers=as_app).status_code == 403
        review = client.post("/v1/reviews", json=body, headers=as_ann).json()["id"]
        for wrong in ("none", review):
            assert (
                client.post("/v1/reviews", json={**body, "decision": wrong}, headers=as_ann).status_code
                == 404
            )


def test_what_is_no_feedback_is_refused(client) -> None:
    for body in ({}, {"said": "maybe"}, {"said": "grounded", "decision": "\ud800"}, {"extra": 1}):
        content, headers = json.dumps(body), {"Content-Type": "application/json"}
        assert client.post("/v1/feedback", content=content, headers=headers).status_code == 422, body


def test_spans_that_mark_no_hallucination_are_refused(start) -> None:
    length = len(ONE["response"])
    with start(upstream=None, policy=ESCALATING) as client:
        id = client.post("/v1/judge", json=ONE).json()["decision"]["id"]

        def review(said: str, *spans: tuple[int, int]):
            marked = [dict(zip(("start", "end"), span, strict=True)) for span in spans]
            body = {"decision": id, "reviewer": "Ann", "said": said, "spans": marked}
            return client.post("/v1/reviews", json=body)

        for said, spans, field in (
            ("hallucinated", [(3, 3)], "spans.0.end"),
            ("hallucinated", [(6, 15), (15, 6)], "spans.1.end"),
            ("hallucinated", [(6, length + 1)], "spans.0.end"),
            ("grounded", [(6, 15)], "spans"),
            ("unclear", [(6, 15)], "spans"),
        ):
            reply = review(said, *spans)
            assert (reply.status_code, reply.json()["error"]["param"]) == (422, field), spans
        assert len(client.get("/v1/reviews").json()["reviews"]) == 1, "it still waits"
        assert review("hallucinated", (0, length)).is_success


@pytest.mark.parametrize("spans", [[], [(50, 60)], [(9, 6)], [(4, 4)], [(50, 60), (6, 15)]])
def test_a_hallucinated_answer_is_never_exported_as_faithful(tmp_path: Path, spans) -> None:
    """Logs of earlier versions have reviews whose spans lie outside the answer."""
    with AuditLog.open(tmp_path / "audit.db", texts=True) as log:
        texts = {"question": ONE["question"], "passage 1": ONE["passages"][0], "response": ONE["response"]}
        log.append({"id": "a", "kind": "response"}, texts)
        marked = [dict(zip(("start", "end"), span, strict=True)) for span in spans]
        log.append({"id": "r", "kind": "review", "of": "a", "said": "hallucinated", "spans": marked})
        (found,) = labelled(log)
    expected = [(6, 15)] if (6, 15) in spans else [(0, len(ONE["response"]))]
    assert [(one.start, one.end) for one in found.labels] == expected
