"""Reading examples: JSONL, JSON, standard input, RAGTruth; every error names file, line and field."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from lrp4rag.data import load_examples, select
from lrp4rag.errors import InputError
from lrp4rag.example import Example, Label

ROW = {"question": "When?", "passages": ["It was in 1901.", "Not later."], "response": "In 1901."}


def row(**changes: object) -> dict[str, object]:
    """A valid row; a change to `...` takes the field away."""
    return {key: value for key, value in (ROW | changes).items() if value is not ...}


def jsonl(*rows: object) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows)


def write(folder: Path, content: str | bytes, name: str = "data.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def error_of(path: Path | str, **options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        load_examples(path, **options)
    return caught.value


# Forms.

THREE = [row(id="a"), row(question="Wo ist 東京?", response=...), row(passages=["x"], response="y", id="c")]


@pytest.mark.parametrize(
    "content",
    [
        jsonl(*THREE),
        jsonl(*THREE).rstrip("\n"),
        jsonl(*THREE).replace("\n", "\r\n"),
        "\ufeff" + jsonl(*THREE),
        json.dumps(THREE),
        json.dumps(THREE, indent=2),
    ],
    ids=["jsonl", "no last newline", "windows", "byte order mark", "array", "indented array"],
)
def test_forms_of_a_file(content: str, tmp_path: Path) -> None:
    examples = load_examples(write(tmp_path, content))
    assert [example.id for example in examples] == ["a", "2", "c"]
    assert [example.question for example in examples] == ["When?", "Wo ist 東京?", "When?"]
    assert [example.response for example in examples] == ["In 1901.", None, "y"]
    assert examples[0] == Example(**ROW, id="a")


@pytest.mark.parametrize("indent", [None, 2])
def test_one_object(indent: int | None, tmp_path: Path) -> None:
    (example,) = load_examples(write(tmp_path, json.dumps(row(), indent=indent), "one.json"))
    assert example == Example(**ROW, id="1")


def test_blank_lines_count_but_hold_no_example(tmp_path: Path) -> None:
    examples = load_examples(write(tmp_path, f"\n{jsonl(row())}\n  \n{jsonl(row())}\n"))
    assert [example.id for example in examples] == ["2", "5"]


def test_unusual_line_separators_inside_strings(tmp_path: Path) -> None:
    """U+2028 and U+0085 are line ends to `str.splitlines`, but not to JSON."""
    odd = row(passages=["one\u2028two\u0085three\x0bfour"])
    examples = load_examples(
        write(
            tmp_path, json.dumps(odd, ensure_ascii=False).replace("\\u000b", "\\u000b") + "\n" + jsonl(row())
        )
    )
    assert examples[0].passages == ("one\u2028two\u0085three\x0bfour",)
    assert examples[1].id == "2"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(jsonl(*THREE).encode()), encoding="ascii"))
    assert [example.id for example in load_examples("-")] == ["a", "2", "c"]


def test_errors_in_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{}\n")))
    assert str(error_of("-")).startswith("standard input, line 1, field 'question'")


def test_all_fields(tmp_path: Path) -> None:
    full = row(
        id="r1",
        source_id="s1",
        generator="llama",
        prompt="It was in 1901. Not later. When? Answer:",
        labels=[{"start": 0, "end": 2, "kind": "conflict", "implicit_true": True}, {"start": 3, "end": 7}],
    )
    (example,) = load_examples(write(tmp_path, jsonl(full)))
    assert (example.id, example.source, example.generator) == ("r1", "s1", "llama")
    assert example.prompt == full["prompt"]
    assert example.labels == (Label(0, 2, "conflict", True), Label(3, 7))


@pytest.mark.parametrize(("labels", "expected"), [(..., None), (None, None), ([], ())])
def test_labels_that_are_absent_and_labels_that_are_empty(
    labels: object, expected: object, tmp_path: Path
) -> None:
    (example,) = load_examples(write(tmp_path, jsonl(row(labels=labels))))
    assert example.labels == expected


def test_sources_are_the_content_where_none_is_given(tmp_path: Path) -> None:
    one, same, other = load_examples(write(tmp_path, jsonl(row(), row(response="No."), row(question="Who?"))))
    assert one.source == same.source != other.source


def test_templates(tmp_path: Path) -> None:
    """A row's own template or prompt goes before the one that is given."""
    own = row(template="{question}|{context}")
    given = row(prompt="It was in 1901. Not later. When?")
    examples = load_examples(write(tmp_path, jsonl(row(), own, given)), template="T {context} {question}")
    assert examples[0].prompt == "T passage 1:It was in 1901.\n\npassage 2:Not later. When?"
    assert examples[1].prompt == "When?|passage 1:It was in 1901.\n\npassage 2:Not later."
    assert examples[2].prompt == "It was in 1901. Not later. When?"


