"""What a detector learns from beside annotated responses: minimal pairs, and other shapes of input.

Annotated responses have five passages, one wording of the prompt and some hundred tokens. Others have one
passage, three words, another prompt. Faults are rare in them, and mostly inventions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.polarity import find_references
from lrp4rag.example import Example
from lrp4rag.training.pair_evidence import Twin
from lrp4rag.training.pairs.corrupt import (
    KINDS,
    common_words,
    cut,
    find_faults,
    harmless_twin,
    labelled,
    refused,
    reworded,
)
from lrp4rag.training.pairs.edit import Draft
from lrp4rag.util.errors import InputError

SHAPES = 2
"""Other shapes made of each source."""
FAITHFUL, REWORDED, SEVERAL, REFUSED = "faithful", "reworded", "several faults", "refused"
ADDED = "passage added"
ALONE = ("refusal", "misattributed", "invention")
WITHIN = tuple(kind for kind in KINDS if kind not in ALONE)
"""Faults of single words; the others are of whole statements."""
FAULTS_EACH = 4
"""Copies with a fault of each shape, each of another kind."""
SHORTEST = 40
"""Characters of a response that is changed."""

PROMPTS = (
    None,
    None,
    "Answer the question from the passages.\n\n{context}\n\nQuestion: {question}\nAnswer:",
    "Use only the following documents.\n{context}\n\nWhat do they say on this: {question}",
    "{question}\n\nHere is what I found:\n{context}\n\nPlease give a short and correct answer.",
    "You are a helpful assistant of a company. Context:\n{context}\n\nUser: {question}\nReply in a few "
    "sentences, and say nothing that the context does not support.",
)
"""Templates of prompts; None is the default one."""
_ADDED, _SHUFFLED, _MERGED, _SPLIT = 0.35, 0.25, 0.25, 0.15


@dataclass(frozen=True, slots=True)
class Variant:
    """A made example: its kind (that of its fault, `SEVERAL`, or a harmless one) and the id of the faithful
    example that it was made of, or is."""

    example: Example
    kind: str
    twin: str


ANNOTATED, MADE = "annotated", "made"
"""Sets of a corpus: the rows that a detector is for, and what was made of them. Further data has its own
name."""


@dataclass(frozen=True, slots=True)
class Row:
    """An example to learn from: of which set, its kind, and the id of the faithful one that it was made of
    (its own, of that one; "" where it is in no pair)."""

    example: Example
    set: str = ANNOTATED
    kind: str = ""
    twin: str = ""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Everything that a detector learns from; ids differ."""

    rows: tuple[Row, ...]

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        more: Mapping[str, Sequence[Example]] | None = None,
        *,
        more_every: int = 1,
        pairs: bool = False,
        pairs_every: int = 1,
        seed: int = 0,
    ) -> Corpus:
        """Annotated examples, further sets by name (of their hallucinated responses about one in
        `more_every`, drawn by its id), and with `pairs` what `variants` makes of the annotated ones, of about
        one source in `pairs_every`, drawn by its name.

        In further sets, an example is a twin of the faithful one whose id its own begins with, up to a "~",
        as in files of `lrp4rag corrupt`.
        """
        rows = [Row(example) for example in examples]
        for name, some in (more or {}).items():
            if name in (ANNOTATED, MADE):
                raise InputError(f"a set of further data cannot be called '{name}'; rename its file")
            faithful = {example.id for example in some if example.labels == ()}
            for example in some:
                if example.labels and not _drawn(example.id, more_every):
                    continue
                base = _base(example.id, faithful)
                kinds = dict.fromkeys(label.kind or "fault" for label in example.labels or ())
                kind = " and ".join(kinds) or (FAITHFUL if base == example.id else REWORDED)
                rows.append(Row(example, name, kind, base))
        if pairs:
            made = variants(examples, seed=seed)
            rows += [
                Row(one.example, MADE, one.kind, one.twin)
                for one in made
                if _drawn(one.example.source, pairs_every)
            ]
        return cls(tuple(rows))

    @property
    def examples(self) -> tuple[Example, ...]:
        return tuple(row.example for row in self.rows)

    def without(self, ids: Collection[str]) -> Corpus:
        """The rows with other ids."""
        return Corpus(tuple(row for row in self.rows if row.example.id not in ids))

    def numbers(self, name: str) -> NDArray[np.intp]:
        """Of the rows of a set."""
        return np.array([k for k, row in enumerate(self.rows) if row.set == name], dtype=np.intp)

    def sets(self) -> dict[str, NDArray[np.intp]]:
        """The numbers of the rows of each further set."""
        names = dict.fromkeys(row.set for row in self.rows if row.set not in (ANNOTATED, MADE))
        return {name: self.numbers(name) for name in names}

    def twins(self) -> list[Twin]:
        """Rows that were made of a faithful row that is there too."""
        place = {
            (_home(row.set), row.example.id): k for k, row in enumerate(self.rows) if row.example.labels == ()
        }
        return [
            Twin(k, place[_home(row.set), row.twin], row.kind, row.example.labels == (), row.set)
            for k, row in enumerate(self.rows)
            if (_home(row.set), row.twin) in place and row.twin != row.example.id and row.kind != REFUSED
        ]


