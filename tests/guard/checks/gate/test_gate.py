"""What the gate keeps and drops, as users meet it."""

from __future__ import annotations

import math
import time
import unicodedata
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given as given_any
from hypothesis import settings
from hypothesis import strategies as st

from lrp4rag.guard.checks.check import Check, CheckInput, Finding
from lrp4rag.guard.checks.gate import GateResult, RetrievalGate
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError

NOW = datetime(2024, 7, 1, 12, tzinfo=UTC)
BERLIN = timezone(timedelta(hours=2))
QUESTION = "How many days of leave do I get?"
OLD = Source(
    "Employees get 25 days of leave.",
    id="hr-policy-2.8",
    title="HR Policy",
    version="2.8",
    effective="2022-01-01",
    expires="2023-12-31",
    score=0.91,
)
NEW = Source(
    "Employees get 30 days of leave.",
    id="hr-policy-3.1",
    title="HR Policy",
    version="3.1",
    effective="2024-01-01",
    score=0.88,
)
OPEN = replace(OLD, expires=None)
COMING = replace(NEW, version="4.0", effective="2025-01-01", text="It is 35 days.", score=0.7)
PLAIN = Source("The canteen opens at noon.", score=0.7)


def decided(*sources: Source, question: str = QUESTION, now: datetime = NOW) -> GateResult:
    return RetrievalGate().decide(CheckInput(question, sources, now=now))


def found(*sources: Source, question: str = QUESTION, now: datetime = NOW) -> list[Finding]:
    return RetrievalGate()(CheckInput(question, sources, now=now))


def kinds(findings: list[Finding]) -> list[str]:
    return [one.kind for one in findings]


def numbered(*scores: float | None) -> list[Source]:
    return [
        Source(f"Rule {chr(65 + k)} is about {chr(97 + k)} alone.", score=s) for k, s in enumerate(scores)
    ]


def test_it_is_a_check_that_needs_neither_response_nor_verdict() -> None:
    check: Check = RetrievalGate()
    assert check.needs == frozenset()
    assert check.name == "retrieval"
    assert {one.check for one in found(OLD, NEW)} == {"retrieval"}


# --- dates


def test_an_expired_policy_is_dropped_and_the_one_in_force_is_kept() -> None:
    result = decided(OLD, NEW)
    assert result.kept == (1,)
    assert result.dropped == ((0, "expired"),)
    assert result.asked_for is None


def test_words_say_which_passage_and_which_date() -> None:
    (one,) = found(PLAIN, OLD)
    assert one.words == "Passage 2 (HR Policy, version 2.8) has expired: it was valid until 2023-12-31."
    assert one.passages == (1,)
    assert (one.start, one.end) == (None, None)
    assert one.details == {"expires": "2023-12-31"}


@pytest.mark.parametrize(
    ("field", "written", "now", "kept"),
    [
        ("expires", "2024-06-30", datetime(2024, 6, 30, 23, 59, 59, tzinfo=UTC), True),
        ("expires", "2024-06-30", datetime(2024, 7, 1, tzinfo=UTC), False),
        ("expires", "2024-06-30", datetime(2024, 7, 1, 0, 30, tzinfo=BERLIN), False),  # the zone of `now`
        ("expires", "2024-06-30", datetime(2024, 6, 30, 23, 30, tzinfo=BERLIN), True),
        ("expires", "2024-06-30T23:59:59+02:00", datetime(2024, 6, 30, 21, 59, 58, tzinfo=UTC), True),
        ("expires", "2024-06-30T23:59:59+02:00", datetime(2024, 6, 30, 21, 59, 59, tzinfo=UTC), False),
        ("expires", "2024-05", datetime(2024, 6, 1, tzinfo=UTC), False),
        ("expires", "9999-12-31", NOW, True),
        ("expires", "", NOW, True),
        ("effective", "2024-07-01", datetime(2024, 7, 1, tzinfo=UTC), True),
        ("effective", "2024-07-01", datetime(2024, 6, 30, 23, 59, 59, tzinfo=UTC), False),
        ("effective", "2024-07-01", datetime(2024, 7, 1, 0, 30, tzinfo=BERLIN), True),
        ("effective", "2024-07-01T00:00:00Z", datetime(2024, 7, 1, 1, 59, tzinfo=BERLIN), False),
        ("effective", "2024-07-01T00:00:00Z", datetime(2024, 7, 1, 2, tzinfo=BERLIN), True),
    ],
)
def test_when_a_passage_becomes_effective_and_expires(
    field: str, written: str, now: datetime, kept: bool
) -> None:
    source = replace(Source("Text.", score=0.9), **{field: written})
    assert decided(source, now=now).kept == ((0,) if kept else ())


