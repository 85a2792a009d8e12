"""Minimal pairs made of faithful responses: the same with a fault in it, and the same in other words."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from lrp4rag.claims.find import find_values
from lrp4rag.claims.value import agree
from lrp4rag.claims.words import content_words
from lrp4rag.example import Example, Label
from lrp4rag.training.pairs.edit import GROUNDED, Draft, Edit, Maker, apply, index_of
from lrp4rag.training.pairs.harmless import HARMLESS
from lrp4rag.training.pairs.meaning import conditions, negations
from lrp4rag.training.pairs.other_values import dates_and_units, names, numbers
from lrp4rag.training.pairs.statements import REFUSALS, inventions, misattributions, refusals
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_in

HARMFUL: dict[str, Maker] = {
    "number": numbers,
    "name": names,
    "date or unit": dates_and_units,
    "negation": negations,
    "condition": conditions,
    "refusal": refusals,
    "misattributed": misattributions,
    "invention": inventions,
}
"""Kinds of faults, with what makes them."""


KINDS = tuple(HARMFUL)
"""Kinds of faults, as labels name them."""
_REWORDINGS = 4
"""Most harmless changes of one copy."""
_LENDERS = 8
_FRUITLESS = 20
"""Rounds through all kinds without another copy, after which a response admits no more."""
_SMALL = re.compile(r"\b[a-z]+\b")


def pairs_of(
    examples: Sequence[Example],
    *,
    kinds: Sequence[str] = KINDS,
    faults: int = 1,
    each: int = 1,
    harmless: bool = True,
    seed: int = 0,
) -> Iterator[Example]:
    """Yield faithful examples, each followed by copies of it with faults and by harmless copies.

    * Of each example with `labels == ()` up to `each` copies are made that have up to `faults` faults of
      `kinds`; the kind made least so far comes first. A label's characters are what was changed, or the word
      beside what was taken out, and its `kind` is that of the fault.
    * With `harmless`, each of them comes with a copy that is faithful (`labels == ()`): in other words, or
      with the same passage added, or with a refusal to passages that do not answer.
    * An example that admits no fault of these kinds is left out, and so are those with spans or no labels.

    Copies keep the source, so that folds do not part them, and have ids such as `ID~number` and
    `ID~reworded`. Equal arguments give equal pairs. Raises `InputError` for an unknown kind.
    """
    families = families_of(examples, kinds=kinds, faults=faults, each=each, harmless=harmless, seed=seed)
    return itertools.chain.from_iterable(families)


def families_of(
    examples: Sequence[Example],
    *,
    kinds: Sequence[str] = KINDS,
    faults: int = 1,
    each: int = 1,
    harmless: bool = True,
    seed: int = 0,
) -> Iterator[list[Example]]:
    """Yield the pairs of each faithful example, as `pairs_of` has them; an empty list where it admits no
    fault."""
    for kind in kinds:
        if kind not in HARMFUL:
            raise InputError(f"no fault is called '{kind}'; there are: {', '.join(KINDS)}", field="kinds")
    return _families(examples, tuple(dict.fromkeys(kinds)), faults, each, harmless, seed)


def _families(
    examples: Sequence[Example], kinds: Sequence[str], faults: int, each: int, harmless: bool, seed: int
) -> Iterator[list[Example]]:
    faithful = [example for example in examples if example.labels == () and example.response]
    ids, counts = {example.id for example in examples}, Counter[str]()
    common = common_words(faithful)
    for example in faithful:
        random = Random(f"{seed}/{example.id}")  # what follows does not depend on the other examples' edits
        draft = Draft(example, _lenders(example, faithful, random), common)
        order = sorted(random.sample(kinds, len(kinds)), key=lambda kind: counts[kind])
        copies = list[Example]()
        contents: set[object] = {(example.passages, example.response)}
        left, fruitless = each, 0
        for kind in itertools.islice(itertools.cycle(order), each * len(order)):
            if not left or fruitless == _FRUITLESS * len(order):
                break
            fruitless += 1
            edits = find_faults(draft, random, kind, kinds, faults)
            if not edits:
                continue
            twin = labelled(example, edits)
            if _add(copies, twin, contents, ids):
                left, fruitless = left - 1, 0
                counts.update(edit.kind for edit in edits)
                if harmless and (mild := harmless_twin(draft, edits, random)) is not None:
                    _add(copies, mild, contents, ids)
        yield [example, *copies] if copies else []


def common_words(examples: Iterable[Example]) -> frozenset[str]:
    """Collect words that some passage writes in small letters: none of them is a name."""
    texts = {passage for example in examples for passage in example.passages}
    return frozenset(word for text in texts for word in _SMALL.findall(text))


def find_faults(draft: Draft, random: Random, first: str, kinds: Sequence[str], count: int = 1) -> list[Edit]:
    """Find up to `count` edits that make the response wrong: the first of kind `first`, the others of any of
    `kinds`; none where the draft admits none of that kind. A refusal, which replaces all, stands alone."""
    edits = list[Edit]()
    for _ in range(count):
        kinds_beside = [kind for kind in kinds if kind != "refusal"]
        for kind in random.sample(kinds_beside, len(kinds_beside)) if edits else [first]:
            candidates = (edit for edit in HARMFUL[kind](draft, random) if edit.apart_from(edits))
            if (edit := next(candidates, None)) is not None:
                edits.append(edit)
                break
        else:
            break
        if first == "refusal":
            break
    return edits


def labelled(example: Example, edits: Sequence[Edit]) -> Example:
    """Apply edits to an example, label each, and add the passages that they bring."""
    response, spans = apply(example.response or "", edits)
    kinds = [edit.kind for edit in sorted(edits, key=lambda edit: edit.start)]
    labels = tuple(Label(*span, kind) for span, kind in zip(spans, kinds, strict=True))
    name = "+".join(dict.fromkeys(kinds)).replace(" ", "-")
    base = _with_those_of(example, edits)
    return replace(base, response=response, labels=labels, id=f"{example.id}~{name}")


def harmless_twin(draft: Draft, edits: Sequence[Edit], random: Random) -> Example | None:
    """Make a faithful copy that shares with the faulty one what is no fault: a passage that came with it, or
    that it is a refusal, here to passages that do not answer. Otherwise one in other words, or None."""
    if any(edit.passage for edit in edits):
        changed = _with_those_of(draft.example, edits)
        return replace(changed, id=f"{draft.example.id}~passage-added")
    words = content_words(draft.example.question)
    for lender in draft.others if edits[0].kind == "refusal" and words else ():
        if max(index_of(tuple(lender.passages)).similarities(words), default=0.0) < GROUNDED:
            return refused(draft.example, lender, random)
    return reworded(draft, random)


def reworded(draft: Draft, random: Random, count: int = _REWORDINGS) -> Example | None:
    """Change an example harmlessly in up to `count` places, of as many kinds as it admits; None for none. All
    its values agree with the original's."""
    edits_by_kind = [list(make(draft, random)) for make in HARMLESS.values()]
    rounds = itertools.zip_longest(*(random.sample(edits, len(edits)) for edits in edits_by_kind))
    edits = list[Edit]()
    for edit in (edit for edits_of_round in rounds for edit in edits_of_round if edit is not None):
        if len(edits) < count and edit.apart_from(edits) and _keeps_values(draft, edit):
            edits.append(edit)
    if not edits:
        return None
    response, _ = apply(draft.response, edits)
    return replace(draft.example, response=response, labels=(), id=f"{draft.example.id}~reworded")


