"""One example from text to verdict, with its evidence: generate, replay, judge, explain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.verdict import Verdict, judge
from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT
from lrp4rag.features.replay import RelevanceReplay
from lrp4rag.lrp.attribute import span_weights
from lrp4rag.lrp.composites import Composite, composite_named
from lrp4rag.lrp.families import require_pull
from lrp4rag.lrp.flow import Flow, relevance_mode
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.reader.encoding import Encoded, Truncation
from lrp4rag.reader.reader import Reader


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """One analysed example.

    `sentence_rows` (sentences, n) is R* averaged over each sentence's tokens, and `token_rows` (t, n) is R*
    itself, where they were asked for; in logits. `seconds` says where time went. With `passages_only`, of a
    detector that reads no more, relevance is that of the passages and not of the whole prompt.
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


class Analyser:
    """A reader in relevance mode, which judges one response after another; made by `analysing`.

    A prompt that equals the one before it is not read again, where the detector reads signals.
    """

    def __init__(self, reader: Reader, detector: FittedDetector | None, flow: Flow) -> None:
        self.reader, self.detector, self.flow = reader, detector, flow
        self._replay = detector.model.replay(reader, flow) if detector else RelevanceReplay(reader, flow)

    def __call__(
        self,
        example: Example,
        *,
        rows: bool = False,
        tokens: bool = False,
        truncation: Truncation = "error",
        max_new_tokens: int = 256,
        follow: Follow | None = None,
    ) -> Analysis:
        """Replay the response (generated first where there is none), attribute it and judge it.

        `rows` adds one pulled cotangent per sentence, `tokens` one per response token. Without a detector
        there is evidence and no probability. Raises `InputError` for what the reader cannot read.
        """
        seconds: dict[str, float] = {}
        if rows or tokens or (self.detector is not None and PROMPT in self.detector.needs):
            require_pull(self.reader.model)  # before the expensive part
        generated = example.response is None
        if generated:
            with _timed(seconds, "generate"):
                encoded = self.reader.generate(example, max_new_tokens=max_new_tokens, truncation=truncation)
            example = example.with_response(encoded.response)
        else:
            encoded = self.reader.encode(example, truncation=truncation)
        with _timed(seconds, "push"):
            record = self._replay(encoded, keep=rows or tokens)
        with _timed(seconds, "classify"):
            named = replace(record, generator=None if generated else example.generator)
            verdict = self.detector.predict(named) if self.detector else judge(record.relevance)
        sentence_rows = token_rows = None
        if rows:
            with _timed(seconds, "pull sentences"):
                sentence_rows = self.sentence_rows(encoded, verdict)
        if tokens:
            with _timed(seconds, "pull tokens"):
                token_rows = self.token_rows(encoded, follow)
        return Analysis(
            example,
            record.relevance,
            verdict,
            sentence_rows,
            token_rows,
            generated,
            seconds,
            passages_only="passages" in record.signals,
        )

    def sentence_rows(self, encoded: Encoded, verdict: Verdict) -> Array:
        """R* averaged over each sentence's tokens (sentences, n), in logits."""
        weights = span_weights(encoded, [(s.start, s.end) for s in verdict.sentences])
        rows: Array = self.flow.pull(encoded, weights).float().cpu().numpy()
        return rows

    def token_rows(self, encoded: Encoded, follow: Follow | None = None) -> Array:
        """R* (t, n), in logits."""
        count = len(encoded.response_ids)
        eye, starts = torch.eye(count), range(0, count, TOKEN_CHUNK)
        steps = follow(starts, len(starts), "pulling tokens") if follow else starts
        chunks = [self.flow.pull(encoded, eye[start : start + TOKEN_CHUNK]) for start in steps]
        return np.concatenate([chunk.float().cpu().numpy() for chunk in chunks])


@contextmanager
def analysing(
    reader: Reader,
    detector: FittedDetector | None,
    *,
    composite: str | Composite | None = None,
    max_memory: int | None = None,
) -> Iterator[Analyser]:
    """Put the reader in the detector's relevance mode; it is restored on exit.

    `composite` defaults to the detector's; with `max_memory`, in bytes, passes are made small enough to fit.
    Raises `InputError` where the detector was trained with another reader or composite.
    """
    chosen = composite_named(composite or (detector.card.composite if detector else "attnlrp"))
    if detector is not None:
        detector.require(reader.identity.as_dict(), chosen.name, detector.card.target)
    with relevance_mode(reader.model, chosen, max_memory=max_memory) as flow:
        yield Analyser(reader, detector, flow)


def analyse(
    example: Example,
    reader: Reader,
    detector: FittedDetector | None,
    *,
    composite: str | Composite | None = None,
    max_memory: int | None = None,
    **options: Any,
) -> Analysis:
    """One example; see `analysing`, and `Analyser` for `options`."""
    with analysing(reader, detector, composite=composite, max_memory=max_memory) as analyser:
        return analyser(example, **options)


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - started
