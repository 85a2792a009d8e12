"""A guard whose verdicts can be scripted, and a reader of real weights for the examples."""

from __future__ import annotations

import pytest

from lrp4rag import Detector
from lrp4rag.guard.adapters import Guard
from lrp4rag.guard.policy import Policy
from lrp4rag.judge import ExplainedVerdict
from lrp4rag.reader import Reader
from tests.guard.policy.test_assessment import verdict_on
from tests.guard.service.conftest import (
    CONTRADICTED,
    MARK,
    PASSAGES,
    QUESTION,
    UNAVAILABLE,
    UNSUPPORTED,
    detector,
    judged,
)

__all__ = ["MARK", "PASSAGES", "QUESTION", "UNAVAILABLE", "UNSUPPORTED", "detector", "judged"]

ANSWER = "It is 31 metres tall. It is WRONG. It is OTHER. Fish is sold nearby."
SENTENCES = ["It is 31 metres tall. ", f"It is WRONG.{MARK} ", f"{CONTRADICTED} ", "Fish is sold nearby."]
"""What is handed on of it."""
ACTIONS = ["serve", "mark", "withhold", "serve"]
"""What is done with each."""
TOLD = "This answer could not be confirmed in full. The answer says “OTHER”; passage 1 says “31 metres”."
"""Under it."""


@pytest.fixture
def guard(detector: Detector, judged: list[str], monkeypatch: pytest.MonkeyPatch) -> Guard:
    """As `judged`, of whole answers too: WRONG words are unsupported, and BROKEN ones raise."""

    def judge(self: Detector, example: object) -> ExplainedVerdict:
        response = example.response
        if "BROKEN" in response:
            raise RuntimeError(response)
        return verdict_on(response, *(word for word in ("WRONG",) if word in response))

    monkeypatch.setattr(Detector, "judge", judge)
    return Guard(detector)


@pytest.fixture
def strict(guard: Guard, detector: Detector) -> Guard:
    """It stops at the first sentence that is withheld."""
    return Guard(detector, Policy(sentences={"stop_after": 1}))


@pytest.fixture(scope="session")
def bundled_detector(default_reader: Reader) -> Detector:
    return Detector.load(reader=default_reader)


@pytest.fixture
def bundled(bundled_detector: Detector, monkeypatch: pytest.MonkeyPatch) -> Detector:
    """What `Guard()` loads."""
    monkeypatch.setattr("lrp4rag.guard.adapters.guard._loaded", lambda name: bundled_detector)
    return bundled_detector
