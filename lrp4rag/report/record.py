"""Write a verdict as JSON values: what `--json` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lrp4rag.claims.nearest import Nearest
from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.classifiers.verdict import Contradiction, Difference, Reason, Sentence, SuspectSpan
from lrp4rag.report.decision import Decision
from lrp4rag.report.words import reasons_of


def record(analysis: Analysis, *, decision: Decision | None = None) -> dict[str, Any]:
    """Return the verdict and its evidence as JSON values, with offsets into `response`.

    * `probability`, `threshold` and `hallucinated` are null without a detector; `hallucinated` also where the
      detector `abstained`, for the reasons in `unlike`, and where the response states nothing.
    * `prevalence`: the share of hallucinated responses that probability and threshold are for; null for that
      of training.
    * `sentences`: `status` is one of `classifiers.verdict.STATUSES`; `probability` is that of a response of
      which this is the most suspect sentence, with the same `threshold`; `nearest` is the sentence of the
      passages that has most of its words, and where these `words` are.
    * `spans`: `kind` is "contradicted" or "unsupported"; `contradictions` have values of the response, what a
      passage has in their place and where, by how many nats the reader prefers that (`margin`), and how much
      the passage speaks for it (`relevance`).
    * `passage` of a sentence or span counts from 1; null where it rests on none, or was not computed.
    * Relevance is in logits, and null where it was not computed.
    * `differences`: what passages have against suspect sentences beside their values: "left out", "answered"
      or "said of another" (`subject`).
    * `reasons`: all these in words, and features that moved the verdict, in log odds; `generator_shift` is
      what the known generator adds to them.
    * `computed`: values that no passage has and that follow from those of one passage, at its `parts`, by
      `kind` "computed" or "rounded".
    * `read`: the passages of a long prompt of which sentences were read; null where all were read whole.
    * `decision`: what a policy does with the response, with the findings of its checks; null without one.
    * `comparer`: the published model that read the sentences (`name`, `revision`, and the hash of its
      `weights`); null where the detector's own did.
    * `calibrated`: false where texts alone were compared, since no detector knows the reader.
    """
    encoded = analysis.encoded
    return {
        "id": analysis.example.id,
        "probability": _number(analysis.probability),
        "threshold": _number(analysis.threshold),
        "hallucinated": analysis.hallucinated,
        "abstained": analysis.abstained,
        "prevalence": _number(analysis.prevalence),
        "generator_shift": _number(analysis.shift),
        "unlike": [asdict(item) for item in analysis.unlike],
        "computed": [
            {
                "start": item.start,
                "end": item.end,
                "text": item.text,
                "kind": item.kind,
                "words": item.words,
                "passage": item.passage + 1,
                "parts": [{"start": start, "end": end} for start, end in item.parts],
            }
            for item in analysis.computed
        ],
        "differences": [_difference(difference) for difference in analysis.differences],
        "reasons": [_reason(reason) for reason in reasons_of(analysis)],
        "spans": [_span(span) for span in analysis.spans],
        "sentences": [_sentence(sentence) for sentence in analysis.sentences],
        "reader": dict(analysis.reader),
        "comparer": None if analysis.comparer is None else asdict(analysis.comparer),
        "calibrated": analysis.calibrated,
        "composite": analysis.composite,
        "target": analysis.target,
        "decision": None if decision is None else decision.record(),
        "relevance_of": "prompt",
        "prompt_tokens": len(encoded.prompt_ids),
        "response_tokens": len(encoded.response_ids),
        "dropped": encoded.dropped,
        "read": passages_record(analysis.read),
        "generated": analysis.generated,
        "response": encoded.response,
        "seconds": {stage: _number(seconds) for stage, seconds in analysis.seconds.items()},
    }


def passages_record(passages: Sequence[int] | None) -> list[int] | None:
    """Return the numbers of passages, counted from 1; null for None."""
    return None if passages is None else [passage + 1 for passage in passages]


def _span(span: SuspectSpan) -> dict[str, Any]:
    return {
        "start": span.start,
        "end": span.end,
        "relevance": _number(span.relevance),
        "probability": _number(span.probability),
        "passage": None if span.passage is None else span.passage + 1,
        "text": span.text,
        "kind": span.kind,
        "contradictions": [contradiction_record(contradiction) for contradiction in span.contradictions],
    }


def contradiction_record(contradiction: Contradiction) -> dict[str, Any]:
    """Return a contradiction as JSON values; passages count from 1."""
    return {
        "start": contradiction.start,
        "end": contradiction.end,
        "text": contradiction.text,
        "passage": contradiction.passage + 1,
        "passage_start": contradiction.passage_start,
        "passage_end": contradiction.passage_end,
        "passage_text": contradiction.instead,
        "margin": _number(contradiction.margin),
        "relevance": _number(contradiction.relevance),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "kind": difference.kind,
        "start": difference.start,
        "end": difference.end,
        "passage": difference.passage + 1,
        "passage_start": difference.passage_start,
        "passage_end": difference.passage_end,
        "passage_text": difference.words,
        "subject": difference.subject or None,
    }


def _sentence(sentence: Sentence) -> dict[str, Any]:
    return {
        "start": sentence.start,
        "end": sentence.end,
        "text": sentence.text,
        "relevance": _number(sentence.relevance),
        "by_passage": [_number(value) for value in sentence.by_passage],
        "passage": None if sentence.passage is None else sentence.passage + 1,
        "status": sentence.status,
        "suspect": sentence.suspect,
        "probability": _number(sentence.probability),
        "nearest": nearest_record(sentence.nearest),
    }


def nearest_record(nearest: Nearest | None) -> dict[str, Any] | None:
    """Return the nearest sentence as JSON values, null without one; passages count from 1."""
    if nearest is None:
        return None
    return {
        "passage": nearest.passage + 1,
        "start": nearest.start,
        "end": nearest.end,
        "similarity": _number(nearest.similarity),
        "words": [list(span) for span in nearest.words],
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "feature": reason.feature,
        "moved": _number(reason.moved),
        "sentence": reason.sentence + 1,
        "value": _number(reason.value),
        "faithful": [_number(value) for value in reason.faithful],
        "words": reason.words,
    }


def _number(value: float | None) -> float | None:
    """Return a Python float; NumPy's are no JSON, and NaN becomes null."""
    return float(value) if value is not None and math.isfinite(value) else None
