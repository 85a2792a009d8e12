"""Generate with tangents in the cache: every new token comes with its relevance, as in a replay of all.

`stream` is an iterator of tokens; `recording` does the same inside Hugging Face's `generate`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    StoppingCriteria,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from lrp4rag.lrp.flow import Flow
from lrp4rag.lrp.relevance import Array, as_array
from lrp4rag.reader.placement import device_of
from lrp4rag.util.errors import InputError, LRP4RAGError, RelevanceError

COLDEST = 1e-6
"""Below this temperature the most likely token is drawn all the same, and logits over it overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class StreamedToken:
    """One generated token: its relevance (T,) to each tangent, and its explained logit, in logits."""

    id: int
    relevance: Array
    logit: float


Stop = Callable[[Sequence[StreamedToken]], bool]
"""Sees the tokens so far and says whether to stop after them."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn; the default takes the most likely one."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None

    def processors(self) -> LogitsProcessorList:
        """Return Hugging Face's own processors, in its order; raises `InputError` for values out of range."""
        finite = math.isfinite(self.temperature) and self.temperature >= 0
        if not finite or not 0 < self.top_p <= 1 or self.top_k < 0:
            raise InputError("temperature and top-k must be 0 or more, and top-p above 0 and at most 1")
        processors = LogitsProcessorList()
        if self.temperature > 0:
            processors.append(TemperatureLogitsWarper(max(self.temperature, COLDEST)))
            if self.top_k:
                processors.append(TopKLogitsWarper(self.top_k))
            if self.top_p < 1:
                processors.append(TopPLogitsWarper(self.top_p))
        return processors


def running_below(threshold: float, window: int = 17) -> Stop:
    """Stop once the mean over the last `window` tokens of the summed relevance is below `threshold`."""

    def stop(tokens: Sequence[StreamedToken]) -> bool:
        recent = [float(token.relevance.sum()) for token in tokens[-window:]]
        return len(recent) == window and sum(recent) / window < threshold

    return stop


@torch.no_grad()
def stream(
    flow: Flow,
    prompt_ids: Sequence[int],
    weights: Tensor,
    *,
    max_new_tokens: int = 256,
    sampling: Sampling | None = None,
    stop: Stop | None = None,
    stop_ids: Sequence[int] | None = None,
) -> Iterator[StreamedToken]:
    """Generate a response to a prompt, each token with its relevance to T tangents `weights` (T, n).

    It ends before a token of `stop_ids` (by default the model's end-of-sequence tokens), after
    `max_new_tokens`, or where `stop` says so. Use it inside the flow's mode.
    """
    sampling = sampling or Sampling()
    processors, draw = sampling.processors(), _drawer(sampling, flow)
    ends = set(end_ids(flow.model) if stop_ids is None else stop_ids)
    head, prefix = flow.model.get_output_embeddings(), flow.prefix(prompt_ids, weights)
    tokens: list[StreamedToken] = []
    while len(tokens) < max_new_tokens:
        with flow.lock:
            hidden = prefix.state.primal[0, -1:]
            scores = flow.readout.capped(head(hidden).float())
            if not torch.isfinite(scores).all():
                raise RelevanceError("the reader's logits hold NaN or Inf")
            ids = torch.tensor([[*prompt_ids, *(generated.id for generated in tokens)]], device=scores.device)
            token = draw(processors(ids, scores))  # type: ignore[arg-type]
            if token in ends:
                return
            explained = flow.replayer.explain(prefix.state, 0, slice(-1, None), [token])
            relevance = explained.read(prefix.state.tangents[:, 0, -1:])[:, 0] * prefix.state.scale[:, 0]
        tokens.append(StreamedToken(token, as_array(relevance), float(explained.logits[0])))
        yield tokens[-1]
        if stop is not None and stop(tokens):
            return
        if len(tokens) < max_new_tokens:
            prefix.extend([token])


