"""Answers that stay while their passages are edited: nothing but comparing can tell which are wrong then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, Field

from lrp4rag.data import read_rows
from lrp4rag.example import Example, Label
from lrp4rag.util.errors import InputError

KINDS = {"exchanged": "misattributed"}
"""Edits whose faults have another name among labels."""


class Replacement(BaseModel):
    """What stands once in a passage (an index), and what takes its place."""

    passage: int = Field(ge=0)
    old: str
    new: str


class Edit(BaseModel):
    """Replacements in the passages of a question; the names of the answers that are `wrong` after them, and
    their wrong words (`spans`)."""

    kind: str
    replacements: list[Replacement]
    wrong: list[str]
    spans: dict[str, list[str]]


class EditedQuestion(BaseModel):
    """A line of a file: edits of the passages of a question, by its id."""

    base: str
    edits: list[Edit]


def load_edited(path: Path, base: Mapping[str, Mapping[str, Example]]) -> Iterator[Example]:
    """Yield each answer to each edit of its question's passages; `base` has the faithful answers by the
    question's id and their own name. Their ids are `a01.0~evidence-number`.

    Raises `InputError` naming the line for edits of another question, and as `edited` does.
    """
    for line, row in read_rows(path, EditedQuestion):
        if row.base not in base:
            raise InputError(f"there is no question '{row.base}'", path=path, line=line, field="base")
        for edit in row.edits:
            for name, example in base[row.base].items():
                id = f"{example.id}~evidence-{edit.kind.replace(' ', '-').replace('_', '-')}"
                yield edited(replace(example, id=id), name, edit, path, line)


def edited(example: Example, name: str, edit: Edit, path: Path, line: int) -> Example:
    """Return a faithful answer, which the edit calls `name`, to the edited passages, labelled.

    Raises `InputError` naming the line for an edit of what is not there, and for a wrong answer without
    spans, or spans that it has not.
    """
    passages, response = list(example.passages), example.response or ""
    for replacement in edit.replacements:
        number = replacement.passage
        if number >= len(passages) or replacement.old not in passages[number]:
            raise InputError("no passage has it", path=path, line=line, field="edits.replacements.old")
        passages[number] = passages[number].replace(replacement.old, replacement.new, 1)
    texts = edit.spans.get(name, []) if name in edit.wrong else []
    if (name in edit.wrong) != bool(texts) or any(text not in response for text in texts):
        raise InputError(
            "a wrong answer needs spans, which it has", path=path, line=line, field="edits.spans"
        )
    kind = KINDS.get(edit.kind, edit.kind)
    starts = [(response.index(text), text) for text in texts]
    return Example(
        example.question,
        passages,
        response,
        id=example.id,
        source=example.source,
        labels=tuple(Label(start, start + len(text), kind) for start, text in starts),
    )
