"""`PromptReading`: a prompt read once by a plain pass, its responses, and alternatives to parts of them.

Nothing is patched and no tangent is pushed: these are the reader's own logits.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from lrp4rag.reader.encoding import FIRST_PASSAGE, Encoded
from lrp4rag.reader.lock import lock_of, locked, require_plain
from lrp4rag.reader.placement import cache_option, input_device
from lrp4rag.reader.reader import Reader
from lrp4rag.util.errors import InputError, RelevanceError

Array = NDArray[np.float32]

ROWS = 32
"""Positions whose probabilities of the whole vocabulary are in memory at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Likelihoods and states of t response tokens, each at the position that predicts it; in nats.

    * `logprob`, `entropy` (t), and `rank` (t), 0 for the likeliest token.
    * `best`, `best_in_passages` (t): by how much the likeliest other token is likelier, among all tokens and
      among those that stand in a passage. `mass` (t): the probability of all these together.
    * `states` (layers, t + 1, d): after each of the chosen layers, before the response's first token and at
      each of its tokens; in float16.
    """

    logprob: Array
    entropy: Array
    rank: Array
    best: Array
    best_in_passages: Array
    mass: Array
    states: NDArray[np.float16]


LIKELIHOODS = tuple(field.name for field in fields(Reading) if field.name != "states")
"""The names of a `Reading`'s arrays of tokens, in their order."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Alternative tokens `ids` in place of the response's from number `start` on."""

    start: int
    ids: tuple[int, ...]


class PromptReading:
    """The key/value cache of a prompt; `read` reads a response to it.

    `layers` are the layers whose states are kept, counted from 0; the last one's are before the final norm.
    """

    def __init__(
        self, reader: Reader, encoded: Encoded, layers: Sequence[int], after: PromptReading | None = None
    ) -> None:
        """Where the prompt begins like that of `after`, this beginning is not read again. Raises `InputError`
        for an empty prompt."""
        if not encoded.prompt_ids:
            raise InputError("the prompt has no tokens")
        self._model, self._prompt, self._layers = reader.model, encoded.prompt_ids, tuple(layers)
        self._device = input_device(self._model)
        shared = 0 if after is None else common_length(after._prompt, self._prompt[:-1])
        # Every layer of it keeps all keys: branches see far back.
        self._cache = after._copied_cache() if after is not None and shared else DynamicCache()
        self._crop(shared)
        self._response: tuple[int, ...] = ()
        self._reading: Reading | None = None
        self._final: list[Tensor] = []
        """Logits (vocabulary,) before each token of the last response, and after it."""
        self._scored: dict[Branch, list[float]] = {}
        pairs = zip(self._prompt, encoded.segments, strict=True)
        in_passages = sorted({token for token, segment in pairs if segment >= FIRST_PASSAGE})
        self._in_passages = torch.tensor(in_passages, device=self._device, dtype=torch.long)
        if len(self._prompt) > shared + 1:  # the last token is read with the response
            with torch.no_grad():
                self._go_on(self._prompt[shared:-1], logits_to_keep=1)

    @property
    def lock(self) -> threading.RLock:
        return lock_of(self._model)

    @property
    def bytes(self) -> int:
        """The size of the cache and of the last response's reading."""
        layers: list[Any] = list(self._cache.layers)
        tensors = [*self._final, *(tensor for layer in layers for tensor in (layer.keys, layer.values))]
        return sum(tensor.nbytes for tensor in tensors if tensor is not None)

    def copied(self) -> PromptReading:
        """Return the same prompt for another response; it is not read again."""
        reading, reading._cache = copy(self), self._copied_cache()
        reading._crop(len(self._prompt) - 1)
        reading._response, reading._reading, reading._final, reading._scored = (), None, [], {}
        return reading

    def _copied_cache(self) -> DynamicCache:
        copied = copy(self._cache)
        copied.layers = [copy(layer) for layer in self._cache.layers]  # whose tensors never change in place
        return copied

    @locked
    @torch.no_grad()
    def read(self, response_ids: Sequence[int], branches: Sequence[Branch] = ()) -> Reading:
        """Read a response, and in the same pass `branches` of it, which are scored (see `branches`). Of one
        that begins like the last one, only further tokens are computed: so a response is read while it is
        written.

        Raises `InputError` for a response without tokens, `RelevanceError` where the reader overflows.
        """
        if not response_ids:
            raise InputError("the response has no tokens", field="response")
        ids, before = tuple(response_ids), self._reading
        shared = common_length(self._response, ids) if before is not None else 0
        self._reading = None  # a pass that fails leaves a cache of which nothing is known
        self._scored = {branch: scores for branch, scores in self._scored.items() if branch.start <= shared}
        del self._final[shared + 1 if shared else 0 :]
        self._response = ids
        watched = _States(self._model, self._layers)
        with watched:
            self._read_on(ids[shared:] if shared else (self._prompt[-1], *ids), self._unscored(branches))
        reading = self._measured(shared, watched)
        if before is not None and shared:
            reading = _joined(before, reading, shared)
        self._reading = reading
        return reading

    def _measured(self, first: int, watched: _States) -> Reading:
        """Measure the response's tokens from number `first` on, with the collected states."""
        ids = torch.tensor(self._response[first:], device=self._device, dtype=torch.long)[:, None]
        if not len(ids):
            return Reading(**dict.fromkeys(LIKELIHOODS, _NOTHING), states=np.zeros((0, 0, 0), np.float16))
        final, firsts = self._final[first:-1], range(0, len(ids), ROWS)
        rows = [self._likelihood(torch.stack(final[k : k + ROWS]), ids[k : k + ROWS]) for k in firsts]
        joined = (torch.cat(columns).float().cpu().numpy() for columns in zip(*rows, strict=True))
        # Before the first token, too, where that was read with the prompt's last.
        states = watched.states(len(ids) + (not first))
        return Reading(**dict(zip(LIKELIHOODS, joined, strict=True)), states=states)

    @locked
    @torch.no_grad()
    def branches(self, branches: Sequence[Branch]) -> list[list[float]]:
        """Return the log-probability of each branch's tokens, after the prompt and the response before it.

        Those that were not read with the response are read in one pass; each attends to itself and to the
        text that it continues. The response is the last one read.
        """
        self._read_on((), self._unscored(branches))
        return [self._scored[branch] for branch in branches]

    def _unscored(self, branches: Sequence[Branch]) -> list[Branch]:
        return [branch for branch in dict.fromkeys(branches) if branch not in self._scored]

    def _read_on(self, ids: Sequence[int], branches: Sequence[Branch]) -> None:
        """Read the rest of the response, `ids`, and branches of it, in one pass."""
        length, count = len(self._prompt) + len(self._response), len(ids)
        self._crop(length - count)
        if not (ids or branches):
            return
        options = {}
        if branches:
            starts = [length - count, *(len(self._prompt) + branch.start for branch in branches)]
            parts = [ids, *(branch.ids for branch in branches)]
            positions = [
                start + k for start, part in zip(starts, parts, strict=True) for k in range(len(part))
            ]
            options = {
                "attention_mask": self._masks(starts, parts, positions),
                "position_ids": torch.tensor([positions], device=self._device),
            }
        branched = [token for branch in branches for token in branch.ids]
        logits = self._go_on([*ids, *branched], **options).logits[0]
        self._crop(length)
        final = logits[:count].clone() if branches else logits  # a view would hold the branches' too
        if not torch.isfinite(final).all():
            raise RelevanceError(f"NaN or Inf in the reader's logits in {final.dtype}; try dtype='float32'")
        self._final += final.unbind()
        at = count
        for branch in branches:
            last = at + len(branch.ids) - 1
            before = torch.cat([self._final[branch.start][None], logits[at:last]])
            chosen = torch.tensor(branch.ids, device=self._device)[:, None]
            self._scored[branch] = before.float().log_softmax(-1).gather(1, chosen)[:, 0].tolist()
            at = last + 1

    def _masks(self, starts: Sequence[int], parts: Sequence[Sequence[int]], positions: Sequence[int]) -> Any:
        """Return the masks (1, 1, tokens, all) added to attention scores, by kind of layer: of parts that
        each go on from a number of tokens, the first of them where the cache ends."""
        count = len(positions)
        visible = torch.zeros(count, starts[0] + count, dtype=torch.bool)
        at = 0
        for start, part in zip(starts, parts, strict=True):
            end = at + len(part)
            visible[at:end, :start] = True
            visible[at:end, starts[0] + at : starts[0] + end] = torch.ones(len(part), len(part)).tril().bool()
            at = end
        window = getattr(self._model.config, "sliding_window", None)
        kinds = set(getattr(self._model.config, "layer_types", None) or ())
        if window is None or kinds == {"full_attention"}:
            return self._added(visible)
        every = torch.tensor([*range(starts[0]), *positions])
        near = visible & (every[starts[0] :, None] - every[None] < window)
        if not kinds or kinds == {"sliding_attention"}:
            return self._added(near)
        return {"full_attention": self._added(visible), "sliding_attention": self._added(near)}

    def _added(self, visible: Tensor) -> Tensor:
        dtype = self._model.dtype
        mask = torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, torch.finfo(dtype).min)
        return mask[None, None].to(self._device)

    def _likelihood(self, logits: Tensor, ids: Tensor) -> tuple[Tensor, ...]:
        logprobs = logits.float().log_softmax(-1)
        logprob = logprobs.gather(1, ids)
        entropy = -(logprobs.exp() * logprobs).sum(-1)
        rank = (logprobs > logprob).sum(-1)
        others = logprobs.scatter(1, ids, -math.inf)
        best = others.amax(-1) - logprob[:, 0]
        passages = others[:, self._in_passages]
        if passages.shape[1]:
            in_passages, mass = (
                passages.amax(-1) - logprob[:, 0],
                passages.exp().sum(-1),
            )
        else:
            in_passages, mass = torch.full_like(best, -_FAR), torch.zeros_like(best)
        return logprob[:, 0], entropy, rank, best, in_passages.clamp(min=-_FAR), mass

    def _crop(self, length: int) -> None:
        extra = self._cache.get_seq_length() - length
        if extra > 0:
            self._cache.crop(-extra)

    @locked
    def _go_on(self, ids: Sequence[int], /, **options: Any) -> Any:
        """Run the model on further tokens after those in the cache, which grows by them."""
        require_plain(self._model)
        further = torch.tensor([list(ids)], device=self._device)
        return self._model(
            further, use_cache=True, **cache_option(self._model.forward, self._cache), **options
        )


