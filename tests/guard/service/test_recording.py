"""What records tell beside scores: sizes, retrieval, and the names that the settings list, and no others."""

from __future__ import annotations

import pytest

from lrp4rag.guard.service.recording import labels
from lrp4rag.source import Source
from tests.guard.service.conftest import PASSAGES, QUESTION, asked, recorded
from tests.guard.service.scripted_upstream import Script, events

RESPONSE = "It is 31 metres tall."
SECRET = "canary123"
ROUTE = "/v1/chat/completions"


@pytest.fixture
def listed(settings):
    return settings(topics=["leave", "travel"], generators=["llama"], model="served")


@pytest.mark.parametrize(
    ("named", "passages", "expected"),
    [
        ("leave", [None], "leave"),
        (SECRET, [None], "other"),
        ("", ["leave"], "other"),
        (None, [None], None),
        (None, ["travel", "travel"], "travel"),
        (None, ["travel", "leave"], None),
        (None, [SECRET], "other"),
        ("leave", ["travel"], "leave"),
    ],
)
def test_a_topic_is_one_of_the_settings(listed, named, passages, expected) -> None:
    sources = [Source("x", topic=topic) for topic in passages]
    assert labels(listed, sources, topic=named).get("topic") == expected


@pytest.mark.parametrize(
    ("named", "expected"), [("llama", "llama"), ("served", "served"), (SECRET, "other"), (None, None)]
)
def test_a_generator_is_one_of_the_settings(listed, named, expected) -> None:
    assert labels(listed, [Source("x")], generator=named).get("generator") == expected


def test_without_a_list_no_name_is_recorded(settings) -> None:
    found = labels(settings(), [Source("x", topic=SECRET)], topic=SECRET, generator=SECRET)
    assert found == {"passages": 1}


def test_every_route_records_them_and_no_word_of_a_request(start, script: Script, judged, tmp_path) -> None:
    script.stream = events(RESPONSE, " Fish is sold.")
    passage = {"text": PASSAGES[0], "score": 0.7, "topic": SECRET, "title": SECRET}
    one = {"question": QUESTION, "passages": [passage], "topic": "leave", "generator": SECRET}
    told = {"passages": [passage], "topic": "leave"}
    texts = {
        "texts": [RESPONSE],
        "input_type": "response",
        "additional_provider_specific_params": {**told, "generator": "llama"},
    }
    with start(topics=["leave"], generators=["llama"]) as client:
        assert client.post("/v1/judge", json={**one, "response": RESPONSE}).status_code == 200
        retrieved = {name: one[name] for name in ("question", "passages", "topic")}
        assert client.post("/v1/retrieval/check", json=retrieved).status_code == 200
        assert client.post(ROUTE, json=asked(model=SECRET, stream=True, lrp4rag=told)).status_code == 200
        assert client.post("/beta/litellm_basic_guardrail_api", json=texts).status_code == 200
    records = [one for one in recorded(tmp_path / "audit.db") if one["kind"] != "sentence"]
    assert [one["kind"] for one in records] == ["response", "retrieval", "answer", "response"]
    assert {(one["topic"], one["passages"], one["retrieval_score"]) for one in records} == {("leave", 1, 0.7)}
    assert [one.get("generator") for one in records] == ["other", None, "other", "llama"]
    assert [one.get("characters") for one in records] == [21, None, 35, 21]
    assert [one.get("sentence_count") for one in records] == [1, None, 2, 1]
    answer = records[2]
    assert (answer["probability"], answer["abstained"]) == (0.01, False)
    assert 0 < answer["threshold"] < 1
    assert all(SECRET not in str(one) for one in records)
