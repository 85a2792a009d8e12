"""A kit without weights: vectors of words, and support by the share of words that are known."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lrp4rag.example import Example, Label
from lrp4rag.experiments.systems.encoders.entailment import Pair
from lrp4rag.experiments.systems.kit import Kit, Trained
from lrp4rag.features.text import words_of

SIZE = 64


def tokenizer(text: str, **options: Any) -> dict[str, list[tuple[int, int]]]:
    """Words are tokens."""
    return {"offset_mapping": [match.span() for match in re.finditer(r"\S+", text)]}


@dataclass(frozen=True)
class WordVectors:
    """Texts that share words are alike."""

    tokenizer: Any = tokenizer
    calls: list[list[str]] = field(default_factory=list)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(list(texts))
        vectors = np.zeros((len(texts), SIZE), np.float32)
        for k, text in enumerate(texts):
            for word in words_of(text):
                vectors[k, zlib.crc32(word.encode()) % SIZE] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


@dataclass(frozen=True)
class WordSupport:
    """The share of the hypothesis's words that the premise has. `pairs` are those that it was given."""

    name: str = "words"
    pairs: list[Pair] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def __call__(self, pairs: Sequence[Pair]) -> np.ndarray:
        self.pairs.extend(pairs)
        self.calls.append(len(pairs))
        return np.array([_share(words_of(text), set(words_of(premise))) for premise, text in pairs])


def _share(words: list[str], known: set[str]) -> float:
    return sum(word in known for word in words) / max(len(words), 1)


@dataclass(frozen=True, eq=False)
class StandInKit(Kit):
    """`stale` are sources that the model has learned from; `speaker` is whom it asks."""

    model: WordSupport = field(default_factory=WordSupport)
    vectors: WordVectors = field(default_factory=WordVectors)
    stale: frozenset[str] = frozenset()
    speaker: Any = None

    @property
    def embedder(self) -> Any:
        return self.vectors

    @property
    def chat(self) -> Any:
        return self.speaker

    def entailment(self, rows: Any) -> Trained:
        return Trained(self.model, ~np.isin(rows.groups, list(self.stale)))


def towns(count: int = 30, first: int = 0) -> list[Example]:
    """No two sources share a content word. Each response has two sentences: what the second one of every
    other says is in no passage, and annotated."""
    made = []
    for k in range(first, first + count):
        told, more = f"Alpha{k} beta{k} gamma{k}.", f"Delta{k} epsilon{k} zeta{k}."
        second = f"Dragon{k} burned{k} castles{k}." if k % 2 else more
        made.append(
            Example.create(
                question=f"What of town {k}?",
                passages=[f"{told} {more}", f"Theta{k} iota{k} kappa{k}."],
                response=f"{told} {second}",
                labels=(Label(len(told) + 1, len(told) + 1 + len(second)),) if k % 2 else (),
                id=f"town-{k}",
                generator="g",
            )
        )
    return made
