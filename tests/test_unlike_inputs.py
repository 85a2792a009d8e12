"""The bundled detector on what it was not trained on: a verdict or none as documented, never a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lrp4rag import Detector, Example, ExplainedVerdict
from lrp4rag.reader import Reader
from tests.test_end_to_end import lrp4rag

pytestmark = pytest.mark.usefixtures("default_reader")

PASSAGES = [
    "The Marlow lighthouse was built between 1871 and 1873. Its tower is 31 metres tall.",
    "The lighthouse stands on the cliffs of Marlow Bay and has been open to visitors since 1984.",
    "Tickets cost four pounds. Children under six are free, and the stairs have 138 steps.",
]
ANSWER = (
    "The lighthouse was built between 1871 and 1873 and its tower is 31 metres tall. It has been open to "
    "visitors since 1984, tickets cost four pounds, and there are 138 steps to climb."
)
GERMAN = (
    "Der Leuchtturm wurde zwischen 1871 und 1873 errichtet, sein Turm ist einunddreissig Meter hoch. Seit "
    "1984 ist er fuer Besucher geoeffnet, Eintrittskarten kosten vier Pfund, und es sind 138 Treppenstufen."
)
JAPANESE = (
    "灯台は1871年から1873年にかけて建てられ、塔の高さは31メートルです。1984年から一般公開されています。"
)
TABLE = json.dumps({"name": "Marlow", "built": [1871, 1873], "height_m": 31, "open": True, "steps": 138}) * 3
TEXT = " ".join(f"Keeper number {k} wrote in the log that the sea was calm on day {k}." for k in range(60))

CASES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a summary of one passage": ({"passages": [TEXT[:700]], "response": ANSWER}, set()),
    "seven passages": ({"passages": PASSAGES * 2 + PASSAGES[:1], "response": ANSWER}, set()),
    "a table": ({"passages": [TABLE], "response": TABLE}, {"tokens per word"}),
    "Japanese": ({"passages": [JAPANESE], "response": JAPANESE}, {"tokens per word"}),
    # Numbers and signs of their own are in tests/classifiers/test_domain.py.
    "emoji and a large number": (
        {
            "passages": ["Brightwell's revenue was 15,000,000 US dollars."],
            "response": "Brightwell's revenue was 15,000,000 US dollars. \U0001f389\U0001f389 Enjoy!",
        },
        set(),
    ),
    "a long word among few": (
        {
            "passages": ["The deposit of 200 pounds is refundable until 14 days before arrival."],
            "response": "The deposit is non-refundable.",
        },
        set(),
    ),
    # What every response begins with is as short.
    "one word": ({"passages": PASSAGES, "response": "Yes"}, set()),
}


@pytest.fixture(scope="module")
def detector(default_reader: Reader) -> Detector:
    return Detector.load(reader=default_reader)


def judged(detector: Detector, parts: dict[str, Any]) -> ExplainedVerdict:
    return detector.judge(Example("What about the lighthouse?", **parts), evidence=False)


@pytest.mark.parametrize("name", CASES)
def test_it_says_what_is_unlike(name: str, detector: Detector) -> None:
    parts, expected = CASES[name]
    verdict = judged(detector, parts)
    assert 0 <= verdict.probability <= 1
    found = {one.facet: one.decides for one in verdict.unlike}
    assert expected <= set(found)
    assert verdict.abstained == any(found.values())
    assert (verdict.hallucinated is None) == verdict.abstained
    if not expected:
        assert not verdict.abstained


def test_of_what_states_nothing_there_is_no_verdict(detector: Detector) -> None:
    verdict = judged(detector, {"passages": PASSAGES, "response": "Hello!"})
    assert (verdict.probability, verdict.hallucinated, verdict.abstained) == (None, None, False)
    assert [one.status for one in verdict.sentences] == ["states nothing"]
    assert not verdict.unlike


def test_another_european_language_is_no_clean_verdict(detector: Detector) -> None:
    """It may not show in the ranges: they are wide since short answers are learned from."""
    verdict = judged(detector, {"passages": PASSAGES, "response": GERMAN})
    assert verdict.abstained or verdict.hallucinated


def test_passages_keep_their_numbers_beside_an_empty_one(tmp_path: Path) -> None:
    """In values, citations and notes: they are those of the list that was given."""
    given = {
        "passages": ["Tickets cost four pounds.", " ", PASSAGES[0]],
        "response": "Its tower is 41 metres tall [3].",
    }
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"question": "What about the lighthouse?", **given}))
    row = json.loads(lrp4rag("analyse", path, "--json").stdout)
    told = [one for span in row["spans"] for one in span["contradictions"]]
    assert [(one["passage"], one["passage_text"]) for one in told] == [(3, "31 metres")]
    (sentence,) = row["sentences"]
    assert (sentence["nearest"]["passage"], sentence["by_passage"][1]) == (3, 0)
    findings = {one["check"]: one for one in row["decision"]["findings"]}
    assert findings["retrieval"]["words"] == "Passage 2 has no text."
    assert (findings["citations"]["kind"], findings["citations"]["passages"]) == ("misattributed", [3])


def test_an_empty_response_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"question": "When?", "passages": PASSAGES, "response": ""}))
    assert "response" in lrp4rag("analyse", path, code=2).stderr


def test_a_prompt_of_15000_tokens(detector: Detector) -> None:
    """It is longer than the reader's window, and what is read of it is short."""
    verdict = judged(detector, {"passages": [TEXT * 6, *PASSAGES, TEXT * 6], "response": ANSWER})
    assert not verdict.abstained
    assert {1, 2, 3} <= set(verdict.read)
    assert len(verdict.encoded.prompt_ids) < 1422