def test_braces_in_passages_are_text(tmp_path: Path) -> None:
    (example,) = load_examples(write(tmp_path, jsonl(row(passages=["{question} {x} {{}}"]))))
    (span,) = [span for span in example.spans if span.kind == "passage"]
    assert example.prompt[span.start : span.end] == "{question} {x} {{}}"


# Errors in a row: path, line and field.


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (row(question=...), "question"),
        (row(passages=...), "passages"),
        (row(passages=[]), "passages"),
        (row(passages="text"), "passages"),
        (row(passages=["one", 2]), "passages[1]"),
        (row(passages=["one", " "]), "passages[1]"),
        (row(question=3), "question"),
        (row(question=None), "question"),
        (row(response=5), "response"),
        (row(response=""), "response"),
        (row(response=" \n"), "response"),
        (row(id=7), "id"),
        (row(answer="x"), "answer"),
        (row(labels={"start": 0, "end": 1}), "labels"),
        (row(labels=[{"start": 0}]), "labels[0].end"),
        (row(labels=[{"start": 0, "end": 1}, {"start": "0", "end": 1}]), "labels[1].start"),
        (row(labels=[{"start": 0.5, "end": 1}]), "labels[0].start"),
        (row(labels=[{"start": 0, "end": 1, "text": "I"}]), "labels[0].text"),
        (row(labels=[{"start": 0, "end": 9}]), "labels[0]"),
        (row(labels=[{"start": 2, "end": 2}]), "labels[0]"),
        (row(labels=[], response=...), "labels"),
        (row(prompt="When?"), "passages[0]"),
        (row(prompt="It was in 1901. Not later."), "question"),
        (row(template="{context}"), "template"),
        ([1, 2], None),
        ("text", None),
        (None, None),
    ],
    ids=lambda value: json.dumps(value)[:60] if not isinstance(value, str) else value,
)
def test_a_bad_row(bad: object, field: str | None, tmp_path: Path) -> None:
    path = write(tmp_path, jsonl(row(), row()) + "\n" + jsonl(bad, row()))
    error = error_of(path)
    assert (error.path, error.line, error.field) == (path, 4, field)
    where = f"{path}, line 4" + (f", field '{field}'" if field else "")
    assert str(error).startswith(f"{where}: ")
    assert str(error).count("field '") <= 1  # named once, not by every layer
    assert error.exit_code == 2


def test_a_bad_element_of_an_array(tmp_path: Path) -> None:
    error = error_of(write(tmp_path, f"[\n{jsonl(row())},\n{jsonl(row(question=...))}]"))
    assert error.field == "question"
    assert error.line == 4


def test_a_template_given_without_placeholders(tmp_path: Path) -> None:
    error = error_of(write(tmp_path, jsonl(row())), template="Answer!")
    assert error.field == "template"


@pytest.mark.parametrize("broken", ['{"question": ', "{'question': 1}", "{} {}", "plain text", '{"a": "\t"}'])
def test_invalid_json_names_the_line(broken: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"{jsonl(row(), row())}{broken}\n{jsonl(row())}")
    error = error_of(path)
    assert (error.path, error.line) == (path, 3)
    assert "invalid JSON" in str(error)


