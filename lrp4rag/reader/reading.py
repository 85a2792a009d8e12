"""`PromptReading`: a prompt read once by a plain pass, the responses to it, and what could stand in their
place.

Nothing is patched and no tangent is pushed: this is what the reader itself computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from lrp4rag.errors import InputError, RelevanceError
from lrp4rag.reader.caching import cache_option
from lrp4rag.reader.encoding import Encoded
from lrp4rag.reader.reader import Reader

Array = NDArray[np.float32]

ROWS = 32
"""Positions whose probabilities of the whole vocabulary are in memory at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What one pass tells of t response tokens, each at the position that predicts it; in nats.

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


@dataclass(frozen=True, slots=True)
class Branch:
    """Tokens `ids` that could stand in the response instead of those from number `start` on."""

    start: int
    ids: tuple[int, ...]


class PromptReading:
    """The key/value cache of a prompt; `read` gives the reading of a response to it.

    `layers` are those whose states are kept, counted from 0; the last one's are those before the final norm.
    """

    def __init__(self, reader: Reader, encoded: Encoded, layers: Sequence[int]) -> None:
        """Raises `InputError` for an empty prompt."""
        if not encoded.prompt_ids:
            raise InputError("the prompt has no tokens")
        self._model, self._prompt, self._layers = reader.model, encoded.prompt_ids, tuple(layers)
        self._device = self._model.get_input_embeddings().weight.device
        self._cache = DynamicCache()  # every layer keeps all keys: branches see far back
        in_passages = [
            token for token, segment in zip(self._prompt, encoded.segments, strict=True) if segment >= 2
        ]
        self._in_passages = torch.tensor(sorted(set(in_passages)), device=self._device, dtype=torch.long)
        if len(self._prompt) > 1:  # the last token is read with the response
            with torch.no_grad():
                self._go_on(self._prompt[:-1], logits_to_keep=1)

    @torch.no_grad()
    def read(self, response_ids: Sequence[int]) -> Reading:
        """Raises `InputError` for a response without tokens, `RelevanceError` where the reader overflows."""
        if not response_ids:
            raise InputError("the response has no tokens", field="response")
        self._crop(len(self._prompt) - 1)
        watched = _States(self._model, self._layers)
        with watched:
            output = self._go_on((self._prompt[-1], *response_ids))
        self._final = output.logits[0]
        self._response = tuple(response_ids)
        if not torch.isfinite(self._final).all():
            raise RelevanceError(
                f"NaN or Inf in the reader's logits in {self._final.dtype}; try dtype float32"
            )
        parts = [self._likelihood(logits, ids) for logits, ids in self._rows(response_ids)]
        logprob, entropy, rank, best, in_passages, mass = (
            torch.cat(part).float().cpu().numpy() for part in zip(*parts, strict=True)
        )
        return Reading(logprob, entropy, rank, best, in_passages, mass, watched.states())

    @torch.no_grad()
    def branches(self, branches: Sequence[Branch]) -> list[list[float]]:
        """The log-probability of each branch's tokens, after the prompt and the response before it.

        All branches are read in one pass, each seeing itself and what it goes on from. The response is the
        one that was read last.
        """
        found = list[list[float]]()
        if not branches:
            return found
        length = len(self._prompt) + len(self._response)
        self._crop(length)
        ids = [token for branch in branches for token in branch.ids]
        positions = [
            len(self._prompt) + branch.start + k for branch in branches for k in range(len(branch.ids))
        ]
        output = self._go_on(
            ids,
            attention_mask=self._masks(branches, length, positions),
            position_ids=torch.tensor([positions], device=self._device),
        )
        self._crop(length)
        at = 0
        for branch in branches:
            last = at + len(branch.ids) - 1
            logits = torch.cat([self._final[branch.start : branch.start + 1], output.logits[0, at:last]])
            chosen = torch.tensor(branch.ids, device=self._device)[:, None]
            found.append(logits.float().log_softmax(-1).gather(1, chosen)[:, 0].tolist())
            at = last + 1
        return found

    def _masks(self, branches: Sequence[Branch], length: int, positions: Sequence[int]) -> Any:
        """What is added to the scores (1, 1, tokens, all): of one kind, or of both kinds of layers."""
        count = len(positions)
        seen = torch.zeros(count, length + count, dtype=torch.bool)
        at = 0
        for branch in branches:
            end = at + len(branch.ids)
            seen[at:end, : len(self._prompt) + branch.start] = True
            seen[at:end, length + at : length + end] = torch.ones(end - at, end - at).tril().bool()
            at = end
        window = getattr(self._model.config, "sliding_window", None)
        kinds = set(getattr(self._model.config, "layer_types", None) or ())
        if window is None or kinds == {"full_attention"}:
            return self._added(seen)
        places = torch.tensor([*range(length), *positions])
        near = seen & (places[length:, None] - places[None] < window)
        if not kinds or kinds == {"sliding_attention"}:
            return self._added(near)
        return {"full_attention": self._added(seen), "sliding_attention": self._added(near)}

    def _added(self, seen: Tensor) -> Tensor:
        dtype = self._model.dtype
        mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
        return mask[None, None].to(self._device)

    def _likelihood(self, logits: Tensor, ids: Tensor) -> tuple[Tensor, ...]:
        logprobs = logits.float().log_softmax(-1)
        own = logprobs.gather(1, ids)
        entropy = -(logprobs.exp() * logprobs).sum(-1)
        rank = (logprobs > own).sum(-1)
        others = logprobs.scatter(1, ids, -math.inf)
        best = others.amax(-1) - own[:, 0]
        passages = others[:, self._in_passages]
        if passages.shape[1]:
            in_passages, mass = passages.amax(-1) - own[:, 0], passages.exp().sum(-1)
        else:
            in_passages, mass = torch.full_like(best, -_FAR), torch.zeros_like(best)
        return own[:, 0], entropy, rank, best, in_passages.clamp(min=-_FAR), mass

    def _rows(self, response_ids: Sequence[int]) -> Iterator[tuple[Tensor, Tensor]]:
        ids = torch.tensor(response_ids, device=self._device)[:, None]
        return zip(self._final[:-1].split(ROWS), ids.split(ROWS), strict=True)

    def _crop(self, length: int) -> None:
        extra = self._cache.get_seq_length() - length
        if extra > 0:
            self._cache.crop(-extra)

    def _go_on(self, ids: Sequence[int], **options: Any) -> Any:
        """What the model says of further tokens, after those in the cache, which grows by them."""
        given = torch.tensor([list(ids)], device=self._device)
        return self._model(given, use_cache=True, **cache_option(self._model.forward, self._cache), **options)


_FAR = 50.0
"""Nats; of a passage that has no other token."""


class _States:
    """Keeps the output of some decoder layers while it is open; other layers' states are let go."""

    def __init__(self, model: Any, layers: Sequence[int]) -> None:
        self._model, self._layers = model, layers
        self._found: dict[int, Tensor] = {}
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
            self._found[k] = (output[0] if isinstance(output, tuple) else output)[0]

        return hook

    def states(self) -> NDArray[np.float16]:
        largest = torch.finfo(torch.float16).max
        kept = [self._found[k].float().clamp(-largest, largest).half().cpu() for k in self._layers]
        found: NDArray[np.float16] = torch.stack(kept).numpy()
        return found
