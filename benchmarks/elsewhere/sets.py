"""The sets of data, as examples: minimal pairs, HaluEval's question answering, WiCE, SummEdits and BUMP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

from pydantic import BaseModel, StrictBool

from lrp4rag.data import read_rows
from lrp4rag.example import Example, Label, first_sources
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.text import one_line, words_of

PAIRS, HALUEVAL, WICE = "minimal_pairs", "halueval_qa", "wice"
SUMMEDITS, BUMP = "summedits", "bump"
NEAR, FREE = "faithful_1", "faithful_2"
"""Kinds of faithful answers: near the passages' words, and paraphrases."""
RIGHT, WRONG = "right", "hallucinated"
CLAIM = "claim"
SEVERAL = "|"
"""Stands between the kinds of a response that has several."""
TASK = "Summarise the text."
"""The question to which summaries are read: their sets give none."""
EDITS = {
    "antonym_swap": "antonym",
    "entity_modification": "entity changed",
    "hallucinated_fact_insertion": "fact added",
    "negation_insertion_removal": "negation added or removed",
}
UNNAMED = "unnamed"
"""The kind of a fault that has none in the data."""


@dataclass(frozen=True, slots=True)
class Item:
    """A labelled response. `kind` says what it is in its set (see `kinds`); `words` (start, end, unsupported)
    are those that were labelled one by one; `twin` is the id of the right one that it was made of, where that
    is known. The example's source is its question, or its document, which resamples draw whole."""

    example: Example
    kind: str
    words: tuple[tuple[int, int, bool], ...] = ()
    twin: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.kind.split(SEVERAL))


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


class SummaryRow(BaseModel):
    id: str
    group: str
    premise: str
    hypothesis: str
    label: Literal["e", "not_e"]
    type: str


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


def read_summedits(path: Path) -> list[Item]:
    """Summaries of a document that a language model edited, and people labelled. A faulty one is of each kind
    of its edits."""
    items = []
    for line, row in read_rows(path, SummaryRow):
        kinds = [EDITS.get(name, name) for name in row.type.split(SEVERAL) if name]
        wrong = row.label == "not_e"
        kind = SEVERAL.join(kinds or [UNNAMED]) if wrong else RIGHT
        items.append(Item(_summary(path, line, row, row.id), kind))
    return items


def read_bump(path: Path) -> list[Item]:
    """Pairs of a right summary of a document and a copy with one fault. One that stands in several pairs is
    one item.

    Raises `InputError` for a copy without its right one before it.
    """
    items, places = [], dict[tuple[str, str], str]()
    for line, row in read_rows(path, SummaryRow):
        pair, text = (row.premise, row.group), (row.premise, row.hypothesis)
        known = text in places
        name = places.setdefault(text, f"{line}-{row.id}")
        if row.label == "e":
            places[pair] = name
        elif pair not in places:
            raise InputError("no right summary of this pair stands before it", path=path, line=line)
        if not known:
            kind = row.type.removesuffix(" Error").lower() if row.label == "not_e" else RIGHT
            twin = places[pair] if row.label == "not_e" else ""
            items.append(Item(_summary(path, line, row, name), kind, twin=twin))
    return items


def _summary(path: Path, line: int, row: SummaryRow, name: str) -> Example:
    """The document is one passage, as someone has it who asks for a summary."""
    wrong = row.label == "not_e" and row.hypothesis
    labels = (Label(0, len(row.hypothesis)),) if wrong else ()
    return _example(path, line, TASK, [row.premise], row.hypothesis, id=name, labels=labels)


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
    """Where a set lies in the folder, what reads it, what is counted of it, and what takes so many."""

    file: str
    read: Callable[[Path], list[Item]]
    unit: str
    take: Callable[[Sequence[Item], int], list[Item]]


def first_questions(items: Sequence[Item], count: int) -> list[Item]:
    """Take the responses to the first questions (or pages)."""
    sources = first_sources((item.example.source for item in items), count)
    return [item for item in items if item.example.source in sources]


def draw_responses(items: Sequence[Item], count: int) -> list[Item]:
    """Draw responses, of each document as many, by a seed that makes the more contain the fewer."""
    random, drawn = Random(0), Counter[str]()
    order = list[tuple[int, int]]()
    for k in random.sample(range(len(items)), len(items)):
        source = items[k].example.source
        order.append((drawn[source], k))
        drawn[source] += 1
    taken = sorted(k for _, k in sorted(order, key=lambda pair: pair[0])[:count])
    return [items[k] for k in taken]


def draw_twins(items: Sequence[Item], count: int) -> list[Item]:
    """Draw faulty responses likewise, each with the right one that it was made of."""
    drawn = draw_responses([item for item in items if item.twin], count)
    names = {name for item in drawn for name in (item.example.id, item.twin)}
    return [item for item in items if item.example.id in names]


SETS = {
    PAIRS: Source("minimal_pairs/pairs.jsonl", read_pairs, "questions", first_questions),
    HALUEVAL: Source("halueval_qa/qa.jsonl", read_halueval, "questions", first_questions),
    WICE: Source("wice/non_supported_tokens.dev.jsonl", read_wice, "pages", first_questions),
    SUMMEDITS: Source("claims/summedits.jsonl", read_summedits, "summaries", draw_responses),
    BUMP: Source("claims/bump.jsonl", read_bump, "pairs", draw_twins),
}


def read_sets(folder: Path, limits: Mapping[str, int | None] | None = None) -> dict[str, list[Item]]:
    """The sets that the folder has, by name; with `limits`, those that it names, and of each so many of what
    is counted of it.

    Raises `InputError` naming file, line and field for a malformed row, and where there is no set at all.
    """
    if not folder.is_dir():
        raise InputError("no such folder", path=folder)
    found = {}
    for name, limit in (dict.fromkeys(SETS) if limits is None else limits).items():
        path = folder / SETS[name].file
        if path.exists():
            items = SETS[name].read(path)
            if not items:
                raise InputError("no responses", path=path)
            found[name] = items if limit is None else SETS[name].take(items, limit)
    if not found:
        known = ", ".join(source.file for source in SETS.values())
        raise InputError(f"none of the sets is here ({known})", path=folder)
    return found
