"""The page of a run: every failure in full, and nothing in it is obeyed."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from lrp4rag.guard.redteam.record import record
from lrp4rag.guard.redteam.tables import page
from lrp4rag.guard.redteam.targets import run
from tests.guard.redteam.conftest import Scripted, answered, case
from tests.hostile.pages import harmless
from tests.hostile.strings import IN_PAGES


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(f"{tag} {sorted(name for name, _ in attrs)}")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(text: str) -> _Tags:
    found = _Tags()
    found.feed(text)
    return found


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
    assert read(made(value)).tags == read(made(harmless(value))).tags
    assert not {tag.split()[0] for tag in read(made(value)).tags} & {"script", "img", "a", "iframe"}


def test_a_failure_is_told_in_full() -> None:
    one = case("first-01", passages=[{"text": "It is 31.", "title": "Guide", "version": "2"}])
    results = list(run([one, case("second-02")], Scripted(**{"first-01": answered("serve")})))
    text = page(record(results, Scripted(), 3.0), results)
    words = " ".join(" ".join(read(text).words).split())
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
    assert "All cases are as expected." not in words


def test_nothing_runs_in_it() -> None:
    text = made("x")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
