"""Grounded in Context (arXiv 2504.15771): claims of a response, what each retrieves, whether that entails it.

The paper trains a classifier to tell claims from other pieces; the few rules here are ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from experiments.systems.baseline import Measured, Measurement
from experiments.systems.encoders import MINILM, Embedder, Entailment, Pair
from experiments.systems.entailment import entailment_facts, entailment_of
from experiments.systems.facts import LABELS, SPANS
from experiments.systems.resources import Resources
from experiments.systems.scoring import PartScores, split
from lrp4rag.example import Example
from lrp4rag.training.rows import Rows
from lrp4rag.util.sentences import sentences_in, sentences_of
from lrp4rag.util.text import words_of

CLAIM_TOKENS, CLAIM_OVERLAP = 60, 15
CHUNK_TOKENS = 100  # of the context, without overlap: a premise repeats nothing
UNSUPPORTED, WEIGHT = 0.5, 3.0
"""A claim with less support than this has this weight; the others have 1."""
NAMES = ("mean support, unsupported claims weighing more", "smallest support")
BUDGET = 512  # tokens that the cross-encoder reads
SPECIAL = 4  # tokens between and around the two texts, at most
CONTENT_WORDS = 2
"""Fewer words that are no stop words claim nothing."""

_SOURCE = (
    r"(?:(?:the|these|those|this) )?(?:(?:given|provided|above|following) )*"
    r"(?:passages?|context|text|documents?|information)"
)
# Struck out of a sentence: courtesies at its start, and where it says what it goes by or announces.
_PHRASES = re.compile(
    r"^(?:(?:sure|certainly|of course|absolutely|hello|hi|hey|yes|no)\b[\s,.!:]*)+"
    r"|\bhere (?:is|are)\b[^:.]*:"
    r"|\b(?:based (?:\w+ )?on|according to|as (?:mentioned|stated|described) in) "
    rf"{_SOURCE}\b(?: (?:provided|given|above))?",
    re.IGNORECASE,
)
# Sentences that are struck out whole: questions, courtesies, what is said of the passages or of the answer.
_WHOLE = re.compile(
    r"\?\W*$"
    r"|^(?:i hope|let me know|feel free|thanks?\b|thank you|you(?:'re| are) welcome)"
    r"|\b(?:unable|not able|impossible|not possible) to (?:answer|determine|say)"
    r"|\bcan(?:not|'t| not) (?:be )?(?:answer|determine)"
    rf"|\b{_SOURCE}\b[^.]{{0,40}}\b(?:do|does|did)(?: not|n't) "
    r"(?:\w+ )?(?:mention|contain|provide|specify|say|state|include|give|discuss|answer)",
    re.IGNORECASE,
)


def claims_fact(text: str) -> bool:
    """Whether enough content words are left once questions, courtesies and statements about the passages or
    the answer are struck out."""
    left = [_PHRASES.sub("", sentence) for sentence in sentences_of(text) if not _WHOLE.search(sentence)]
    words = [word for part in left for word in words_of(part) if word not in ENGLISH_STOP_WORDS]
    return len(words) >= CONTENT_WORDS


def retrieved(
    similarity: NDArray[np.floating], lengths: NDArray[np.intp], claim: int, budget: int = BUDGET
) -> NDArray[np.intp]:
    """Numbers of the k chunks most similar to a claim of `claim` tokens, in the order of the context, (k,).

    `similarity` (C,) is the chunks' to the claim, `lengths` (C,) are theirs in tokens. k is as large as
    fits the budget together with the claim, and at least 1.
    """
    order = np.argsort(-similarity, kind="stable")
    fitting = int((claim + SPECIAL + np.cumsum(lengths[order]) <= budget).sum())
    return np.sort(order[: max(fitting, 1)])


def aggregated(support: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of claims (C,): sum of w s / sum of w, with w = `WEIGHT` where s < `UNSUPPORTED` and else 1; and the
    smallest s. Both are 1 where nothing is claimed: nothing is unsupported then."""
    if not len(support):
        return np.ones(2)
    weights = np.where(support < UNSUPPORTED, WEIGHT, 1.0)
    return np.array([weights @ support / weights.sum(), support.min()])


# A recursive chunker: pieces of a text of at most so many tokens, cut at the coarsest places that do.

Span = tuple[int, int]
Starts = Callable[[str], Sequence[int]]
"""Where each token of a text starts, in characters, rising."""


def _between(pattern: str) -> Callable[[str], list[int]]:
    return lambda text: [match.end() for match in re.finditer(pattern, text)]


CUTS: tuple[Callable[[str], list[int]], ...] = (
    _between(r"\n\s*\n"),  # paragraphs
    _between(r"\n"),  # lines
    lambda text: [start for start, _ in sentences_in(text)],
    _between(r"[,;:)]\s+|\s[-\u2013\u2014]\s"),  # clauses
    _between(r"\s+"),  # words
)
"""Where a text may be cut, the coarsest places first."""


