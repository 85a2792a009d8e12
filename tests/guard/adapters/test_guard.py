"""A guard judges whole answers and decides on them, and nothing that fails is a clean verdict."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lrp4rag import Detector
from lrp4rag.guard.adapters import Guard
from lrp4rag.guard.adapters.stream import GuardedStream
from lrp4rag.guard.policy import Policy
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError
from tests.guard.adapters.conftest import PASSAGES, QUESTION

GOOD = "The lighthouse is 31 metres tall."


def test_a_grounded_answer_is_shown_as_it_is(guard: Guard) -> None:
    found = guard.judge(QUESTION, PASSAGES, GOOD)
    assert (found.shown, found.grounded, found.assessment.decided.action) == (GOOD, True, "serve")
    assert found.words == "Likely grounded, probability of hallucination 0.05"
    told = found.record()
    assert told["sentences"] == [
        {"start": 0, "end": len(GOOD), "status": "supported", "probability": 0.05, "suspect": False}
    ]
    assert (told["probability"], told["why"], told["policy"]) == (0.05, None, Policy().hash)


def test_what_is_withheld_is_quoted_nowhere(guard: Guard) -> None:
    found = guard.judge(QUESTION, PASSAGES, "It is WRONG [7].")
    assert found.assessment.withheld
    assert "WRONG" not in found.shown
    assert "WRONG" not in str(found.record())
    assert found.grounded is False
    assert '"WRONG": unsupported' in found.words, "whoever evaluates is told"


@pytest.mark.parametrize("answer", ["This is BROKEN.", "", " \n"])
def test_what_cannot_be_judged_has_no_verdict(guard: Guard, answer: str) -> None:
    found = guard.judge(QUESTION, PASSAGES, answer)
    assert (found.grounded, found.probability, found.assessment.withheld) == (None, None, True)
    assert found.shown.startswith("The answer is withheld: it could not be checked.")
    assert found.words.startswith("No verdict: ")
    assert "BROKEN" not in f"{found.shown}{found.record()}{found.words}", "an error may quote what it read"


@pytest.mark.parametrize("passages", [[], [""], [" ", Source("\n")]], ids=["none", "empty", "all empty"])
def test_without_passages_there_is_nothing_to_answer_from(guard: Guard, passages: list[Any]) -> None:
    found = guard.judge(QUESTION, passages, GOOD)
    assert (found.assessment.decided.reason, found.why) == ("knowledge gap", "there is nothing to judge")
    assert found.shown == "The available documents do not answer this question."


def test_an_empty_passage_among_others_is_told(guard: Guard) -> None:
    found = guard.judge(QUESTION, ["", *PASSAGES], GOOD)
    assert found.shown == GOOD
    retrieval, fact = found.assessment.checked.every
    assert (retrieval.words, fact.passages) == ("Passage 1 has no text.", (1,))


def test_a_lenient_policy_shows_what_was_not_judged_and_says_so(detector: Detector, guard: Guard) -> None:
    lenient = Guard(detector, Policy(rules={"null": None}, unavailable="mark"))
    assert lenient.judge(QUESTION, [], GOOD).shown == f"{GOOD}\n\n{Policy().texts.unchecked}"
    assert lenient.judge(QUESTION, PASSAGES, "BROKEN.").shown == f"BROKEN.\n\n{Policy().texts.unchecked}"


def test_bad_input_is_named(guard: Guard, tmp_path) -> None:
    with pytest.raises(InputError, match=r"passages\[1\]"):
        guard.judge(QUESTION, ["One.", Source("\ud800")], GOOD)
    with pytest.raises(InputError, match="question"):
        guard.judge("", PASSAGES, GOOD)
    path = tmp_path / "policy.yaml"
    path.write_text("budget: -1")
    with pytest.raises(InputError, match=r"policy\.yaml, line 1, field 'budget'"):
        Guard(policy=path)


@pytest.mark.parametrize(
    ("passages", "words"),
    [
        ("Tower", "'passages': give a list of texts, one for each passage"),
        (b"Tower", "'passages': give a list of texts"),
        (None, "'passages': give a list of texts"),
        (["One.", {"text": "Two."}], r"'passages\[1\]': a text is needed, not dict"),
        ([Source(b"One.")], r"'passages\[0\]': a text is needed, not bytes"),
    ],
    ids=["text", "bytes", "none", "object", "source"],
)
def test_what_is_no_list_of_texts_is_not_judged(guard: Guard, passages: Any, words: str) -> None:
    """Not letter by letter, which a text would be."""
    with pytest.raises(InputError, match=words):
        guard.judge(QUESTION, passages, GOOD)
    with pytest.raises(InputError, match=words):
        GuardedStream(guard, QUESTION, passages)


def test_question_and_answer_are_texts(guard: Guard) -> None:
    nothing: Any = None
    with pytest.raises(InputError, match="'response': a text is needed, not NoneType"):
        guard.judge(QUESTION, PASSAGES, nothing)
    with pytest.raises(InputError, match="'question'"):
        guard.judge(nothing, [], GOOD)
    for question in (nothing, " "):
        with pytest.raises(InputError, match="'question'"):
            GuardedStream(guard, question, PASSAGES)


def test_answers_at_a_time_are_judged_one_after_the_other(
    detector: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real judge on the tiny reader, by two guards of one detector."""
    inside, most, judge = [], [], Detector.judge

    def watched(self: Detector, *given):
        inside.append(1)
        most.append(len(inside))
        found = judge(self, *given)
        inside.pop()
        return found

    monkeypatch.setattr(Detector, "judge", watched)
    guards, found = (Guard(detector), Guard(detector)), list[float | None]()
    threads = [
        threading.Thread(
            target=lambda k=k: found.append(guards[k % 2].judge(QUESTION, PASSAGES, GOOD).probability)
        )
        for k in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert len(set(found)) == 1
    assert found[0] is not None


def test_one_reader_is_loaded_for_all_guards_of_a_name(
    monkeypatch: pytest.MonkeyPatch, detector: Detector
) -> None:
    from lrp4rag.guard.adapters import guard as module

    loads: list[str] = []

    def load(name: str, **_: object) -> Detector:
        loads.append(name)
        return detector

    monkeypatch.setattr(module.Detector, "load", load)
    module._loaded.cache_clear()
    try:
        one, other = Guard(), Guard("default", Policy(name="other"))
        assert loads == [], "not before it is needed"
        assert one.detector is other.detector is detector
        assert (loads, one.lock) == (["default"], other.lock)
    finally:
        module._loaded.cache_clear()