class Recording(StoppingCriteria):
    """What `generate` did, for B sequences: `relevance` (T, B, tokens) and `logits` (B, tokens)."""

    def __init__(
        self, flow: Flow, weights: Tensor, stop: Callable[[Array], bool] | None, ends: Sequence[int]
    ) -> None:
        self._flow, self._stop, self._ends = flow, stop, list(ends)
        self._weights = weights if weights.ndim == 3 else weights[:, None]
        self._read = 0  # tokens of each sequence
        self._ended: Tensor | None = None
        self._relevance: list[Array] = []
        self._logits: list[Array] = []

    @property
    def relevance(self) -> Array:
        """(T, B, tokens), in logits; NaN after a sequence's end."""
        return np.stack(self._relevance, axis=-1)

    @property
    def logits(self) -> Array:
        """The explained logits (B, tokens); NaN after a sequence's end."""
        return np.stack(self._logits, axis=-1)

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: Any) -> Tensor:
        """Record a step: `generate` calls this once a token of each sequence has been chosen."""
        stack, token = self._flow.replayer.stack, input_ids[:, -1]
        if stack.source != self.source or stack.final is None:
            raise LRP4RAGError(
                "nothing was recorded: generate must run inside the recording, and nothing else there"
            )
        if not self._relevance and self._weights.shape[-1] != self._read:
            raise LRP4RAGError(f"weights of {self._weights.shape[-1]} tokens for a prompt of {self._read}")
        if input_ids.shape[1] != self._read + 1:
            raise LRP4RAGError("a recording is of one generate; make another one for the next")
        stack.require_finite(len(self._flow.replayer.blocks), stack.final[0].dtype)
        stack.sums.clear()
        primal, tangents = (states[..., -1, :] for states in stack.final)
        token = token.to(primal.device)
        if len(primal) != len(token):
            raise LRP4RAGError("relevance cannot be recorded of several beams; use greedy search or sampling")
        explained = self._flow.readout.explain(primal, token, self._flow.replayer.target)
        relevance, logits = explained.read(tangents), explained.logits.clone()
        ends = torch.tensor(self._ends, device=token.device)
        ended = torch.zeros_like(token, dtype=torch.bool) if self._ended is None else self._ended
        relevance[:, ended], logits[ended] = torch.nan, torch.nan
        self._ended = ended | torch.isin(token, ends)
        self._relevance.append(as_array(relevance))
        self._logits.append(as_array(logits))
        stop = self._stop is not None and self._stop(self.relevance)
        return torch.full_like(input_ids[:, -1], stop, dtype=torch.bool)

    @torch.no_grad()
    def source(self, hidden: Tensor) -> Tensor:
        """Return the tangents (T, B, tokens, d) of what `generate` reads next: the prompt, then its own
        tokens."""
        length, weights = hidden.shape[1], self._weights
        chunk = weights[..., self._read : self._read + length].to(hidden)
        if self._read >= weights.shape[-1] and length != 1:
            raise LRP4RAGError(
                "relevance can be recorded of one greedy search or sampling with a cache, "
                "where each pass reads one new token"
            )
        self._read += length
        if not chunk.shape[-1]:  # a generated token: its own embedding is in no tangent
            return hidden.new_zeros((len(weights), *hidden.shape))
        if chunk.shape[-1] != length:
            raise LRP4RAGError(f"weights of {weights.shape[-1]} tokens for a prompt of {self._read} or more")
        return chunk[..., None] * hidden


@contextmanager
def recording(
    flow: Flow,
    weights: Tensor,
    *,
    stop: Callable[[Array], bool] | None = None,
    stop_ids: Sequence[int] | None = None,
) -> Iterator[Recording]:
    """Record relevance while Hugging Face's `generate` runs once, greedy or sampling (no beams).

    `weights` are the tangents' weights of the prompt's tokens as `generate` gets them, (T, n), or (T, B, n)
    where prompts differ (0 on padding). `stop` sees the relevance so far, (T, B, tokens), and may end it.
    `stop_ids` are the end-of-sequence tokens that `generate` is given, by default the model's:

        with relevance_mode(model) as flow, recording(flow, weights) as record:
            model.generate(ids, stopping_criteria=[record])
        record.relevance
    """
    stack = flow.replayer.stack
    record = Recording(flow, weights, stop, end_ids(flow.model) if stop_ids is None else stop_ids)
    with flow.lock:  # what other threads ask of this flow waits until the recording ends
        try:
            stack.source = record.source
            yield record
        finally:
            stack.reset()


def end_ids(model: Any) -> list[int]:
    """Return the model's end-of-sequence tokens."""
    ids = getattr(model.generation_config, "eos_token_id", None)
    return [] if ids is None else [ids] if isinstance(ids, int) else list(ids)


def _drawer(sampling: Sampling, flow: Flow) -> Callable[[Tensor], int]:
    if not sampling.temperature:
        return lambda scores: int(scores.argmax(-1))
    device = device_of(flow.model.get_output_embeddings())
    generator = torch.Generator(device)
    if sampling.seed is not None:
        generator.manual_seed(sampling.seed)
    else:
        generator.seed()
    return lambda scores: int(torch.multinomial(scores.softmax(-1), 1, generator=generator))
