"""`Prompted`: a prompt read once, whose continuations are scored or sampled on the same cache."""

from __future__ import annotations

import copy
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeVar

import torch
from torch import Tensor

from lrp4rag.reader.lock import locked
from lrp4rag.reader.placement import cache_in, cache_option, input_device, weight_of
from lrp4rag.reader.reader import Reader
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import hash_of

T = TypeVar("T")
TOGETHER = 16  # continuations run at a time: the prompt's cache lies in memory once for each


class Prompted:
    """The key/value cache of a prompt's tokens; every method leaves it as it was.

    Raises `InputError` for an empty prompt, or one that fills the reader's window.
    """

    def __init__(self, reader: Reader, ids: Sequence[int]) -> None:
        if not ids:
            raise InputError("the prompt has no tokens")
        if reader.window is not None and len(ids) >= reader.window:
            raise InputError(f"a prompt of {len(ids)} tokens fills the reader's window of {reader.window}")
        self._reader, self._ids = reader, list(ids)
        self._cache: Any = None
        if len(ids) > 1:  # the last token is read with what follows it: its logits are needed then
            with reader.lock, torch.no_grad():
                output = reader.model(self._tensor([self._ids[:-1]]), use_cache=True, logits_to_keep=1)
            self._cache = cache_in(output)

    @property
    def lock(self) -> threading.RLock:
        return self._reader.lock

    @locked
    @torch.no_grad()
    def logits_after(self, continuations: Sequence[Sequence[int]]) -> Tensor:
        """Return the next token's logits after each continuation, (continuations, vocabulary); one may be
        empty.

        Raises `InputError` for a continuation that does not fit into the window.
        """
        return torch.stack(
            self._together(continuations, lambda batch: self._logits_after([continuations[k] for k in batch]))
        )

    def _logits_after(self, continuations: Sequence[Sequence[int]]) -> Tensor:
        ids, mask = self._after(continuations)
        model = self._reader.model
        output = model.base_model(
            ids[:, len(self._ids) - 1 :],
            attention_mask=mask,
            position_ids=(mask.cumsum(-1) - 1).clamp(min=0)[:, len(self._ids) - 1 :],
            use_cache=True,
            **cache_option(model.forward, self._copies(len(ids))),
        )
        # Two answers' logits are compared, which bfloat16 would round to eighths.
        head = weight_of(model.get_output_embeddings()).float()
        found: Tensor = output.last_hidden_state[:, -1].float().to(head.device) @ head.T
        cap = getattr(model.config, "final_logit_softcapping", None)
        return found if cap is None else cap * torch.tanh(found / cap)

    @locked
    @torch.no_grad()
    def sample(
        self,
        continuations: Sequence[Sequence[int]],
        *,
        max_new_tokens: int,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> list[str]:
        """Sample the reader's text after each continuation; at temperature 0 the likeliest tokens. Draws
        depend on prompt, continuation and seed only: not on the other continuations, and equal ones draw
        differently. Raises `InputError` if one does not fit into the window."""
        draws = self._draws(continuations, seed)

        def run(batch: Sequence[int]) -> list[str]:
            noise = [Noise(draws[k], temperature) for k in batch] if temperature else []
            return self._sample([continuations[k] for k in batch], noise, max_new_tokens)

        return self._together(continuations, run, max_new_tokens)

    def _draws(self, continuations: Sequence[Sequence[int]], seed: int) -> list[int]:
        """Return a seed for each continuation."""
        met: Counter[tuple[int, ...]] = Counter()
        made = []
        for ids in map(tuple, continuations):
            content = json.dumps([seed, met[ids], *self._ids, *ids])
            made.append(int(hash_of(content)[:15], 16))
            met[ids] += 1
        return made

    def _sample(
        self, continuations: Sequence[Sequence[int]], noise: Sequence[Noise], max_new_tokens: int
    ) -> list[str]:
        ids, mask = self._after(continuations, room=1)
        window, tokenizer = self._reader.window, self._reader.tokenizer

        def drawn(_: Tensor, logits: Tensor) -> Tensor:
            return torch.stack([one(row) for one, row in zip(noise, logits, strict=True)])

        output = self._reader.model.generate(
            ids,
            attention_mask=mask,
            **cache_option(self._reader.model.forward, self._copies(len(ids))),
            max_new_tokens=max_new_tokens if window is None else min(max_new_tokens, window - ids.shape[1]),
            pad_token_id=tokenizer.eos_token_id,
            do_sample=False,
            logits_processor=[drawn] if noise else [],
        )
        texts = tokenizer.batch_decode(output[:, ids.shape[1] :], skip_special_tokens=True)
        return [text.strip() for text in texts]

    def _together(
        self,
        continuations: Sequence[Sequence[int]],
        run: Callable[[Sequence[int]], Iterable[T]],
        new: int = 0,
    ) -> list[T]:
        """Call `run`, which appends `new` tokens, on `TOGETHER` continuations at a time, and return its
        results by number; of one length only, where padding would push tokens out of a sliding window."""
        lengths = [len(ids) for ids in continuations]
        window = getattr(self._reader.model.config, "sliding_window", None)
        slides = window is not None and len(self._ids) + max(lengths) + new > window
        found: dict[int, T] = {}
        for length in sorted(set(lengths)) if slides else [None]:
            alike = [k for k, known in enumerate(lengths) if length in (None, known)]
            for start in range(0, len(alike), TOGETHER):
                batch = alike[start : start + TOGETHER]
                found.update(zip(batch, run(batch), strict=True))
        return [found[k] for k in range(len(continuations))]

    def _after(self, continuations: Sequence[Sequence[int]], room: int = 0) -> tuple[Tensor, Tensor]:
        """Return prompt and continuation in each row, and the mask of its tokens: padding comes before the
        prompt's last token, so that rows end together."""
        longest, window = max(map(len, continuations)), self._reader.window
        if window is not None and len(self._ids) + longest + room > window:
            length = len(self._ids) + longest
            raise InputError(f"a prompt of {length} tokens leaves no room in the reader's window of {window}")
        first, last = self._ids[:-1], self._ids[-1]
        pads = [longest - len(ids) for ids in continuations]
        rows = [[*first, *[last] * (pad + 1), *ids] for pad, ids in zip(pads, continuations, strict=True)]
        mask = [[1] * len(first) + [0] * pad + [1] * (longest - pad + 1) for pad in pads]
        return self._tensor(rows), self._tensor(mask)

    def _copies(self, count: int) -> Any:
        cache = copy.deepcopy(self._cache)
        if cache is not None and count > 1:
            cache.batch_repeat_interleave(count)
        return cache

    def _tensor(self, ids: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(ids, device=input_device(self._reader.model))


@dataclass(frozen=True, slots=True)
class Noise:
    """Gumbel noise on one text's logits: the largest is then a draw from their softmax at a temperature."""

    seed: int
    temperature: float
    _generator: torch.Generator = field(default_factory=torch.Generator, repr=False)

    def __post_init__(self) -> None:
        self._generator.manual_seed(self.seed)

    def __call__(self, logits: Tensor) -> Tensor:
        """Return a new draw, (vocabulary,)."""
        uniform = torch.rand(len(logits), generator=self._generator).to(logits.device)
        return logits.float() / self.temperature - torch.log(-torch.log(uniform))


def prompted_together(reader: Reader, prompts: Sequence[Sequence[int]]) -> tuple[Prompted, list[list[int]]]:
    """Read the common beginning of several prompts once; return it with the rest of each."""
    equal = takewhile(lambda column: len(set(column)) == 1, zip(*prompts, strict=False))
    shared = [column[0] for column in equal]
    if not shared:
        raise InputError("these prompts have no beginning in common")
    return Prompted(reader, shared), [list(ids[len(shared) :]) for ids in prompts]
