"""Claims with evidence that people, or models, have labelled, and others that rules make of them.

They teach what answers to a few hundred questions cannot: how many words and relations a claim can have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from pydantic import BaseModel

from lrp4rag.data import read_rows
from lrp4rag.reader.comparer import Pair
from lrp4rag.training.labelled_pairs import LabelledPair, Told

MOST = {
    "fever_train": 50_000,
    "infotabs": 14_000,
    "mnli": 12_000,
    "semi_automatic_wiki": 15_788,
    "wanli_15k": 9_000,
    "creak_explanations": 5_000,
    "cad_nli": 11_330,
    "snli": 3_000,
    "scone": 3_000,
    "help_and_or": 2_000,
    "med": 2_000,
    "negation_nli": 4_500,
    "factcheck_gpt": 3_305,
    "citation_integrity": 2_843,
    "fool_me_twice": 2_549,
    "fever_nli_devtest": 10_000,
}
"""Claims of each file that are learned from, at most: no set's way of writing is to outweigh the others'."""
MEASURED = "fever_symmetric"
"""The file by which networks are measured, whose claims show nothing without their evidence."""
WITHOUT_VALUES = frozenset(("help_and_or", "med", "scone", "snli"))
EVIDENCE_WORDS, CLAIM_WORDS = 120, 50
"""Words beyond which a pair is left out: it would be cut."""
SUPPORTED_BESIDE = 1.1
"""Supported claims of FEVER without a cue, for each that is not."""
EXCHANGED, NUMBERS, IN_EVIDENCE, NEARBY = 0.35, 0.7, 0.6, 0.4
"""The part of supported claims of which a value is exchanged; of these, that of numbers where there are names
too, that in which it is exchanged in the evidence, and that where another name of the evidence takes a
name's place."""
_CUE = re.compile(
    r"\b(?:not|never|no|only|cannot|nothing|none|without|incapable|unable|exclusively|refused|failed"
    r"|yet to)\b|n't",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,.]*\d|(?<![\w.,])\d(?!\w)")
_NAME = re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")
_SHORTEST_NAME = 4


class ClaimRow(BaseModel):
    """A line of a file of claims, of which no more is read."""

    premise: str
    hypothesis: str
    label: Told
    group: str | None = None
    split: str | None = None


def read_claims(folder: Path, seed: int = 0) -> list[LabelledPair]:
    """Read the claims of a folder that has the files of `MOST`, and add those that rules make of them, in
    random order; raises `InputError` where a file is not there or is something else."""
    random, found = Random(seed), list[LabelledPair]()
    measured = {row.hypothesis.strip().lower() for row in read_file(folder, MEASURED)}
    for name, most in MOST.items():
        rows = [row for row in read_file(folder, name) if row.split != "test" and _short(row)]
        rows = [row for row in rows if row.hypothesis.strip().lower() not in measured]
        if name.startswith("fever"):
            rows = balanced(rows, random)
        found += _whole_groups(rows, name, most, random)
    names = [name for one in found if one.set.startswith("fever") for name in names_in(one.pair.premise)]
    of_values = [one for one in found if one.label == "e" and one.set not in WITHOUT_VALUES]
    chosen = [one for one in of_values if random.random() < EXCHANGED]
    found += [made for one in chosen if (made := exchanged(one, random, names)) is not None]
    random.shuffle(found)
    return found


def read_measured(folder: Path, count: int | None = None) -> list[LabelledPair]:
    """Read the claims of the file that is for measuring, all or the first."""
    return [_pair(row, MEASURED, "") for row in read_file(folder, MEASURED)[:count]]


def read_file(folder: Path, name: str) -> list[ClaimRow]:
    """Read one file of the folder."""
    return [row for _, row in read_rows(folder / f"{name}.jsonl", ClaimRow)]


def _short(row: ClaimRow) -> bool:
    return len(row.premise.split()) <= EVIDENCE_WORDS and len(row.hypothesis.split()) <= CLAIM_WORDS