def _keeps_values(draft: Draft, edit: Edit) -> bool:
    response, _ = apply(draft.response, [edit])
    values = find_values(response, draft.surroundings)
    return all(any(agree(value, original) for original in draft.values) for value in values)


def refused(example: Example, lender: Example, random: Random) -> Example:
    """Ask the question of another source's passages, with a refusal, which is right there."""
    texts = [text for text in REFUSALS if "{" not in text]
    changed = with_passages(example, lender.passages)
    return replace(changed, response=random.choice(texts), labels=(), id=f"{example.id}~refused")


def cut(example: Example, random: Random, most: int = 4) -> Example:
    """Keep one to `most` sentences in a row of a faithful response."""
    response = example.response or ""
    spans = sentences_in(response)
    length = min(random.randint(1, most), len(spans))
    first = random.randint(0, len(spans) - length)
    text = response[spans[first][0] : spans[first + length - 1][1]]
    return replace(example, response=text, labels=(), id=f"{example.id}~cut")


def with_passages(example: Example, passages: Iterable[str], template: str | None = None) -> Example:
    """Give the example other passages, its prompt in the template's wording, or the default one."""
    question = example.question if example.question.strip() else "What do the passages say?"
    return replace(
        example, question=question, passages=tuple(passages), prompt="", spans=(), template=template
    )


def _with_those_of(example: Example, edits: Sequence[Edit]) -> Example:
    """Add the passages that edits bring after those of the example, so that their numbers stay."""
    added = [edit.passage for edit in edits if edit.passage]
    return with_passages(example, [*example.passages, *added]) if added else example


def _lenders(example: Example, faithful: Sequence[Example], random: Random) -> list[Example]:
    """Draw faithful examples of other sources; none where there is one source."""
    drawn = random.sample(faithful, min(_LENDERS, len(faithful)))
    return [lender for lender in drawn if lender.source != example.source]


def _add(copies: list[Example], copy: Example, contents: set[object], ids: set[str]) -> bool:
    """Append a copy under an id that nothing has, unless an equal one is there."""
    content = (copy.passages, copy.response)
    if content in contents:
        return False
    contents.add(content)
    copies.append(renamed(copy, ids))
    return True


def renamed(example: Example, ids: set[str]) -> Example:
    """Give an example an id that nothing has, and take it."""
    names = itertools.chain([example.id], (f"{example.id}~{number}" for number in itertools.count(2)))
    name = next(name for name in names if name not in ids)
    ids.add(name)
    return replace(example, id=name)
