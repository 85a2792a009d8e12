"""Versions, and which is newer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.guard.checks.gate.versions import edition_of, named_versions, read_version, without_version
from lrp4rag.source import Source


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("v2.8", "3.1"),
        ("2.9", "2.10"),
        ("Version 9", "version 10"),
        ("2023-12", "2024-01"),
        ("2024-05-01", "20240601"),
        ("2024-Q3", "2024-Q4"),
        ("2023", "2024-05"),
        ("rev B", "Rev. C"),
        ("B", "C"),
        ("second edition", "3rd ed"),
        ("2.8a", "2.8b"),
        ("3.1 (draft)", "3.1 (final)"),
        ("3.1-rc1", "v3.1"),
        ("3.0", "3.1, approved 2024-01-01"),
        ("Stand: 2023-05", "Stand: 2024-05"),
    ],
)
def test_a_version_is_newer_than_another(older: str, newer: str) -> None:
    one, other = read_version(older), read_version(newer)
    assert one is not None
    assert other is not None
    assert other.is_newer(one)
    assert not one.is_newer(other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2.8", "v2.8", True),
        ("2.0", "2", True),
        ("Rev B", "b", True),
        ("2nd edition", "2", True),
        ("Rev B", "3.1", False),
        ("2022-03", "3.1", False),
        ("B", "2024", False),
    ],
)
def test_of_equal_versions_and_of_two_kinds_none_is_newer(one: str, other: str, same: bool) -> None:
    first, second = read_version(one), read_version(other)
    assert first is not None
    assert second is not None
    assert (first == second) is same
    assert not first.is_newer(second)
    assert not second.is_newer(first)


@pytest.mark.parametrize("draft", ["3.1-draft", "4.0 (draft)", "3.1rc1", "v2.0-beta", "Draft 3"])
def test_drafts_are_told(draft: str) -> None:
    edition = read_version(draft)
    assert edition is not None
    assert edition.is_draft


@pytest.mark.parametrize(
    "text", ["", "  ", "latest", "draft", "3.x", "\u0661.\u0662", "1" * 5000, "\ud800", "AA"]
)
def test_what_is_no_version_is_none(text: str) -> None:
    assert read_version(text) is None


def test_a_version_is_read_from_title_or_id_only_where_it_is_marked() -> None:
    assert edition_of(Source("a", title="Travel Policy v2.8")) == read_version("2.8")
    assert edition_of(Source("a", id="travel-policy_rev-c.pdf")) == read_version("C")
    assert edition_of(Source("a", title="Handbook (second edition)")) == read_version("2")
    assert edition_of(Source("a", version="3", title="Policy v2")) == read_version("3")
    assert edition_of(Source("a", title="Annual Report 2023", id="handbook-4.2")) is None
    assert edition_of(Source("a")) is None


def test_a_question_names_versions() -> None:
    named = [read_version("2.8"), read_version("3.1")]
    assert list(named_versions("How do v2.8 and Version 3.1 differ?")) == named
    assert not list(named_versions("Do I get a refund of 2.8 EUR?"))


@pytest.mark.parametrize(
    ("text", "version", "words"),
    [
        ("HR Policy v2.8", None, "hr policy"),
        ("HR Policy (Version 2.8)", "2.8", "hr policy"),
        ("hr_policy-2.8.pdf", "2.8", "hr policy pdf"),
        ("hr-policy-2-8", "2.8", "hr policy"),
        ("hr-policy-2.8", "v2.8", "hr policy"),
        ("HR Policy 2024", "2024", "hr policy"),
        ("HR Policy 2024", None, "hr policy 2024"),
        ("Handbook, 2nd edition", None, "handbook"),
        ("Stra\u00dfe", None, "strasse"),
        ("HR Policy", "HR", "hr policy"),
    ],
)
def test_a_name_without_its_version(text: str, version: str | None, words: str) -> None:
    assert without_version(text, version) == words


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_string_is_read_or_not(one: str, other: str) -> None:
    first, second = read_version(one), read_version(other)
    if first is not None and second is not None:
        assert not (first.is_newer(second) and second.is_newer(first))
    assert len(list(named_versions(one))) <= len(one)
    assert "  " not in without_version(one, other)
