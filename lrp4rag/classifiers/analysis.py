"""`Analysis`: a verdict with everything it was made of, and the relevance that is pulled for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lrp4rag.claims.nearest import Nearest, nearest
from lrp4rag.classifiers.verdict import Contradiction, Evidence, Judgement, Verdict
from lrp4rag.example import Example
from lrp4rag.features.contrast import Context, context_of, first_difference
from lrp4rag.features.excerpt import Excerpt, LongPrompt
from lrp4rag.lrp.attribution import span_weights
from lrp4rag.lrp.flow import Flow
from lrp4rag.lrp.readout import Target
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.reader.encoding import FIRST_PASSAGE, Encoded
from lrp4rag.reader.published import Published


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Analysis(Verdict):
    """A verdict with the example, its tokens, and what was computed of them.

    `relevance` is there where the detector reads it, or where rows were asked for. `sentence_rows`
    (sentences, n) is R* averaged over each sentence's tokens, in logits, where they were asked for.
    `seconds` says where time went, `generated` that the reader wrote the response. `judgement` and
    `evidence` are what the verdict was built of; `context` is what the response was compared with, where
    that was read. `encoded` is the prompt as the reader has it: of a long one the `excerpt`, whose way back
    to the passages it has. Where texts alone were judged, `marks` are of the words of `judgement.encoded`.
    `comparer` is the published one that read the sentences, None where the detector's own did. `calibrated`
    is False where the detector compares texts alone beside a reader of which it knows nothing.
    """

    example: Example
    encoded: Encoded
    reader: Mapping[str, Any]
    relevance: Relevance | None
    judgement: Judgement
    evidence: Evidence
    sentence_rows: Array | None = None
    generated: bool = False
    seconds: dict[str, float]
    composite: str
    target: str
    context: Context | LongPrompt | None = None
    excerpt: Excerpt | None = None
    comparer: Published | None = None
    calibrated: bool = True

    def nearest_to(self, statement: str) -> Nearest | None:
        """Return the sentence of the passages that has most of the statement's words."""
        context = self.context or context_of(self.encoded)
        return nearest(context.index, context.passages, statement)

    @property
    def by_segment(self) -> Array | None:
        """Relevance of each segment (S, t), in logits, where it was pushed."""
        return None if self.relevance is None else self.relevance.by_segment


Pulled = tuple[dict[int, tuple[float, Sequence[float]]], dict[Contradiction, float | None]]


def pull_evidence(flow: Flow, judgement: Judgement, tokenizer: Any) -> Pulled:
    """Relevance of the whole prompt and of each passage, by the number of a suspect sentence, where none was
    pushed; and contrastive relevance of each contradiction in them: what its passage speaks for the other
    value, less what it speaks for the response's. The reader must have room for the response."""
    encoded, suspect = judgement.replayed, judgement.suspect
    assert encoded is not None
    contradictions = [one for number in suspect for one in judgement.contradictions_in(number)]
    by_sentence = dict[int, tuple[float, Sequence[float]]]()
    if suspect and judgement.relevance is None:
        weights = span_weights(encoded, [judgement.spans[number] for number in suspect])
        segments = np.array(encoded.segments)
        for number, row in zip(suspect, flow.pull(encoded, weights).double().cpu().numpy(), strict=True):
            sums = np.bincount(segments, row, len(encoded.segment_names))
            by_sentence[number] = float(row.sum()), sums[FIRST_PASSAGE:].tolist()
    return by_sentence, _contrastive(flow, encoded, contradictions, tokenizer)


def _contrastive(
    flow: Flow, encoded: Encoded, contradictions: Sequence[Contradiction], tokenizer: Any
) -> dict[Contradiction, float | None]:
    """R(other value) - R(written) of each one's passage, in logits, at the first token that differs."""
    minus, places = list(encoded.response_ids), dict[Contradiction, int]()
    for one in contradictions:
        differing = first_difference(encoded, one.start, one.end, one.instead, tokenizer)
        if differing is not None and differing[0] not in places.values():
            places[one], minus[differing[0]] = differing
    relevance: dict[Contradiction, float | None] = dict.fromkeys(contradictions)
    if places:
        weights = torch.zeros(len(places), len(minus))
        for row, token in enumerate(places.values()):
            weights[row, token] = -1.0
        pulled = flow.pull(encoded, weights, target=Target("response", tuple(minus))).float().cpu()
        segments = torch.tensor(encoded.segments)
        for one, row in zip(places, pulled, strict=True):
            relevance[one] = float(row[segments == FIRST_PASSAGE + one.passage].sum())
    return relevance


def pull_sentences(flow: Flow, encoded: Encoded, spans: Sequence[tuple[int, int]]) -> Array:
    """R* averaged over the tokens of each sentence, by its characters (sentences, n), in logits."""
    rows: Array = flow.pull(encoded, span_weights(encoded, spans)).float().cpu().numpy()
    return rows
