"""Of an answer that is being written, only judged sentences are handed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from lrp4rag import Detector
from lrp4rag.guard.adapters import Guard
from lrp4rag.guard.adapters.stream import GuardedStream, Part
from lrp4rag.guard.policy import Policy
from lrp4rag.source import Source
from tests.guard.adapters.conftest import (
    ACTIONS,
    ANSWER,
    PASSAGES,
    QUESTION,
    SENTENCES,
    TOLD,
    UNAVAILABLE,
)


def started(guard: Guard, passages=PASSAGES) -> GuardedStream:
    return GuardedStream(guard, QUESTION, passages)


def actions(parts: list[Part]) -> list[str]:
    return [part.record["action"] for part in parts if part.record]


def test_each_sentence_is_handed_on_when_it_has_ended(guard: Guard, judged: list[str]) -> None:
    stream = started(guard)
    first = list(stream.feed("It is 31 me"))
    assert (first, judged) == ([], [])
    assert [part.text for part in stream.feed("tres tall. It is WR")] == SENTENCES[:1]
    assert judged == ["It is 31 metres tall. "]
    rest = [*stream.feed("ONG. It is OTHER. Fish is sold nearby."), *stream.end()]
    assert [part.text for part in rest[:-1]] == SENTENCES[1:]
    assert actions(rest) == [*ACTIONS[1:], "disclose"]
    assert (rest[0].record["probability"], rest[0].record["status"]) == (0.9, "unsupported")
    assert [part.record["rule"] for part in rest[:2]] == ["claims.unsupported", "claims.most"]
    last = rest[-1]
    assert last.whole
    assert last.text == f"\n\n{TOLD}"
    assert stream.result is not None
    assert stream.result.shown == "".join([*SENTENCES, last.text])
    assert [one["action"] for one in stream.result.record()["sentences"]] == ACTIONS
    assert stream.result.probability == 0.9
    assert "WRONG" not in f"{stream.result.record()}{rest[0].record}"
    assert "OTHER" not in f"{stream.result.record()}{rest[1].record}"


def test_however_it_is_cut_nothing_leaks_and_nothing_is_lost(detector: Detector, guard: Guard) -> None:
    names = ("mark", "correction", "uncertain", "contradicted")
    claims = {"unsupported": "withhold", "most": None}
    quiet = Guard(detector, Policy(claims=claims, texts=dict.fromkeys(names, "") | {"notice": "X"}))
    words, random = (
        ["31 metres", "塔は高い。", "e.g. 3.5", "WRONG", "OTHER", "## It\n", "Okay", "\n- item", "Dr. No"],
        Random(0),
    )
    for _ in range(6):
        answer = " ".join(
            random.choice(words) + random.choice(["", ".", "! "]) for _ in range(random.randint(1, 20))
        )
        cuts = sorted(random.choices(range(len(answer) + 1), k=4))
        texts = [answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
        parts = list(started(quiet).run(texts))
        whole = list(started(quiet).run([answer]))
        assert [part.text for part in parts] == [part.text for part in whole]
        shown = "".join(part.text for part in parts)
        assert "WRONG" not in shown
        if "WRONG" not in answer:
            assert shown == answer


def test_what_cannot_be_judged_is_withheld_and_the_reason_is_told(guard: Guard) -> None:
    stream = started(guard)
    parts = list(stream.run(["It is tall. This is BROKEN. It is ODD. It is old."]))
    shown = "".join(part.text for part in parts)
    assert shown == f"It is tall. {UNAVAILABLE} It is old.\n\n{Policy().texts.unchecked}"
    assert stream.result is not None
    assert stream.result.assessment.withheld
    assert [part.record.get("reason") for part in parts][1:3] == ["unavailable", "unlike training data"]
    assert (stream.result.why, stream.result.probability) == ("failed: RuntimeError", None)
    assert "BROKEN" not in f"{shown}{stream.result.record()}"


def texts(taken: list[str]) -> Iterator[str]:
    for text in ("It is WRONG. ", "It is tall. ", "It is old."):
        taken.append(text)
        yield text


def test_where_no_passage_is_fit_no_answer_is_asked_for(guard: Guard) -> None:
    for passages in ([], [Source("Leave is 12 weeks.", score=0.1)]):
        taken: list[str] = []
        stream = started(guard, passages)
        assert stream.over
        (only,) = stream.run(texts(taken))
        assert only.text.startswith("The available documents do not answer this question.")
        assert (taken, only.whole, only.record["reason"]) == ([], True, "knowledge gap")


@pytest.mark.parametrize("empty", ["", " \n"])
def test_an_empty_passage_is_passed_over_and_empty_ones_alone_are_none(
    guard: Guard, judged: list[str], empty: str
) -> None:
    parts = list(GuardedStream(guard, QUESTION, [empty, *PASSAGES]).run([ANSWER]))
    assert [part.text for part in parts][:4] == SENTENCES
    judged.clear()
    (only,) = GuardedStream(guard, QUESTION, [empty, empty]).run([ANSWER])
    assert (only.record["reason"], judged) == ("knowledge gap", [])


def test_an_answer_stops_where_the_policy_says(strict: Guard, judged: list[str]) -> None:
    taken: list[str] = []
    stream = started(strict)
    parts = list(stream.run(texts(taken)))
    assert actions(parts) == ["withhold", "withhold"]
    assert (len(taken), judged, stream.stopped) == (2, ["It is WRONG. "], True)


def test_an_empty_answer_is_no_clean_one(guard: Guard) -> None:
    for given in ([], ["", " \n"]):
        parts = list(started(guard).run(given))
        assert parts[-1].record["reason"] == "unavailable"
        assert parts[-1].record["why"] == "there is nothing to judge"
        assert parts[-1].text.strip().startswith("The answer is withheld: it could not be checked.")


def test_half_a_character_is_withheld(detector: Detector) -> None:
    """By the real judge, which cannot read it."""
    stream = started(Guard(detector))
    parts = list(stream.run(["It is \ud800 tall."]))
    assert actions(parts) == ["withhold", "withhold"]
    assert "\ud800" not in "".join(part.text for part in parts)


def test_without_the_event_loop_waiting(guard: Guard) -> None:
    async def given() -> AsyncIterator[str]:
        for text in ANSWER.partition("WR"):
            yield text

    async def run() -> list[str]:
        return [part.text async for part in started(guard).arun(given())]

    assert asyncio.run(run())[:-1] == SENTENCES


def test_answers_at_a_time_do_not_mix(detector: Detector) -> None:
    """By the real judge on the tiny reader."""
    guard = Guard(detector)
    alone = [part.record["probability"] for part in started(guard).run([ANSWER])]
    others = "How many fish are sold?"
    one, other = started(guard), GuardedStream(guard, others, PASSAGES)
    found: list[Part] = []
    for text in ANSWER:
        found += one.feed(text)
        list(other.feed(text))
    found += one.end()
    assert [part.record["probability"] for part in found] == pytest.approx(alone, abs=1e-5)
