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

from lrp4rag import strict_json
from lrp4rag.data import load_examples, read_text
from lrp4rag.errors import LONGEST, InputError
from lrp4rag.example import LONGEST_EXAMPLE, LONGEST_NAME, Example, Label
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"question": "a", "question": "b", "passages": ["x"]}', "'question' stands twice"),
        (
            '{"question": "a", "passages": ["x"], "labels": [{"start": 0, "end": 1, "end": 2}]}',
            "'end' stands twice",
        ),
        ('{"question": NaN, "passages": ["x"]}', "NaN is no number"),
        ('{"question": -Infinity, "passages": ["x"]}', "-Infinity is no number"),
        ('{"question": 1e999, "passages": ["x"]}', "too large for a number"),
        (f'{{"question": {"9" * 5000}, "passages": ["x"]}}', "invalid JSON"),
        (f'{{"question": {DEEP}}}', "nested too deeply"),
        (f'[{{"question": "a", "passages": {DEEP}}}]', "nested too deeply"),
        (row(question=""), "the question is empty"),
        (row(question=" \n\t"), "the question is empty"),
        (row(template=""), "must contain {context} exactly once"),
        (row(template="{question}{question}{context}"), "exactly once"),
        (row(id="\ud800"), "lone surrogate"),
        (row(source_id="a\udfff"), "lone surrogate"),
        (row(generator="\udc80b"), "lone surrogate"),
        (row(labels=[{"start": 0, "end": 2, "kind": "\ud800"}]), "lone surrogate"),
        (row(question="\ud800"), "lone surrogate"),
        (row(passages=["\ud800"]), "lone surrogate"),
        (row(response="\ud800"), "lone surrogate"),
        (row(prompt="\ud800"), "lone surrogate"),
        (row(template="\ud800{context}{question}"), "lone surrogate"),
        (row(id="x" * (LONGEST_NAME + 1)), "1,001 characters"),
        (row(source_id="x" * 10**6), "1,000,000 characters"),
        (row(generator="x" * 10**6), "1,000,000 characters"),
        (row(labels=[{"start": 0, "end": 2, "kind": "x" * 2000}]), "2,000 characters"),
        (row(passages=["x" * (LONGEST_EXAMPLE + 1)]), "at most 10,000,000 are read"),
        (row(**{"x" * 10**6: 1}), "not permitted"),
        (row(id=3), "string"),
        (row(id=None, labels=[{"start": True, "end": 2}]), "integer"),
        (row(labels=[{"start": 0.0, "end": 2}]), "integer"),
        (row(labels=[{"start": "0", "end": 2}]), "integer"),
        (row(labels=[{"start": 0, "end": 2, "implicit_true": "yes"}]), "boolean"),
        (row(labels=[{"start": -1, "end": 2}]), "lies outside"),
        (row(labels=[{"start": 2, "end": 1}]), "lies outside"),
        (row(labels=[{"start": 0, "end": 10**30}]), "lies outside"),
        (row(labels="none"), "list"),
        (b'\xff\xfe{"question"', "invalid UTF-8"),
        (b"\x00", "invalid JSON"),
        ("[[]]", "expected a JSON object"),
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.json"
        path.write_text(json.dumps({**GOOD, "labels": value}))
        with suppress(InputError):
            load_examples(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.json"
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"data\.json"):
            load_examples(path)


# RAGTruth.

SOURCE = {
    "source_id": "1",
    "task_type": "QA",
    "source_info": {"question": "When?", "passages": "passage 1:In 1874."},
    "prompt": "When? passage 1:In 1874.",
}
LABEL = {"start": 0, "end": 2, "label_type": "Evident Conflict", "implicit_true": False}
RESPONSE = {"id": "1", "source_id": "1", "model": "m", "labels": [LABEL], "response": "It was 1874."}


def ragtruth(folder: Path, sources: list[Any], responses: list[Any]) -> Path:
    for name, rows in (("source_info.jsonl", sources), ("response.jsonl", responses)):
        (folder / name).write_text("".join(json.dumps(one) + "\n" for one in rows))
    return folder


def test_ragtruth_as_it_is(tmp_path: Path) -> None:
    (example,) = load_examples(ragtruth(tmp_path, [SOURCE], [RESPONSE]))
    assert example.labels == (Label(0, 2, "Evident Conflict"),)


@pytest.mark.parametrize(
    ("label", "field"),
    [
        ({"start": "0"}, "labels[0].start"),
        ({"start": 0.0}, "labels[0].start"),
        ({"end": 2.5}, "labels[0].end"),
        ({"start": False}, "labels[0].start"),
        ({"implicit_true": "yes"}, "labels[0].implicit_true"),
        ({"implicit_true": 1}, "labels[0].implicit_true"),
        ({"label_type": 3}, "labels[0].label_type"),
        ({"label_type": "\ud800"}, "labels[0].kind"),
        ({"start": -1}, "labels[0]"),
        ({"end": 99}, "labels[0]"),
    ],
)
def test_ragtruths_labels_are_strict(label: dict[str, Any], field: str, tmp_path: Path) -> None:
    folder = ragtruth(tmp_path, [SOURCE], [{**RESPONSE, "labels": [{**LABEL, **label}]}])
    with pytest.raises(InputError) as caught:
        load_examples(folder)
    assert caught.value.field == field
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("sources", "responses", "message"),
    [
        ([SOURCE, SOURCE], [RESPONSE], "duplicate source_id '1' (first on line 1)"),
        ([SOURCE], [RESPONSE, RESPONSE], "duplicate id '1' (first on line 1)"),
        ([SOURCE], [{**RESPONSE, "source_id": "2"}], "no source '2'"),
        ([SOURCE], [{**RESPONSE, "model": "\ud800"}], "lone surrogate"),
        ([SOURCE], [{**RESPONSE, "id": "\ud800"}], "lone surrogate"),
        ([{**SOURCE, "task_type": "\x1b[2J"}], [RESPONSE], "is not supported"),
        ([{**SOURCE, "source_info": 3}], [RESPONSE], "this must be"),
        ([{**SOURCE, "prompt": None}], [RESPONSE], "string"),
        ([], [RESPONSE], "no source"),
        ([SOURCE], [], "no examples"),
    ],
)
def test_ragtruths_rows(sources: list[Any], responses: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_examples(ragtruth(tmp_path, sources, responses))
    assert message in str(caught.value)


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


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', "NaN", "[Infinity]", "1e400", "{", DEEP, "", "\ud800"])
def test_strict_json(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any message
        strict_json.parse(text)


@given(st.dictionaries(st.text(), st.integers() | FINITE | st.text()))
def test_a_sealed_record_is_whole_and_a_changed_one_is_not(record: dict[str, Any]) -> None:
    record.pop(strict_json.SEAL, None)
    sealed = strict_json.parse(json.dumps(strict_json.sealed(record)))
    strict_json.require_seal(sealed, "x", "it")
    for changed in ({**sealed, "more": 1}, {**sealed, strict_json.SEAL: "0" * 64}, dict(record)):
        with pytest.raises(InputError, match="was changed or is damaged"):
            strict_json.require_seal(changed, "x", "it")
