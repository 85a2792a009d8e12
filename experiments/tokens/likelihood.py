"""How likely the tokens of a response are, from the logits that predict them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from lrp4rag.lrp.rules import accumulate


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Log-probability and entropy, in nats, and rank of each response token, (t,) each."""

    logprob: Tensor
    entropy: Tensor
    rank: Tensor

    @classmethod
    def of(cls, logits: Tensor, ids: Sequence[int]) -> Likelihood:
        parts = []
        for some, chosen in _rows(logits, ids):
            logprobs = accumulate(some).log_softmax(-1)
            logprob = logprobs.gather(1, chosen[:, None])
            entropy = -(logprobs.exp() * logprobs).sum(-1)
            parts.append((logprob[:, 0], entropy, (logprobs > logprob).sum(-1)))
        return cls(*(torch.cat(part) for part in zip(*parts, strict=True)))


def logprob_of(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """Log-probability, in nats, of each token (t,), from logits (t, vocabulary)."""
    rows = _rows(logits, ids)
    return -torch.cat([F.cross_entropy(accumulate(some), chosen, reduction="none") for some, chosen in rows])


def _rows(logits: Tensor, ids: Sequence[int], size: int = 16) -> Iterator[tuple[Tensor, Tensor]]:
    """As many as stay in a processor's cache in float32: twice as fast as all at once."""
    chosen = torch.tensor(ids, device=logits.device)
    return zip(logits.split(size), chosen.split(size), strict=True)
