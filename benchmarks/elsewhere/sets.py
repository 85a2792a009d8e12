"""The sets of data, as examples: minimal pairs, HaluEval's question answering, and WiCE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, StrictBool

from lrp4rag.data import read_rows
from lrp4rag.example import Example, Label, first_sources
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.text import one_line, words_of

PAIRS, HALUEVAL, WICE = "minimal_pairs", "halueval_qa", "wice"
NEAR, FREE = "faithful_1", "faithful_2"
"""Kinds of faithful answers: near the passages' words (faulty twins are made of these), and paraphrases."""
RIGHT, WRONG = "right", "hallucinated"
CLAIM = "claim"


@dataclass(frozen=True, slots=True)
class Item:
    """A labelled response. `kind` says what it is in its set; `words` (start, end, unsupported) are those
    that were labelled one by one. The example's source is its question, which resamples draw whole."""

    example: Example
    kind: str
    words: tuple[tuple[int, int, bool], ...] = ()


class PairRow(BaseModel):
    id: str
    base: str
    kind: str
    question: str
    passages: list[str]
    response: str
    label: Literal[0, 1]
    spans: list[tuple[int, int, str]]


class HaluEvalRow(BaseModel):
    knowledge: str
    question: str
    right_answer: str
    hallucinated_answer: str


class WiceMeta(BaseModel):
    id: str
    claim_title: str


class WiceRow(BaseModel):
    claim: str
    claim_tokens: list[str]
    non_supported_spans: list[StrictBool]
    evidence: list[str]
    meta: WiceMeta


def read_pairs(path: Path) -> list[Item]:
    """Faithful answers and their twins with one fault."""
    items = []
    for line, row in read_rows(path, PairRow):
        if row.label != bool(row.spans):
            raise InputError(
                "a response with label 1 has spans, and no other has", path=path, line=line, field="spans"
            )
        labels = tuple(Label(start, end, row.kind) for start, end, _ in row.spans)
        fields = {"id": row.id, "source": row.base, "labels": labels}
        items.append(Item(_example(path, line, row.question, row.passages, row.response, **fields), row.kind))
    near = Counter(item.example.source for item in items if item.kind == NEAR)
    for base in dict.fromkeys(item.example.source for item in items):
        if near[base] != 1:
            raise InputError(
                f"question '{one_line(base, 100)}' needs one response of kind '{NEAR}'",
                path=path,
                field="kind",
            )
    return items


def read_halueval(path: Path) -> list[Item]:
    """A right and a hallucinated answer to each question."""
    items = []
    for line, row in read_rows(path, HaluEvalRow):
        for kind, answer in ((RIGHT, row.right_answer), (WRONG, row.hallucinated_answer)):
            labels = (Label(0, len(answer)),) if kind == WRONG and answer else ()
            fields = {"id": f"{line}-{kind}", "source": str(line), "labels": labels}
            items.append(Item(_example(path, line, row.question, [row.knowledge], answer, **fields), kind))
    return items


def read_wice(path: Path) -> list[Item]:
    """Claims of Wikipedia, each a response to a question about its article's subject, with the cited page as
    the only passage. Claims that cite the same page have one source."""
    items = []
    for line, row in read_rows(path, WiceRow):
        words = _located(row, path, line)
        fields = {
            "id": row.meta.id,
            "source": json_hash(row.evidence)[:16],
            "labels": tuple(Label(start, end) for start, end, unsupported in words if unsupported),
        }
        question = f"What is known about {row.meta.claim_title}?"
        example = _example(path, line, question, ["\n".join(row.evidence)], row.claim, **fields)
        items.append(Item(example, CLAIM, words))
    return items


def _located(row: WiceRow, path: Path, line: int) -> tuple[tuple[int, int, bool], ...]:
    """The words of a claim that have a letter or a digit, with their places in it."""
    if len(row.claim_tokens) != len(row.non_supported_spans):
        raise InputError(
            "as many are needed as there are words", path=path, line=line, field="non_supported_spans"
        )
    words, end = [], 0
    for word, unsupported in zip(row.claim_tokens, row.non_supported_spans, strict=True):
        start = row.claim.find(word, end)
        if start < 0:
            raise InputError(
                "the claim does not have these words", path=path, line=line, field="claim_tokens"
            )
        end = start + len(word)
        if words_of(word):
            words.append((start, end, unsupported))
    return tuple(words)


def _example(
    path: Path, line: int, question: str, passages: Sequence[str], response: str, **fields: Any
) -> Example:
    try:
        return Example(question, passages, response, **fields)
    except InputError as error:
        raise InputError(error.reason, path=path, line=line, field=error.field) from error


@dataclass(frozen=True, slots=True)
class Source:
    """Where a set lies in the folder, and what reads it."""

    file: str
    read: Callable[[Path], list[Item]]


SETS = {
    PAIRS: Source("pairs.jsonl", read_pairs),
    HALUEVAL: Source("qa.jsonl", read_halueval),
    WICE: Source("non_supported_tokens.dev.jsonl", read_wice),
}


def read_sets(folder: Path, limit: int | None = None) -> dict[str, list[Item]]:
    """The sets that the folder has, by name, each with the responses to its first `limit` questions (of WiCE,
    claims on so many pages).

    Raises `InputError` naming file, line and field for a malformed row, and where there is no set at all.
    """
    if not folder.is_dir():
        raise InputError("no such folder", path=folder)
    found = {}
    for name, source in SETS.items():
        path = folder / name / source.file
        if path.exists():
            items = source.read(path)
            if not items:
                raise InputError("no responses", path=path)
            kept = first_sources((item.example.source for item in items), limit)
            found[name] = [item for item in items if item.example.source in kept]
    if not found:
        known = ", ".join(f"{name}/{source.file}" for name, source in SETS.items())
        raise InputError(f"none of the sets is here ({known})", path=folder)
    return found