def test_invalid_json_in_an_array_names_the_line(tmp_path: Path) -> None:
    error = error_of(write(tmp_path, "[\n{},\n{broken}\n]"))
    assert error.line == 3
    assert "invalid JSON" in str(error)


def test_json_nested_too_deep(tmp_path: Path) -> None:
    error = error_of(write(tmp_path, jsonl(row()) + "[" * 200_000 + "\n"))
    assert error.line == 2


@pytest.mark.parametrize(
    ("content", "line"), [(b"\xff\xfe{}", 1), (jsonl(row(), row()).encode() + b'{"question": "\xe9"}\n', 3)]
)
def test_invalid_utf8_names_the_line(content: bytes, line: int, tmp_path: Path) -> None:
    error = error_of(write(tmp_path, content))
    assert error.line == line
    assert "UTF-8" in str(error)


def test_half_a_surrogate_pair(tmp_path: Path) -> None:
    """JSON can hold what is no text; tokenizers and files then fail far from the line that has it."""
    error = error_of(
        write(tmp_path, jsonl(row()) + '{"question": "\\ud83d", "passages": ["a"], "response": "b"}\n')
    )
    assert (error.line, error.field) == (2, "question")


@pytest.mark.parametrize("ids", [("a", "a"), (..., "1"), ("2", ...)])
def test_a_duplicate_id(ids: tuple[object, object], tmp_path: Path) -> None:
    """Also between a given id and the line number that stands for an absent one."""
    error = error_of(write(tmp_path, jsonl(*(row(id=one) for one in ids))))
    assert (error.line, error.field) == (2, "id")
    assert "first on line 1" in str(error)