def test_a_time_zone_can_be_set_for_dates_without_one() -> None:
    given = CheckInput("When?", (Source("Text.", expires="2024-06-30", score=0.9),), now=NOW.replace(hour=3))
    assert RetrievalGate(time_zone="America/New_York").decide(given).kept == (0,)
    assert not RetrievalGate().decide(given).kept
    assert not RetrievalGate(time_zone="UTC").decide(given).kept


@pytest.mark.parametrize(
    "zone",
    ["Nowhere/Land", "../UTC", "/etc/localtime", "", "Europe", "\0", "Européen", "\ud800", "x" * 10_000],
    ids=lambda zone: repr(zone[:12]),
)
def test_a_time_zone_that_there_is_not_is_refused(zone: str) -> None:
    with pytest.raises(InputError, match="time_zone"):
        RetrievalGate(time_zone=zone)


@pytest.mark.parametrize("minimum", [-0.1, 1.1, math.nan])
def test_a_minimum_outside_of_0_to_1_is_refused(minimum: float) -> None:
    with pytest.raises(InputError, match="minimum"):
        RetrievalGate(minimum=minimum)


@pytest.mark.parametrize(
    "written", ["31.12.2023", "12/31/2023", "December 2023", "2023-02-30", "soon", "20231"]
)
def test_a_date_that_cannot_be_read_neither_drops_a_passage_nor_passes_unsaid(written: str) -> None:
    result = decided(replace(OLD, expires=written))
    assert result.kept == (0,)
    (one,) = result.findings
    assert (one.kind, one.passages) == ("unreadable date", (0,))
    assert f"\u201c{written}\u201d" in one.words


def test_a_date_that_cannot_be_read_does_not_hide_the_other() -> None:
    result = decided(replace(OLD, effective="01.01.2022"), PLAIN)
    assert result.dropped == ((0, "expired"),)
    assert "unreadable date" in kinds(list(result.findings))


# --- versions


def test_an_older_version_of_the_same_document_is_dropped_without_any_date() -> None:
    result = decided(replace(OLD, expires=None, effective=None), replace(NEW, effective=None))
    assert result.kept == (1,)
    assert result.dropped == ((0, "superseded"),)
    (one,) = result.findings
    assert one.words == (
        "Passage 1 (HR Policy, version 2.8) is superseded by passage 2 (HR Policy, version 3.1), "
        "a newer version of the same document."
    )
    assert one.passages == (0, 1)


@pytest.mark.parametrize(
    ("change", "dropped"),
    [
        ({"effective": "2025-01-01"}, ((1, "not yet effective"),)),
        ({"effective": "01.01.2024"}, ()),  # cannot be read
        ({"expires": "2024-05"}, ((1, "expired"),)),
        ({"version": "3.1-draft"}, ()),
    ],
)
def test_a_version_that_does_not_hold_supersedes_nothing(
    change: dict[str, str], dropped: tuple[tuple[int, str], ...]
) -> None:
    assert decided(OPEN, replace(NEW, **change)).dropped == dropped


def test_a_version_below_the_minimum_supersedes_all_the_same() -> None:
    result = decided(OPEN, replace(NEW, score=0.2))
    assert not result.kept
    assert result.dropped == ((0, "superseded"), (1, "below minimum"))


def test_without_versions_the_later_effective_date_supersedes() -> None:
    old, new = (replace(one, version=None, expires=None, id=None) for one in (OLD, NEW))
    assert decided(old, new).dropped == ((0, "superseded"),)
    assert set(decided(replace(old, effective=None), new).kept) == {0, 1}


def test_parts_of_one_version_do_not_supersede_each_other() -> None:
    other = replace(NEW, text="Leave is asked for in writing.", id="hr-policy-3.1#2")
    assert set(decided(NEW, other).kept) == {0, 1}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Source("a b", id="policy-2.8", version="2.8"), Source("c d", id="Policy_3-1", version="3.1"), True),
        (Source("a b", id="hr-policy-v2"), Source("c d", id="hr-policy-v10"), True),
        (
            Source("a b", title="Travel Policy v2.8"),
            Source("c d", title="travel  policy (version 3.1)"),
            True,
        ),
        (Source("a b", title="Safety Manual Rev B"), Source("c d", title="Safety Manual rev. C"), True),
        (Source("a b", title="Annual Report 2023"), Source("c d", title="Annual Report 2024"), False),
        (Source("a b", id="doc-1"), Source("c d", id="doc-2"), False),
        (Source("a b", id="handbook-4.1"), Source("c d", id="handbook-4.2"), False),  # may be sections
        (
            Source("a b", id="doc-1", title="Leave", version="1"),
            Source("c d", id="doc-2", title="Travel", version="2"),
            False,
        ),
        (Source("a b", version="1"), Source("c d", version="2"), False),
    ],
)
def test_which_documents_are_the_same(one: Source, other: Source, same: bool) -> None:
    given = (replace(one, score=0.9), replace(other, score=0.8))
    assert decided(*given).dropped == (((0, "superseded"),) if same else ())
    assert decided(*reversed(given)).dropped == (((1, "superseded"),) if same else ())