@dataclass(frozen=True, slots=True)
class Chunker:
    """Pieces have at most `longest` tokens, or are a single word. One begins with those of the last parts of
    the piece before it that have at most `overlap` tokens together: a whole sentence, clause or word."""

    starts: Starts
    longest: int
    overlap: int = 0

    def __call__(self, text: str) -> list[Span]:
        """Characters of each piece, without the white space around it."""
        places = np.asarray(self.starts(text), dtype=np.intp)
        found = []
        for start, end in _chunks(text, (0, len(text)), 0, places, self):
            if piece := text[start:end].strip():
                first = text.index(piece[0], start)
                found.append((first, first + len(piece)))
        return found


def tokens_of(span: Span, places: NDArray[np.intp]) -> int:
    """How many tokens start within a span."""
    first, last = np.searchsorted(places, span)
    return int(last - first)


def _chunks(text: str, span: Span, level: int, places: NDArray[np.intp], chunker: Chunker) -> list[Span]:
    if tokens_of(span, places) <= chunker.longest or level == len(CUTS):
        return [span]
    made: list[Span] = []
    held: list[Span] = []
    for part in _parts(text, span, CUTS[level]):
        if tokens_of(part, places) <= chunker.longest:
            held.append(part)
        else:
            made += _merged(held, places, chunker) + _chunks(text, part, level + 1, places, chunker)
            held = []
    return made + _merged(held, places, chunker)


def _parts(text: str, span: Span, cuts: Callable[[str], list[int]]) -> list[Span]:
    """The span, cut where it may be; each part keeps the white space after it."""
    start, end = span
    inside = {start + cut for cut in cuts(text[start:end])} - {start, end}
    edges = [start, *sorted(inside), end]
    return list(pairwise(edges))


def _merged(parts: Sequence[Span], places: NDArray[np.intp], chunker: Chunker) -> list[Span]:
    """Neighbouring parts together, as many as fit."""
    made: list[Span] = []
    first = 0
    for k, (_, end) in enumerate(parts):
        if tokens_of((parts[first][0], end), places) > chunker.longest:
            made.append((parts[first][0], parts[k - 1][1]))
            first = next(
                j
                for j in range(first + 1, k + 1)
                if tokens_of((parts[j][0], parts[k - 1][1]), places) <= chunker.overlap
                and tokens_of((parts[j][0], end), places) <= chunker.longest
            )
    return [*made, (parts[first][0], parts[-1][1])] if parts else made


# Claims and their support.


def starts_of(embedder: Embedder) -> Starts:
    """Where the embedder's tokens start."""

    def starts(text: str) -> list[int]:
        encoded = embedder.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return [start for start, _ in encoded["offset_mapping"]]

    return starts


def measure_group(group: Sequence[Example], model: Entailment, embedder: Embedder) -> list[Measurement]:
    """Of responses to one source: passages are embedded once, and all pairs are read together. A piece's
    score is 1 - its support, and 0 where it claims nothing."""
    starts = starts_of(embedder)
    cut = Chunker(starts, CHUNK_TOKENS)
    chunks = [text[start:end] for text in group[0].passages for start, end in cut(text)]
    chunker = Chunker(starts, CLAIM_TOKENS, CLAIM_OVERLAP)
    responses = [example.response or "" for example in group]
    pieces = [chunker(response) for response in responses]
    texts = [[one[start:end] for start, end in own] for one, own in zip(responses, pieces, strict=True)]
    factual = [[claims_fact(text) for text in own] for own in texts]
    claims = [list(compress(own, flags)) for own, flags in zip(texts, factual, strict=True)]
    support = model(pairs([claim for own in claims for claim in own], chunks, starts, embedder))
    made = []
    for spans, flags, part in zip(pieces, factual, split(support, claims), strict=True):
        scores = np.zeros(len(spans))
        scores[flags] = 1 - part
        made.append(Measurement(aggregated(part), PartScores(np.array(spans), scores)))
    return made


def pairs(claims: Sequence[str], chunks: Sequence[str], starts: Starts, embedder: Embedder) -> list[Pair]:
    """Each claim with the chunks that it retrieves, as one premise."""
    vectors = embedder([*chunks, *claims])
    known, queries = vectors[: len(chunks)], vectors[len(chunks) :]
    lengths = np.array([len(starts(chunk)) for chunk in chunks])
    made = []
    for claim, query in zip(claims, queries, strict=True):
        numbers = retrieved(known @ query, lengths, len(starts(claim)))
        made.append((" ".join(chunks[k] for k in numbers), claim))
    return made


def measure(rows: Rows, resources: Resources, model: Entailment) -> list[Measurement]:
    settings = {
        "embedder": MINILM,
        "entailment": model.name,
        "tokens": [CLAIM_TOKENS, CLAIM_OVERLAP, CHUNK_TOKENS, BUDGET],
        "weight": [UNSUPPORTED, WEIGHT],
    }
    group = partial(measure_group, model=model, embedder=resources.embedder)
    return resources.measured("grounded", settings, rows.examples, Measurement, group)


GROUNDED = Measured(
    entailment_facts("Grounded in Context", "arXiv 2504.15771", f"{SPANS}, {LABELS}"),
    measure,
    NAMES,
    marks=True,
    model_of=entailment_of,
)