@pytest.mark.parametrize("content", ["", "\n\n", "[]", "\ufeff"])
def test_a_file_without_examples(content: str, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    assert str(error_of(path)) == f"{path}: no examples"


def test_a_missing_file(tmp_path: Path) -> None:
    assert (
        str(error_of(tmp_path / "nowhere.jsonl"))
        == f"{tmp_path / 'nowhere.jsonl'}: no such file or directory"
    )


def test_select(tmp_path: Path) -> None:
    examples = load_examples(write(tmp_path, jsonl(*THREE)))
    assert select(examples, "c", "data.jsonl") is examples[2]
    with pytest.raises(InputError, match=r"data\.jsonl: no example with id 'd'"):
        select(examples, "d", "data.jsonl")


# RAGTruth.

QA_PASSAGES = "passage 1:It was in 1901.\n\npassage 2:Not later.\n\n"
QA = {
    "source_id": "10",
    "task_type": "QA",
    "source": "MARCO",
    "source_info": {"question": "when was it", "passages": QA_PASSAGES},
    "prompt": f"Briefly answer:\nwhen was it\nBear in mind:\n{QA_PASSAGES}In case\noutput:",
}
SUMMARY = {
    "source_id": "20",
    "task_type": "Summary",
    "source": "CNN/DM",
    "source_info": "A long story about a bridge.\n",
    "prompt": "Summarize the following news within 10 words:\nA long story about a bridge.\n\noutput:",
}
DATA2TXT = {
    "source_id": "30",
    "task_type": "Data2txt",
    "source": "Yelp",
    "source_info": {"name": "Bar", "city": "Oslo"},
    "prompt": "Instruction:\nWrite an overview about {'name': 'Bar', 'city': 'Oslo'}",
}


def answer(id: str, source_id: str, **changes: object) -> dict[str, object]:
    fields = {
        "id": id,
        "source_id": source_id,
        "model": "llama-2-7b-chat",
        "temperature": 0.7,
        "labels": [],
        "split": "train",
        "quality": "good",
        "response": "It was in 1901.",
    }
    return fields | changes


def ragtruth(folder: Path, sources: list[object], responses: list[object]) -> Path:
    write(folder, jsonl(*sources), "source_info.jsonl")
    write(folder, jsonl(*responses), "response.jsonl")
    return folder


def test_ragtruth(tmp_path: Path) -> None:
    label = {
        "start": 3,
        "end": 6,
        "text": "was",
        "meta": "",
        "label_type": "Evident Conflict",
        "implicit_true": True,
        "due_to_null": False,
    }
    responses = [
        answer("1", "10"),
        answer("2", "20", response="A bridge."),
        answer("3", "10", labels=[label], model="gpt-4"),
    ]
    one, summary, labelled = load_examples(ragtruth(tmp_path, [QA, SUMMARY, DATA2TXT], responses))
    assert one.id == "1"
    assert (one.question, one.passages) == ("when was it", ("It was in 1901.", "Not later."))
    assert one.prompt == QA["prompt"]
    assert (one.labels, one.hallucinated) == ((), False)
    assert (one.source, one.generator) == ("10", "llama-2-7b-chat")
    assert (summary.question, summary.passages) == ("", ("A long story about a bridge.",))
    assert (labelled.source, labelled.generator) == ("10", "gpt-4")
    assert labelled.labels == (Label(3, 6, "Evident Conflict", True),)
    for example in (one, summary, labelled):
        for span in example.spans:
            part = example.question if span.kind == "question" else example.passages[span.index]
            assert example.prompt[span.start : span.end] == part


def test_ragtruth_passages_that_speak_of_passages(tmp_path: Path) -> None:
    """Only "passage 3:" at the start of a line begins one."""
    passages = "passage 1:See passage 2: it is better.\n\npassage 2:And\nmore lines.\n\n"
    source = QA | {
        "source_info": {"question": "when was it", "passages": passages},
        "prompt": f"Question: when was it\n{passages}output:",
    }
    (example,) = load_examples(ragtruth(tmp_path, [source], [answer("1", "10")]))
    assert example.passages == ("See passage 2: it is better.", "And\nmore lines.")


def test_ragtruth_task_that_is_not_supported(tmp_path: Path) -> None:
    error = error_of(ragtruth(tmp_path, [QA, DATA2TXT], [answer("1", "10"), answer("2", "30")]))
    assert (error.path, error.line, error.field) == (tmp_path / "source_info.jsonl", 2, "task_type")
    assert "'Data2txt' is not supported; supported: QA, Summary" in str(error)


@pytest.mark.parametrize(
    ("responses", "line", "field"),
    [
        ([answer("1", "10"), answer("2", "99")], 2, "source_id"),
        ([answer("1", "10"), answer("1", "10")], 2, "id"),
        ([answer("1", "10", labels=[{"start": 0, "end": 99}])], 1, "labels[0]"),
        ([answer("1", "10", labels=None)], 1, "labels"),
        ([answer("1", "10", response="")], 1, "response"),
        ([{"id": "1"}], 1, "source_id"),
        ([answer("1", "10"), "text"], 2, None),
    ],
    ids=["no source", "duplicate", "label", "no labels", "empty", "fields", "no object"],
)
def test_ragtruth_bad_response(responses: list[object], line: int, field: str | None, tmp_path: Path) -> None:
    error = error_of(ragtruth(tmp_path, [QA], responses))
    assert (error.path, error.line, error.field) == (tmp_path / "response.jsonl", line, field)


def test_ragtruth_bad_source(tmp_path: Path) -> None:
    error = error_of(ragtruth(tmp_path, [QA, {"source_id": "11"}], [answer("1", "10")]))
    assert (error.path, error.line, error.field) == (tmp_path / "source_info.jsonl", 2, "task_type")


@pytest.mark.parametrize("missing", ["source_info.jsonl", "response.jsonl"])
def test_a_folder_that_is_not_ragtruth(missing: str, tmp_path: Path) -> None:
    ragtruth(tmp_path, [QA], [answer("1", "10")])
    (tmp_path / missing).unlink()
    assert str(error_of(tmp_path)) == f"{tmp_path}: not a RAGTruth directory: it has no {missing}"


def test_ragtruth_without_responses(tmp_path: Path) -> None:
    assert "no examples" in str(error_of(ragtruth(tmp_path, [QA], [])))
