"""Labelled examples whose second sentence no passage says, and models that need no weights."""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrp4rag.example import Example, Label
from lrp4rag.experiments.systems import trained
from lrp4rag.experiments.systems.encoders.entailment import Pair
from lrp4rag.experiments.systems.resources import Resources
from lrp4rag.features.text import words_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Configuration, Store
from tests.classifiers.samples import READER

SIZE = 64


def couples(count: int, first: int = 0) -> list[Example]:
    """To each source a faithful response, and one with an annotated sentence that is in no passage."""
    made = []
    for k in range(first, first + count):
        said = f"The old bridge {k} is red."
        passages = (f"{said} It was a stone bridge.", f"The river {k} is blue. Nobody lives near.")
        responses = {
            f"{said} It was a stone bridge.": (),
            f"{said} A dragon burned it.": (Label(len(said) + 1, len(said) + 20),),
        }
        made += [
            Example(
                question=f"What of bridge {k}?",
                passages=passages,
                response=response,
                labels=labels,
                id=f"bridge-{k}-{bool(labels)}",
                generator="g",
            )
            for response, labels in responses.items()
        ]
    return made


def towns(count: int = 30, first: int = 0) -> list[Example]:
    """No two sources share a content word. Each response has two sentences: what the second one of every
    other says is in no passage, and annotated."""
    made = []
    for k in range(first, first + count):
        said, more = f"Alpha{k} beta{k} gamma{k}.", f"Delta{k} epsilon{k} zeta{k}."
        second = f"Dragon{k} burned{k} castles{k}." if k % 2 else more
        made.append(
            Example(
                question=f"What of town {k}?",
                passages=(f"{said} {more}", f"Theta{k} iota{k} kappa{k}."),
                response=f"{said} {second}",
                labels=(Label(len(said) + 1, len(said) + 1 + len(second)),) if k % 2 else (),
                id=f"town-{k}",
                generator="g",
            )
        )
    return made


def rows_of(examples: Iterable[Example], folder: Path | None = None) -> Rows:
    """Rows of a store that holds nothing of them, or of none."""
    store: Any = None if folder is None else Store.open(folder, Configuration(READER, "attnlrp"))
    return Rows(store, tuple(examples))


def unlabelled(rows: Rows) -> Rows:
    return Rows(rows.store, tuple(replace(one, labels=None) for one in rows.examples))


def words_as_tokens(text: str, **_: Any) -> dict[str, list[tuple[int, int]]]:
    return {"offset_mapping": [match.span() for match in re.finditer(r"\S+", text)]}


@dataclass(frozen=True)
class WordVectors:
    """An embedder: texts that share words are alike."""

    tokenizer: Any = words_as_tokens
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
    """An entailment model: the share of the hypothesis's words that the premise has. `pairs` are those that
    it was given."""

    name: str = "words"
    pairs: list[Pair] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def __call__(self, pairs: Sequence[Pair]) -> np.ndarray:
        self.pairs.extend(pairs)
        self.calls.append(len(pairs))
        return np.array([_share(words_of(text), set(words_of(premise))) for premise, text in pairs])


def _share(words: list[str], known: set[str]) -> float:
    return sum(word in known for word in words) / max(len(words), 1)


@dataclass
class ScriptedChat:
    """Says `reply(message, time)` when it is asked something for the time-th time, from 0, and chooses with
    the probability `chosen(message)`."""

    reply: Callable[[str, int], str] = lambda message, time: ""
    chosen: Callable[[str], float | None] = lambda message: 0.5
    name: str = "scripted"
    asked: list[list[str]] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)
    options: list[tuple[int, float, int]] = field(default_factory=list)
    _times: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def choose(self, messages: Sequence[str], answers: tuple[str, str]) -> list[float | None]:
        self.asked.append(list(messages))
        self.answers.append(answers)
        return [self.chosen(message) for message in messages]

    def replies(
        self, messages: Sequence[str], *, max_tokens: int, temperature: float, seed: int
    ) -> list[str]:
        self.asked.append(list(messages))
        self.options.append((max_tokens, temperature, seed))
        said = []
        for message in messages:
            said.append(self.reply(message, self._times[message]))
            self._times[message] += 1
        return said


@dataclass(frozen=True, eq=False)
class StandIn(Resources):
    """Resources without weights; `speaker` is the model that judges."""

    speaker: Any = None

    @property
    def chat(self) -> Any:
        return self.speaker

    @property
    def vectors(self) -> WordVectors:
        return self.once("embedder", WordVectors)

    @property
    def model(self) -> WordSupport:
        """The entailment model that `no_training` hands out."""
        return self.once("entailment", WordSupport, of="stand-in")


def stand_in(folder: Path | None = None, speaker: Any = None, name: str = "words", **models: Any) -> StandIn:
    """`models` are those of other kinds that would be trained in a fold."""
    found = StandIn(folder, speaker=speaker)
    found.once("embedder", WordVectors)
    for kind, model in ({"entailment": WordSupport(name)} | models).items():
        found.once(kind, lambda model=model: model, of="stand-in")
    return found


def no_training(patch: pytest.MonkeyPatch, seen: Iterable[str] = ()) -> None:
    """Weights of folds are the models of `stand_in`, which have learned from the sources `seen`."""
    patch.setattr(trained, "cached_weights", lambda *_: Path("stand-in"))
    patch.setattr(trained, "seen_sources", lambda rows, seed: np.array(sorted(seen), dtype=str))
