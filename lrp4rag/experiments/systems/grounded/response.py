"""Grounded in Context: claims of a response, what each retrieves, and whether that entails it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.example import Example
from lrp4rag.experiments.systems.baseline import LABELS, SPANS, Facts
from lrp4rag.experiments.systems.encoders.weights import MINILM, MINILM_PACKAGE
from lrp4rag.experiments.systems.grounded.chunker import Chunker, Starts
from lrp4rag.experiments.systems.grounded.claims import claims_fact
from lrp4rag.experiments.systems.grounded.retrieval import BUDGET, retrieved
from lrp4rag.experiments.systems.measurement import Measured, Measurement
from lrp4rag.experiments.systems.suspicion import Suspicion
from lrp4rag.experiments.systems.taught import entailed

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.encoders.embedder import Embedder
    from lrp4rag.experiments.systems.encoders.entailment import Entailment, Pair
    from lrp4rag.experiments.systems.kit import Kit
    from lrp4rag.training.rows import Rows

CLAIM_TOKENS, CLAIM_OVERLAP = 60, 15
CHUNK_TOKENS = 100  # of the context, without overlap: a premise repeats nothing
UNSUPPORTED, WEIGHT = 0.5, 3.0
"""A claim with less support than this has this weight; the others have 1."""
NAMES = ("mean support, unsupported claims weighing more", "smallest support")

Scores = NDArray[np.float64]


def aggregated(support: Scores) -> Scores:
    """Of claims (C,): sum of w s / sum of w, with w = `WEIGHT` where s < `UNSUPPORTED` and else 1; and the
    smallest s. Both are 1 where nothing is claimed: nothing is unsupported then."""
    if not len(support):
        return np.ones(2)
    weights = np.where(support < UNSUPPORTED, WEIGHT, 1.0)
    return np.array([weights @ support / weights.sum(), support.min()])


def starts_of(embedder: Embedder) -> Starts:
    """Where the embedder's tokens start."""

    def starts(text: str) -> list[int]:
        encoded = embedder.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return [start for start, _ in encoded["offset_mapping"]]

    return starts


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Of a response: `spans` (P, 2) of its pieces, which of them claim something (P,), and these."""

    spans: NDArray[np.intp]
    factual: NDArray[np.bool_]
    claims: list[str]

    @classmethod
    def of(cls, response: str, chunker: Chunker) -> Pieces:
        spans = chunker(response)
        texts = [response[start:end] for start, end in spans]
        factual = np.array([claims_fact(text) for text in texts])
        return cls(
            np.array(spans),
            factual,
            [text for text, is_claim in zip(texts, factual, strict=True) if is_claim],
        )

    def measurement(self, support: Scores) -> Measurement:
        """From the claims' support: suspicion is 1 - support, and 0 of pieces that claim nothing."""
        scores = np.zeros(len(self.spans))
        scores[self.factual] = 1 - support
        return Measurement(aggregated(support), Suspicion(self.spans, scores))


def measure(group: Sequence[Example], model: Entailment, embedder: Embedder) -> list[Measurement]:
    """Of responses to one source: passages are embedded once, and all pairs are read together."""
    starts = starts_of(embedder)
    cut = Chunker(starts, CHUNK_TOKENS)
    chunks = [text[start:end] for text in group[0].passages for start, end in cut(text)]
    chunker = Chunker(starts, CLAIM_TOKENS, CLAIM_OVERLAP)
    pieces = [Pieces.of(example.response or "", chunker) for example in group]
    claims = [claim for own in pieces for claim in own.claims]
    support = model(pairs(claims, chunks, starts, embedder))
    parts = np.split(support, np.cumsum([len(own.claims) for own in pieces])[:-1])
    return [own.measurement(part) for own, part in zip(pieces, parts, strict=True)]


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


def _measured(rows: Rows, kit: Kit, model: Entailment) -> list[Measurement]:
    settings = {
        "embedder": MINILM,
        "entailment": model.name,
        "tokens": [CLAIM_TOKENS, CLAIM_OVERLAP, CHUNK_TOKENS, BUDGET],
        "weight": [UNSUPPORTED, WEIGHT],
    }
    return kit.measured(
        "grounded", settings, rows.examples, Measurement, lambda group: measure(group, model, kit.embedder)
    )


_FACTS = Facts(
    "Grounded in Context",
    "arXiv 2504.15771",
    "text",
    f"{SPANS}, {LABELS}",
    "MiniLM (22M), cross-encoder trained in the folds",
    choices=("entailment",),
    modules=(MINILM_PACKAGE,),
)
GROUNDED = entailed(
    _FACTS, lambda model: Measured(_FACTS, partial(_measured, model=model), NAMES, marks=True)
)
