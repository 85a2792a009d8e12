"""The contradicted dose, through the server before an upstream: on the real reader and detector."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from lrp4rag import Detector
from lrp4rag.guard.service.app import create_app
from lrp4rag.guard.service.settings import Settings
from lrp4rag.reader import Reader
from tests.guard.service.conftest import asked
from tests.guard.service.scripted_upstream import Script, events, serving
from tests.guard.service.test_chat import ROUTE, streamed, text_of

QUESTION = "How often should I take it?"
PASSAGES = [
    "Take one tablet three times a day with water. Do not exceed six tablets in 24 hours.",
    "Store it cool.",
]
ANSWER = "Take one tablet with water. Take it five times a day."


@pytest.mark.parametrize("stream", [True, False])
def test_the_person_reads_what_the_passage_says(
    default_reader: Reader, settings: Callable[..., Settings], script: Script, *, stream: bool
) -> None:
    script.stream = events(ANSWER)
    request = {"messages": [{"role": "user", "content": QUESTION}], "lrp4rag": {"passages": PASSAGES}}
    detector = Detector.load(reader=default_reader)
    with serving(script) as url, TestClient(create_app(settings(upstream=url), detector)) as client:
        if stream:
            chunks = streamed(client, **request)
            shown, decision = text_of(chunks), chunks[-1]["lrp4rag"]
        else:
            reply = client.post(ROUTE, json=asked(**request)).json()
            shown, decision = reply["choices"][0]["message"]["content"], reply["lrp4rag"]
    assert (decision["action"], decision["reason"]) == ("disclose", "contradicted")
    assert shown.startswith(f"{ANSWER} [passage 1 says “three”]\n\n")
    assert "The answer says “five”; passage 1 says “three”." in shown
