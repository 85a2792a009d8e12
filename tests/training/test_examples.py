"""Examples in a store: everything comes back, and what is no example is named by its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lrp4rag.errors import InputError
from lrp4rag.example import Example, Label
from lrp4rag.training.manifest import dump_examples, parse_examples
from tests.tiny import bridge_example

EXAMPLES = [
    bridge_example(),
    bridge_example(1, response="Öffnung\r\n 1901 \u2028 früh 🌉", labels=(Label(0, 7, "conflict", True),)),
    bridge_example(2, labels=(), source="s", generator="g"),
    bridge_example(3, response=None),
    Example(question="", passages=["Only\nthis."], prompt="Only\nthis.", response="Yes."),
]


PATH = Path("examples.jsonl")


def test_what_is_read_is_what_was_written() -> None:
    content = dump_examples(EXAMPLES)
    assert parse_examples(content, PATH) == EXAMPLES
    lines = content.decode().split("\n")
    assert [json.loads(line)["id"] for line in lines[:-1]] == [example.id for example in EXAMPLES]
    assert lines[-1] == ""


def test_no_examples() -> None:
    assert parse_examples(dump_examples([]), PATH) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{oops", r"line 2: Invalid JSON"),
        (b"", r"line 2: Invalid JSON"),
        (b"\xff\xfe", r"line 2: Invalid JSON"),
        (b"[" * 100_000, r"line 2: Invalid JSON"),
        (b"[1, 2]", r"line 2: Input should be an object"),
        (b'{"question": "Q", "passages": ["P"], "response": "R"}', r"line 2, field 'id': Field required"),
        (b'{"id": 3}', r"line 2, field 'id': Input should be a valid string"),
    ],
)
def test_what_is_no_example_is_named_by_its_line(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=rf"examples\.jsonl, {message}"):
        parse_examples(dump_examples(EXAMPLES[:1]) + line + b"\n", PATH)


def test_a_line_that_was_cut_off() -> None:
    with pytest.raises(InputError, match=r"examples\.jsonl, line 2: Invalid JSON"):
        parse_examples(dump_examples(EXAMPLES[:2])[:-30], PATH)