def balanced(rows: Sequence[ClaimRow], random: Random) -> list[ClaimRow]:
    """Leave out claims of FEVER until those with "not" or "only" are refuted no more often than the others:
    there, these words alone tell most refuted claims."""
    groups = defaultdict[tuple[bool, bool], list[ClaimRow]](list)
    for row in rows:
        groups[bool(_CUE.search(row.hypothesis)), row.label != "e"].append(row)
    for beside, more, times in (
        ((True, False), (True, True), 1.0),
        ((False, True), (False, False), SUPPORTED_BESIDE),
    ):
        random.shuffle(groups[more])
        del groups[more][int(len(groups[beside]) * times) :]
    return [row for group in groups.values() for row in group]


def _whole_groups(rows: Iterable[ClaimRow], name: str, most: int, random: Random) -> list[LabelledPair]:
    """Choose up to `most` rows; those that differ by a small edit stay together."""
    groups = defaultdict[str, list[ClaimRow]](list)
    for number, row in enumerate(rows):
        groups[row.group or f"row {number}"].append(row)
    found = list[LabelledPair]()
    for key in random.sample(list(groups), len(groups)):
        if len(found) >= most:
            break
        found += [_pair(row, name, key) for row in groups[key]]
    return found


def _pair(row: ClaimRow, name: str, group: str) -> LabelledPair:
    pair = Pair(" ".join(row.premise.split()), "", row.hypothesis)
    return LabelledPair(pair, row.label, None, f"{name}: {group}", name)


def names_in(text: str) -> list[str]:
    """Return what is written as names are, short ones left out."""
    return [found[0] for found in _NAME.finditer(text) if len(found[0]) >= _SHORTEST_NAME]


def exchanged(one: LabelledPair, random: Random, names: Sequence[str]) -> LabelledPair | None:
    """Exchange a value that a supported claim shares with its evidence, in one of the two; the value that the
    claim then has is labelled. `names` are others; None where the pair admits no exchange."""
    claim, premise = one.pair.claim, one.pair.premise
    numbers = [
        found
        for found in _NUMBER.finditer(claim)
        if found.start() and claim.count(found[0]) == 1 and _alone(found[0]).search(premise)
    ]
    named = [
        found
        for found in _NAME.finditer(claim)
        if found.start() and len(found[0]) >= _SHORTEST_NAME and found[0] in premise
        if claim.count(found[0]) == 1
    ]
    label: Told
    if numbers and (random.random() < NUMBERS or not named):
        value, label, kind = random.choice(numbers), "c", "number"
        new = _other_number(value[0], random)
        changed = _alone(value[0]).sub(new, premise)
    elif named:
        # Something of another name may be so too, and the evidence does not tell it.
        value, label, kind = random.choice(named), "not_e", "name"
        new = _other_name(value[0], one.pair, random, names)
        changed = new.join(part.replace(new, value[0]) for part in premise.split(value[0]))
    else:
        return None
    if new == value[0]:
        return None
    start, end = value.span()
    if random.random() < IN_EVIDENCE:
        pair = replace(one.pair, premise=changed)
        return LabelledPair(pair, label, ((start, end),), one.source, "exchanged", kind)
    pair = replace(one.pair, claim=claim[:start] + new + claim[end:])
    return LabelledPair(pair, label, ((start, start + len(new)),), one.source, "exchanged", kind)


def _alone(number: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.,]){re.escape(number)}(?!\w)")


def _other_number(text: str, random: Random) -> str:
    """Return a number in the same writing, for a year one nearby; the same for what is no number."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:  # "1.2.3"
        return text
    if "." in text:
        digits = len(text.rpartition(".")[2])
        return f"{value * random.choice((0.5, 0.8, 1.1, 1.3, 2, 3)):.{digits}f}"
    if 1500 < value < 2100 and "," not in text:
        return str(int(value + random.choice((-1, 1)) * random.choice((1, 2, 3, 5, 8, 11, 20))))
    number = max(int(value * random.choice((0.5, 0.7, 0.9, 1.2, 1.5, 2, 3))) + random.choice((-1, 0, 1)), 0)
    return f"{number:,}" if "," in text else str(number)


def _other_name(name: str, pair: Pair, random: Random, names: Sequence[str]) -> str:
    """Return another name, of the evidence or from elsewhere, that the claim does not have; the same where
    none was drawn."""
    nearby = [other for other in names_in(pair.premise) if other != name and other not in pair.claim]
    pool = nearby if nearby and random.random() < NEARBY else names
    new = random.choice(pool) if pool else name
    return name if new in pair.claim or name in new else new
