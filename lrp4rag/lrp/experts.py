"""The rule of a mixture of experts: y = sum_k w_k(x) E_k(x) over the experts that the primal row picks.

The product of weight and expert output follows eq. 1 of LRP4RAG (arXiv 2408.15533) with the composite's
share; the weights are a softmax: their Jacobian under `paper` and `attnlrp`, held constant under `cp_lrp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.rules import GateRule, accumulate
from lrp4rag.reader.placement import present, weight_of


@dataclass(frozen=True, slots=True)
class Weights:
    """Those of one layer's router and experts."""

    router: Tensor  # experts, d
    gate_up: Tensor  # experts, 2 m, d
    down: Tensor  # experts, d, m


@dataclass(frozen=True, slots=True)
class Experts:
    """One layer's router and experts, and how they are combined."""

    router: Any
    experts: Any
    top: int
    normalised: bool  # whether the chosen experts' weights sum to one
    activation: str

    def weights(self) -> Weights:
        """Load the weights where they are away; they are asked for once in a pass."""
        with present(self.experts):
            gate_up, down = self.experts.gate_up_proj, self.experts.down_proj
        return Weights(weight_of(self.router), gate_up, down)


@dataclass(frozen=True, slots=True)
class _Expert:
    """One expert at the primal tokens that chose it, in order of position."""

    index: int
    tokens: Tensor  # p
    slot: Tensor  # p: as which of the token's choices
    gate: GateRule  # of shape (1, p, m)
    output: Tensor  # p, d


@dataclass(frozen=True, slots=True)
class ExpertsRule:
    experts: Experts
    composite: Composite
    probabilities: Tensor  # tokens, experts
    chosen: Tensor  # tokens, top
    weights: Tensor  # tokens, top
    picked: list[_Expert]

    @classmethod
    def primal_and_push(
        cls, experts: Experts, x: Tensor, rows: int, composite: Composite
    ) -> tuple[Tensor, ExpertsRule]:
        """Return output of the stack x ((1 + T) B, n, d), of which the first B = `rows` are primal, and the
        rule."""
        stacked = x.reshape(len(x) // rows, -1, x.shape[-1])  # 1 + T, tokens, d
        loaded = experts.weights()
        logits = F.linear(stacked, loaded.router)
        probabilities = accumulate(logits[0]).softmax(-1)
        values, chosen = probabilities.topk(experts.top, dim=-1)
        if experts.normalised:
            values = values / values.sum(-1, keepdim=True)
        weights = values.to(x.dtype)
        rule = cls(experts, composite, probabilities.to(x.dtype), chosen, weights, [])
        moved = rule._push_weights(logits[1:])
        out = torch.zeros_like(stacked)
        for index in chosen.unique().tolist():
            tokens, slot = torch.where(chosen == index)
            rule._add_expert(loaded, out, stacked, index, tokens, slot, moved)
        return out.view_as(x), rule

    def _push_weights(self, dlogits: Tensor) -> Tensor | None:
        """Return tangents of the routing weights (T, tokens, top), or None where they are frozen."""
        if self.composite.softmax == "frozen":
            return None
        chosen = dlogits.gather(-1, self.chosen.expand(len(dlogits), -1, -1))
        if self.experts.normalised:  # then a softmax over the chosen logits alone
            return self.weights * (chosen - (self.weights * chosen).sum(-1, keepdim=True))
        return self.weights * (chosen - (self.probabilities * dlogits).sum(-1, keepdim=True))

    def _add_expert(
        self,
        loaded: Weights,
        out: Tensor,
        x: Tensor,
        index: int,
        tokens: Tensor,
        slot: Tensor,
        moved: Tensor | None,
    ) -> None:
        share = self.composite.share
        gates, ups = F.linear(x[:, tokens], loaded.gate_up[index]).chunk(2, dim=-1)
        gate = GateRule.at(gates[:1], ups[:1], self.composite, self.experts.activation)
        gate.push(gates[1:], ups[1:])
        gates[:1] = gate.product
        y = F.linear(gates, loaded.down[index])
        self.picked.append(_Expert(index, tokens, slot, gate, y[0]))
        y_weighted = y * self.weights[tokens, slot, None]
        if len(y) > 1:
            tangents = y_weighted[1:]
            if moved is not None:
                tangents += moved[:, tokens, slot, None] * y[0]
            tangents *= share
        out[:, tokens] += y_weighted

    def pull(self, c: Tensor) -> Tensor:
        """Return cotangents of the input for those of the output, (C, n, d); n may be cut short."""
        n, share, loaded = c.shape[1], self.composite.share, self.experts.weights()
        x = torch.zeros_like(c)
        for_weights = c.new_zeros((len(c), n, self.experts.top))
        for expert in self.picked:
            count = int((expert.tokens < n).sum())
            if not count:
                continue
            tokens, slot = expert.tokens[:count], expert.slot[:count]
            of_expert = c[:, tokens]
            for_weights[:, tokens, slot] = share * (of_expert * expert.output[:count]).sum(-1)
            of_expert = share * self.weights[tokens, slot, None] * of_expert
            dgate, dup = expert.gate.pull(of_expert @ loaded.down[expert.index])
            by_gate, by_up = loaded.gate_up[expert.index].chunk(2)
            moved = dup @ by_up
            if dgate is not None:
                moved += dgate @ by_gate
            x[:, tokens] += moved
        if self.composite.softmax == "jacobian":
            x += self._pull_weights(for_weights) @ loaded.router
        return x

    def _pull_weights(self, c: Tensor) -> Tensor:
        """Return cotangents of the router's logits (C, n, experts) for those of the weights (C, n, top)."""
        n = c.shape[1]
        weights, chosen = self.weights[:n], self.chosen[:n].expand(len(c), -1, -1)
        weighted = weights * c
        total = weighted.sum(-1, keepdim=True)
        logits = c.new_zeros((len(c), n, self.probabilities.shape[-1]))
        if self.experts.normalised:
            return logits.scatter(-1, chosen, weighted - weights * total)
        return logits.scatter(-1, chosen, weighted) - self.probabilities[:n] * total
