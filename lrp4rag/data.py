"""Read examples from JSONL or JSON, or from a RAGTruth directory, with line-numbered errors."""

from __future__ import annotations

import itertools
import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from lrp4rag.example import DEFAULT_TEMPLATE, LONGEST_EXAMPLE, Example, Label, render
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError, LRP4RAGWarning, first_line
from lrp4rag.util.files import is_local, place_at, read_bytes
from lrp4rag.util.strict_json import parse
from lrp4rag.util.text import one_line
from lrp4rag.util.types import Finite, first_fault

RAGTRUTH_FILES = ("source_info.jsonl", "response.jsonl")
LARGEST_DATA = 2 * 2**30
"""Bytes of a file of examples: all of it is read at once."""
LARGEST_TEXT = 4 * LONGEST_EXAMPLE
"""Bytes of a file with one passage or template."""
_BATCH = 1000
"""Rows of Parquet that are Python objects at a time."""
_OPEN_ALREADY = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")

Row = TypeVar("Row", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class LabelRow(_Strict):
    """A hallucinated span of the response, as character offsets; `end` is exclusive."""

    start: int
    end: int
    kind: str = ""
    implicit_true: bool = False


class ResponseRow(_Strict):
    """One of several responses to the same prompt."""

    response: str
    labels: list[LabelRow] | None = None
    id: str | None = None
    generator: str | None = None


class PassageRow(_Strict):
    """A passage, and what is known of it: the fields of `Source`."""

    text: str
    id: str | None = None
    title: str | None = None
    version: str | None = None
    effective: str | None = Field(default=None, description="ISO 8601 date from which it holds.")
    expires: str | None = Field(default=None, description="ISO 8601 date until which it holds.")
    topic: str | None = None
    score: Finite | None = Field(default=None, description="Of the retrieval.")

    @property
    def source(self) -> Source:
        return Source(**dict(self))


def _as_row(value: Any) -> Any:
    if isinstance(value, str):
        return PassageRow(text=value)
    if isinstance(value, dict | PassageRow):
        return value
    raise ValueError("give a text, or an object with a text")


def _as_json(row: PassageRow) -> str | dict[str, Any]:
    fields = row.model_dump(exclude_none=True)
    return row.text if fields == {"text": row.text} else fields


PassageField = Annotated[
    PassageRow,
    BeforeValidator(_as_row, json_schema_input_type=str | PassageRow),
    PlainSerializer(_as_json),
]
"""A passage in JSON: a text, or an object where more is known."""


class ExampleRow(_Strict):
    """One line of our JSONL. Without `prompt`, the prompt is rendered from `template`. With `responses`, it
    stands for an example each."""

    question: str
    passages: Annotated[list[PassageField], Field(min_length=1)]
    response: str | None = None
    prompt: str | None = None
    template: str | None = None
    labels: list[LabelRow] | None = None
    id: str | None = None
    source_id: str | None = None
    generator: str | None = None
    responses: list[ResponseRow] | None = None


class _RagTruthSource(BaseModel):
    source_id: str
    task_type: str
    source_info: Any
    prompt: str


class _RagTruthLabel(LabelRow):
    model_config = ConfigDict(extra="ignore")

    kind: str = Field(default="", alias="label_type")


class _RagTruthResponse(BaseModel):
    id: str
    source_id: str
    model: str
    labels: list[_RagTruthLabel]
    response: str
    split: str = ""


def load_examples(path: str | Path, *, template: str | None = None) -> list[Example]:
    """Read all examples of a JSONL, JSON or Parquet file, of `-` (standard input), of a folder of JSONL and
    Parquet files, or of a RAGTruth directory.

    `template` renders the prompt of rows that bring neither prompt nor template. Rows without an id have
    their line's number, in a folder of several files after the file's name.
    Raises `InputError` naming file, line and field.
    """
    if str(path) == "-":
        if sys.stdin is None:
            raise InputError("it is closed", path="standard input")
        return _from_text(_read_stream(sys.stdin.buffer, "standard input"), "standard input", template)
    if str(path).startswith(_OPEN_ALREADY):  # of a shell's <(command): it is written to already
        with Path(path).open("rb") as stream:
            return _from_text(_read_stream(stream, path), path, template)
    path = place_at(path)
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.name.endswith((".jsonl", ".parquet"))]
        if not files or {file.name for file in files} & set(RAGTRUTH_FILES):
            return load_ragtruth(path)
        prefixes = {file: f"{file.name}:" if len(files) > 1 else "" for file in files}
        rows = (
            (file, line, f"{prefixes[file]}{number}", row)
            for file in files
            for line, number, row in _rows(file)
        )
        return _from_rows(rows, path, template)
    return _from_rows(((path, *row) for row in _rows(path)), path, template)