def _drawn(name: str, every: int) -> bool:
    """Whether it is the one in `every`, in each process alike."""
    return crc32(name.encode()) % every == 0


def _home(name: str) -> str:
    """The set in which the faithful examples of a set's pairs are."""
    return ANNOTATED if name == MADE else name


def _base(id: str, faithful: Collection[str]) -> str:
    """The id of the faithful example that one was made of, or is; "" for none."""
    parts = id.split("~")
    for count in range(1, len(parts) + 1):
        if (name := "~".join(parts[:count])) in faithful:
            return name
    return ""


def variants(examples: Sequence[Example], *, shapes: int = SHAPES, seed: int = 0) -> Iterator[Variant]:
    """Made of the faithful examples of each source, drawn by the source: those of the others do not matter
    but as lenders of passages. Labels are exact. All keep their source, so that folds do not part them.
    """
    faithful = [one for one in examples if one.labels == () and len(one.response or "") > SHORTEST]
    sources: dict[str, list[Example]] = {}
    for example in faithful:
        if not _refuses(example):
            sources.setdefault(example.source, []).append(example)
    lenders = [one for some in sources.values() for one in some]
    common = common_words(lenders)
    taken: set[str] = {example.id for example in examples}
    for source, own in sources.items():
        random, renamed = Random(f"{seed}/{source}"), dict[str, str]()
        others = [one for one in random.sample(lenders, min(8, len(lenders))) if one.source != source]
        for variant in _of_source(own, others, common, shapes, random):
            name, number = variant.example.id, 1
            while name in taken:
                number += 1
                name = f"{variant.example.id}~{number}"
            taken.add(name)
            if variant.twin == variant.example.id:
                renamed[variant.twin] = name
            twin = renamed.get(variant.twin, variant.twin)
            yield replace(variant, example=replace(variant.example, id=name), twin=twin)


def _of_source(
    own: Sequence[Example], others: list[Example], common: frozenset[str], shapes: int, random: Random
) -> Iterator[Variant]:
    whole = random.choice(own)
    draft = Draft(whole, others, common)
    if (other_words := reworded(draft, random, count=6)) is not None:
        yield Variant(other_words, REWORDED, whole.id)
    for kind in random.sample(WITHIN, len(WITHIN)):
        if edits := find_faults(draft, random, kind, WITHIN, 3):
            yield Variant(labelled(whole, edits), SEVERAL, whole.id)
            break
    for number in range(shapes):
        base = cut(reshaped(random.choice(own), others, random), random)
        if len(base.response or "") < SHORTEST:
            continue
        base = replace(base, id=f"{base.id}-{number + 1}")
        yield Variant(base, FAITHFUL, base.id)
        yield from _twins(Draft(base, others, common), random)
    if others and random.random() < 1 / 3:
        yield Variant(refused(whole, random.choice(others), random), REFUSED, whole.id)


def _twins(draft: Draft, random: Random) -> Iterator[Variant]:
    base = draft.example
    seen, made = {(base.passages, base.response)}, 0
    if (other_words := reworded(draft, random)) is not None:
        seen.add((base.passages, other_words.response))
        yield Variant(other_words, REWORDED, base.id)
    # The others can be made of any response: they come last, and one of them at most.
    for kind in (*random.sample(WITHIN, len(WITHIN)), random.choice(ALONE)):
        if made == FAULTS_EACH:
            return
        edits = find_faults(draft, random, kind, KINDS, 1)
        if not edits:
            continue
        faulty = labelled(base, edits)
        if (faulty.passages, faulty.response) in seen:
            continue
        seen.add((faulty.passages, faulty.response))
        made += 1
        yield Variant(faulty, kind, base.id)
        if any(edit.passage for edit in edits) or kind == "refusal":
            mild = harmless_twin(draft, edits, random)
            if mild is not None and (mild.passages, mild.response) not in seen:
                yield Variant(mild, REFUSED if kind == "refusal" else ADDED, base.id)


def reshaped(example: Example, others: Sequence[Example], random: Random) -> Example:
    """The same response to the same passages in another shape: passages of others added, shuffled, merged or
    split; another wording of the prompt. The passages that a response names by number keep theirs."""
    passages, way = list(example.passages), random.random()
    numbered = next(find_references(example.response or ""), None) is not None
    if (way < _ADDED or numbered) and others:
        for _ in range(random.randint(1, 2)):
            place = len(passages) if numbered else random.randint(0, len(passages))
            passages.insert(place, random.choice(random.choice(others).passages))
    elif numbered:
        pass
    elif way < _ADDED + _SHUFFLED:
        random.shuffle(passages)
    elif way < _ADDED + _SHUFFLED + _MERGED:
        passages = ["\n".join(passages)]
    else:
        number = random.randrange(len(passages))
        parts = passages[number].split(". ")
        if len(parts) > 3:
            half = len(parts) // 2
            halves = [". ".join(parts[:half]) + ".", ". ".join(parts[half:])]
            passages[number : number + 1] = halves
    return replace(
        example,
        question=example.question if example.question.strip() else "What do the passages say?",
        passages=tuple(dict.fromkeys(one for one in passages if one.strip())),
        prompt="",
        spans=(),
        template=random.choice(PROMPTS),
    )


def _refuses(example: Example) -> bool:
    return any(value.kind == "absence" for value in Draft(example, []).values)
