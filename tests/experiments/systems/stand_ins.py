"""Labelled examples whose second sentence no passage says, and models that need no weights."""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from experiments.cache import Cache
from experiments.systems.baseline import Fitted, Measurement
from experiments.systems.redeep import RedeepScores
from experiments.systems.resources import Resources
from lrp4rag.example import Example, Label
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Configuration, Store
from lrp4rag.util.text import words_of
from tests.classifiers.samples import READER
from tests.training.labelled import extraction

SIZE = 64


def couples(count, first=0):
    """To each source a faithful response, and one with an annotated sentence that is in no passage."""
    made = []
    for k in range(first, first + count):
        said, more = f"The old bridge {k} is red.", "It was a stone bridge."
        passages = (f"{said} {more}", f"The river {k} is blue. Nobody lives near.")
        wrong = (Label(len(said) + 1, len(said) + 20),)
        for name, second, labels in (("False", more, ()), ("True", "A dragon burned it.", wrong)):
            one = Example(question=f"What of bridge {k}?", passages=passages, response=f"{said} {second}")
            made.append(replace(one, labels=labels, id=f"bridge-{k}-{name}", generator="g"))
    return made


def towns(count=30, first=0):
    """No two sources share a content word. Each response has two sentences: what the second one of every
    other says is in no passage, and annotated."""
    made = []
    for k in range(first, first + count):
        said, more = f"Alpha{k} beta{k} gamma{k}.", f"Delta{k} epsilon{k} zeta{k}."
        second = f"Dragon{k} burned{k} castles{k}." if k % 2 else more
        labels = (Label(len(said) + 1, len(said) + 1 + len(second)),) if k % 2 else ()
        passages = (f"{said} {more}", f"Theta{k} iota{k} kappa{k}.")
        one = Example(question=f"What of town {k}?", passages=passages, response=f"{said} {second}")
        made.append(replace(one, labels=labels, id=f"town-{k}", generator="g"))
    return made


def rows_of(examples, folder=None):
    """Rows of a store that holds nothing of them, or of none."""
    store: Any = None if folder is None else Store.open(folder, Configuration(READER, "attnlrp"))
    return Rows(store, tuple(examples))


def extracted(examples, folder):
    """Rows of a store that holds their relevance."""
    return Rows(extraction(examples, folder).store, tuple(examples))


def unlabelled(rows):
    return Rows(rows.store, tuple(replace(one, labels=None) for one in rows.examples))


def words_as_tokens(text, **_):
    return {"offset_mapping": [match.span() for match in re.finditer(r"\S+", text)]}


@dataclass(frozen=True)
class WordVectors:
    """An embedder: texts that share words are alike."""

    tokenizer: Any = words_as_tokens
    calls: list[list[str]] = field(default_factory=list)

    def __call__(self, texts):
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
    pairs: list[tuple[str, str]] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def __call__(self, pairs):
        self.pairs.extend(pairs)
        self.calls.append(len(pairs))
        return np.array([_share(words_of(text), set(words_of(premise))) for premise, text in pairs])


def _share(words, known):
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

    def choose(self, messages, answers):
        self.asked.append(list(messages))
        self.answers.append(answers)
        return [self.chosen(message) for message in messages]

    def replies(self, messages, *, max_tokens, temperature, seed):
        self.asked.append(list(messages))
        self.options.append((max_tokens, temperature, seed))
        said = []
        for message in messages:
            said.append(self.reply(message, self._times[message]))
            self._times[message] += 1
        return said


def redeep_scores(_reader, _embed, example):
    """Of three layers with two heads; the fourth to sixth word, which are tokens, of a response with a dragon
    are read from weights rather than context."""
    draw, words = np.random.default_rng(len(example.response)), example.response.split(" ")
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    ecs, pks = draw.normal(0, 0.05, (3, 2, len(words))), draw.uniform(0, 0.05, (3, len(words)))
    if "Dragon" in example.response:
        ecs[1, 1, 3:6] -= 1
        pks[2, 3:6] += 0.5
    of_response = (scores.mean(-1, keepdims=True) for scores in (ecs, pks))
    arrays = [scores.astype(np.float32) for scores in (ecs, pks, *of_response)]
    tokens = [(end - len(word), end) for word, end in zip(words, ends, strict=True)]
    return RedeepScores(*arrays, np.array(tokens), np.array([(0, len(example.response))]))


@dataclass(frozen=True, eq=False)
class StandIn(Resources):
    """Resources without weights; `speaker` is the model that judges."""

    speaker: Any = None

    @property
    def chat(self):
        return self.speaker

    @property
    def vectors(self):
        return self.once("embedder", WordVectors)

    @property
    def model(self):
        """The entailment model that `no_training` hands out."""
        return self.once("entailment", WordSupport, of="stand-in")


def stand_in(folder=None, speaker=None, name="words", **models):
    """`models` are those of other kinds that would be trained in a fold."""
    resources = StandIn(Cache(folder), speaker=speaker)
    resources.once("embedder", WordVectors)
    usual = dict.fromkeys(("entailment", "ragulator-encoder"), WordSupport(name))
    for kind, model in (usual | models).items():
        resources.once(kind, lambda model=model: model, of="stand-in")
    return resources


def no_training(patch, seen=()):
    """Weights of folds are the models of `stand_in`, which have learned from the sources `seen`."""

    def trained(self, rows, settings, train, load, **_):
        return self.once(settings["kind"], lambda: load("stand-in"), of="stand-in"), ~np.isin(
            rows.groups, seen
        )

    patch.setattr(Resources, "trained", trained)


@dataclass(frozen=True)
class Judged:
    """Of one response; `parts` are characters, score and mark of each part."""

    probability: float
    flagged: bool
    answered: bool
    asked: int
    unanswered: int
    parts: list[tuple[int, int, float, bool]] | None


def judged(fitted: Fitted, rows, resources):
    reading, calibration = fitted.read(rows, resources), fitted.calibration
    probabilities = calibration.probabilities(reading.scores, rows.generators)
    measured = reading.measurements or [Measurement(np.zeros(0))] * len(rows)
    parts = [None] * len(rows)
    if reading.parts is not None:
        parts = [
            [
                (start, end, score, score >= fitted.threshold)
                for (start, end), score in zip(one.spans.tolist(), one.scores.tolist(), strict=True)
            ]
            for one in reading.parts
        ]
    return [
        Judged(p, p >= calibration.threshold, bool(np.isfinite(raw)), one.asked, one.unanswered, part)
        for p, raw, one, part in zip(probabilities.tolist(), reading.scores, measured, parts, strict=True)
    ]