def read_rows(path: str | Path, kind: type[Row]) -> list[tuple[int, Row]]:
    """Read a JSONL file with another kind of rows, with line numbers; raises as `load_examples` does."""
    rows = _json_rows(_read(Path(path), LARGEST_DATA), path)
    return [(line, _validated(kind, row, path, line)) for line, _, row in rows]


def json_line(example: Example) -> str:
    """Write an example as a line of our JSONL, without its end. A prompt in the default wording is left
    out."""
    plain = render(DEFAULT_TEMPLATE, example.question, example.passages) == (example.prompt, example.spans)
    labels = [LabelRow(**asdict(label)) for label in example.labels or ()]
    row = ExampleRow(
        id=example.id,
        source_id=example.source,
        question=example.question,
        passages=[PassageRow(**asdict(source)) for source in example.sources],
        prompt=None if plain else example.prompt,
        response=example.response,
        labels=None if example.labels is None else labels,
        generator=example.generator,
    )
    return row.model_dump_json(exclude_none=True)


def select(examples: Iterable[Example], id: str, path: str | Path) -> Example:
    """Return the example with this id; raises `InputError` without one."""
    for example in examples:
        if example.id == id:
            return example
    raise InputError(f"no example with id '{one_line(id, 100)}'", path=path)


def _read(path: Path, limit: int) -> bytes:
    try:
        return read_bytes(path, limit)
    except FileNotFoundError as error:
        raise InputError("no such file or directory", path=path) from error
    except InputError as error:
        hint = "; to read a pipe, give - and redirect it" if path.is_fifo() else ""
        raise InputError(f"{error.reason}{hint}", path=path) from error
    except (OSError, ValueError) as error:  # a zero in a name is a ValueError
        raise InputError(f"cannot read: {first_line(error)}", path=path) from error


def _read_stream(stream: BinaryIO, name: str | Path) -> bytes:
    content = stream.read(LARGEST_DATA + 1)
    if len(content) > LARGEST_DATA:
        raise InputError(f"more than {LARGEST_DATA / 1e6:,.0f} MB; give it in parts", path=name)
    return content


def _from_text(content: bytes, path: str | Path, template: str | None) -> list[Example]:
    return _from_rows(((path, *row) for row in _json_rows(content, path)), path, template)


def _from_rows(
    rows: Iterable[tuple[str | Path, int, int | str, Any]], path: str | Path, template: str | None
) -> list[Example]:
    """Return the examples of rows, each with its file, its line and its number."""
    examples, lines = [], dict[str, tuple[str | Path, int]]()
    empty: list[str] = []
    for file, line, number, row in rows:
        for example, prefix in examples_of(row, file, line, template=template, number=number):
            refuse_duplicate(example.id, lines, file, line, f"{prefix}id")
            examples.append(example)
            if example.empty:
                empty.append(f"{file}, line {line}, field 'passages[{example.empty[0]}]'")
    if empty:
        where = empty[0]
        more = f"; {len(empty):,} rows have such" if len(empty) > 1 else ""
        warnings.warn(f"{where}: the passage is empty and is left out{more}", LRP4RAGWarning, stacklevel=4)
    return _require_some(examples, path)


def examples_of(
    row: Any, path: str | Path, line: int, *, template: str | None = None, number: int | str | None = None
) -> Iterator[tuple[Example, str]]:
    """Yield the examples of one row of our JSONL, with the prefix of their fields' names.

    They all have one prompt. One without an id has the row's `number`, by default its line. Raises
    `InputError` naming the path, the line and the field.
    """
    parsed = _validated(ExampleRow, row, path, line)
    id = parsed.id if parsed.id is not None else str(line if number is None else number)
    for response, prefix in _responses(parsed, id, path, line):
        fields = response.model_dump(exclude={"labels", "passages", "source_id", "responses"})
        fields |= {"passages": [row.source for row in response.passages], "source": response.source_id}
        if response.labels is not None:
            fields["labels"] = tuple(Label(**vars(label)) for label in response.labels)
        if response.template is None:
            fields["template"] = template
        yield _create(fields, path, line, prefix), prefix


