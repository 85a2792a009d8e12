"""`analyse`: one example from text to verdict, with its evidence. What `lrp4rag analyse` calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch

from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.classifiers.verdict import Verdict, judge
from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.features.parts import MATRIX, MATRIX_SHAPE, PROMPT
from lrp4rag.features.record import Record
from lrp4rag.lrp.attribute import attribute, span_weights
from lrp4rag.lrp.composites import Composite, composite_named
from lrp4rag.lrp.families import require_pull
from lrp4rag.lrp.flow import Flow, relevance_mode
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.lrp.signals import Wanted, signals_of
from lrp4rag.reader.encoding import Encoded, Truncation
from lrp4rag.reader.reader import Reader


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """One analysed example.

    `sentence_rows` (sentences, n) is R* averaged over each sentence's tokens, and `token_rows`
    (t, n) is R* itself, where they were asked for; in logits. `seconds` says where time went. With
    `passages_only`, of a detector that reads no more, relevance is that of the passages and not of the
    whole prompt.
    """

    example: Example
    relevance: Relevance
    verdict: Verdict
    sentence_rows: Array | None
    token_rows: Array | None
    generated: bool
    seconds: dict[str, float]
    passages_only: bool = False


Follow = Callable[[Iterable[int], int, str], Iterable[int]]
"""Wraps an iterable of steps to show progress: (steps, total, label)."""

TOKEN_CHUNK = 8


def analyse(
    example: Example,
    reader: Reader,
    detector: FittedDetector | None,
    *,
    composite: str | Composite | None = None,
    rows: bool = False,
    tokens: bool = False,
    truncation: Truncation = "error",
    max_new_tokens: int = 256,
    max_memory: int | None = None,
    follow: Follow | None = None,
) -> Analysis:
    """Replay the response (generated first where there is none), attribute it and judge it.

    One pushed tangent per segment; `rows` adds one pulled cotangent per sentence, `tokens` one per
    response token, and a detector what its features are made of (for R_prompt one cotangent, for R* a
    tangent per prompt bin). Without a detector there is evidence and no probability. `composite` defaults to
    the detector's; with `max_memory`, in bytes, passes are made small enough to fit. Raises
    `InputError` where the detector was trained with another reader or composite.
    """
    clock = _Clock()
    chosen = composite_named(composite or (detector.card.composite if detector else "attnlrp"))
    needs = detector.needs if detector else ()
    if detector is not None:  # before the expensive part
        detector.require(reader.identity.as_dict(), chosen.name, detector.card.target)
    if rows or tokens or PROMPT in needs:
        require_pull(reader.model)
    generated = example.response is None
    if generated:
        with clock.measure("generate"):
            encoded = reader.generate(example, max_new_tokens=max_new_tokens, truncation=truncation)
        example = example.with_response(encoded.response)
    else:
        encoded = reader.encode(example, truncation=truncation)
    with relevance_mode(reader.model, chosen, max_memory=max_memory) as flow:
        with clock.measure("push"):
            if detector is not None and isinstance(detector.model, TokenModel):
                record = read_record(reader, encoded, flow, detector.model.wanted)
            else:
                record = Record(
                    attribute(
                        reader,
                        encoded,
                        segments=True,
                        prompt=PROMPT in needs,
                        resampled=MATRIX_SHAPE if MATRIX in needs else None,
                        flow=flow,
                        keep=rows or tokens,
                    )
                )
            relevance = record.relevance
        with clock.measure("classify"):
            told = replace(record, generator=None if generated else example.generator)
            verdict = detector.predict(told) if detector else judge(relevance)
        sentence_rows = token_rows = None
        if rows:
            with clock.measure("pull sentences"):
                weights = span_weights(encoded, [(s.start, s.end) for s in verdict.sentences])
                sentence_rows = flow.pull(encoded, weights).float().cpu().numpy()
        if tokens:
            with clock.measure("pull tokens"):
                count = len(encoded.response_ids)
                eye = torch.eye(count)
                starts = range(0, count, TOKEN_CHUNK)
                steps = follow(starts, len(starts), "pulling tokens") if follow else starts
                chunks = [flow.pull(encoded, eye[start : start + TOKEN_CHUNK]) for start in steps]
                token_rows = np.concatenate([chunk.float().cpu().numpy() for chunk in chunks])
    return Analysis(
        example,
        relevance,
        verdict,
        sentence_rows,
        token_rows,
        generated,
        clock.seconds,
        passages_only="passages" in record.signals,
    )


def read_record(reader: Reader, encoded: Encoded, flow: Flow, wanted: Wanted) -> Record:
    """Relevance and signals of one response, in the flow's mode: what a token detector reads.

    Where segments are not told apart, the relevance is that of the passages only. Raises `InputError` for
    a response without tokens.
    """
    if not encoded.response_ids:
        raise InputError("the response has no tokens", field="response")
    signals, states = signals_of(flow, encoded, wanted)
    whole = signals.passages if signals.by_segment is None else signals.by_segment.sum(0)
    assert whole is not None
    relevance = Relevance(
        encoded=encoded,
        composite=flow.composite.name,
        target=flow.target,
        reader=reader.identity.as_dict(),
        logits=signals.logits,
        response=(whole / len(encoded.prompt_ids)).astype(np.float32),
        by_segment=signals.by_segment,
    )
    return Record(relevance, signals.arrays(), states.arrays())


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[what] = time.perf_counter() - started
