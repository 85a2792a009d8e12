"""One example from text to verdict, with its evidence: generate, replay, judge, explain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch

from lrp4rag.claims.arithmetic import Computed
from lrp4rag.claims.nearest import Nearest, nearest
from lrp4rag.classifiers.casing import in_plain_case
from lrp4rag.classifiers.contradiction import computed_of
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.model import Assessment, with_premise
from lrp4rag.classifiers.premise import premise_of
from lrp4rag.classifiers.verdict import (
    Contradiction,
    Sentence,
    SuspectSpan,
    Verdict,
    judge,
    leading,
    relevance_in,
)
from lrp4rag.example import Example
from lrp4rag.features.context import context_of
from lrp4rag.features.contrast import claims, first_difference
from lrp4rag.features.parts import PROMPT
from lrp4rag.features.record import Record
from lrp4rag.features.replay import PlainReplay, RelevanceReplay, Replay
from lrp4rag.lrp.attribute import attribute, span_weights
from lrp4rag.lrp.composites import Composite, composite_named
from lrp4rag.lrp.families import can_pull, family_of, require_pull
from lrp4rag.lrp.flow import Flow, relevance_mode
from lrp4rag.lrp.readout import Target
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.reader.encoding import FIRST_PASSAGE, Encoded, Truncation
from lrp4rag.reader.reader import Reader


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """One analysed example.

    `relevance` is there where the detector reads it, or where rows were asked for. `sentence_rows`
    (sentences, n) is R* averaged over each sentence's tokens, and `token_rows` (t, n) is R* itself, where
    they were asked for; in logits. `seconds` says where time went. With `passages_only`, of a detector that
    reads no more, relevance is that of the passages and not of the whole prompt.
    """

    example: Example
    encoded: Encoded
    reader: Mapping[str, Any]
    relevance: Relevance | None
    verdict: Verdict
    sentence_rows: Array | None
    token_rows: Array | None
    generated: bool
    seconds: dict[str, float]
    composite: str
    target: str
    passages_only: bool = False

    @property
    def by_segment(self) -> Array | None:
        """Relevance of each segment (S, t), in logits, where it was pushed."""
        return None if self.relevance is None else self.relevance.by_segment


Follow = Callable[[Iterable[int], int, str], Iterable[int]]
"""Wraps an iterable of steps to show progress: (steps, total, label)."""

TOKEN_CHUNK = 8


A = TypeVar("A", bound="Analyser")
P = ParamSpec("P")
R = TypeVar("R")


def _in_turn(method: Callable[Concatenate[A, P], R]) -> Callable[Concatenate[A, P], R]:
    """A method for one thread at a time. After it, the reader of a detector of plain passes is as it was."""

    @wraps(method)
    def call(self: A, /, *args: P.args, **options: P.kwargs) -> R:
        with self.reader.lock:
            try:
                return method(self, *args, **options)
            finally:
                if self.plain:
                    self.close()

    return call


class Analyser:
    """A reader and a detector, which judge one response after another; made by `analysing`.

    The reader is in relevance mode while relevance is computed, and outside of it for a detector that reads
    plain passes, and after it. Threads take turns. A prompt that equals the one before it is not read again,
    where the detector reads no relevance, or signals.
    """

    def __init__(
        self,
        reader: Reader,
        detector: FittedDetector | None,
        composite: Composite,
        max_memory: int | None = None,
        prompt_bytes: int = 0,
    ) -> None:
        self.reader, self.detector, self.composite = reader, detector, composite
        self._max_memory, self._stack = max_memory, ExitStack()
        self._flow: Flow | None = None
        self._replay: Replay | None = None
        self.plain = detector is not None and detector.model.plain
        self._plain = PlainReplay(reader, prompt_bytes) if self.plain else None
        self._supposing = PlainReplay(reader) if self.plain else None  # else it would put other prompts out

    @property
    def flow(self) -> Flow:
        """The flow of relevance mode, which the reader is in from now on."""
        if self._flow is None:
            mode = relevance_mode(self.reader.model, self.composite, max_memory=self._max_memory)
            self._flow = self._stack.enter_context(mode)
        return self._flow

    def close(self) -> None:
        """Leave relevance mode."""
        self._stack.close()
        self._flow = self._replay = None

    @_in_turn
    def __call__(
        self,
        example: Example,
        *,
        evidence: bool = True,
        reasons: bool = True,
        rows: bool = False,
        tokens: bool = False,
        truncation: Truncation = "error",
        max_new_tokens: int = 256,
        follow: Follow | None = None,
    ) -> Analysis:
        """Replay the response (generated first where there is none), judge it and tell what it rests on.

        With `evidence`, each sentence has the one of the passages that is nearest, and relevance of the
        passages is pulled for suspect sentences and contradicted values, where the detector itself reads
        none; without `reasons`, the verdict says nothing of features. `rows` adds relevance of the whole
        prompt and one pulled cotangent for each sentence, `tokens` one for each response token. Without a
        detector there is evidence and no probability. Raises `InputError` for what the reader
        cannot read.
        """
        seconds: dict[str, float] = {}
        if rows or tokens or (self.detector is not None and PROMPT in self.detector.needs):
            require_pull(self.reader.model)  # before the expensive part
        generated, readable = example.response is None, example
        if generated:
            with _timed(seconds, "generate"):
                encoded = self.reader.generate(example, max_new_tokens=max_new_tokens, truncation=truncation)
            example = example.with_response(encoded.response)
        else:
            readable = _readable(example)
            encoded = self.reader.encode(readable, truncation=truncation)
        with _timed(seconds, "read" if self._plain else "push"):
            record = self._record(encoded, keep=rows or tokens)
        with _timed(seconds, "classify"):
            named = replace(record, generator=None if generated else example.generator)
            if self.detector is not None:
                found = self._supposed(readable, truncation, self.detector.assess(named), named)
                verdict = self.detector.verdict(named, found, reasons=reasons)
            else:
                verdict = judge(record.encoded, record.relevance)
        if readable is not example and not generated:
            encoded, verdict = _as_written(example, encoded, verdict)
        analysis = Analysis(
            example,
            encoded,
            record.reader,
            record.relevance,
            with_nearest(verdict, encoded) if evidence else verdict,
            None,
            None,
            generated,
            seconds,
            self.composite.name,
            self.detector.card.target if self.detector else "response",
            passages_only="passages" in record.signals,
        )
        if (
            evidence
            and verdict.hallucinated is not None
            and record.relevance is None
            and can_pull(self.reader.model)
        ):
            with _timed(seconds, "pull evidence"):
                analysis = self.with_evidence(analysis)
        if rows or tokens:
            analysis = self.with_rows(analysis, tokens=tokens, follow=follow)
        return analysis

    def _supposed(
        self, example: Example, truncation: Truncation, found: Assessment, record: Record
    ) -> Assessment:
        """What is said of a response, where sentences of it repeat what only the question supposes: of these,
        what is said after the question as the passages would have it."""
        premise = premise_of(example) if self._supposing is not None else None
        if premise is None or self.detector is None or self._supposing is None:
            return found
        other = self._supposing(self.reader.encode(premise.example, truncation=truncation))
        after = self.detector.assess(replace(other, generator=record.generator))
        return with_premise(found, after, premise.sentences, record.encoded)

    @_in_turn
    def read_prompt(self, example: Example, *, truncation: Truncation = "error") -> None:
        """Read an example's prompt now, where the detector reads plain passes: what is judged next goes on
        from it. Raises `InputError` for what the reader cannot read."""
        if self._plain is not None:
            self._plain.prompt(self.reader.encode_prompt(example, max_new_tokens=1, truncation=truncation))

    @_in_turn
    def with_evidence(self, analysis: Analysis) -> Analysis:
        """Relevance of the passages for each suspect sentence, and contrastive relevance of each contradicted
        value: what its passage speaks for the other value, less what it speaks for the response's."""
        encoded, verdict = analysis.encoded, analysis.verdict
        suspect = [k for k, one in enumerate(verdict.sentences) if one.suspect and not one.by_passage]
        told = verdict.contradictions
        if not suspect and not told:
            return analysis
        sentences = list(verdict.sentences)
        segments = np.array(encoded.segments)
        if suspect:
            spans = [(sentences[k].start, sentences[k].end) for k in suspect]
            rows = self.flow.pull(encoded, span_weights(encoded, spans)).double().cpu().numpy()
            for k, row in zip(suspect, rows, strict=True):
                sums = np.bincount(segments, row, len(encoded.segment_names))
                sentences[k] = sentences[k].attributed(float(row.sum()), sums[FIRST_PASSAGE:].tolist())
        contrastive = dict(zip(told, self._contrastive(encoded, told), strict=True))
        marked = tuple(
            replace(
                span,
                passage=_passage_of(span, sentences),
                contradictions=tuple(replace(one, relevance=contrastive[one]) for one in span.contradictions),
            )
            for span in verdict.spans
        )
        self.flow.forget()
        return replace(analysis, verdict=replace(verdict, sentences=tuple(sentences), spans=marked))

    def _contrastive(self, encoded: Encoded, told: Sequence[Contradiction]) -> list[float | None]:
        """R(other value) - R(written) of each one's passage, in logits, at the first token that differs."""
        segments = torch.tensor(encoded.segments)
        found: dict[int, float] = {}
        minus, places = list(encoded.response_ids), dict[int, int]()
        for number, one in enumerate(told):
            differing = first_difference(encoded, one.start, one.end, one.instead, self.reader.tokenizer)
            if differing is not None and differing[0] not in places.values():
                places[number], minus[differing[0]] = differing
        if places:
            weights = torch.zeros(len(places), len(minus))
            for row, place in enumerate(places.values()):
                weights[row, place] = -1.0
            pulled = self.flow.pull(encoded, weights, target=Target("response", tuple(minus))).float().cpu()
            for number, row in zip(places, pulled, strict=True):
                found[number] = float(row[segments == FIRST_PASSAGE + told[number].passage].sum())
        return [found.get(number) for number in range(len(told))]

    @_in_turn
    def with_rows(
        self, analysis: Analysis, *, tokens: bool = False, follow: Follow | None = None
    ) -> Analysis:
        """The analysis with relevance of every part of the prompt, and what shades it: `sentence_rows`, and
        with `tokens` also `token_rows`, where they are not there."""
        encoded, seconds = analysis.encoded, analysis.seconds
        if analysis.relevance is None or analysis.relevance.by_segment is None:
            with _timed(seconds, "push"):
                relevance = attribute(self.reader, encoded, segments=True, flow=self.flow, keep=True)
            analysis = replace(analysis, relevance=relevance, passages_only=False)
            analysis = replace(analysis, verdict=with_relevance(analysis.verdict, relevance))
        if analysis.sentence_rows is None:
            with _timed(seconds, "pull sentences"):
                analysis = replace(analysis, sentence_rows=self.sentence_rows(encoded, analysis.verdict))
        if tokens and analysis.token_rows is None:
            with _timed(seconds, "pull tokens"):
                analysis = replace(analysis, token_rows=self.token_rows(encoded, follow))
        return analysis

    def _record(self, encoded: Encoded, *, keep: bool) -> Record:
        if self._plain is not None:
            return self._plain(encoded)
        if self._replay is None:
            self._replay = (
                self.detector.model.replay(self.reader, self.flow)
                if self.detector
                else RelevanceReplay(self.reader, self.flow)
            )
        return self._replay(encoded, keep=keep)

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
    prompt_bytes: int = 0,
) -> Iterator[Analyser]:
    """Analyse one example after another; the reader's model is restored on exit.

    `composite` defaults to the detector's; with `max_memory`, in bytes, passes are made small enough to fit;
    with `prompt_bytes`, prompts of plain passes stay read beside the last one, as far as they fit. Raises
    `InputError` where the detector was trained with another reader or composite, and where the reader has no
    relevance.
    """
    chosen = composite_named(composite or (detector.card.composite if detector else "attnlrp"))
    _ = family_of(reader.model)  # before a detector is asked for that no reader of its kind can have
    if detector is not None:
        read = None if detector.model.plain else chosen.name
        detector.require(reader.identity.as_dict(), read, detector.card.target)
    analyser = Analyser(reader, detector, chosen, max_memory, prompt_bytes)
    try:
        if not analyser.plain:
            _ = analyser.flow  # what cannot be patched is refused now
        yield analyser
    finally:
        analyser.close()


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
    mode = analysing(reader, detector, composite=composite, max_memory=max_memory)
    with reader.lock, mode as analyser:
        return analyser(example, **options)


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - started


