"""Read examples from our own JSONL or JSON, or from a RAGTruth directory, with line-numbered errors."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lrp4rag.errors import InputError
from lrp4rag.example import Example, Label

RAGTRUTH_FILES = ("source_info.jsonl", "response.jsonl")

Row = TypeVar("Row", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class LabelRow(_Strict):
    """A hallucinated span of the response, as character offsets; `end` is exclusive."""

    start: int
    end: int
    kind: str = ""
    implicit_true: bool = False


class ExampleRow(_Strict):
    """One line of our JSONL. Without `prompt`, the prompt is rendered from `template`."""

    question: str
    passages: Annotated[list[str], Field(min_length=1)]
    response: str | None = None
    prompt: str | None = None
    template: str | None = None
    labels: list[LabelRow] | None = None
    id: str | None = None
    source_id: str | None = None
    generator: str | None = None


class _RagTruthSource(BaseModel):
    source_id: str
    task_type: str
    source_info: Any
    prompt: str


class _RagTruthLabel(BaseModel):
    start: int
    end: int
    label_type: str = ""
    implicit_true: bool = False


class _RagTruthResponse(BaseModel):
    id: str
    source_id: str
    model: str
    labels: list[_RagTruthLabel]
    response: str


def load_examples(path: str | Path, *, template: str | None = None) -> list[Example]:
    """All examples of a JSONL or JSON file, of `-` (standard input), or of a RAGTruth directory.

    `template` renders the prompt of rows that bring neither prompt nor template.
    Raises `InputError` naming file, line and field.
    """
    if str(path) == "-":
        return _from_text(sys.stdin.buffer.read(), "standard input", template)
    path = Path(path)
    if path.is_dir():
        return _from_ragtruth(path)
    if not path.exists():
        raise InputError("no such file or directory", path=path)
    return _from_text(path.read_bytes(), path, template)


def select(examples: Iterable[Example], id: str, path: str | Path) -> Example:
    """The example with this id; raises `InputError` where there is none."""
    for example in examples:
        if example.id == id:
            return example
    raise InputError(f"no example with id '{id}'", path=path)


def _from_text(content: bytes, path: str | Path, template: str | None) -> list[Example]:
    examples, seen = [], dict[str, int]()
    for line, number, row in _json_rows(content, path):
        parsed = _validated(ExampleRow, row, path, line)
        id = parsed.id if parsed.id is not None else str(number)
        _refuse_duplicate(id, seen, path, line)
        labels = parsed.labels
        fields = {
            "question": parsed.question,
            "passages": parsed.passages,
            "response": parsed.response,
            "prompt": parsed.prompt,
            "template": parsed.template or template,
            "labels": None if labels is None else tuple(Label(**vars(label)) for label in labels),
            "id": id,
            "source": parsed.source_id,
            "generator": parsed.generator,
        }
        examples.append(_create(fields, path, line))
    if not examples:
        raise InputError("no examples", path=path)
    return examples


def _from_ragtruth(folder: Path) -> list[Example]:
    sources_path, responses_path = (folder / name for name in RAGTRUTH_FILES)
    for file in (sources_path, responses_path):
        if not file.is_file():
            raise InputError(f"not a RAGTruth directory: it has no {file.name}", path=folder)
    sources = {}
    for line, _, row in _json_rows(sources_path.read_bytes(), sources_path):
        source = _validated(_RagTruthSource, row, sources_path, line)
        sources[source.source_id] = (line, source)
    examples, seen = [], dict[str, int]()
    for line, _, row in _json_rows(responses_path.read_bytes(), responses_path):
        response = _validated(_RagTruthResponse, row, responses_path, line)
        _refuse_duplicate(response.id, seen, responses_path, line)
        if response.source_id not in sources:
            raise InputError(
                f"no source '{response.source_id}' in {sources_path.name}",
                path=responses_path,
                line=line,
                field="source_id",
            )
        source_line, source = sources[response.source_id]
        question, passages = _ragtruth_parts(source, sources_path, source_line)
        fields = {
            "question": question,
            "passages": passages,
            "prompt": source.prompt,
            "response": response.response,
            "labels": tuple(
                Label(label.start, label.end, label.label_type, label.implicit_true)
                for label in response.labels
            ),
            "id": response.id,
            "source": response.source_id,
            "generator": response.model,
        }
        examples.append(_create(fields, responses_path, line))
    if not examples:
        raise InputError("no examples", path=responses_path)
    return examples


def _ragtruth_parts(source: _RagTruthSource, path: Path, line: int) -> tuple[str, list[str]]:
    """Question and passages of a RAGTruth source: QA and Summary, whose text the prompt holds."""
    info = source.source_info
    if source.task_type == "QA" and isinstance(info, dict):
        # The numbers stay in the prompt, as part of the template.
        pieces = re.split(r"(?:^|\n+)passage \d+:", str(info.get("passages", "")))
        joined = [piece.strip() for piece in pieces if piece.strip()]
        if all(text in source.prompt for text in joined) and joined:
            return str(info.get("question", "")), joined
    if source.task_type == "Summary" and isinstance(info, str):
        return "", [info.strip()]
    raise InputError(
        f"task type '{source.task_type}' is not supported; supported: QA, Summary",
        path=path,
        line=line,
        field="task_type",
    )


def _create(fields: dict[str, Any], path: str | Path, line: int) -> Example:
    try:
        return Example.create(**fields)
    except InputError as error:
        message = str(error).removeprefix(f"field '{error.field}': ")
        raise InputError(message, path=path, line=line, field=error.field) from error


def _refuse_duplicate(id: str, seen: dict[str, int], path: str | Path, line: int) -> None:
    if id in seen:
        message = f"duplicate id '{id}' (first on line {seen[id]})"
        raise InputError(message, path=path, line=line, field="id")
    seen[id] = line


def _json_rows(content: bytes, path: str | Path) -> Iterator[tuple[int, int, Any]]:
    """(line, number, value) of each JSONL line (numbered by line), array element, or of one object."""
    text = _decode(content, path)
    if text.lstrip().startswith("["):
        _parse(text, path, 1)
        yield from _elements(text)
        return
    if not text.strip():
        return
    first = text.lstrip().partition("\n")[0]
    if not _is_json(first):  # one object over several lines, or a first line that is wrong either way
        yield 1, 1, _parse(text, path, 1)
        return
    for line, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            yield line, line, _parse(row, path, line)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _elements(text: str) -> Iterator[tuple[int, int, Any]]:
    """(line, number, value) of each element of a valid JSON array."""
    decoder, position = json.JSONDecoder(), text.index("[") + 1
    for number in itertools.count(1):
        while text[position].isspace() or text[position] == ",":
            position += 1
        if text[position] == "]":
            return
        line = text.count("\n", 0, position) + 1
        value, position = decoder.raw_decode(text, position)
        yield line, number, value


def _decode(content: bytes, path: str | Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"invalid UTF-8 at byte {error.start}; save the file as UTF-8", path=path, line=line
        ) from error


def _parse(text: str, path: str | Path, line: int) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InputError("invalid JSON: nested too deeply", path=path, line=line) from error
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            line += error.lineno - 1
            message = f"invalid JSON at column {error.colno}: {error.msg}"
        else:
            message = f"invalid JSON: {error}"
        raise InputError(message, path=path, line=line) from error


def _validated(model: type[Row], row: Any, path: str | Path, line: int) -> Row:
    if not isinstance(row, dict):
        raise InputError(f"expected a JSON object, found {type(row).__name__}", path=path, line=line)
    try:
        return model.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(
            "."
        )
        raise InputError(first["msg"], path=path, line=line, field=field or None) from error


def read_text(path: Path) -> str:
    """A text file in UTF-8; raises `InputError` where it is missing or is not."""
    if not path.is_file():
        raise InputError("no such file", path=path)
    return _decode(path.read_bytes(), path)
