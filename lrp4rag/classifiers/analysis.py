"""`Analysis`: a verdict with everything it was made of, and the relevance that is pulled for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lrp4rag.claims.nearest import Nearest, nearest
from lrp4rag.classifiers.verdict import Contradiction, Evidence, Judgement, Verdict
from lrp4rag.example import Example
from lrp4rag.features.contrast import Context, context_of, first_difference
from lrp4rag.features.excerpt import Excerpt, LongPrompt
from lrp4rag.lrp.attribution import segment_weights, span_weights
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
    is False where the detector compares texts alone beside a reader of which it knows nothing. `prevalence`
    is the share of hallucinated responses that probability and threshold are for, None for that of training.
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
    prevalence: float | None = None

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
    """Pull relevance of the whole prompt and of each passage, by the number of a suspect sentence, where none
    was pushed; and contrastive relevance of each contradiction in them: what its passage speaks for the other
    value, less what it speaks for the response's. The reader must have room for the response.

    A cotangent is pulled for each sentence and each contradiction, or a tangent is pushed for each passage
    and the prompt, whichever are fewer: one of either costs about a forward pass.
    """
    encoded, suspect = judgement.replayed, judgement.suspect
    assert encoded is not None
    contradictions = [each for number in suspect for each in judgement.contradictions_in(number)]
    sentences = suspect if judgement.relevance is None else []
    weights = span_weights(encoded, [judgement.spans[number] for number in sentences])
    tokens, target = _exchanged(encoded, contradictions, tokenizer)
    segments = segment_weights(encoded)[FIRST_PASSAGE:]
    segments = torch.cat([torch.ones_like(segments[:1]), segments])
    if len(sentences) + len(tokens) > len(segments):
        written, contrast = flow.read(encoded, segments, [flow.replayer.target, target]).double().cpu()
        rows = weights @ written.T
        exchanged = -contrast[:, list(tokens.values())].T
    else:
        rows = exchanged = torch.zeros(0, len(segments)).double()
        if sentences:
            rows = flow.pull(encoded, weights).double().cpu() @ segments.T
        if tokens:
            chosen = torch.zeros(len(tokens), len(encoded.response_ids))
            chosen[range(len(tokens)), list(tokens.values())] = -1.0
            exchanged = flow.pull(encoded, chosen, target=target).double().cpu() @ segments.T
    by_sentence = {
        number: (float(row[0]), row[1:].tolist()) for number, row in zip(sentences, rows, strict=True)
    }
    contrastive = dict[Contradiction, float | None].fromkeys(contradictions)
    for contradiction, row in zip(tokens, exchanged, strict=True):
        contrastive[contradiction] = float(row[1 + contradiction.passage])
    return by_sentence, contrastive


def _exchanged(
    encoded: Encoded, contradictions: Sequence[Contradiction], tokenizer: Any
) -> tuple[dict[Contradiction, int], Target]:
    """Return the number of the first token that differs where a contradiction's other value stood in its
    place, and the target that explains the response's token less that one."""
    minus, tokens = list(encoded.response_ids), dict[Contradiction, int]()
    for contradiction in contradictions:
        differing = first_difference(
            encoded, contradiction.start, contradiction.end, contradiction.instead, tokenizer
        )
        if differing is not None and differing[0] not in tokens.values():
            tokens[contradiction], minus[differing[0]] = differing
    return tokens, Target("response", tuple(minus))


def pull_sentences(flow: Flow, encoded: Encoded, spans: Sequence[tuple[int, int]]) -> Array:
    """Pull R* averaged over the tokens of each sentence, by its characters (sentences, n), in logits."""
    rows: Array = flow.pull(encoded, span_weights(encoded, spans)).float().cpu().numpy()
    return rows