def with_relevance(verdict: Verdict, relevance: Relevance) -> Verdict:
    """The same verdict with the relevance of its sentences and spans. A contradicted span keeps the passage
    that contradicts it as its main source."""
    spans = tuple(
        replace(
            span,
            relevance=relevance_in(relevance, span.start, span.end),
            passage=span.contradictions[0].passage
            if span.contradictions
            else leading(relevance, span.start, span.end),
        )
        for span in verdict.spans
    )
    pushed = judge(relevance.encoded, relevance)
    sentences = tuple(
        replace(sentence, relevance=other.relevance, by_passage=other.by_passage, passage=other.passage)
        for sentence, other in zip(verdict.sentences, pushed.sentences, strict=True)
    )
    return replace(verdict, token_relevance=pushed.token_relevance, sentences=sentences, spans=spans)


def _passage_of(span: SuspectSpan, sentences: Sequence[Sentence]) -> int | None:
    """That of the sentence in which a span begins."""
    if span.contradictions:
        return span.contradictions[0].passage
    return next((one.passage for one in sentences if one.start <= span.start < one.end), span.passage)


def _readable(example: Example) -> Example:
    """The same, with a response in capitals in plain case."""
    response = example.response or ""
    plain = in_plain_case(response, [example.question, *example.passages])
    return example if plain == response else example.with_response(plain)


