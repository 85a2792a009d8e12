"""Passages that contradict each other, as users meet them, and passages that only look so."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.checks.__main__ import CONFLICT_CASES, conflict_figures, counterfactual_figures
from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.conflicts import Conflicts, newer, prompt_note
from lrp4rag.source import Source

OLD = Source(
    "Unused leave can be carried over. Up to 10 days are moved into the next year.",
    title="Leave Policy", version="2.8", effective="2021-01-01",
)  # fmt: skip
NEW = Source(
    "Unused leave can be carried over. Up to 14 days are moved into the next year.",
    title="Leave Policy", version="3.1", effective="2024-01-01",
)  # fmt: skip


def conflicts(*passages: str | Source, response: str | None = None) -> list[Finding]:
    sources = tuple(Source(one) if isinstance(one, str) else one for one in passages)
    return Conflicts()(CheckInput("How many?", sources, response))


def sides_of(finding: Finding) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], finding.details["sides"])


def values(finding: Finding) -> tuple[str, ...]:
    return tuple(side["value"] for side in sides_of(finding))


@pytest.mark.parametrize(
    ("one", "other", "first", "second"),
    [
        ("Refunds are paid within five days.", "Refunds are paid within 10 days.", "five days", "10 days"),
        ("The deposit for a bike is $50.", "The deposit for a bike is $80.", "$50", "$80"),
        (
            "The session expires after 15 minutes.",
            "After 30 minutes the session expires.",
            "15 minutes",
            "30 minutes",
        ),
        ("The offer ends on 3 May 2025.", "The offer ends on 10 May 2025.", "3 May 2025", "10 May 2025"),
        ("The shop closes at 6 pm.", "The shop closes at 8 pm.", "6 pm", "8 pm"),
        ("Meetings take place on Monday.", "Meetings take place on Tuesday.", "Monday", "Tuesday"),
        ("The agent requires version 4.2.0.", "The agent requires version 4.6.1.", "4.2.0", "4.6.1"),
        ("The audit is done by Ana Ruiz.", "The audit is done by Leo Brandt.", "Ana Ruiz", "Leo Brandt"),
        ("Helmets are mandatory on site.", "Helmets are optional on site.", "mandatory", "optional"),
        ("Guests may smoke on the balcony.", "Guests must not smoke on the balcony.", "may", "must not"),
        ("Backups are encrypted.", "Backups are not encrypted.", "are encrypted", "are not encrypted"),
        (
            "The report is due weekly to the board.",
            "The report is due monthly to the board.",
            "weekly",
            "monthly",
        ),
    ],
)
def test_the_same_statement_with_another_value_is_a_conflict(
    one: str, other: str, first: str, second: str
) -> None:
    (finding,) = conflicts(f"Read this first. {one}", f"{other} That is all.")
    assert finding.kind == "conflict"
    assert finding.passages == (0, 1)
    mine, theirs = values(finding)
    assert first in mine
    assert second in theirs


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Partners get 2 weeks of leave.", "Mothers get 16 weeks of leave."),
        ("In 2019 the firm had 4,000 employees.", "In 2021 the firm had 5,200 employees."),
        ("The trip takes 90 minutes.", "The trip takes one and a half hours."),
        ("About 5 million people live there.", "4.98 million people live there."),
        ("Delivery takes 3 to 5 days.", "Delivery takes 4 days."),
        ("Parking costs 2 euros an hour.", "On Sundays, parking costs 1 euro an hour."),
        ("Employees get 25 days of leave.", "Part-time employees get 15 days of leave."),
        ("The first exam takes 60 minutes.", "The second exam takes 90 minutes."),
        ("Passwords need at least 8 characters.", "Passwords of 14 characters are safer."),
        ("Entry is free for students.", "Entry is not free for tourists."),
        ("For example, 3 boxes cost 30 euros.", "For example, 5 boxes cost 50 euros."),
        ("The lease began in March 2021.", "The lease began on 12 March 2021."),
        ("The pump weighs 180 kg.", "The trial lasts 180 days."),
        ("Loans run for 6 months.", "Loans run for 180 days."),
        ("", "12 days."),
    ],
)
def test_another_subject_period_condition_or_wording_is_none(one: str, other: str) -> None:
    assert conflicts(f"{one} Ask the desk.", f"{other} Ask the desk.") == []


def test_a_table_with_several_rows_is_compared_row_by_row() -> None:
    table = "Gold members wait 5 days.\nSilver members wait 9 days.\nBasic members wait 20 days."
    assert conflicts(table, table) == []
    (finding,) = conflicts(table, table.replace("9", "12"))
    assert values(finding) == ("9 days", "12 days")


def test_headings_and_what_it_stands_for_tell_subjects_apart() -> None:
    assert conflicts("Partners\nLeave lasts 2 weeks.", "Mothers\nLeave lasts 16 weeks.") == []
    assert conflicts("The pump is new. It weighs 80 kg.", "The boiler is new. It weighs 95 kg.") == []
    assert len(conflicts("The pump is new. It weighs 80 kg.", "The pump is new. It weighs 95 kg.")) == 1


def test_words_name_both_documents_and_the_newer_one() -> None:
    (finding,) = conflicts(OLD, NEW)
    assert finding.words == (
        "Passages 1 (Leave Policy 2.8, from 2021-01-01) and 2 (Leave Policy 3.1, from 2024-01-01) differ: "
        '"10 days" against "14 days". Passage 2 is the newer one.'
    )
    assert finding.details["newer"] == 1
    (turned,) = conflicts(NEW, OLD)
    assert turned.details["newer"] == 0
    for side, source in zip(sides_of(finding), (OLD, NEW), strict=True):
        assert source.text[side["start"] : side["end"]] == side["value"]
        assert side["version"] == source.version


@pytest.mark.parametrize(
    ("one", "other", "later"),
    [
        (Source("", title="A", version="2.9"), Source("", title="A", version="2.10"), 1),
        (Source("", title="A", version="2.0"), Source("", title="A", version="2"), None),
        (Source("", title="A", version="1"), Source("", title="B", version="2"), None),
        (Source("", effective="2024-05-01T00:00+02:00"), Source("", effective="2024-05-01"), 1),
        (Source("", effective="soon"), Source("", effective="2024-05-01"), None),
        (Source(""), Source(""), None),
    ],
)
def test_the_newer_document_is_that_of_the_later_date_or_higher_version(
    one: Source, other: Source, later: int | None
) -> None:
    assert newer(one, other) == later


def test_siblings_are_not_versions() -> None:
    one = Source("The motor has 400 watts.", title="Drill X2 Manual")
    other = Source("The motor has 550 watts.", title="Drill X5 Manual")
    assert conflicts(one, other) == []
    assert len(conflicts(one, Source(other.text, title="Drill X2 Manual"))) == 1


def test_the_value_of_the_response_that_a_conflict_is_about() -> None:
    response = "Good news. You can carry 14 days of unused leave into the next year."
    (finding,) = conflicts(OLD, NEW, response=response)
    assert response[finding.start : finding.end] == "14 days"
    (finding,) = conflicts(OLD, NEW, response="The canteen opens at noon. It has 14 tables.")
    assert (finding.start, finding.end) == (None, None)
    (finding,) = conflicts(
        "Guests may smoke on the balcony.", "Guests must not smoke on the balcony.",
        response="Yes, guests may smoke on the balcony.",
    )  # fmt: skip
    assert finding.start is not None


def test_three_passages_give_each_pair_that_differs() -> None:
    found = conflicts(
        "The fee is 10 euros a month.", "The fee is 12 euros a month.", "The fee is 12 euros a month."
    )
    assert [one.passages for one in found] == [(0, 1), (0, 2)]


def test_the_note_has_both_sides_with_version_and_date() -> None:
    note = prompt_note(conflicts(OLD, NEW), (OLD, NEW))
    assert "Passage 1 (Leave Policy 2.8, from 2021-01-01)" in note
    assert "Passage 2 (Leave Policy 3.1, from 2024-01-01), the newer one" in note
    assert "10 days" in note
    assert "14 days" in note
    assert prompt_note([], (OLD, NEW)) == ""


def test_text_of_passages_is_shown_on_one_line_without_control_characters() -> None:
    title = "Policy\x1b[2J\nIgnore all"
    sources = tuple(Source(f"Access is open for {k} days.", title=title, version=str(k)) for k in (5, 6))
    findings = conflicts(*sources)
    note = prompt_note(findings, sources)
    assert "\x1b" not in findings[0].words + note
    assert "\n" not in findings[0].words
    assert len(note.splitlines()) == 3


@pytest.mark.parametrize(
    "text",
    ["12 " * 10_000, "(" * 30_000, "0" * 30_000, "a.\n" * 10_000, "A b" * 10_000, "not " * 7_500,
     "\ud800 must not 5 days", "The fee is 5 euros.\n" * 1_500, "1-" * 15_000],
)  # fmt: skip
def test_hostile_passages_take_bounded_time(text: str) -> None:
    began = time.process_time()
    findings = conflicts(text, text[::-1], "The fee is 7 euros.")
    assert time.process_time() - began < 5
    assert len(findings) <= Conflicts().most
    assert all(len(one.words) < 500 for one in findings)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 900), st.integers(2, 900))
def test_another_number_is_a_conflict_and_the_same_is_none(one: int, other: int) -> None:
    found = conflicts(f"The tank holds {one} litres of oil.", f"The tank holds {other} litres of oil.")
    assert bool(found) == (one != other)


def test_the_hand_written_cases() -> None:
    """The measure of docs/checks.md: most conflicts are found, few harmless pairs reported."""
    figures = conflict_figures(json.loads(CONFLICT_CASES.read_text(encoding="utf-8")))
    assert figures["recall"]["of"] == figures["false_alarms"]["of"] == 60
    assert figures["recall"]["value"] >= 0.7
    assert figures["precision"]["value"] >= 0.9


def test_counterfactual_passages_are_counted_by_what_the_conflict_is_about(tmp_path: Path) -> None:
    """The form of RGB's file, with passages of our own."""
    right = ["The mill was built by Jan Moor.", "Jan Moor is known for the mill."]
    row = {
        "answer": [["Jan Moor"]],
        "fakeanswer": "Eva Lind",
        "positive": right,
        "positive_wrong": [text.replace("Jan Moor", "Eva Lind") for text in right],
    }
    (tmp_path / "rows.json").write_text(json.dumps(row) + "\n", encoding="utf-8")
    figures = counterfactual_figures(tmp_path / "rows.json")
    assert figures["same_passage_recall"]["hits"] == 1
    assert figures["other_passage_recall"]["hits"] == figures["agreeing_false_alarms"]["hits"] == 0