def _responses(row: ExampleRow, id: str, path: str | Path, line: int) -> Iterator[tuple[ExampleRow, str]]:
    """Yield the row for each of its responses, with its id, and the prefix of the response's fields."""
    if row.responses is None:
        yield row.model_copy(update={"id": id}), ""
        return
    for name in ("response", "labels", "generator"):
        if getattr(row, name) is not None:
            raise InputError(
                "give it in each of the responses, or one response", path=path, line=line, field=name
            )
    if not row.responses:
        raise InputError("there is none", path=path, line=line, field="responses")
    for k, response in enumerate(row.responses):
        fields = response.model_copy(
            update={"id": response.id if response.id is not None else f"{id}-{k + 1}"}
        )
        yield row.model_copy(update=dict(fields)), f"responses[{k}]."


def load_ragtruth(folder: Path, *, task: str | None = None, split: str | None = None) -> list[Example]:
    """Read a RAGTruth directory; of one `task` and `split` ("train" or "test"), where they are named."""
    sources_path, responses_path = (folder / name for name in RAGTRUTH_FILES)
    for file in (sources_path, responses_path):
        if not file.is_file():
            raise InputError(f"not a RAGTruth directory: it has no {file.name}", path=folder)
    sources, lines = {}, dict[str, tuple[str | Path, int]]()
    for line, _, row in _json_rows(_read(sources_path, LARGEST_DATA), sources_path):
        source = _validated(_RagTruthSource, row, sources_path, line)
        refuse_duplicate(source.source_id, lines, sources_path, line, "source_id")
        sources[source.source_id] = (line, source)
    examples, lines = [], {}
    for line, _, row in _json_rows(_read(responses_path, LARGEST_DATA), responses_path):
        response = _validated(_RagTruthResponse, row, responses_path, line)
        refuse_duplicate(response.id, lines, responses_path, line)
        if response.source_id not in sources:
            message = f"no source '{one_line(response.source_id, 100)}' in {sources_path.name}"
            raise InputError(message, path=responses_path, line=line, field="source_id")
        source_line, source = sources[response.source_id]
        if task not in (None, source.task_type) or split not in (None, response.split):
            continue
        question, passages = _ragtruth_parts(source, sources_path, source_line)
        fields = {
            "question": question,
            "passages": passages,
            "prompt": source.prompt,
            "response": response.response,
            "labels": tuple(Label(**vars(label)) for label in response.labels),
            "id": response.id,
            "source": response.source_id,
            "generator": response.model,
        }
        examples.append(_create(fields, responses_path, line))
    return _require_some(examples, responses_path)


_TASKS = {
    "QA": "an object with a question, and passages that the prompt has",
    "Summary": "the text",
    "Data2txt": "an object, which the prompt has between { and }",
}
"""The form of the source, by task."""


def _ragtruth_parts(source: _RagTruthSource, path: Path, line: int) -> tuple[str, list[str]]:
    """Return question and passages of a RAGTruth source, whose text the prompt holds: a record is one
    passage."""
    info, task = source.source_info, source.task_type
    if task not in _TASKS:
        message = f"task type '{one_line(task, 100)}' is not supported; supported: {', '.join(_TASKS)}"
        raise InputError(message, path=path, line=line, field="task_type")
    if task == "Summary" and isinstance(info, str):
        return "", [info.strip()]
    if task == "QA" and isinstance(info, dict):
        # The numbers stay in the prompt, as part of the template.
        pieces = re.split(r"(?:^|\n+)passage \d+:", str(info.get("passages", "")))
        passages = [piece.strip() for piece in pieces if piece.strip()]
        if passages and all(text in source.prompt for text in passages):
            return str(info.get("question", "")), passages
    if task == "Data2txt" and isinstance(info, dict):
        record = source.prompt[source.prompt.find("{") : source.prompt.rfind("}") + 1]
        if record:
            return "", [record]
    form = _TASKS[task]
    raise InputError(f"for task type '{task}' this must be {form}", path=path, line=line, field="source_info")


def _create(fields: dict[str, Any], path: str | Path, line: int, prefix: str = "") -> Example:
    """Create an example; `prefix` is what the names of a response's fields begin with."""
    try:
        if fields["prompt"] == "":
            raise InputError("the prompt is empty; leave it out to have it rendered", field="prompt")
        return Example(**{name: value for name, value in fields.items() if value is not None})
    except InputError as error:
        field = "source_id" if error.field == "source" else error.field
        if prefix and field and field.partition("[")[0] in ("response", "labels", "generator", "id"):
            field = prefix + field
        raise InputError(error.reason, path=path, line=line, field=field) from error