def test_the_newest_of_many_versions_is_what_stays() -> None:
    versions = ["3.9", "3.10", "2.0", "3.10-rc1", "10.0"]
    sources = [replace(NEW, text=f"Text of {v}.", version=v, id=None) for v in versions]
    assert decided(*sources).kept == (4,)
    assert decided(*sources[:4]).kept == (1,)


def test_equal_versions_are_ordered_by_date_and_others_by_date_only() -> None:
    plain = replace(NEW, version=None, id=None)
    assert decided(replace(NEW, effective="2023"), NEW).kept == (1,)
    assert decided(replace(plain, effective="2023"), NEW).kept == (1,)
    assert decided(replace(NEW, version="B", effective="2023"), NEW).kept == (1,)
    assert set(decided(replace(NEW, version="B", effective=None, text="Other."), NEW).kept) == {0, 1}


# --- another time


@pytest.mark.parametrize(
    ("question", "sources", "kept", "asked_for"),
    [
        ("As of 2022, how many days of leave were there?", (OLD, NEW), {0}, date(2022, 1, 1)),
        ("What was the leave policy on 2022-03-05?", (OLD, NEW), {0}, date(2022, 3, 5)),
        ("What did the policy say before 2024?", (OLD, NEW), {0}, date(2023, 12, 31)),
        ("How many days of leave were there two years ago?", (OLD, NEW), {0}, date(2022, 1, 1)),
        ("What was the leave policy in 2019?", (OLD, NEW), set(), date(2019, 1, 1)),
        ("How did leave change between 2023 and 2024?", (OLD, NEW), {0, 1}, date(2023, 1, 1)),
        ("What was the limit in 2023?", (OPEN, NEW), {0}, date(2023, 1, 1)),  # superseded only later
        ("What was the limit in February 2024?", (OPEN, NEW), {1}, date(2024, 2, 1)),
        ("What is the leave policy as of 2025-03-01?", (NEW, COMING), {1}, date(2025, 3, 1)),
        ("What did the previous version say about leave?", (OLD, NEW, COMING), {0, 1}, None),
        ("What is new in the policy compared to the old version?", (OLD, NEW, COMING), {0, 1}, None),
        ("What does version 2.8 say about leave?", (OLD, NEW), {0, 1}, None),
        ("What does version 1.0 say about leave?", (OLD, NEW), {1}, None),
    ],
)
def test_a_question_gets_what_was_valid_at_its_time_or_is_of_its_version(
    question: str, sources: tuple[Source, ...], kept: set[int], asked_for: date | None
) -> None:
    result = decided(*sources, question=question)
    assert set(result.kept) == kept
    assert result.asked_for == asked_for


def test_a_note_says_that_another_time_is_asked_for() -> None:
    result = decided(OLD, NEW, question="What was the leave policy on 2022-03-05?")
    assert result.dropped == ((1, "not yet effective"),)
    assert result.findings[0].kind == "history"
    result = decided(OLD, NEW, question="What did the previous version say about leave?")
    assert any("earlier" in finding.words for finding in result.findings)


# --- scores


def test_passages_below_the_minimum_are_dropped() -> None:
    result = decided(*numbered(0.6, 0.59, 0.95))
    assert result.kept == (2, 0)
    assert result.dropped == ((1, "below minimum"),)
    assert result.findings[0].words == "Passage 2 scores 0.59, which is below the minimum of 0.6."


def test_nothing_passes() -> None:
    findings = found(*numbered(0.2, 0.3), OLD)
    assert findings[0].kind == "null"
    assert findings[0].words == (
        "Insufficient evidence: of 3 passages none is fit to answer from (2 below minimum, 1 expired)."
    )
    assert not decided().kept
    assert found()[0].words == "Insufficient evidence: no passage was retrieved."


