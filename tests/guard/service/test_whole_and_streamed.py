"""An answer has one decision, whether it is streamed, comes whole or is judged whole; what states nothing is
decided on with what follows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.guard.service.conftest import PASSAGES, QUESTION, TEXTS, WITHHOLDING, asked
from tests.guard.service.scripted_upstream import Script, events
from tests.guard.service.test_chat import ROUTE, streamed, text_of

RIGHT, WRONG, OTHER = "It is 31 metres tall.", "It is WRONG.", "It is OTHER."
DECIDED = ("kind", "action", "reason", "rule", "probability", "threshold", "faithfulness", "statuses")
MORE = ("fact_score", "abstained", "findings", "unavailable", "characters", "sentence_count", "evidence")
"""What the records of an answer tell, beside their id, whoever asked for it in whichever way."""
POLICIES: list[dict[str, Any]] = [
    {},
    WITHHOLDING,
    {"claims": {"contradicted": "escalate", "most": None}, "abstained": "mark", "unavailable": "mark"},
]


def record_of(client: TestClient, id: str) -> dict[str, Any]:
    return client.get(f"/v1/decisions/{id}").json()["record"]


def of_stream(client: TestClient) -> dict[str, Any]:
    *_, last = (one["lrp4rag"] for one in streamed(client) if "lrp4rag" in one)
    return record_of(client, last["id"])


def of_whole(client: TestClient) -> dict[str, Any]:
    return record_of(client, client.post(ROUTE, json=asked()).json()["lrp4rag"]["id"])


def answers(seed: int) -> list[str]:
    """Random ones, with all that there is in them."""
    random = Random(seed)
    said = [RIGHT, WRONG, OTHER, "It is ODD.", "It is BROKEN.", "It is so [7].", "Fish is sold nearby."]
    said += ["## Height\n", "**Height**\n\n", "Okay.", "\n- ", "\U0001f642", "[1]", "\n"]
    found = [" ".join(random.choices(said, k=random.randint(1, 6))) for _ in range(6)]
    return [one for one in found if one.strip()]


@pytest.mark.parametrize("seed", range(len(POLICIES)))
def test_the_same_decision_is_recorded(start, script: Script, judged: list[str], seed: int) -> None:
    with start(policy=POLICIES[seed]) as client:
        for number, answer in enumerate(answers(seed)):
            script.stream, script.seed = events(answer), number
            records = of_stream(client), of_whole(client)
            one, other = ({name: record.get(name) for name in (*DECIDED, *MORE)} for record in records)
            assert one == other, answer


@pytest.mark.parametrize(
    "answer",
    [
        "It is 31 metres tall. It was built of stone. Fish is sold nearby.",
        "## Height\nIt is 31 metres tall.\n\n**Fish**\n- It is sold nearby.\n- It is not sold. Okay.",
        "Okay. The Marlow lighthouse is 41 metres tall. See [9].",
        "## Height",
        "Okay.",
    ],
)
def test_the_same_is_decided_on_an_answer_that_is_judged_whole(client, script: Script, answer: str) -> None:
    """By the reader's own verdicts."""
    script.stream = events(answer)
    one = {"question": QUESTION, "passages": PASSAGES, "response": answer}
    stream, reply = of_stream(client), client.post("/v1/judge", json=one).json()
    whole = record_of(client, reply["decision"]["id"])
    for name in set(DECIDED) | set(MORE) - {"evidence"}:
        if name not in ("kind", "probability"):
            assert stream.get(name) == whole.get(name), name
    assert stream["probability"] == pytest.approx(whole["probability"], abs=1e-5)
    told = [
        [(found["status"], found["suspect"]) for found in record["evidence"]["sentences"]]
        for record in (stream, whole)
    ]
    kept = [[one for one in some if one[0] != "states nothing"] for some in told]
    assert kept[0] == kept[1]


def test_an_answer_that_cannot_be_decided_on_is_not_served(
    client, script: Script, judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sentences were right; what checks say of the whole is not known."""
    from lrp4rag.guard.policy import GuardedAnswer

    def failing(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(GuardedAnswer, "assess", failing)
    script.stream = events(RIGHT)
    chunks, whole = streamed(client), client.post(ROUTE, json=asked()).json()
    assert text_of(chunks) == f"{RIGHT}\n\n{TEXTS.unchecked}"
    assert whole["choices"][0]["message"]["content"].startswith("The answer is withheld: it could not be")
    for decision in (chunks[-1]["lrp4rag"], whole["lrp4rag"]):
        assert (decision["action"], decision["reason"]) == ("withhold", "unavailable")
