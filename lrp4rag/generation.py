"""`generate`: a response with its relevance, token by token.

The tangents of the prompt's segments are in the key/value cache, so each token comes with its relevance at
once; see `lrp4rag.lrp.stream`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict, Unpack

import numpy as np

from lrp4rag.example import Example
from lrp4rag.lrp.attribution import segment_weights
from lrp4rag.lrp.composites import ATTNLRP, Composite
from lrp4rag.lrp.flow import Flow, relevance_mode
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.lrp.streaming import Sampling, Stop, StreamedToken, stream
from lrp4rag.reader.encoding import FIRST_PASSAGE, Decoding, Encoded, Truncation
from lrp4rag.reader.reader import Reader
from lrp4rag.util.errors import LRP4RAGError

Ending = Literal["end", "length", "window", "stop"]
"""Why a response ended: an end-of-sequence token, `max_new_tokens`, the reader's window, or `stop`."""


@dataclass(frozen=True, slots=True, eq=False)
class GeneratedToken:
    """One token as it comes; `by_segment` (segments,) is its relevance, and `logit` what is explained.

    `text` is what can be read once this token is known: "" while a character is incomplete, and for
    control tokens.
    """

    id: int
    text: str
    segment_names: tuple[str, ...]
    by_segment: Array
    logit: float

    @property
    def relevance(self) -> dict[str, float]:
        """By segment name, in logits."""
        return dict(zip(self.segment_names, self.by_segment.tolist(), strict=True))

    @property
    def total(self) -> float:
        """The relevance of the whole prompt, in logits."""
        return float(self.by_segment.sum())

    @property
    def from_passages(self) -> float:
        """See `from_passages`."""
        return from_passages(self.by_segment)


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """A finished response. `relevance` is what `attribute(..., segments=True)` gives for its tokens.

    So a detector, a report or a file takes it as it takes a replay. `seconds` says where time went.
    """

    example: Example
    relevance: Relevance
    tokens: tuple[GeneratedToken, ...]
    ending: Ending
    seconds: dict[str, float]

    @property
    def response(self) -> str:
        return self.relevance.encoded.response

    @property
    def by_segment(self) -> Array:
        """Relevance of each segment (segments,), summed over the response."""
        summed: Array = np.stack([token.by_segment for token in self.tokens]).sum(0)
        return summed

    @property
    def passage(self) -> int | None:
        """The index of the passage with the largest sum; None where no sum is positive."""
        passages = self.by_segment[FIRST_PASSAGE:]
        return int(passages.argmax()) if passages.max() > 0 else None


def from_passages(by_segment: Array) -> float:
    """Return the share of relevance (segments,) that comes from the passages, from 0 to 1.

    Relevance has a sign, so a part can exceed the sum. This is the passages' sum over the sum of the
    segments' absolute values, and 0 where it is negative.
    """
    absolute = float(np.abs(by_segment).sum())
    return max(float(by_segment[FIRST_PASSAGE:].sum()) / absolute, 0.0) if absolute else 0.0


class Options(TypedDict, total=False):
    """How a response is written: see `generating` for the defaults."""

    composite: str | Composite
    sampling: Sampling | None
    stop: Stop | None
    max_new_tokens: int
    max_memory: int | None
    truncation: Truncation


def generate(
    example: Example,
    reader: Reader,
    *,
    follow: Callable[[GeneratedToken], None] | None = None,
    **options: Unpack[Options],
) -> Generation:
    """Let the reader answer the example, whose own response is ignored; `follow` sees each token at once.

    One tangent per segment: (2 + passages) rows beside the reader's own. Raises `InputError` for a
    prompt that leaves no room, and `LRP4RAGError` for an empty response.
    """
    with reader.lock:
        tokens = generating(example, reader, **options)
        while True:
            try:
                token = next(tokens)
            except StopIteration as end:
                generation: Generation = end.value
                return generation
            if follow is not None:
                follow(token)


def generating(
    example: Example,
    reader: Reader,
    *,
    composite: str | Composite = ATTNLRP,
    sampling: Sampling | None = None,
    stop: Stop | None = None,
    max_new_tokens: int = 256,
    max_memory: int | None = None,
    truncation: Truncation = "error",
) -> Generator[GeneratedToken, None, Generation]:
    """Yield the tokens of `generate` one by one, and return the `Generation`.

    The reader's model is in relevance mode until the iterator has ended, or was closed: relevance and
    verdicts that are asked of it in between, also by other threads, are refused.
    """
    prompt = reader.encode_prompt(example, max_new_tokens=max_new_tokens, truncation=truncation)
    room = reader.room(prompt, max_new_tokens)
    stopped = False

    def watched(so_far: Sequence[StreamedToken]) -> bool:
        nonlocal stopped
        stopped = stop is not None and stop(so_far)
        return stopped

    tokens: list[GeneratedToken] = []
    decoding, seconds = Decoding(reader.tokenizer), dict[str, float]()
    with relevance_mode(reader.model, composite, max_memory=max_memory) as flow:
        streamed = stream(
            flow,
            prompt.prompt_ids,
            segment_weights(prompt),
            max_new_tokens=room,
            sampling=sampling,
            stop=watched,
        )
        for token in _timed(streamed, seconds):
            text = decoding.step(token.id)
            tokens.append(GeneratedToken(token.id, text, prompt.segment_names, token.relevance, token.logit))
            yield tokens[-1]
    if not tokens:
        raise LRP4RAGError("the reader gave an empty response; ask otherwise, or take another reader")
    if stopped:
        ending: Ending = "stop"
    elif len(tokens) == room:
        ending = "length" if room == max_new_tokens else "window"
    else:
        ending = "end"
    relevance = _relevance(reader, flow, prompt, decoding, tokens)
    return Generation(example, relevance, tuple(tokens), ending, seconds)


def _timed(tokens: Iterator[StreamedToken], seconds: dict[str, float]) -> Iterator[StreamedToken]:
    """Add up the time that tokens take, not what is done with them; the first reads the prompt."""
    what = "first token"
    while True:
        started = time.perf_counter()
        token = next(tokens, None)
        seconds[what] = seconds.get(what, 0.0) + time.perf_counter() - started
        if token is None:
            return
        what = "further tokens"
        yield token


def _relevance(
    reader: Reader, flow: Flow, prompt: Encoded, decoding: Decoding, tokens: Sequence[GeneratedToken]
) -> Relevance:
    by_segment = np.stack([token.by_segment for token in tokens], axis=1)
    return Relevance(
        encoded=replace(
            prompt,
            response=decoding.text,
            response_ids=tuple(token.id for token in tokens),
            response_offsets=decoding.offsets,
        ),
        composite=flow.composite.name,
        target=flow.target,
        reader=reader.identity.as_dict(),
        logits=np.array([token.logit for token in tokens], np.float32),
        response=by_segment.sum(0) / np.float32(len(prompt.prompt_ids)),
        by_segment=by_segment,
    )
