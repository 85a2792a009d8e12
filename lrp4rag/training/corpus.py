"""A corpus to learn from: annotated responses, and beside them minimal pairs and other shapes of input.

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
from lrp4rag.training.pairs.corrupt import (
    KINDS,
    common_words,
    cut,
    find_faults,
    harmless_twin,
    labelled,
    refused,
    renamed,
    reworded,
    with_passages,
)
from lrp4rag.training.pairs.edit import Draft
from lrp4rag.util.errors import InputError

SHAPES = 2
"""Other shapes made of each source."""
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
_ADDED, _SHUFFLED, _MERGED = 0.35, 0.25, 0.25
"""How often passages are added, shuffled and merged; else one is split."""


ANNOTATED, MADE = "annotated", "made"
"""Sets of a corpus: the rows that a detector is for, and what was made of them. Further data has its own
name."""


@dataclass(frozen=True, slots=True)
class Row:
    """An example to learn from, and the name of its set."""

    example: Example
    set: str = ANNOTATED


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
        every: int = 1,
        more_every: int = 1,
        pairs: bool = False,
        pairs_every: int = 1,
        seed: int = 0,
    ) -> Corpus:
        """Gather annotated examples, further sets by name (of their hallucinated responses about one in
        `every` and in `more_every`, drawn by its id), and with `pairs` the `variants` of the annotated ones,
        of about one source in `pairs_every`, drawn by its name."""
        rows = [Row(example) for example in examples if not example.labels or _drawn(example.id, every)]
        for name, of_set in (more or {}).items():
            if name in (ANNOTATED, MADE):
                raise InputError(f"a set of further data cannot be called '{name}'; rename its file")
            rows += [Row(each, name) for each in of_set if not each.labels or _drawn(each.id, more_every)]
        if pairs:
            rows += [Row(example, MADE) for example in variants(examples, every=pairs_every, seed=seed)]
        return cls(tuple(rows))

    @property
    def examples(self) -> tuple[Example, ...]:
        return tuple(row.example for row in self.rows)

    @property
    def names(self) -> NDArray[np.str_]:
        """The set of each row (R,)."""
        return np.array([row.set for row in self.rows], dtype=np.str_)

    def without(self, ids: Collection[str]) -> Corpus:
        """Leave out the rows with these ids."""
        return Corpus(tuple(row for row in self.rows if row.example.id not in ids))

    def numbers(self, name: str) -> NDArray[np.intp]:
        """Number the rows of a set."""
        return np.flatnonzero(self.names == name)

    def sets(self) -> dict[str, NDArray[np.intp]]:
        """Number the rows of each further set."""
        names = dict.fromkeys(row.set for row in self.rows if row.set not in (ANNOTATED, MADE))
        return {name: self.numbers(name) for name in names}


def _drawn(name: str, every: int) -> bool:
    """Say whether a name is the one in `every`, in each process alike."""
    return crc32(name.encode()) % every == 0


def variants(examples: Sequence[Example], *, every: int = 1, seed: int = 0) -> Iterator[Example]:
    """Change the faithful examples of about one source in `every`, drawn by the source; other sources only
    lend passages.

    Labels are exact. All keep their source, so that folds do not part them.
    """
    faithful = [each for each in examples if each.labels == () and len(each.response or "") > SHORTEST]
    sources: dict[str, list[Example]] = {}
    for example in faithful:
        if not any(value.kind == "absence" for value in Draft(example, []).values):
            sources.setdefault(example.source, []).append(example)
    lenders = [example for of_source in sources.values() for example in of_source]
    common = common_words(lenders)
    ids: set[str] = {example.id for example in examples}
    for source, of_source in sources.items():
        if not _drawn(source, every):
            continue
        random = Random(f"{seed}/{source}")
        drawn = random.sample(lenders, min(8, len(lenders)))
        others = [lender for lender in drawn if lender.source != source]
        for variant in _of_source(of_source, others, common, random):
            yield renamed(variant, ids)


def _of_source(
    examples: Sequence[Example], lenders: list[Example], common: frozenset[str], random: Random
) -> Iterator[Example]:
    example = random.choice(examples)
    draft = Draft(example, lenders, common)
    if (rewording := reworded(draft, random, count=6)) is not None:
        yield rewording
    for kind in random.sample(WITHIN, len(WITHIN)):
        if edits := find_faults(draft, random, kind, WITHIN, 3):
            yield labelled(example, edits)
            break
    for number in range(SHAPES):
        base = cut(reshaped(random.choice(examples), lenders, random), random)
        if len(base.response or "") < SHORTEST:
            continue
        base = replace(base, id=f"{base.id}-{number + 1}")
        yield base
        yield from _pairs(Draft(base, lenders, common), random)
    if lenders and random.random() < 1 / 3:
        yield refused(example, random.choice(lenders), random)


def _pairs(draft: Draft, random: Random) -> Iterator[Example]:
    """Copy a faithful example with one fault each, and harmlessly."""
    base = draft.example
    contents, count = {(base.passages, base.response)}, 0
    if (rewording := reworded(draft, random)) is not None:
        contents.add((base.passages, rewording.response))
        yield rewording
    # The others can be made of any response: they come last, and one of them at most.
    for kind in (*random.sample(WITHIN, len(WITHIN)), random.choice(ALONE)):
        if count == FAULTS_EACH:
            return
        edits = find_faults(draft, random, kind, KINDS, 1)
        if not edits:
            continue
        faulty = labelled(base, edits)
        if (faulty.passages, faulty.response) in contents:
            continue
        contents.add((faulty.passages, faulty.response))
        count += 1
        yield faulty
        if any(edit.passage for edit in edits) or kind == "refusal":
            harmless = harmless_twin(draft, edits, random)
            if harmless is not None and (harmless.passages, harmless.response) not in contents:
                yield harmless


def reshaped(example: Example, lenders: Sequence[Example], random: Random) -> Example:
    """Put the same response to the same passages in another shape: passages of others added, shuffled, merged
    or split; another wording of the prompt. The passages that a response names by number keep theirs."""
    passages, chance = list(example.passages), random.random()
    numbered = next(find_references(example.response or ""), None) is not None
    if (chance < _ADDED or numbered) and lenders:
        for _ in range(random.randint(1, 2)):
            place = len(passages) if numbered else random.randint(0, len(passages))
            passages.insert(place, random.choice(random.choice(lenders).passages))
    elif numbered:
        pass
    elif chance < _ADDED + _SHUFFLED:
        random.shuffle(passages)
    elif chance < _ADDED + _SHUFFLED + _MERGED:
        passages = ["\n".join(passages)]
    else:
        number = random.randrange(len(passages))
        sentences = passages[number].split(". ")
        if len(sentences) > 3:
            half = len(sentences) // 2
            halves = [". ".join(sentences[:half]) + ".", ". ".join(sentences[half:])]
            passages[number : number + 1] = halves
    texts = dict.fromkeys(passage for passage in passages if passage.strip())
    return with_passages(example, texts, random.choice(PROMPTS))
