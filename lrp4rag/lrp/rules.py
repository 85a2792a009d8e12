"""The local rules: each primitive as a linear map, at the primal activations it was built from.

`push` maps tangents (perturbations of the primitive's inputs) to tangents of its output; `pull` is the
transpose and maps cotangents back. Linear layers need no rule (W dx, and c W). Equation numbers are those of
LRP4RAG, arXiv 2408.15533. Shapes: B examples, T tangents or C cotangents in front, n positions, d features.
Attention heads are grouped as (kv heads, queries per kv head, n, head size).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lrp4rag.lrp.activations import ACTIVATIONS, cap_factor
from lrp4rag.lrp.composites import Composite

# Queries per attention block: few enough that its probabilities stay in cache.
QUERY_BLOCK = 128

Watch = Callable[[slice, slice, Tensor], None]
"""Sees a block of attention: its queries, the keys that they see, probabilities (B, kv, group, n, m)."""


def runs(composites: Sequence[Composite]) -> list[tuple[Composite, slice]]:
    """Return neighbouring tangents of one composite, together."""
    ends = [k + 1 for k in range(len(composites)) if composites[k : k + 1] != composites[k + 1 : k + 2]]
    return [(composites[start], slice(start, end)) for start, end in zip([0, *ends], ends, strict=False)]


def accumulate(x: Tensor) -> Tensor:
    """Return `x` in at least float32: means, exponentials and sums are not taken in half precision."""
    return x if x.dtype == torch.float64 else x.float()


@dataclass(frozen=True, slots=True)
class NormRule:
    """y = w x / rms(x). Frozen: w dx / rms(x), the scale held constant. Jacobian: the derivative.

    Norms of queries and keys have one more axis, the heads, between positions and features.
    """

    weight: Tensor  # d
    inverse_rms: Tensor  # B, n, 1
    direction: Tensor | None  # x / rms(x) (B, n, d), only for the Jacobian

    @classmethod
    def at(cls, x: Tensor, weight: Tensor, eps: float, composite: Composite) -> NormRule:
        wide = accumulate(x)
        inverse_rms = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
        jacobian = composite.norm == "jacobian"
        return cls(weight, inverse_rms, wide * inverse_rms if jacobian else None)

    def primal(self, x: Tensor) -> Tensor:
        return self._weighted(accumulate(x) * self.inverse_rms, x.dtype)

    def push(self, dx: Tensor) -> Tensor:
        if self.direction is None:
            return dx * self._factor(dx.dtype)
        scaled = accumulate(dx) * self.inverse_rms
        scaled -= self.direction * (self.direction * scaled).mean(-1, keepdim=True)
        return self._weighted(scaled, dx.dtype)

    def _factor(self, dtype: torch.dtype) -> Tensor:
        """Return what the frozen norm multiplies by: one product for each of many tangents."""
        return (accumulate(self.weight) * self.inverse_rms).to(dtype)

    def _weighted(self, scaled: Tensor, dtype: torch.dtype) -> Tensor:
        if self.weight.dtype != dtype:  # a weight in float32 is multiplied in it
            return scaled.mul_(self.weight).to(dtype)
        return scaled.to(dtype).mul_(self.weight)

    @classmethod
    def joined(cls, rules: list[NormRule]) -> NormRule:
        """Return the rule of all positions, from those of consecutive chunks of them."""
        if len(rules) == 1:
            return rules[0]
        directions = [rule.direction for rule in rules if rule.direction is not None]
        return cls(
            rules[0].weight,
            torch.cat([rule.inverse_rms for rule in rules], 1),
            torch.cat(directions, 1) if directions else None,
        )

    def heads_second(self) -> NormRule:
        """Return the same rule for tensors laid out (B, n, heads, e) rather than (B, heads, n, e)."""
        direction = None if self.direction is None else self.direction.transpose(1, 2)
        return NormRule(self.weight, self.inverse_rms.transpose(1, 2), direction)

    def pull(self, c: Tensor, add: Tensor | None = None) -> Tensor:
        """Return cotangents of x, with `add` added to them: those that reach x past the norm."""
        n = c.shape[1]
        if self.direction is None:
            factor = self._factor(c.dtype)[:, :n]
            return c * factor if add is None else torch.addcmul(add, c, factor)
        scaled = accumulate(self.weight * c) * self.inverse_rms[:, :n]
        direction = self.direction[:, :n]
        scaled -= direction * (direction * scaled).mean(-1, keepdim=True)
        return scaled.to(c.dtype) if add is None else add + scaled.to(c.dtype)


@dataclass(frozen=True, slots=True)
class GateRule:
    """y = f(g) u, the gated MLP: eq. 1 for the product, eqs. 3 and 4 for the activation f."""

    for_gate: Tensor | None  # B, n, m; None where the gate is frozen
    for_up: Tensor  # B, n, m
    product: Tensor  # the primal output, B, n, m

    @classmethod
    def at(cls, gate: Tensor, up: Tensor, composite: Composite, activation: str = "silu") -> GateRule:
        function = ACTIVATIONS[activation]
        ratio = function.ratio(gate)
        activated = gate * ratio
        product = activated * up
        if composite.activation == "frozen":
            return cls(None, activated, product)
        slope = function.slope(gate, ratio) if composite.activation == "jacobian" else ratio
        if composite.share != 1:
            return cls((slope * up).mul_(composite.share), activated.mul_(composite.share), product)
        return cls(slope * up, activated, product)

    def push(self, dgate: Tensor, dup: Tensor) -> Tensor:
        """Return tangents of y, written over `dgate`: on a CPU, new memory costs as much as the product."""
        if self.for_gate is None:
            return torch.mul(self.for_up, dup, out=dgate)
        return dgate.mul_(self.for_gate).addcmul_(self.for_up, dup)

    def pull(self, c: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return cotangents of the gate and, written over `c`, of the up-projection."""
        n = c.shape[-2]
        dgate = None if self.for_gate is None else self.for_gate[:, :n] * c
        return dgate, c.mul_(self.for_up[:, :n])


