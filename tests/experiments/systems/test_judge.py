"""Prompt judges, asked by a scripted chat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.experiments.systems import judge
from lrp4rag.experiments.systems.judge import Graded, log_odds, read_grade, read_vote
from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.experiments.systems.measurement import Measured
from lrp4rag.training.rows import Rows
from tests.tiny import bridge_example
from tests.training.labelled import examples, extraction


@dataclass
class Scripted:
    """Says `reply(message, time)` when it is asked something for the time-th time, from 0."""

    reply: Callable[[str, int], str] = lambda message, time: ""
    chosen: Callable[[str], float | None] = lambda message: 0.5
    name: str = "scripted"
    asked: list[list[str]] = field(default_factory=list)
    options: list[tuple[int, float, int]] = field(default_factory=list)
    _times: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def choose(self, messages: Sequence[str], answers: tuple[str, str]) -> list[float | None]:
        self.asked.append(list(messages))
        assert answers == ("No", "Yes")
        return [self.chosen(message) for message in messages]

    def replies(
        self, messages: Sequence[str], *, max_tokens: int, temperature: float, seed: int
    ) -> list[str]:
        self.asked.append(list(messages))
        self.options.append((max_tokens, temperature, seed))
        said = []
        for message in messages:
            said.append(self.reply(message, self._times[message]))
            self._times[message] += 1
        return said


# Reading replies.


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("PASS: all of it is in passage 1", Graded("PASS", "all of it is in passage 1")),
        ("FAIL - the year\n is in no passage", Graded("FAIL", "the year is in no passage")),
        ("UNCERTAIN. It may be.", Graded("UNCERTAIN", "It may be.")),
        ("**FAIL**: the year", Graded("FAIL", "the year")),
        ("**PASS:** the year", Graded("PASS", "the year")),
        (' "FAIL: x"', Graded("FAIL", 'x"')),
        ('FAIL: "1912" is new', Graded("FAIL", '"1912" is new')),
    ],
)
def test_a_grade_is_read_with_its_reason(reply: str, expected: Graded) -> None:
    assert read_grade(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "PASS",
        "FAIL:",
        "FAIL: ...",
        "PASSED: all of it",
        "fail: x",
        "PASS/FAIL: x",
        "PASS (yes), FAIL",
        "PASS, FAIL or UNCERTAIN",
        "PASS: yes, FAIL: no",
        "PASS (yes), FAIL (no) or UNCERTAIN, then a colon and a short reason.",
        "UNCERTAIN: PASS or\nFAIL",
        "I say FAIL: x",
        "It was opened.",
    ],
)
def test_what_is_no_grade_with_a_reason_is_not_read(reply: str) -> None:
    assert read_grade(reply) is None


def test_the_last_verdict_is_the_vote() -> None:
    assert read_vote("The year is new.\nVerdict: Yes") is True
    assert read_vote("Verdict: yes?\nI think again.\n**Verdict:** No.") is False


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Yes",
        "Verdict:",
        "Verdict: Not known",
        "My verdict is that yes",
        "Verdict: Yes or No",
        "Verdict: Yes/No",
        judge.CHAIN,
    ],
)
def test_what_is_no_line_with_a_verdict_is_no_vote(reply: str) -> None:
    assert read_vote(reply) is None


def test_log_odds() -> None:
    assert log_odds(0.75) == pytest.approx(np.log(3))
    assert log_odds(0.5) == 0
    assert log_odds(1.0) == pytest.approx(np.log(1e6), rel=1e-5)  # finite
    assert log_odds(0.0) == pytest.approx(-np.log(1e6), rel=1e-5)
    assert np.isnan(log_odds(None))


# Asking.


def test_passages_come_first_so_that_responses_to_a_source_begin_alike() -> None:
    first = judge.case_of(bridge_example(1, response="It was 1901."))
    other = judge.case_of(bridge_example(1, response="Nobody knows."))
    places = [first.index(part) for part in ("The old stone bridge 1", "When was bridge 1", "It was 1901.")]
    assert places == sorted(places)
    assert first.replace("It was 1901.", "Nobody knows.") == other


def test_two_answers_give_log_odds_of_no() -> None:
    given = {"It was 1901.": 0.8, "Nobody knows.": None}
    chat = Scripted(chosen=lambda message: next(p for text, p in given.items() if text in message))
    found = judge.two_answers([bridge_example(1, response=text) for text in given], chat)
    assert found[0].numbers == pytest.approx(np.log(4))
    assert np.isnan(found[1].numbers).tolist() == [True]
    assert [(one.asked, one.unanswered) for one in found] == [(1, 0), (1, 1)]
    assert len(chat.asked) == 1  # all at once


def test_only_what_could_not_be_read_is_asked_again() -> None:
    def reply(message: str, time: int) -> str:
        if "contradict" in message and time == 0:
            return "I am not sure what to say."
        return "FAIL: x" if "names, numbers" in message else "PASS: y"

    chat = Scripted(reply)
    (found,) = judge.rubric([bridge_example()], chat)
    assert found.numbers.tolist() == [0.2]
    assert (found.asked, found.unanswered) == (5, 0)
    assert [len(messages) for messages in chat.asked] == [5, 1]
    assert judge.RUBRIC["contradiction"] in chat.asked[1][0]
    (first, again) = chat.options
    assert first == (judge.REASON_TOKENS, 0.0, 0)
    assert again[1] == judge.RETRY_TEMPERATURE  # at temperature 0 it would say the same
    assert again[2] != first[2]


def test_a_question_that_is_never_answered_is_not_scored() -> None:
    def reply(message: str, time: int) -> str:
        if judge.RUBRIC["question"] in message:
            return "Who knows?"
        return "UNCERTAIN: x" if judge.RUBRIC["support"] in message else "FAIL: x"

    chat = Scripted(reply)
    (found,) = judge.rubric([bridge_example()], chat)
    assert found.numbers == pytest.approx((0.5 + 3) / 4)  # of the four that were answered
    assert (found.asked, found.unanswered) == (5, 1)
    assert found.notes[0] == "support: UNCERTAIN: x"
    assert len(found.notes) == 4
    assert [len(messages) for messages in chat.asked] == [5] + [1] * (judge.TRIES - 1)


@pytest.mark.parametrize("form", [judge.rubric, judge.chain_poll])
def test_without_any_answer_there_is_no_number(form: Callable[..., list]) -> None:
    (found,) = form([bridge_example()], Scripted())
    assert np.isnan(found.numbers).tolist() == [True]
    assert found.unanswered == found.asked > 0


def test_chain_poll_is_the_share_of_votes() -> None:
    votes = iter(["Verdict: Yes", "hm", "so. Verdict: No", "Verdict: Yes"])
    chat = Scripted(lambda message, time: next(votes))
    (found,) = judge.chain_poll([bridge_example()], chat)
    assert found.numbers == pytest.approx(2 / 3)
    assert (found.asked, found.unanswered) == (3, 0)
    assert [len(messages) for messages in chat.asked] == [3, 1]
    assert chat.options[0][:2] == (judge.VOTE_TOKENS, judge.VOTE_TEMPERATURE)


def test_responses_to_one_source_are_asked_about_together() -> None:
    said = {"Bridge one.": "FAIL: x", "Bridge two.": "PASS: x", "Bridge three.": "UNCERTAIN: x"}
    responses = [bridge_example(1, response=text) for text in said]
    chat = Scripted(lambda message, time: said[message.split("Answer: ")[1].split("\n")[0]])
    assert [float(one.numbers[0]) for one in judge.rubric(responses, chat)] == [1, 0, 0.5]
    assert [len(messages) for messages in chat.asked] == [15]


# As baselines.


class Asking(Kit):
    """Judges are this chat."""

    chat = Scripted(
        chosen=lambda message: 0.9 if "Bridge" in message and int(bridge_of(message)) % 2 else 0.2
    )


def bridge_of(message: str) -> str:
    return message.split("Answer: Bridge")[1].split(maxsplit=1)[0]


def test_a_judge_is_calibrated_on_labels_and_does_not_see_those_it_judges(tmp_path: Path) -> None:
    made = examples(40)
    rows = Rows(extraction(made, tmp_path / "s").store, tuple(made))
    kit = Asking()
    scorer = judge.TWO_ANSWERS.fit(rows.select(range(30)), kit)
    own = rows.select(range(30, 40))
    scores = scorer.score(own, kit)
    assert [score.flagged for score in scores] == own.labels.tolist()
    assert all(score.answered and score.suspects is None for score in scores)
    hidden = Rows(rows.store, tuple(replace(one, labels=()) for one in own.examples))
    assert scorer.score(hidden, kit) == scores


class Replying(Kit):
    """What it says depends on the bridge's number: odd ones are not supported. It never answers about 38."""

    @property
    def chat(self) -> Scripted:
        return Scripted(lambda message, time: self.said(int(bridge_of(message))))

    def said(self, number: int) -> str:
        if number == 38:
            return ""
        return f"{'FAIL' if number % 2 else 'PASS'}: it is so.\nVerdict: {'Yes' if number % 2 else 'No'}"


@pytest.mark.parametrize("baseline", [judge.RUBRIC_JUDGE, judge.CHAIN_POLL], ids=["rubric", "chainpoll"])
def test_written_replies_are_calibrated_and_silence_is_told(baseline: Measured, tmp_path: Path) -> None:
    assert baseline.facts.slow
    made = examples(40)
    rows = Rows(extraction(made, tmp_path / "s").store, tuple(made))
    scorer = baseline.fit(rows.select(range(30)), Replying())
    own = rows.select(range(30, 40))
    *others, silent, last = scorer.score(own, Replying())
    assert [score.flagged for score in (*others, last)] == np.delete(own.labels, 8).tolist()
    assert all(score.answered and score.asked > 0 == score.unanswered for score in (*others, last))
    assert not silent.answered
    assert silent.unanswered == silent.asked
    assert silent.probability == pytest.approx(rows.labels[:30].mean())
