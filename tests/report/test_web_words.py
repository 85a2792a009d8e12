"""Pages and terminal have words and colours for all that they may have to say."""

from __future__ import annotations

import re
from typing import get_args

from lrp4rag.classifiers.verdict import FLAGGED
from lrp4rag.guard.checks.registry import CHECKS
from lrp4rag.guard.policy import ACTIONS, WITHHELD, Reason
from lrp4rag.report.decision import ACTION_STYLES
from lrp4rag.report.templates import asset

WORDS = asset("words.js")


def keys_of(name: str) -> list[str]:
    """Of an object in the page's words."""
    (body,) = re.findall(rf"const {name} = {{\n(.*?)\n  }};", WORDS, re.DOTALL)
    return [quoted or bare for quoted, bare in re.findall(r'^ +(?:"([^"]+)"|(\w+)):', body, re.MULTILINE)]


def test_the_page_has_words_for_all_actions_reasons_and_findings() -> None:
    assert keys_of("DONE") == keys_of("WOULD") == list(ACTIONS)
    assert sorted(keys_of("WHY")) == sorted(get_args(Reason))
    assert {name.split(": ")[0] for name in keys_of("FOUND")} == set(CHECKS) - {"facts"}


def test_each_action_has_a_colour_on_terminals_and_pages() -> None:
    assert list(ACTION_STYLES) == list(ACTIONS)
    assert set(re.findall(r"\.action\.(\w+) {", asset("server.css"))) == set(ACTIONS)
    (withheld,) = re.findall(r"const WITHHELD = new Set\(\[(.*)\]\)", WORDS)
    assert set(re.findall(r"\w+", withheld)) == set(WITHHELD)


def test_the_page_has_the_statuses_of_suspect_sentences() -> None:
    (flagged,) = re.findall(r"const FLAGGED = \[(.*)\]", WORDS)
    assert re.findall(r"\w+", flagged) == list(FLAGGED)
    assert set(FLAGGED) <= set(re.findall(r"(\w+): ", re.findall(r"const DOUBTED = {(.*)}", WORDS)[0]))
