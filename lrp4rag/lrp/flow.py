"""`relevance_mode` and `Flow`: a model in relevance mode, and the passes of a prompt and response through it.

Pushing tangents to the logits and pulling cotangents from them are the linear map J of a composite and its
transpose (Gradient x Input form of LRP: Arras et al., arXiv 2502.15886).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from lrp4rag.lrp.composites import ATTNLRP, Composite, composite_named
from lrp4rag.lrp.families import can_pull, require_pull
from lrp4rag.lrp.memory import Budget, Sizes, pull_bytes, push_bytes, tape_bytes
from lrp4rag.lrp.patching import patched
from lrp4rag.lrp.prefix import Prefix
from lrp4rag.lrp.pull import Visit, pull
from lrp4rag.lrp.push import push, push_padded
from lrp4rag.lrp.readout import Target, target_named
from lrp4rag.lrp.replay import Replayer, Tape, Tokens, check_weights, lengths_of, pad_columns, power_of_two
from lrp4rag.lrp.rules import accumulate
from lrp4rag.lrp.stack import Observer
from lrp4rag.reader.lock import lock_of, locked, require_plain
from lrp4rag.reader.placement import input_device
from lrp4rag.util.errors import InputError, LRP4RAGError, RelevanceError


@contextmanager
def relevance_mode(
    model: Any,
    composite: str | Composite = ATTNLRP,
    *,
    target: str | Target = "response",
    sizes: Sizes | None = None,
    max_memory: int | None = None,
) -> Iterator[Flow]:
    """Put a model instance in relevance mode; it is restored on exit, also after an exception.

    Passes of several threads wait for each other; a second mode at a time is refused.
    `sizes` says how much is computed at once; with `max_memory`, in bytes of the whole process (or GPU), they
    are chosen to fit. Raises `InputError` for an unsupported architecture and `RelevanceError` when the
    patched model's logits differ from the model's own.
    """
    target, composite = target_named(target), composite_named(composite)
    lock, undo = lock_of(model), ExitStack()
    try:
        with lock:
            require_plain(model)
            checked = _CHECKED.setdefault(model, set())
            expected = None if composite.name in checked else _probe_logits(model)
            family, stack = undo.enter_context(patched(model, composite))
            if expected is not None:
                _check_logits(model, _probe_logits(model), expected)
                stack.reset()
                checked.add(composite.name)
            budget = Budget(model, sizes, max_memory)
        yield Flow(Replayer(model, family, stack, composite, target, budget))
    finally:
        with lock:
            undo.close()


HALF_TOLERANCE = 0.1
"""Relative error of patched logits in half precision, and where kernels of quantised layers round their
inputs (to bfloat16 or even to eight bits). It grows with width and depth: .016 of the default reader, and of
random weights .029 with 128 narrow layers on a CPU and .050 in the shape of Llama 3.1 8B on an H200."""

# Models whose patched logits were found to be their own, by composite: once each is enough.
_CHECKED: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()


@torch.no_grad()
def _probe_logits(model: Any) -> Tensor:
    # Spread over the vocabulary: on the control tokens at its start, half precision is far off itself.
    ids = torch.arange(1, 9, device=input_device(model))[None]
    logits: Tensor = model(ids * model.config.vocab_size // 10, use_cache=False).logits
    return logits


def _check_logits(model: Any, actual: Tensor, expected: Tensor) -> None:
    difference, expected = accumulate(actual - expected), accumulate(expected)
    if can_pull(model) and actual.dtype in (torch.float32, torch.float64):
        error, allowed = float(difference.abs().max() / expected.abs().max()), 1e-4
    else:
        error, allowed = float(difference.norm() / expected.norm()), HALF_TOLERANCE
    # Logits that are NaN already are reported by the layer that made them.
    if torch.isfinite(expected).all() and not error <= allowed:
        raise RelevanceError(f"patching changed the logits of this model by {error:.1e} relative")


class Flow:
    """A model in relevance mode; made by `relevance_mode`. Relevance is in logits.

    n is the number of prompt tokens, t of response tokens. With `layer` = l, relevance is that of the
    residual stream at the input of decoder layer l, counted from 0, rather than of the embeddings.
    """

    def __init__(self, replayer: Replayer) -> None:
        self.replayer, self.model, self.readout = replayer, replayer.model, replayer.readout
        self.composite = replayer.composite
        self._budget = replayer.budget
        self._tape: Tape | None = None

    @property
    def lock(self) -> threading.RLock:
        """That of the model, for what is asked in several steps while other threads use it."""
        return lock_of(self.model)

    @property
    def target(self) -> str:
        """The name of what is explained."""
        return self.replayer.target.name

    @property
    def explained_logits(self) -> Tensor:
        """The explained logit z_j of each response token (t,), of the last replay."""
        if self.replayer.explained is None:
            raise LRP4RAGError("nothing was replayed yet")
        return self.replayer.explained.logits

    @locked
    @torch.no_grad()
    def push(self, tokens: Tokens, weights: Tensor, *, keep: bool = False, layer: int = 0) -> Tensor:
        """Push `sum_i weights[:, i] R[j, i]` for every response token j: (T, n) or (T, N) -> (T, t).

        N = n + t - 1 columns also cover the response tokens that later ones can read. `keep` records the
        replay, so that a `pull` on the same tokens need not repeat it.
        """
        return self.read(tokens, weights, [self.replayer.target], keep=keep, layer=layer)[0]

    @locked
    @torch.no_grad()
    def read(
        self,
        tokens: Tokens,
        weights: Tensor,
        targets: Sequence[str | Target],
        *,
        keep: bool = False,
        layer: int = 0,
    ) -> Tensor:
        """Push for several targets (targets, T, t) at the price of one: only the readout differs."""
        n, t = lengths_of(tokens)
        check_weights(weights, n, n + t - 1)
        chosen = [target_named(target) for target in targets]
        self._check_layer(layer)

        def attempt(sizes: Sizes) -> Tensor:
            if keep:
                self.forget()
            rows: list[Tensor] = []
            for part in pad_columns(weights, n + t - 1).to(self._device).split(sizes.tangents):
                record = keep and not rows
                relevance, tape = push(self.replayer, tokens, part, chosen, sizes, layer=layer, keep=record)
                self._tape = tape or self._tape
                rows.append(relevance)
            return torch.cat(rows, dim=1)

        def needs(sizes: Sizes) -> int:
            tape = tape_bytes(self._budget.shape, n + t, sizes) if keep else 0
            return tape + push_bytes(self._budget.shape, n + t, len(weights), sizes)

        return self._budget.fitting(attempt, needs)

    @locked
    @torch.no_grad()
    def push_batch(
        self, batch: Sequence[Tokens], weights: Sequence[Tensor], *, at_once: int = 8
    ) -> list[Tensor]:
        """Push for many examples, `at_once` in one pass, each (T, t); T may differ between them.

        Examples of similar length are padded to the longest of a pass. A CPU gains nothing.
        """
        if at_once < 1:
            raise LRP4RAGError(f"at_once must be 1 or more, got {at_once}")
        lengths = []
        for tokens, tangents in zip(batch, weights, strict=True):
            n, t = lengths_of(tokens)
            check_weights(tangents, n, n + t - 1)
            lengths.append(n + t)
        order = sorted(range(len(batch)), key=lengths.__getitem__)
        results: dict[int, Tensor] = {}
        for start in range(0, len(order), at_once):
            chosen = order[start : start + at_once]
            rows = push_padded(self.replayer, [batch[k] for k in chosen], [weights[k] for k in chosen])
            results.update(zip(chosen, rows, strict=True))
        return [results[k] for k in range(len(batch))]

    @locked
    def push_shared(self, batch: Sequence[Tokens], weights: Tensor) -> list[Tensor]:
        """Push for several responses to one prompt, whose part of the work is done once."""
        prompts = {tuple(tokens.prompt_ids) for tokens in batch}
        if len(prompts) != 1:
            raise LRP4RAGError(f"the examples of a shared prefix must have one prompt, not {len(prompts)}")
        chunks = weights.split(self._budget.sizes.tangents)
        prefixes = [self.prefix(batch[0].prompt_ids, chunk) for chunk in chunks]
        return [torch.cat([prefix.push(tokens.response_ids) for prefix in prefixes]) for tokens in batch]

    @locked
    def prefix(
        self,
        ids: Sequence[int],
        weights: Tensor | None = None,
        *,
        composites: Sequence[Composite] | None = None,
        observer: Observer | None = None,
        staged: bool | None = None,
        after: Prefix | None = None,
    ) -> Prefix:
        """Read a prompt once, with tangents `weights` (T, n), for several responses or a stream.

        `composites` names one for each tangent; without weights there are no tangents. `observer` sees the
        layers. `staged`, the default without an observer, lets tangents join near where they begin; an
        observer then sees the last stage only. `after` is a prefix without tangents to go on from. Raises
        `InputError` for composites that cannot share a stack.
        """
        return Prefix(
            self.replayer, ids, weights, composites=composites, observer=observer, staged=staged, after=after
        )

    @locked
    @torch.no_grad()
    def pull(
        self,
        tokens: Tokens,
        weights: Tensor | None = None,
        *,
        all_columns: bool = False,
        layer: int = 0,
        visit: Visit | None = None,
        target: str | Target | None = None,
    ) -> Tensor:
        """Pull `sum_j weights[:, j] R[j, i]` for every prompt token i: (C, t) -> (C, n).

        Without weights, one cotangent per response token: the full R*, (t, n). Each cotangent takes about one
        forward pass, so that takes a pass a token; a row for a sentence (`span_weights`) takes one. With
        `all_columns`, (C, N): earlier response tokens too. `visit` sees the cotangents on their way.
        `target` explains other logits than the mode's, by the same replay.
        """
        n, t = lengths_of(tokens)
        if weights is not None and (weights.ndim != 2 or weights.shape[1] != t):
            raise LRP4RAGError(f"weights must be (any, {t}), got {tuple(weights.shape)}")
        self._check_layer(layer)
        require_pull(self.model)
        rows = torch.eye(t) if weights is None else weights
        columns = n + t - 1 if all_columns else n

        # As with tangents: half precision must not lose small weights. A visitor sees cotangents unscaled.
        largest = rows.abs().amax(1)
        scale = power_of_two(largest) if visit is None else torch.ones_like(largest)

        def attempt(sizes: Sizes) -> Tensor:
            tape = self._tape_of(tokens, sizes, inputs=layer > 0)
            if target is not None:
                ids = torch.tensor(tokens.response_ids, device=self._device)
                explained = self.readout.explain(tape.final, ids, target_named(target))
                tape = replace(tape, explained=explained)
            self.replayer.explained = tape.explained
            chunks = (rows / scale[:, None]).to(tape.explained.rows).split(sizes.cotangents)
            options: dict[str, Any] = {"layer": layer, "visit": visit}
            pulled = [pull(self.replayer, tape, chunk, columns, sizes, **options) for chunk in chunks]
            relevance = torch.cat(pulled)
            return relevance * scale[:, None].to(relevance)

        shape = self._budget.shape
        return self._budget.fitting(attempt, lambda sizes: pull_bytes(shape, n + t, len(rows), sizes))

    def forget(self) -> None:
        """Free the tape that a `push(..., keep=True)` or `pull` left."""
        self._tape = None

    def _tape_of(self, tokens: Tokens, sizes: Sizes, *, inputs: bool) -> Tape:
        """Return the tape of these tokens, with the layers' inputs where they are needed: as left, or
        recorded."""
        inputs = inputs or sizes.tape == "inputs"  # rules that were recorded may not fit these sizes
        if self._tape is None or self._tape.tokens is not tokens or (inputs and self._tape.inputs is None):
            self.forget()
            n, t = lengths_of(tokens)
            none = torch.zeros((0, n + t - 1), device=self._device)
            recorded = replace(sizes, tape="inputs") if inputs else sizes
            _, self._tape = self.replayer.record(tokens, none, recorded)
        return self._tape

    @property
    def _device(self) -> torch.device:
        return input_device(self.model)

    def _check_layer(self, layer: int) -> None:
        if not 0 <= layer < len(self.replayer.blocks):
            raise InputError(f"layer must be from 0 to {len(self.replayer.blocks) - 1}, got {layer}")
