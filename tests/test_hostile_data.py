"""Rows that are wrong, huge or odd: refused by file, line and field, or read as they are."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.data import load_examples, read_text
from lrp4rag.example import LONGEST_EXAMPLE, LONGEST_NAME, Example, Label
from lrp4rag.util.errors import LONGEST, InputError
from tests.hostile.strings import TEXTS, obeyed

GOOD: dict[str, Any] = {"question": "When?", "passages": ["In 1874."], "response": "It was 1874."}
FINITE = st.floats(allow_nan=False, allow_infinity=False)
DEEP = "[" * 100_000 + "]" * 100_000


def refused(content: str | bytes, folder: Path) -> InputError:
    path = folder / "data.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError) as caught:
        load_examples(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < LONGEST + 1000
    return caught.value


def row(**changes: Any) -> str:
    return json.dumps({**GOOD, **changes})


BAD_LABELS: list[tuple[dict[str, Any], str]] = [
    ({"kind": "\ud800"}, "lone surrogate"),
    ({"kind": "x" * 2000}, "2,000 characters"),
    *(({"start": value}, "integer") for value in (True, 0.0, "0")),
    ({"implicit_true": "yes"}, "boolean"),
    *((span, "lies outside") for span in ({"start": -1}, {"start": 2, "end": 1}, {"end": 10**30})),
]
BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    *(({"question": text}, "the question is empty") for text in ("", " \n\t")),
    ({"template": ""}, "must contain {context} exactly once"),
    *(
        ({name: "a\udfff"}, "lone surrogate")
        for name in ("id", "source_id", "generator", "question", "response", "prompt")
    ),
    ({"passages": ["\ud800"]}, "lone surrogate"),
    ({"template": "\ud800{context}{question}"}, "lone surrogate"),
    ({"id": "x" * (LONGEST_NAME + 1)}, "1,001 characters"),
    *(({name: "x" * 10**6}, "1,000,000 characters") for name in ("source_id", "generator")),
    ({"passages": ["x" * (LONGEST_EXAMPLE + 1)]}, "at most 10,000,000 are read"),
    ({"x" * 10**6: 1}, "no such field"),
    *(({"labels": [{"start": 0, "end": 2, **label}]}, message) for label, message in BAD_LABELS),
]
PASSAGES_AND = '{"passages": ["x"], "question": %s}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (PASSAGES_AND % '"a", "question": "b"', "'question' stands twice"),
        (PASSAGES_AND % '"a", "labels": [{"start": 0, "end": 1, "end": 2}]', "'end' stands twice"),
        (PASSAGES_AND % "NaN", "NaN is no number"),
        (PASSAGES_AND % "-Infinity", "-Infinity is no number"),
        (PASSAGES_AND % "1e999", "too large for a number"),
        (PASSAGES_AND % ("9" * 5000), "invalid JSON"),
        (PASSAGES_AND % DEEP, "nested too deeply"),
        (f"[{PASSAGES_AND % DEEP}]", "nested too deeply"),
        (b"\x00", "invalid JSON"),
        *((row(**change), message) for change, message in BAD_FIELDS),
    ],
)
def test_a_bad_row_is_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    assert message in str(refused(content, tmp_path))


@pytest.mark.parametrize("field", ["id", "source_id", "generator", "question", "response"])
def test_odd_text_is_read_as_it_is(field: str, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    for text in TEXTS:
        path.write_text(row(**{field: f"a{text}"}), encoding="utf-8")
        (example,) = load_examples(path)
        assert getattr(example, "source" if field == "source_id" else field) == f"a{text}"


def test_messages_show_odd_names_and_obey_none(tmp_path: Path) -> None:
    for text in TEXTS:
        for content in (row(**{text: 1}), f"{row(id=text)}\n{row(id=text)}"):
            assert not obeyed(str(refused(content, tmp_path)).replace(str(tmp_path), ""))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_json_is_a_row_or_refused(value: Any) -> None:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        Path(file.name).write_text(json.dumps({**GOOD, "labels": value}))
        with suppress(InputError):
            load_examples(file.name)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(content: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        Path(file.name).write_bytes(content)
        with pytest.raises(InputError, match=file.name):
            load_examples(file.name)


# Files that are none; see test_damaged for more.


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="this is a pipe, not a file; to read a pipe, give - and redirect"):
        load_examples(tmp_path / "pipe")
    with pytest.raises(InputError, match="this is a pipe"):
        read_text(tmp_path / "pipe")


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "/nowhere/x", "", "\0"])
def test_devices_and_names_of_nothing(path: str) -> None:
    with pytest.raises(InputError):
        load_examples(path)


def test_a_shells_pipe_can_be_read() -> None:
    out, into = os.pipe()
    os.write(into, row().encode())
    os.close(into)
    try:
        assert load_examples(f"/dev/fd/{out}")[0].question == "When?"
    finally:
        os.close(out)


# The library.


@pytest.mark.parametrize("field", ["id", "source", "generator"])
def test_names_of_the_library_are_checked_too(field: str) -> None:
    for name in ("\ud800", "x" * (LONGEST_NAME + 1)):
        with pytest.raises(InputError):
            Example(question="Q", passages=["P"], **{field: name})
    with pytest.raises(InputError, match="lone surrogate"):
        Example(question="Q", passages=["P"], response="R", labels=(Label(0, 1, "\ud800"),))
    with pytest.raises(InputError, match="the question is empty"):
        Example(question=" ", passages=["P"])
    assert Example(question="", passages=["P"], prompt="P").question == ""


# JSON of our own.