def _as_written(example: Example, encoded: Encoded, verdict: Verdict) -> tuple[Encoded, Verdict]:
    """With the words of the response as they were written, which are as long as those that were read."""
    text = example.response or ""

    def written(one: Contradiction) -> Contradiction:
        return replace(one, text=text[one.start : one.end])

    spans = tuple(
        replace(
            span,
            text=text[span.start : span.end],
            contradictions=tuple(map(written, span.contradictions)),
        )
        for span in verdict.spans
    )
    sentences = tuple(replace(one, text=text[one.start : one.end]) for one in verdict.sentences)
    return replace(encoded, response=text), replace(verdict, spans=spans, sentences=sentences)


def with_nearest(verdict: Verdict, encoded: Encoded) -> Verdict:
    """Each sentence with the one of the passages that has most of its words, and the values that follow from
    those of a passage."""
    sentences = tuple(replace(one, nearest=nearest_to(one.text, encoded)) for one in verdict.sentences)
    return replace(verdict, sentences=sentences, computed=_computed(encoded))


def _computed(encoded: Encoded) -> tuple[Computed, ...]:
    context = context_of(encoded)
    claimed = ((claim, encoded.response[slice(*claim.sentence)]) for claim in claims(encoded))
    found = (computed_of(claim, context, sentence) for claim, sentence in claimed)
    return tuple(one for one in found if one is not None)


def nearest_to(statement: str, encoded: Encoded) -> Nearest | None:
    """The sentence of the passages that has most of the statement's words."""
    context = context_of(encoded)
    return nearest(context.index, context.passages, statement)