def _require_some(examples: list[Example], path: str | Path) -> list[Example]:
    if not examples:
        raise InputError("no examples", path=path)
    return examples


def refuse_duplicate(
    id: str, lines: dict[str, tuple[str | Path, int]], path: str | Path, line: int, field: str = "id"
) -> None:
    """Raise `InputError` for an id that one of the `lines` has already; else note its line."""
    if id in lines:
        first, first_line = lines[id]
        where = f"line {first_line}" if first == path else f"{first}, line {first_line}"
        message = f"duplicate {field} '{one_line(id, 100)}' (first on {where})"
        raise InputError(message, path=path, line=line, field=field)
    lines[id] = path, line


def _rows(path: Path) -> Iterator[tuple[int, int, Any]]:
    """Yield (line, number, value) of each row of a JSONL, JSON or Parquet file."""
    if not is_parquet(str(path)):
        yield from _json_rows(_read(path, LARGEST_DATA), path)
        return
    if not path.exists():
        raise InputError("no such file or directory", path=path)
    for line, row in enumerate(_parquet_rows(path), start=1):
        yield line, line, row


def _json_rows(content: bytes, path: str | Path) -> Iterator[tuple[int, int, Any]]:
    """Yield (line, number, value) of each JSONL line (numbered by line), array element, or of one object."""
    text = _decode(content, path)
    first = text.lstrip().partition("\n")[0]
    if first.startswith("["):
        _parse_row(text, path, 1)
        yield from _elements(text)
    elif first and not is_json(first):  # one object over several lines, or wrong either way
        yield 1, 1, _parse_row(text, path, 1)
    else:
        for line, row in enumerate(text.split("\n"), start=1):
            if row.strip():
                yield line, line, _parse_row(row, path, line)


def is_json(text: str | bytes) -> bool:
    """Say whether a line is JSON by itself, even if it is refused later."""
    try:
        json.loads(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _elements(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield (line, number, value) of each element of a valid JSON array."""
    decoder, position = json.JSONDecoder(), text.index("[") + 1
    line, counted = 1, 0
    for number in itertools.count(1):
        while text[position].isspace() or text[position] == ",":
            position += 1
        if text[position] == "]":
            return
        line, counted = line + text.count("\n", counted, position), position
        value, position = decoder.raw_decode(text, position)
        yield line, number, value


def _decode(content: bytes, path: str | Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"invalid UTF-8 at byte {error.start}; save the file as UTF-8"
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(message, path=path, line=line) from error


def _validated(model: type[Row], row: Any, path: str | Path, line: int) -> Row:
    if not isinstance(row, dict):
        raise InputError(f"expected a JSON object, found {type(row).__name__}", path=path, line=line)
    try:
        return model.model_validate(row)
    except ValidationError as error:
        fault, field = first_fault(error, model.model_fields)
        raise InputError(fault, path=path, line=line, field=field) from error


def read_text(path: Path) -> str:
    """Read a text file in UTF-8; raises `InputError` for any other."""
    return _decode(_read(path, LARGEST_TEXT), path)


def is_parquet(path: str) -> bool:
    """Say whether the name, or that of a URL's file, ends in .parquet."""
    return (urlsplit(path).path if "://" in path else path).endswith(".parquet")


def _parse_row(text: str, path: Any, line: int) -> Any:
    """Parse a JSON value; raises `InputError` with the line of the fault."""
    try:
        return parse(text)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            line += error.lineno - 1
            message = f"invalid JSON at column {error.colno}: {error.msg}"
        else:
            message = f"invalid JSON: {error}"
        raise InputError(message, path=path, line=line) from error


def _parquet_rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a Parquet file. Raises `InputError` without pyarrow, and for any other file."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'lrp4rag[parquet]'", path=path) from error
    try:
        for batch in ParquetFile(path if is_local(path) else path.open("rb")).iter_batches(_BATCH):
            yield from map(_without_nulls, batch.to_pylist())
    except PermissionError as error:
        raise InputError(f"cannot read: {error.strerror}", path=path) from error
    except (ArrowException, OSError, ValueError) as error:
        raise InputError(f"not a good Parquet file: {first_line(error)}", path=path) from error


def _without_nulls(value: Any) -> Any:
    """Leave out nulls: Parquet has them where JSON has no field."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
