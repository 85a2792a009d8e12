"""Reading examples: JSONL, JSON, standard input, RAGTruth; every error names file, line and field."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrp4rag.data import is_parquet, load_examples, select
from lrp4rag.example import Example, Label
from lrp4rag.util.errors import InputError, LRP4RAGWarning

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
    assert load_examples(write(tmp_path, json.dumps(row(), indent=indent))) == [Example(**ROW, id="1")]


def test_lines_of_a_file(tmp_path: Path) -> None:
    """Blank ones count; U+2028 and U+0085 are line ends to `str.splitlines`, but not to JSON."""
    odd = row(passages=["one\u2028two\u0085three\x0bfour"])
    examples = load_examples(write(tmp_path, f"\n{jsonl(odd)}\n  \n{jsonl(row())}\n"))
    assert [example.id for example in examples] == ["2", "5"]
    assert examples[0].passages == ("one\u2028two\u0085three\x0bfour",)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def give(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))

    give(jsonl(*THREE).encode())
    assert [example.id for example in load_examples("-")] == ["a", "2", "c"]
    give(b"{}\n")
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


def test_an_empty_passage_is_told_and_does_not_end_the_file(tmp_path: Path) -> None:
    empty = ["It was in 1901.", {"text": " ", "id": "a"}, "Not later."]
    path = write(tmp_path, jsonl(row(), row(passages=empty), row(passages=["", "Not later."])))
    with pytest.warns(LRP4RAGWarning) as caught:
        found = load_examples(path)
    words = "line 2, field 'passages[1]': the passage is empty and is left out; 2 rows have such"
    assert [str(one.message) for one in caught] == [f"{path}, {words}"]
    assert [one.empty for one in found] == [(), (1,), (0,)]
    assert found[1].sources[1].id == "a"
    error = error_of(write(tmp_path, jsonl(row(), row(passages=["", " "]))))
    assert (error.line, error.field) == (2, "passages")


def test_labels_that_are_absent_and_labels_that_are_empty(tmp_path: Path) -> None:
    examples = load_examples(write(tmp_path, jsonl(*(row(labels=each) for each in (..., None, [])))))
    assert [example.labels for example in examples] == [None, None, ()]


def test_templates(tmp_path: Path) -> None:
    """The template or prompt of a row goes before the one that is given."""
    rows = (row(), row(template="{question}|{context}"), row(prompt="It was in 1901. Not later. When?"))
    path = write(tmp_path, jsonl(*rows))
    examples = load_examples(path, template="T {context} {question}")
    assert examples[0].prompt == "T passage 1:It was in 1901.\n\npassage 2:Not later. When?"
    assert examples[1].prompt == "When?|passage 1:It was in 1901.\n\npassage 2:Not later."
    assert examples[2].prompt == "It was in 1901. Not later. When?"
    assert error_of(path, template="Answer!").field == "template"


# Errors in a row: path, line and field.


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (row(question=...), "question"),
        (row(passages=...), "passages"),
        (row(passages=[]), "passages"),
        (row(passages="text"), "passages"),
        (row(passages=["one", 2]), "passages[1]"),
        (row(passages=[" "]), "passages[0]"),
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
        (row(labels=[{"start": 0, "end": 1, "text": "I"}]), "labels[0].text"),
        (row(labels=[{"start": 0, "end": 9}]), "labels[0]"),
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


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(label=[]), "there is no such field; did you mean 'labels'"),
        (row(zzz=1), "there is no such field; there are question, passages, response,"),
        (row(passages=..., contexts=["Text."]), "it is missing; there are contexts, which are no fields"),
    ],
)
def test_a_name_that_is_wrong_is_told_with_those_that_are_right(
    bad: object, message: str, tmp_path: Path
) -> None:
    assert message in str(error_of(write(tmp_path, jsonl(bad))))


GOOD = jsonl(row(), row())


@pytest.mark.parametrize(
    ("content", "line", "field", "message"),
    [
        (f"[\n{jsonl(row())},\n{jsonl(row(question=...))}]", 4, "question", "missing"),
        *(
            (f"{GOOD}{broken}\n{GOOD}", 3, None, "invalid JSON")
            for broken in ('{"question": ', "{'question': 1}", "{} {}", "plain text", '{"a": "\t"}')
        ),
        ("[\n{},\n{broken}\n]", 3, None, "invalid JSON"),
        (jsonl(row()) + "[" * 200_000 + "\n", 2, None, "nested too deeply"),
        (b"\xff\xfe{}", 1, None, "UTF-8"),
        (GOOD.encode() + b'{"question": "\xe9"}\n', 3, None, "UTF-8"),
        # JSON can hold what is no text; tokenizers and files then fail far from the line that has it.
        (GOOD + '{"question": "\\ud83d", "passages": ["a"], "response": "b"}\n', 3, "question", "surrogate"),
        # Also between a given id and the line number that stands for an absent one.
        (jsonl(row(id="a"), row(id="a")), 2, "id", "first on line 1"),
        (jsonl(row(), row(id="1")), 2, "id", "first on line 1"),
        (jsonl(row(id="2"), row()), 2, "id", "first on line 1"),
    ],
    ids=range(14),
)
def test_a_bad_file(content: str | bytes, line: int, field: str | None, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    error = error_of(path)
    assert (error.path, error.line, error.field) == (path, line, field)
    assert message in str(error)


@pytest.mark.parametrize("content", ["", "\n\n", "[]", "\ufeff"])
def test_a_file_without_examples(content: str, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    assert str(error_of(path)) == f"{path}: no examples"


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.jsonl"
    assert str(error_of(path)) == f"{path}: no such file or directory"


def test_select(tmp_path: Path) -> None:
    examples = load_examples(write(tmp_path, jsonl(*THREE)))
    assert select(examples, "c", "data.jsonl") is examples[2]
    with pytest.raises(InputError, match=r"data\.jsonl: no example with id 'd'"):
        select(examples, "d", "data.jsonl")


# RAGTruth.

QA_PASSAGES = "passage 1:It was in 1901.\n\npassage 2:Not later.\n\n"
QA = {"source_id": "10", "task_type": "QA", "source": "MARCO"} | {
    "source_info": {"question": "when was it", "passages": QA_PASSAGES},
    "prompt": f"Briefly answer:\nwhen was it\nBear in mind:\n{QA_PASSAGES}In case\noutput:",
}
SUMMARY = {"source_id": "20", "task_type": "Summary", "source": "CNN/DM"} | {
    "source_info": "A long story about a bridge.\n",
    "prompt": "Summarize the following news within 10 words:\nA long story about a bridge.\n\noutput:",
}
DATA2TXT = {"source_id": "30", "task_type": "Data2txt", "source": "Yelp"} | {
    "source_info": {"name": "Bar", "city": "Oslo"},
    "prompt": "Instruction:\nWrite an overview about {'name': 'Bar', 'city': 'Oslo'}",
}
LABEL = {"start": 3, "end": 6, "text": "was", "meta": "", "label_type": "Evident Conflict"}
LABEL |= {"implicit_true": True, "due_to_null": False}


def answer(id: str = "1", source_id: str = "10", **changes: object) -> dict[str, object]:
    fields = {"id": id, "source_id": source_id, "model": "llama-2-7b-chat", "temperature": 0.7, "labels": []}
    return fields | {"split": "train", "quality": "good", "response": "It was in 1901."} | changes


def labelled(**changes: object) -> list[object]:
    return [answer(labels=[LABEL | changes])]


def ragtruth(folder: Path, sources: list[object], responses: list[object]) -> Path:
    for name, rows in (("source_info.jsonl", sources), ("response.jsonl", responses)):
        (folder / name).write_text("".join(json.dumps(one) + "\n" for one in rows))
    return folder


def test_ragtruth(tmp_path: Path) -> None:
    responses = [
        answer(),
        answer("2", "20", response="A bridge."),
        answer("3", "10", labels=[LABEL], model="gpt-4"),
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
    (example,) = load_examples(ragtruth(tmp_path, [source], [answer()]))
    assert example.passages == ("See passage 2: it is better.", "And\nmore lines.")


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"task_type": "Poem"}, "task_type", "'Poem' is not supported; supported: QA, Summary, Data2txt"),
        ({"task_type": "\x1b[2J"}, "task_type", "'␛[2J' is not supported"),
        ({"source_info": None}, "source_info", "must be an object with a question, and passages"),
        ({"source_info": 3}, "source_info", "must be an object with a question, and passages"),
        ({"prompt": None}, "prompt", "string"),
        ({"prompt": "When?"}, "source_info", "passages that the prompt has"),
        (SUMMARY | {"source_info": None}, "source_info", "must be the text"),
        (DATA2TXT | {"source_info": "Bar"}, "source_info", "must be an object, which the prompt has between"),
        (DATA2TXT | {"prompt": "Write about Bar"}, "source_info", "for task type 'Data2txt' this must be an"),
        (
            DATA2TXT | {"prompt": "} Write {"},
            "source_info",
            "for task type 'Data2txt' this must be an object",
        ),
    ],
)
def test_ragtruth_source_that_is_not_supported(
    changes: dict, field: str, message: str, tmp_path: Path
) -> None:
    bad = QA | changes | {"source_id": "30"}
    error = error_of(ragtruth(tmp_path, [QA, bad], [answer(), answer("2", "30")]))
    assert (error.path, error.line, error.field) == (tmp_path / "source_info.jsonl", 2, field)
    assert message in str(error)


@pytest.mark.parametrize(
    ("file", "rows", "line", "field"),
    [
        ("response", [answer(), answer("2", "99")], 2, "source_id"),
        ("response", [answer(), answer()], 2, "id"),
        *(("response", labelled(start=value), 1, "labels[0].start") for value in ("0", 0.0, False)),
        ("response", labelled(end=6.5), 1, "labels[0].end"),
        *(("response", labelled(implicit_true=value), 1, "labels[0].implicit_true") for value in ("yes", 1)),
        ("response", labelled(label_type=3), 1, "labels[0].label_type"),
        ("response", labelled(label_type="\ud800"), 1, "labels[0].kind"),
        *(("response", labelled(**span), 1, "labels[0]") for span in ({"start": -1}, {"end": 99})),
        ("response", [answer(labels=None)], 1, "labels"),
        ("response", [answer(response="")], 1, "response"),
        ("response", [answer(model="\ud800")], 1, "generator"),
        ("response", [answer(id="\ud800")], 1, "id"),
        ("response", [{"id": "1"}], 1, "source_id"),
        ("response", [answer(), "text"], 2, None),
        ("response", [], None, None),
        ("source_info", [QA, {"source_id": "11"}], 2, "task_type"),
        ("source_info", [QA, QA], 2, "source_id"),
    ],
    ids=range(21),
)
def test_ragtruth_bad_rows(
    file: str, rows: list, line: int | None, field: str | None, tmp_path: Path
) -> None:
    files = {"source_info": [QA], "response": [answer()]} | {file: rows}
    error = error_of(ragtruth(tmp_path, *files.values()))
    assert (error.path, error.line, error.field) == (tmp_path / f"{file}.jsonl", line, field)


@pytest.mark.parametrize("missing", ["source_info.jsonl", "response.jsonl"])
def test_a_folder_that_is_not_ragtruth(missing: str, tmp_path: Path) -> None:
    ragtruth(tmp_path, [QA], [answer()])
    (tmp_path / missing).unlink()
    assert str(error_of(tmp_path)) == f"{tmp_path}: not a RAGTruth directory: it has no {missing}"


def test_ragtruth_records_are_one_passage_as_the_prompt_has_it(tmp_path: Path) -> None:
    record = "{'name': 'Bar', 'hours': {'Monday': '8:0-17:0'}, 'city': 'Oslo'}"
    source = DATA2TXT | {"prompt": f"Instruction:\nWrite an overview.\nStructured data:\n{record}\nOverview:"}
    (example,) = load_examples(ragtruth(tmp_path, [source], [answer("1", "30", labels=[LABEL])]))
    assert (example.question, example.passages) == ("", (record,))
    assert example.prompt == source["prompt"]
    assert [example.prompt[span.start : span.end] for span in example.spans] == [record]
    assert (example.source, example.labels) == ("30", (Label(3, 6, "Evident Conflict", True),))


# Several responses to one prompt.


def several(*responses: object, **changes: object) -> dict[str, object]:
    """A row with these responses; texts are those of responses without anything else."""
    given = [{"response": one} if isinstance(one, str) else one for one in responses]
    return row(response=..., responses=given, **changes)


def test_one_of_several_responses_is_the_example_that_a_row_of_its_own_gives(tmp_path: Path) -> None:
    parts = {"labels": [{"start": 0, "end": 2, "kind": "number"}], "generator": "g", "id": "x"}
    given = {"source_id": "s", "template": "{question}|{context}"}
    together = write(tmp_path, jsonl(several("No.", {"response": "In 1902.", **parts}, **given)), "a.jsonl")
    alone = write(tmp_path, jsonl(row(**given, **parts, response="In 1902.")), "b.jsonl")
    assert load_examples(together)[1] == load_examples(alone)[0]


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        ([several("a", "b", id="r")], ["r-1", "r-2"]),
        ([several("a", "b")], ["1-1", "1-2"]),
        ([row(), several("a", "b"), row()], ["1", "2-1", "2-2", "3"]),
        ([several("a", {"response": "b", "id": "own"}, "c", id="r")], ["r-1", "own", "r-3"]),
        ([several("a", id="r")], ["r-1"]),
        ([row(id="1", responses=None)], ["1"]),
    ],
)
def test_ids_of_several_responses(rows: list[object], ids: list[str], tmp_path: Path) -> None:
    assert [example.id for example in load_examples(write(tmp_path, jsonl(*rows)))] == ids


def test_a_given_template_and_a_prompt_hold_for_all_responses(tmp_path: Path) -> None:
    prompt = "It was in 1901. Not later. When?"
    path = write(tmp_path, jsonl(several("a", "b"), several("c", "d", prompt=prompt)))
    prompts = [example.prompt for example in load_examples(path, template="T {context} {question}")]
    assert prompts[0].startswith("T passage 1:")
    assert prompts == [prompts[0]] * 2 + [prompt] * 2


SECOND = {"response": "In 1901."}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (row(responses=[SECOND]), "response"),
        (several(SECOND, labels=[]), "labels"),
        (several(SECOND, generator="g"), "generator"),
        (several(), "responses"),
        (row(responses="In 1901.", response=...), "responses"),
        (row(responses=["In 1901."], response=...), "responses[0]"),
        (several(SECOND, SECOND | {"response": 3}), "responses[1].response"),
        (several(SECOND, {"labels": []}), "responses[1].response"),
        (several(SECOND, " \n"), "responses[1].response"),
        (
            several(SECOND, SECOND | {"labels": [{"start": 0, "end": 1}, {"start": 2, "end": 2}]}),
            "responses[1].labels[1]",
        ),
        (several(SECOND, SECOND | {"labels": [{"start": 0, "end": 9}]}), "responses[1].labels[0]"),
        (several(SECOND, SECOND | {"labels": [{"start": 0}]}), "responses[1].labels[0].end"),
        (several(SECOND, SECOND | {"text": "x"}), "responses[1].text"),
        (several(SECOND, SECOND | {"generator": "g" * 1001}), "responses[1].generator"),
        (several(SECOND, SECOND | {"id": "i" * 1001}), "responses[1].id"),
        (several(SECOND, SECOND | {"source_id": "x"}), "responses[1].source_id"),
        (several(SECOND, SECOND, question=""), "question"),
        (several(SECOND, SECOND, passages=["", " "]), "passages"),
        (several(SECOND, SECOND, prompt="When?"), "passages[0]"),
        (several(SECOND, SECOND, template="{context}"), "template"),
        (several(SECOND, SECOND, source_id="s" * 1001), "source_id"),
    ],
    ids=range(21),
)
def test_a_bad_row_of_several_responses(bad: object, field: str, tmp_path: Path) -> None:
    error = error_of(write(tmp_path, jsonl(row(), bad)))
    assert (error.line, error.field) == (2, field)
    assert str(error).count("field '") == 1


@pytest.mark.parametrize(
    ("rows", "line", "field"),
    [
        ([several("a", {"response": "b", "id": "r-1"}, id="r")], 1, "responses[1].id"),
        ([several("a", "b", id="r"), several("c", id="r")], 2, "responses[0].id"),
        ([several("a", "b", id="r"), row(id="r-2")], 2, "id"),
        ([row(id="2-2"), several("a", "b")], 2, "responses[1].id"),
    ],
)
def test_ids_of_several_responses_differ(rows: list[object], line: int, field: str, tmp_path: Path) -> None:
    error = error_of(write(tmp_path, jsonl(*rows)))
    assert (error.line, error.field) == (line, field)
    assert "first on line 1" in str(error)


# Parquet, and folders of files.

ROWS = [{"question": f"Q{k}?", "passages": ["é" * k + "A."], "response": "R."} for k in range(7)]


def parquet(path: Path, rows: list[dict], **options: object) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, **options)
    return path


def test_parquet_reads_as_jsonl_does(tmp_path: Path) -> None:
    """A null is there what an absent field is in JSON."""
    label = {"start": 0, "end": 1, "kind": "x"}
    rows = [
        {**ROWS[0], "passages": [{"text": "A.", "id": "p1"}, {"text": "B.", "id": None}], "labels": None},
        {**ROWS[1], "passages": [{"text": "C.", "id": None}], "labels": [label]},
    ]
    plain = [json.loads(json.dumps(rows[0]).replace(', "id": null', "").replace(', "labels": null', ""))]
    plain.append({**ROWS[1], "passages": ["C."], "labels": [label]})
    examples = load_examples(parquet(tmp_path / "d.parquet", rows, row_group_size=1))
    assert examples == load_examples(write(tmp_path, jsonl(*plain), "d.jsonl"))


def test_bad_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "d.parquet", [ROWS[0], {**ROWS[1], "passages": []}])
    assert str(error_of(path)).startswith(f"{path}, line 2, field 'passages'")
    damaged = parquet(tmp_path / "p.parquet", ROWS, compression="none", use_dictionary=False)
    damaged.write_bytes(damaged.read_bytes().replace(b"A.", b"\xff\xff"))  # no UTF-8
    for file in (write(tmp_path, "no", "n.parquet"), damaged):
        assert str(error_of(file)).startswith(f"{file}: not a good Parquet file")
    assert "no such file" in str(error_of(tmp_path / "e.parquet"))


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    for rows in (ROWS[:2], ROWS[2:4]):
        examples = load_examples(parquet(tmp_path / "d.parquet", rows))
        assert [example.question for example in examples] == [row["question"] for row in rows]


def test_a_url_ends_as_its_file_does() -> None:
    assert is_parquet("https://host/d.parquet?signature=abc")
    assert not is_parquet("https://host/d.jsonl?next=.parquet")
    assert is_parquet("what?.parquet")


def test_a_folder_of_files_is_read_as_one(tmp_path: Path) -> None:
    first = write(tmp_path, jsonl(*ROWS), "a.jsonl")
    parquet(tmp_path / "b.parquet", ROWS[:2])
    write(tmp_path, "no rows", "notes.txt")
    examples = load_examples(tmp_path)
    assert [example.question for example in examples] == [row["question"] for row in [*ROWS, *ROWS[:2]]]
    assert [example.id for example in examples][6:] == ["a.jsonl:7", "b.parquet:1", "b.parquet:2"]
    fsspec.filesystem("memory").pipe("/rows/d.jsonl", first.read_bytes())
    assert len(load_examples("memory://rows")) == len(ROWS)


def test_ids_of_a_folder_are_refused_twice(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path, jsonl({**ROWS[0], "id": "x"}), f"{name}.jsonl")
    with pytest.raises(InputError, match=r"b.jsonl, line 1.*first on .*a.jsonl, line 1"):
        load_examples(tmp_path)
