"""(passage chunk, sentence) pairs with annotators' labels: what a cross-encoder learns entailment from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.example import Example
from lrp4rag.experiments.systems.encoders.chunks import chunks_of
from lrp4rag.experiments.systems.encoders.entailment import Pair
from lrp4rag.sentences import split_sentences
from lrp4rag.training.spans import annotated_sentences

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.encoders.embedder import Embedder

CHUNK_WORDS = 100
SHORTEST = 4  # words of a sentence: headings and list numbers are left out
UNRELATED = 0.5  # pairs with another source's chunk, as a part of the supported ones


@dataclass(frozen=True, slots=True)
class Lesson:
    pair: Pair
    supported: bool


def lessons_of(examples: list[Example], embedder: Embedder, seed: int) -> list[Lesson]:
    """Each sentence with the chunk of its passages that is most like it: not supported where an annotated
    span touches it. As many supported ones are drawn as there are others; half as many again are paired with
    the chunk of another source, which does not support them (RAGulator's way, arXiv 2411.03920)."""
    generator = np.random.default_rng(seed)
    sentences, flags, owners = [], [], []
    for example in examples:
        for text, flag in sentences_with_flags(example):
            sentences.append(text)
            flags.append(flag)
            owners.append(example)
    flagged = np.array(flags, dtype=bool)
    wrong = np.flatnonzero(flagged)
    right = generator.permutation(np.flatnonzero(~flagged))[: len(wrong)]
    own = {example.content_hash: chunks_of(example.passages, CHUNK_WORDS) for example in examples}
    chosen = np.sort(np.concatenate([wrong, right]))
    nearest = nearest_chunks(
        [sentences[k] for k in chosen], [own[owners[k].content_hash] for k in chosen], embedder
    )
    made = [Lesson((chunk, sentences[k]), not flagged[k]) for k, chunk in zip(chosen, nearest, strict=True)]
    of_source = {example.source: own[example.content_hash] for example in examples}
    names = sorted(of_source)
    for k in right[: int(UNRELATED * len(right))] if len(names) > 1 else ():
        other = names[(names.index(owners[k].source) + generator.integers(1, len(names))) % len(names)]
        made.append(Lesson((str(generator.choice(of_source[other])), sentences[k]), False))
    return made


def sentences_with_flags(example: Example) -> list[tuple[str, bool]]:
    """The response's sentences, and whether an annotated span touches them; very short ones are left out."""
    text = example.response or ""
    pairs = zip(split_sentences(text), annotated_sentences(example), strict=True)
    return [
        (text[start:end], bool(flag))
        for (start, end), flag in pairs
        if len(text[start:end].split()) >= SHORTEST
    ]


def nearest_chunks(sentences: list[str], chunks: list[list[str]], embedder: Embedder) -> list[str]:
    """Of each sentence's chunks the one with the most similar embedding."""
    every = sorted({chunk for own in chunks for chunk in own})
    place = {chunk: k for k, chunk in enumerate(every)}
    vectors, queries = embedder(every), embedder(sentences)
    found = []
    for query, own in zip(queries, chunks, strict=True):
        likeness: NDArray[np.float32] = vectors[[place[chunk] for chunk in own]] @ query
        found.append(own[int(likeness.argmax())])
    return found
