"""Write `lrp4rag/claims/lexicon.txt` from the database files of WordNet 3.0.

`python -m benchmarks.lexicon /usr/share/wordnet`, where Debian's package wordnet-base puts them.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

_PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_SENSES = {"n": 2, "v": 5, "a": 5, "r": 3}
"""Senses of a word that are taken, the most frequent first."""
_WORD = re.compile(r"[a-z]+(?:[-_][a-z]+)?")


@dataclass(frozen=True, slots=True)
class _Synset:
    """Words of one sense, and pointers to others: sign, offset, and the other's number of a word (0: all)."""

    words: list[str]
    pointers: list[tuple[str, str, int]]


def _synsets(path: Path) -> dict[str, _Synset]:
    synsets = {}
    for line in path.read_text("utf-8").splitlines():
        if line.startswith(" "):
            continue
        fields = line.split(" | ")[0].split()
        count = int(fields[3], 16)
        words = [re.sub(r"\(\w+\)", "", word).lower() for word in fields[4 : 4 + 2 * count : 2]]
        rest = fields[4 + 2 * count :]
        pointers = []
        for k in range(int(rest[0])):
            sign, offset, _, numbers = rest[1 + 4 * k : 5 + 4 * k]
            pointers.append((sign, offset, int(numbers[2:], 16)))
        synsets[fields[0]] = _Synset(words, pointers)
    return synsets


def _frequent(path: Path, part: str) -> tuple[dict[str, set[str]], set[str]]:
    """Map each synset's offset to its words that have it among their most frequent senses; and return
    the words that WordNet's own texts have."""
    words, common = defaultdict[str, set[str]](set), set[str]()
    for line in path.read_text("utf-8").splitlines():
        fields = line.split()
        if line.startswith(" ") or not _WORD.fullmatch(fields[0]) or ("_" in fields[0] and part != "v"):
            continue
        senses = int(fields[2])
        offsets, tagged = fields[-senses:], int(fields[-senses - 1])
        if tagged:
            common.add(fields[0])
        # Of other words only verbs of two words, and the first sense of adjectives.
        if tagged or "_" in fields[0] or part == "a":
            most = min(_SENSES[part], tagged if part == "n" else senses if tagged or part == "v" else 1)
            for offset in offsets[:most]:
                words[offset].add(fields[0])
    return words, common


def _lines(folder: Path) -> Iterator[str]:
    words_taken = set()
    for part, name in _PARTS.items():
        synsets = _synsets(folder / f"data.{name}")
        frequent, common = _frequent(folder / f"index.{name}", part)
        for offset, synset in synsets.items():
            words = [word for word in synset.words if word in frequent[offset]]
            opposites = _opposites(synsets, synset)
            if not common.isdisjoint(words) and (len(words) > 1 or opposites):
                words_taken.update(words)
                yield " ".join((part, *words, *(("!", *opposites) if opposites else ())))
    for name in ("verb", "noun", "adj"):
        for line in (folder / f"{name}.exc").read_text("utf-8").splitlines():
            form, base = line.split()[:2]
            if base in words_taken and _WORD.fullmatch(form) and (name == "verb" or form not in words_taken):
                yield f"= {form} {base}"


def _opposites(synsets: dict[str, _Synset], synset: _Synset) -> list[str]:
    """Return the antonyms of a synset's words, and of an adjective those of the one that it is like."""
    like = [synsets[offset] for sign, offset, _ in synset.pointers if sign == "&"]
    opposites = [
        synsets[offset].words[number - 1]
        for each in (synset, *like[:1])
        for sign, offset, number in each.pointers
        if sign == "!"
    ]
    return [word for word in dict.fromkeys(opposites) if _WORD.fullmatch(word)]


def main(folder: str) -> None:
    """Write the table into the package."""
    target = Path(str(resources.files("lrp4rag.claims") / "lexicon.txt"))
    target.write_text("\n".join(sorted(set(_lines(Path(folder))))) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