@pytest.mark.parametrize(
    "scores",
    [
        (17.3, 4.2, 0.1),
        (0.8, -0.1, 0.2),
        (None, None),
        (0.9, None, 0.1),
        (math.nan, 0.2),
        (0.5, math.inf),
        (85, 20),
    ],
)
def test_no_minimum_holds_on_another_scale_or_without_scores_and_one_finding_says_so(
    scores: tuple[float | None, ...],
) -> None:
    result = decided(*numbered(*scores))
    assert not result.dropped
    assert kinds(list(result.findings)) == ["no minimum"]
    assert result.findings[0].passages == ()


def test_a_minimum_of_nothing_asks_for_no_scores() -> None:
    assert not RetrievalGate(minimum=0)(CheckInput(QUESTION, tuple(numbered(None, None)), now=NOW))


def test_the_best_comes_first_unless_scores_are_missing() -> None:
    assert decided(*numbered(0.7, 0.9, 0.8)).kept == (1, 2, 0)
    assert decided(*numbered(0.7, None, 0.8)).kept == (0, 1, 2)
    assert decided(*numbered(0.7, 0.7, 0.7)).kept == (0, 1, 2)


def test_an_empty_passage_is_no_evidence() -> None:
    assert not decided(Source(" \n\t", score=0.9)).kept


# --- duplicates


def test_the_best_scored_of_duplicates_is_kept() -> None:
    texts = ["The office  opens at 9.", "the office opens at 9", "THE OFFICE\nOPENS AT 9!"]
    sources = [Source(text, score=score) for text, score in zip(texts, (0.7, 0.9, 0.8), strict=True)]
    result = decided(*sources)
    assert result.kept == (1,)
    assert result.dropped == ((0, "duplicate"), (2, "duplicate"))
    assert result.findings[0].words == "Passage 1 says the same as passage 2, which is used in its place."
    assert result.findings[0].passages == (0, 1)


# --- the middle


def test_the_best_in_the_middle_of_many_is_noted() -> None:
    result = decided(*numbered(0.7, 0.7, 0.95, 0.7, 0.7))
    (one,) = result.findings
    assert (one.kind, one.passages) == ("middle", (2,))
    assert one.words.startswith("Passage 3 has the best score and stands in the middle of 5")
    assert result.kept[0] == 2


@pytest.mark.parametrize(
    "scores", [(0.9, 0.7, 0.7, 0.7, 0.7), (0.7, 0.7, 0.7, 0.7, 0.9), (0.7, 0.7, 0.9, 0.7), (0.7,) * 7]
)
def test_the_best_at_either_end_or_of_few_is_not(scores: tuple[float, ...]) -> None:
    assert not found(*numbered(*scores))


# --- anything


anything = st.one_of(st.none(), st.text(max_size=40), st.from_regex(r"\A[0-9TZ:+.-]{1,30}\Z"))


@settings(max_examples=50, deadline=None)
@given_any(
    question=st.text(max_size=100)
    | st.sampled_from(["in 0001", "as of 9999-12-31", "before 1500", "1500 years ago"]),
    sources=st.lists(
        st.builds(
            Source,
            st.text(max_size=60),
            id=anything,
            title=anything,
            version=anything,
            effective=anything | st.sampled_from(["0001-01-01T00:00+14:00", "9999-12-31", "9999"]),
            expires=anything | st.sampled_from(["9999-12-31T23:59-14:00", "0001", "9999-12"]),
            score=st.none() | st.floats(),
        ),
        max_size=6,
    ),
)
def test_any_strings_get_a_decision(question: str, sources: list[Source]) -> None:
    for now in (NOW, NOW.astimezone(BERLIN)):
        result = decided(*sources, question=question, now=now)
        dropped = [index for index, _ in result.dropped]
        assert sorted([*result.kept, *dropped]) == list(range(len(sources)))
        assert asdict(result)
        for one in result.findings:
            assert len(one.words) < 400
            assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in one.words)


@pytest.mark.parametrize(
    "text",
    [
        "a\u0301\u0323" * 70_000,
        "\u0301\u0323" * 100_000,
        "in 2021 " * 25_000,
        "0" * 200_000,
        "[(" * 100_000,
        "\ud800" * 200_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_long_texts_cost_little(text: str) -> None:
    source = Source(text, id=text, title=text, version=text, effective=text, expires=text, score=0.9)
    begin = time.monotonic()
    found(source, replace(source, text=f"{text} x", score=0.8), question=text)
    assert time.monotonic() - begin < 20
