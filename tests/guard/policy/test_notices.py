"""Notices leave the Markdown around them whole."""

from __future__ import annotations

import pytest

from lrp4rag.guard.policy.answer import in_place, marked, says_nothing
from lrp4rag.util.sentences import SentenceStream

NOTICE = "[withheld]"


def shown(text: str, change, words: str) -> str:
    stream = SentenceStream()
    pieces = [*stream.feed(text), *stream.end()]
    return "".join(change(one, words) if "WRONG" in one.text else one.text for one in pieces)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is. It is WRONG. It is.", "It is. [withheld] It is."),
        ("- one\n- WRONG\n- three\n", "- one\n- [withheld]\n- three\n"),
        ("1. one.\n2. WRONG thing\n", "1. one.\n2. [withheld]\n"),
        ("| a | b |\n|---|---|\n| 1 | WRONG |\n", "| a | b |\n|---|---|\n| [withheld] ||\n"),
        ("```python\nx = WRONG\n```\nEnd.", "```python\n[withheld]\n```\nEnd."),
        ("```WRONG\nx\n```\nEnd.", "```\n[withheld]\nx\n```\nEnd."),
    ],
)
def test_a_notice_in_its_place(text: str, expected: str) -> None:
    assert shown(text, in_place, NOTICE) == expected


def test_a_notice_that_stands_already_leaves_the_fence() -> None:
    assert shown("```WRONG\nx\n```\n", in_place, "") == "```\nx\n```\n"
    assert shown("It is WRONG. It is.", in_place, "") == "It is."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is WRONG. It is.", "It is WRONG. (!) It is."),
        ("| 1 | WRONG |\n", "| 1 | WRONG (!) |\n"),
        ("```WRONG\nx\n", "```WRONG\nx\n"),
    ],
)
def test_a_mark(text: str, expected: str) -> None:
    assert shown(text, marked, " (!)") == expected


@pytest.mark.parametrize(
    ("text", "nothing"),
    [("```\n", True), ("|---|:--|\n", True), ("---\n", True), ("1\n", False), ("✓\n", False)],
)
def test_marks_of_markdown_say_nothing(text: str, nothing: bool) -> None:
    (piece,) = SentenceStream().feed(text + "x")[:1]
    assert says_nothing(piece) is nothing
