"""What drifts is found, what does not is not, and what cannot be told is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lrp4rag.guard.monitoring.drift import SMALLEST_SAMPLE, Drift, Group, compare
from lrp4rag.util.errors import InputError
from tests.guard.monitoring.logs import EARLY, LATE, pair, records, window


def found_of(drift: Drift) -> set[str]:
    return {one.measure.name for one in drift.drifted if one.group is None}


def test_nothing_drifted() -> None:
    drift = compare(*pair())
    assert not drift.drifted
    assert len(drift.changes) == 17 + 5 * 5
    constant = drift.of("passages")
    assert constant is not None
    assert constant.adjusted == 1.0


def test_worse_answers_of_one_topic() -> None:
    drift = compare(*pair(worse=0.4, only="travel", retrieval=0.2))
    assert {"probability", "faithfulness", "withheld", "retrieval score"} <= found_of(drift)
    changes = [change for change in drift.drifted if change.measure.name == "probability"]
    said = {(change.group, change.direction) for change in changes if change.group}
    assert (Group("topic", "travel"), "worse") in said
    assert not {(Group("topic", "leave"), "worse"), (Group("topic", "it"), "worse")} & said


@pytest.mark.parametrize(
    ("fixed", "measure"),
    [
        ({"sentence_count": 1}, "sentence length"),
        ({"reason": "omitted condition"}, "reasons"),
        ({"generator": "qwen"}, "generators"),
    ],
    ids=str,
)
def test_each_measure_is_compared(fixed: dict[str, object], measure: str) -> None:
    assert measure in found_of(compare(*pair(**fixed)))


def test_a_change_that_is_too_small_to_matter_is_none() -> None:
    baseline, other = pair(worse=0.2)
    assert "probability" in found_of(compare(baseline, other))
    assert "probability" not in found_of(compare(baseline, other, least=0.5))


def test_checks_of_passages_are_compared() -> None:
    baseline, other = pair()
    empty = [replace(one, action="withhold") for one in other.answers]
    drift = compare(replace(baseline, retrievals=baseline.answers), replace(other, retrievals=tuple(empty)))
    assert "nothing retrieved" in found_of(drift)
    assert drift.of("score at the gate") is not None


@pytest.mark.parametrize("count", [0, 1, SMALLEST_SAMPLE - 1])
def test_a_window_without_answers_enough_is_an_error(count: int) -> None:
    few, many = window(LATE, records(count, 1)), window(EARLY, records(SMALLEST_SAMPLE, 2))
    with pytest.raises(InputError, match="earlier beginning") as error:
        compare(many, few)
    assert error.value.field == "since"
    with pytest.raises(InputError, match=f"{count or 'no'} answers? ?.*, and 20 are needed") as error:
        compare(replace(few, period=EARLY), replace(many, period=LATE))
    assert error.value.field == "reference"
    unreadable = replace(few, unreadable=7)
    with pytest.raises(InputError, match="7 records of it"):
        compare(many, unreadable)


def test_windows_do_not_overlap() -> None:
    baseline, other = pair()
    with pytest.raises(InputError, match="the windows overlap"):
        compare(replace(baseline, period=LATE), other)


def test_what_is_not_recorded_is_skipped_and_said() -> None:
    bare = {"probability": None, "topic": None, "retrieval_score": None}
    drift = compare(window(EARLY, records(50, 1, **bare)), window(LATE, records(50, 2)))
    left = {one.measure.name: one.counts for one in drift.skipped if one.group is None}
    assert left["probability"] == (0, 50)
    assert left["topics"] == (0, 50)
    assert drift.of("probability") is None
    assert {one.group.name for one in drift.skipped if one.group} >= {"leave", "travel", "it"}


def test_scores_of_answers_without_a_verdict_do_not_count() -> None:
    odd = [one | {"abstained": True, "probability": 0.99} for one in records(30, 3)]
    failed = [one | {"reason": "unavailable", "probability": None} for one in records(30, 4)]
    baseline = window(EARLY, records(100, 1))
    change = compare(baseline, window(LATE, [*records(100, 2), *odd, *failed])).of("probability")
    assert change is not None
    assert change.difference.counts == (100, 100)