@dataclass(frozen=True, slots=True)
class AttentionRule:
    """o = softmax(q k^T scale) v, causal. Two products (eq. 1) around a softmax (eqs. 3 and 4).

    With p the probabilities and `share` s: ds = s scale (dq k + q dk), dp = p (ds - <p, ds>),
    do = s (dp v + p dv). No dp is ever built: dp v = (p ds) v - rowsum(p ds) (p v). Where scores are
    soft-capped, ds is multiplied by the cap's factor as well.

    Keys may be longer than queries (a cache); the queries are then the last positions. `window` is
    how many keys a query sees at most, itself included; `padding` (B, m) marks keys that none sees.
    """

    q: Tensor  # B, kv, group, n, e
    k: Tensor  # B, kv, m, e
    v: Tensor  # B, kv, m, e
    scale: float
    composite: Composite
    window: int | None = None
    cap: float | None = None
    padding: Tensor | None = None
    block: int | None = None  # queries per block; QUERY_BLOCK by default
    watch: Watch | None = None

    def primal_and_push(
        self, dq: Tensor, dk: Tensor, dv: Tensor, composites: Sequence[Composite] | None = None
    ) -> Tensor:
        """Return output and T tangents (1 + T, B, kv, group, n, e); `composites` has one for each tangent."""
        batch, kv, group, n, e = self.q.shape
        tangents = dq.shape[0]
        each = composites or [self.composite] * tangents
        if n == 1:
            return self._push_last(dq, dk, dv, runs(each))
        out = self.q.new_empty((1 + tangents, batch, kv, group, n, e))
        # One product with [v, dv_1 .. dv_T] gives p v and every p dv.
        values = torch.cat([self.v, *dv], dim=-1) if tangents else self.v
        # dq k + q dk is one product of [dq, q] and [k, dk].
        moving = [t for t in range(tangents) if each[t].softmax == "jacobian"]
        dq_and_q = {t: torch.cat([dq[t], self.q], dim=-1) for t in moving}
        k_and_dk = {t: torch.cat([self.k, dk[t]], dim=-1) for t in moving}
        for rows, keys, p, gain in self._blocks(n):
            size = rows.stop - rows.start
            mixed = (p @ values[:, :, keys]).view(batch, kv, group * size, 1 + tangents, e)
            primal = mixed[..., 0, :]
            out[0, :, :, :, rows] = primal.reshape(batch, kv, group, size, e)
            for t in range(tangents):
                tangent, share = mixed[..., 1 + t, :], each[t].share
                if t in dq_and_q:
                    queries = dq_and_q[t][:, :, :, rows].reshape(batch, kv, group * size, 2 * e)
                    p_ds = (queries @ k_and_dk[t][:, :, keys].transpose(-1, -2)).mul_(gain)
                    moved = p_ds @ self.v[:, :, keys]
                    moved -= p_ds.sum(-1, keepdim=True) * primal
                    tangent = torch.add(tangent, moved, alpha=share * self.scale)
                if share != 1:
                    tangent = tangent * share
                out[1 + t, :, :, :, rows] = tangent.reshape(batch, kv, group, size, e)
        return out

    def _push_last(
        self, dq: Tensor, dk: Tensor, dv: Tensor, together: list[tuple[Composite, slice]]
    ) -> Tensor:
        """Do the same for a single query, where a copy of the keys and values costs more than the
        products."""
        _, keys, p, gain = next(self._blocks(1))
        k, v, dk, dv = (tensor[..., keys, :] for tensor in (self.k, self.v, dk, dv))
        primal = p @ v  # B, kv, group, e
        out = self.q.new_empty((1 + len(dq), *primal.shape))
        out[0] = primal
        if len(dq):
            torch.matmul(p, dv, out=out[1:])
        for composite, which in together:
            tangents, share = out[1:][which], composite.share
            if composite.softmax == "jacobian":
                queries = dq[which].squeeze(-2).permute(1, 2, 0, 3, 4).flatten(2, 3)  # B, kv, T * group, e
                p_ds = (
                    (queries @ k.transpose(-1, -2)).unflatten(2, (len(tangents), -1)).permute(2, 0, 1, 3, 4)
                )
                p_ds = (p_ds + self.q.squeeze(-2) @ dk[which].transpose(-1, -2)).mul_(gain)
                sums = p_ds.sum(-1, keepdim=True)
                moved = p_ds.permute(1, 2, 0, 3, 4).flatten(2, 3) @ v
                moved = moved.unflatten(2, (len(tangents), -1)).permute(2, 0, 1, 3, 4)
                tangents.add_(torch.sub(moved, sums * primal), alpha=share * self.scale)
            if share != 1:
                tangents *= share
        return out.unsqueeze(-2)

    def pull(self, c: Tensor, out: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor]:
        """Return cotangents of q, k and v for cotangents `c` (C, kv, group, n, e) of the output `out`.

        One example (B = 1). n may be cut short: positions after it are not reached.
        """
        # To broadcast p over cotangents, or to transpose them all, would copy a lot.
        count, kv, group, n, e = c.shape
        share, score_share = self.composite.share, self.composite.share**2 * self.scale
        softmax_moves = self.composite.softmax == "jacobian"
        cv = c.new_zeros((kv, count * e, n))
        cq = torch.empty_like(c, memory_format=torch.contiguous_format) if softmax_moves else None
        ck = c.new_zeros((kv, count, e, n)) if softmax_moves else None
        for rows, keys, p, gain in self._blocks(n):
            size = rows.stop - rows.start
            block = c[:, :, :, rows].transpose(0, 1).reshape(kv, count, group * size, e)
            cv[..., keys].add_(block.transpose(2, 3).reshape(kv, count * e, group * size) @ p[0], alpha=share)
            if cq is None or ck is None:
                continue
            k, v, q = self.k[0, :, keys], self.v[0, :, keys], self.q[0, :, :, rows]
            primal = out[0, :, :, rows].reshape(kv, 1, group * size, e)
            moved = block.reshape(kv, -1, e) @ v.transpose(-1, -2)
            by_cotangent = moved.view(kv, count, group * size, -1)
            by_cotangent -= (block * primal).sum(-1, keepdim=True)
            by_cotangent *= gain[0][:, None]
            cq[:, :, :, rows] = (moved @ k).view(kv, count, group, size, e).transpose(0, 1)
            ck[..., keys] += q.reshape(kv, 1, group * size, e).transpose(-1, -2) @ by_cotangent
        if cq is not None and ck is not None:
            cq *= score_share
            ck *= score_share
            ck = ck.permute(1, 0, 3, 2)
        return cq, ck, cv.view(kv, count, e, n).permute(1, 0, 3, 2)

    def _blocks(self, n: int) -> Iterator[tuple[slice, slice, Tensor, Tensor]]:
        """Yield query rows, the keys they see, probabilities p and p times the cap's factor.

        The last two are (B, kv, group * rows, keys); blocks of keys that no row sees are skipped.
        """
        batch, kv, group, _, e = self.q.shape
        cached = self.k.shape[-2] - self.q.shape[-2]
        step = self.block or QUERY_BLOCK
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            size = rows.stop - start
            first = 0 if self.window is None else max(0, cached + start + 1 - self.window)
            keys = slice(first, cached + rows.stop)
            queries = self.q[:, :, :, rows].reshape(batch, kv, group * size, e)
            scores = (queries @ self.k[:, :, keys].transpose(-1, -2)).mul_(self.scale)
            factor = None
            if self.cap is not None:
                scores, factor = cap_factor(scores, self.cap, self.composite)
            self._mask(scores.view(batch, kv, group, size, -1), cached + start, keys)
            p = accumulate(scores).softmax(-1).to(scores.dtype)
            if self.watch is not None:
                self.watch(rows, keys, p.view(batch, kv, group, size, -1))
            yield rows, keys, p, p if factor is None else factor.mul_(p)

    def _mask(self, scores: Tensor, position: int, keys: slice) -> None:
        """Hide padding, keys after the query and keys that have left its window, in place.

        `scores` is (B, kv, group, rows, keys) and its first query stands at `position`.
        """
        size = scores.shape[-2]
        if self.padding is not None:
            # Not -inf: a row that sees nothing, as padding itself, must stay finite.
            hidden = self.padding[:, None, None, None, keys]
            scores.masked_fill_(hidden, torch.finfo(scores.dtype).min)
        if size > 1:
            future = scores.new_ones((size, size), dtype=torch.bool).triu_(1)
            scores[..., -size:].masked_fill_(future, -torch.inf)
        if self.window is not None and position + size > self.window:
            queries = torch.arange(position, position + size, device=scores.device)[:, None]
            left = torch.arange(keys.start, keys.stop, device=scores.device) <= queries - self.window
            scores.masked_fill_(left, -torch.inf)