_FAR = 50.0
"""Lead in nats over a passage that has no other token."""
_NOTHING: Array = np.zeros(0, dtype=np.float32)


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences, such as the tokens of two responses."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(first), len(second)))


def _joined(before: Reading, after: Reading, shared: int) -> Reading:
    """Join the first `shared` tokens of the former reading with the new ones."""
    likelihoods = {
        name: np.concatenate([getattr(before, name)[:shared], getattr(after, name)]) for name in LIKELIHOODS
    }
    states = before.states[:, : shared + 1]  # one more: that before the first token
    if after.states.size:
        states = np.concatenate([states, after.states], axis=1)
    return Reading(**likelihoods, states=states)


class _States:
    """Collect the output of some decoder layers while it is open."""

    def __init__(self, model: Any, layers: Sequence[int]) -> None:
        self._model, self._layers = model, layers
        self._outputs: dict[int, Tensor] = {}
        self._hooks: list[Any] = []

    def __enter__(self) -> None:
        blocks = self._model.get_decoder().layers
        for k in self._layers:
            self._hooks.append(blocks[k].register_forward_hook(self._keep(k)))

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _keep(self, k: int) -> Any:
        def hook(module: object, inputs: object, output: Any) -> None:
            self._outputs[k] = (output[0] if isinstance(output, tuple) else output)[0]

        return hook

    def states(self, count: int) -> NDArray[np.float16]:
        """Return those of the first tokens, so many, of the last pass."""
        largest = torch.finfo(torch.float16).max
        rows = (self._outputs[k][:count] for k in self._layers)
        states = [row.float().clamp(-largest, largest).half().cpu() for row in rows]
        stacked: NDArray[np.float16] = torch.stack(states).numpy()
        return stacked
