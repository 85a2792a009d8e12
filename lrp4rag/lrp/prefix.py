"""`Prefix`: a prompt's primal and tangent cache, from which several responses, or a stream, go on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from transformers import DynamicCache

from lrp4rag.lrp.cache import add_rows, fork, new_cache
from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.families import one_stack
from lrp4rag.lrp.memory import Sizes, push_bytes
from lrp4rag.lrp.replay import FinalState, Replayer, check_weights, power_of_two
from lrp4rag.lrp.stack import Observer
from lrp4rag.reader.lock import lock_of, locked
from lrp4rag.reader.placement import input_device
from lrp4rag.util.errors import InputError, LRP4RAGError

STAGE = 96
"""Tokens between which tangents join: shorter passes cost more than the rows that they leave out."""


class Prefix:
    """Tokens that were read already, with T tangents of their embeddings; made by `Flow.prefix`.

    It holds (1 + T) rows of keys and values for each token. Use it inside the flow's mode only.
    """

    tangents: int
    length: int
    _cache: DynamicCache
    _sizes: Sizes

    def __init__(
        self,
        replayer: Replayer,
        ids: Sequence[int],
        weights: Tensor | None = None,
        *,
        composites: Sequence[Composite] | None = None,
        observer: Observer | None = None,
        staged: bool | None = None,
        after: Prefix | None = None,
    ) -> None:
        if weights is None:
            weights = torch.zeros(0, len(ids))
        else:
            check_weights(weights, len(ids))
        if composites is not None and len(composites) != len(weights):
            raise LRP4RAGError(
                f"{len(weights)} tangents need {len(weights)} composites, got {len(composites)}"
            )
        for composite in composites or ():
            if not one_stack(replayer.model, replayer.composite, composite):
                names = f"'{composite.name}' and '{replayer.composite.name}'"
                raise InputError(f"{names} cannot share one stack on this model")
        if not ids:
            raise LRP4RAGError("a prefix needs at least one token")
        if after is not None and after.tangents:
            raise LRP4RAGError("a prefix can go on only from one without tangents")
        before = 0 if after is None else after.length
        self._replayer, self.tangents, self.length = replayer, len(weights), before
        self._composites = composites
        device = input_device(replayer.model)
        self._scale = power_of_two(weights.abs().amax(-1)[:, None]).to(device)  # one cache, one scale
        self.state: FinalState

        # An observer sees all tangents of all tokens, unless stages are asked for.
        in_stages = (observer is None if staged is None else staged) and replayer.chunkable
        spans = stages(weights) if in_stages else [(len(weights), slice(None))]

        def attempt(sizes: Sizes) -> None:
            self._sizes, self.length = sizes, before
            self._cache = new_cache(replayer.model.config) if after is None else fork(after._cache)
            read = 0
            for live, span in spans:
                add_rows(self._cache, live - read)
                read = live
                self._read(ids[span], weights[:live, span], observer if span == spans[-1][1] else None)

        def needs(sizes: Sizes) -> int:  # all tangents are in one stack, and its rows are cached
            together = replace(sizes, tangents=max(len(weights), 1))
            return push_bytes(replayer.budget.shape, before + len(ids), len(weights), together, cached=True)

        replayer.budget.fitting(attempt, needs)

    @property
    def lock(self) -> threading.RLock:
        return lock_of(self._replayer.model)

    @locked
    @torch.no_grad()
    def extend(
        self, ids: Sequence[int], weights: Tensor | None = None, *, observer: Observer | None = None
    ) -> FinalState:
        """Read further tokens, with tangent `weights` (T, tokens), by default 0; `state` is the last's."""
        if weights is not None and weights.shape != (self.tangents, len(ids)):
            raise LRP4RAGError(f"weights must be ({self.tangents}, {len(ids)}), got {tuple(weights.shape)}")
        if weights is None:
            weights = self._scale.new_zeros(self.tangents, len(ids))
        return self._read(ids, weights, observer)

    @torch.no_grad()
    def _read(self, ids: Sequence[int], weights: Tensor, observer: Observer | None) -> FinalState:
        """Read tokens with the first of the tangents, those of the cache."""
        embeddings, live = self._replayer.embed(ids), len(weights)
        states = self._replayer.run(
            embeddings[None],
            weights[:, None].to(embeddings.device),
            self._sizes,
            cache=self._cache,
            scale=self._scale[:live],
            composites=None if self._composites is None else self._composites[:live],
            observer=observer,
        )
        self.length += len(ids)
        self.state = FinalState(states.primal[:, -1:], states.tangents[:, :, -1:], states.scale)
        return states

    def fork(self) -> Prefix:
        """Return a prefix that goes on by itself from here; the tokens read so far are shared, not copied."""
        prefix = object.__new__(Prefix)
        prefix.__dict__.update(self.__dict__)
        prefix._cache = fork(self._cache)
        return prefix

    @locked
    @torch.no_grad()
    def states(
        self,
        response_ids: Sequence[int],
        weights: Tensor | None = None,
        *,
        observer: Observer | None = None,
    ) -> FinalState:
        """Return the final states that predict each token of a response that follows; the prefix stays where
        it is.

        `weights` (T, t - 1), by default 0, and `observer` are for the response's tokens but the last.
        """
        if not response_ids:
            raise LRP4RAGError("the response has no tokens")
        states = [self.state]
        if len(response_ids) > 1:
            states.append(self.fork().extend(response_ids[:-1], weights, observer=observer))
        primal = torch.cat([state.primal for state in states], 1)
        tangents = torch.cat([state.tangents for state in states], 2)
        return FinalState(primal, tangents, self.state.scale)

    @locked
    @torch.no_grad()
    def push(self, response_ids: Sequence[int], weights: Tensor | None = None) -> Tensor:
        """Return the relevance (T, t), in logits, of a response that follows; `weights` as in `states`."""
        state = self.states(response_ids, weights)
        explained = self._replayer.explain(state, 0, slice(None), response_ids)
        return explained.read(state.tangents[:, 0]) * state.scale


def stages(weights: Tensor) -> list[tuple[int, slice]]:
    """Return how many of T tangents `weights` (T, n) have begun, in each part of n tokens; in the last one,
    all.

    Where they begin in another order than that of their rows, all are there at once.
    """
    count, length = weights.shape
    begun = weights.ne(0).cummax(1).values
    if (begun[1:] > begun[:-1]).any():
        return [(count, slice(0, length))]
    ends = range(STAGE, length, STAGE)
    live = [*begun[:, [end - 1 for end in ends]].sum(0).tolist(), count]
    starts = [0, *(end for end, now, then in zip(ends, live, live[1:], strict=False) if then > now)]
    return [
        (live[(end - 1) // STAGE], slice(start, end))
        for start, end in zip(starts, [*starts[1:], length], strict=True)
    ]
