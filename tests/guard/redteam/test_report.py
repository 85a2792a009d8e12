"""Runs as JSON, as a table, and as a page: every failure in full, and nothing in it is obeyed."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from lrp4rag.guard.redteam.report import below, page, record, rows
from lrp4rag.guard.redteam.targets import run
from tests.guard.redteam.conftest import Scripted, answered, case
from tests.hostile.pages import harmless
from tests.hostile.strings import IN_PAGES

CASES = [
    case("a"),
    case("b", kind="tables"),
    case("c", kind="tables", expected=["serve", "mark"]),
    case("d", kind="my own"),
]


def recorded(**answers) -> dict[str, Any]:
    target = Scripted(**answers)
    return record(list(run(CASES, target)), target, 1.25)


FIRST = recorded(a=answered(), b=answered("serve"), c=answered("serve"))


def test_what_is_not_judged_has_not_passed() -> None:
    by = {row["id"]: row for row in FIRST["results"]}
    assert [row["passed"] for row in FIRST["results"]] == [True, False, True, False]
    assert (by["d"]["action"], by["d"]["error"]) == (None, "too long")
    assert by["a"]["findings"] == ["It has 31."]
    assert FIRST["versions"] == {"package": "1", "policy": "p"}


def test_kinds_have_shares_with_wilson_s_intervals() -> None:
    tables = FIRST["kinds"]["tables"]
    assert (tables["every"]["passed"], tables["every"]["cases"]) == (1, 2)
    assert (tables["every"]["low"], tables["every"]["high"]) == pytest.approx((0.0945, 0.9055), abs=1e-4)
    assert (tables["harmful"]["passed"], tables["harmless"]["passed"]) == (0, 1)
    assert FIRST["kinds"]["all"]["every"]["passed"] == 2
    assert FIRST["kinds"]["my own"]["harmless"]["share"] is None
    assert [cells[0] for cells in rows(FIRST)] == [
        "conflicting documents", "attack: tables", "my own", "all"
    ]  # fmt: skip
    assert rows(FIRST)[1] == ("attack: tables", "1 of 2", "0.50 [0.09, 0.91]", "0 of 1", "1 of 1")
    assert below(FIRST, 0.5) == ["my own: 0.00"]


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(f"{tag} {sorted(name for name, _ in attrs)}")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def made(value: str) -> str:
    """A page in which it stands wherever a case or a target can put it."""
    named = value or "x"
    passage = {"text": named, "title": value, "version": value, "score": 0.5}
    one = case(
        named[:100], kind=named[:100], question=named, passages=[passage], domain=value[:100], why=value
    )
    bad = answered("serve", reason=value, rule=value, findings=(value,), shown=value)
    target = Scripted(**{one.id: bad})
    target.name, target.versions = named, {named: value}
    results = list(run([one, case("failing", kind=named[:100])], target))
    found = record(results, target, 1.0)
    return page(found, results)


@pytest.mark.parametrize("value", [one for one in IN_PAGES if one.strip()])
def test_hostile_text_is_text(value: str) -> None:
    tags = Page(made(value)).tags
    assert tags == Page(made(harmless(value))).tags
    assert not {tag.split()[0] for tag in tags} & {"script", "img", "a", "iframe"}


def test_a_failure_is_told_in_full() -> None:
    one = case("first-01", passages=[{"text": "It is 31.", "title": "Guide", "version": "2"}])
    results = list(run([one, case("second-02")], Scripted(**{"first-01": answered("serve")})))
    text = page(record(results, Scripted(), 3.0), results)
    words = " ".join(" ".join(Page(text).words).split())
    for told in (
        "first-01: serve , expected escalate or withhold",
        "How tall is it?",
        "1. title: Guide, version: 2 It is 31.",
        "It is 13 metres tall.",
        "31, not 13.",
        "serve: knowledge gap",
        "decided by bands[4], probability 0.90, faithfulness 0.00, fact score 0.50",
        "It has 31.",
        "second-02: not judged",
        "not judged: too long",
    ):
        assert told in words


def test_nothing_runs_in_it() -> None:
    text = made("x")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
