"""`Tracer`: what the layers show at the positions that predict a response, in the pass that pushes relevance.

Provenance: under cp_lrp the hidden state is, at every layer, the sum of the tangents of the segments it came
from (and of biases). Lookback ratio of a head: Chuang et al., EMNLP 2024, arXiv 2407.07071.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lrp4rag.lrp.rules import accumulate


@dataclass(frozen=True, slots=True)
class Trace:
    """L layers at t positions, each the one that predicts a response token. S segments have a tangent.

    * `shares` (L, S, t): <h_s, h> / <h, h> after each layer; they sum to 1.
    * `norms` (L, S, t): the length of each part h_s.
    * `states` (chosen layers, d, t): the state h. `state_parts` (chosen layers, S, d, t): its parts h_s.
    * `hidden_mean`, `hidden_last` (L, d): the state h, its mean and at the last position.
    * `lookback` (L, heads, t): mean attention to a prompt token, over the same plus the mean attention
      to a response token so far; 1 for the first token.
    """

    shares: Tensor
    norms: Tensor
    states: Tensor
    state_parts: Tensor
    hidden_mean: Tensor
    hidden_last: Tensor
    lookback: Tensor

    @property
    def parts(self) -> Tensor:
        """(chosen layers, S, d): the mean of h_s over the positions."""
        return self.state_parts.mean(-1)


class Tracer:
    """An observer of one example: of the tangents `segments`, and with `bias` of the part of the biases.

    With `last_only`, of a prompt's last position, which predicts token 1.
    """

    def __init__(
        self,
        *,
        prompt: int,
        segments: Sequence[int] | slice,
        part_layers: Sequence[int],
        bias: bool = False,
        last_only: bool = False,
    ) -> None:
        self.prompt, self.segments, self.bias, self.last_only = prompt, segments, bias, last_only
        self.part_layers = tuple(part_layers)
        self._scale = torch.ones(0)
        self._seen: dict[str, dict[int, list[Tensor]]] = {}

    def start(self, scale: Tensor) -> None:
        self._scale = scale[self.segments, :, None]  # S, 1, 1
        self._seen = {}

    def layer(self, k: int, primal: Tensor, tangents: Tensor) -> None:
        first = -1 if self.last_only else 0
        hidden = accumulate(primal[0, first:])
        parts = accumulate(tangents[self.segments, 0, first:]) * self._scale.to(tangents.device)
        if self.bias:
            parts = torch.cat([parts, (hidden - parts.sum(0))[None]])
        self._note("hidden", k, hidden.T)  # d, m
        self._note("products", k, (parts * hidden).sum(-1))  # S, m
        self._note("norms", k, parts.norm(dim=-1))
        if k in self.part_layers:
            self._note("parts", k, parts.transpose(1, 2))  # S, d, m

    def attention(self, k: int, rows: slice, keys: slice, p: Tensor) -> None:
        size = 1 if self.last_only else rows.stop - rows.start
        seen = p[0, ..., -size:, : max(0, self.prompt - keys.start)].flatten(0, 1)  # heads, rows, keys
        mass = accumulate(seen).sum(-1)
        positions = torch.arange(keys.stop - size, keys.stop, device=mass.device)
        new = (positions + 1 - self.prompt).clamp(min=0)
        to_prompt, to_new = mass / self.prompt, (1 - mass).clamp(min=0) / new.clamp(min=1)
        ratio = torch.where(new > 0, to_prompt / (to_prompt + to_new).clamp(min=1e-12), 1.0)
        self._note("lookback", k, ratio)

    def piece(self, name: str, k: int) -> Tensor:
        """What was seen of layer k, its positions on the last axis."""
        return torch.cat(self._seen[name][k], -1)

    @property
    def layers(self) -> int:
        return len(self._seen["hidden"])

    def _note(self, name: str, k: int, value: Tensor) -> None:
        noted = self._seen.setdefault(name, {}).setdefault(k, [])
        if self.last_only:  # later chunks hold the later positions
            noted.clear()
        noted.append(value.to(self._scale.device))  # layers may be on several


def trace_of(prefix: Tracer, response: Tracer | None) -> Trace:
    """The trace of a response: what its prompt's end showed, and what its own tokens did (if it has two)."""
    tracers = [prefix, *([response] if response is not None else [])]

    def over(name: str, layers: Sequence[int]) -> list[Tensor]:
        return [torch.cat([tracer.piece(name, k) for tracer in tracers], -1) for k in layers]

    layers, chosen = range(prefix.layers), prefix.part_layers
    hidden = torch.stack(over("hidden", layers))  # L, d, t
    products, parts = torch.stack(over("products", layers)), over("parts", chosen)
    none = hidden.new_zeros((0, products.shape[1], *hidden.shape[1:]))
    return Trace(
        shares=products / hidden.square().sum(1, keepdim=True),
        norms=torch.stack(over("norms", layers)),
        states=hidden[list(chosen)],
        state_parts=torch.stack(parts) if parts else none,
        hidden_mean=hidden.mean(-1),
        hidden_last=hidden[..., -1],
        lookback=torch.stack(over("lookback", layers)),
    )
