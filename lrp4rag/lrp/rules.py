"""The local rules: each primitive as a linear map, at the primal activations it was built from.

A rule object has two directions. `push` maps tangents (perturbations of the primitive's inputs) to
tangents of its output; `pull` is the transpose and maps cotangents back. The linear layers need no
rule (W dx, and c W for the transpose). Equation numbers are those of LRP4RAG, arXiv 2408.15533.

Shapes: B examples, T tangents or C cotangents in front, n positions, d features. Attention heads
are grouped as (kv heads, queries per kv head, n, head size).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lrp4rag.lrp.composites import Composite

# Queries per attention block: small enough that a block's probabilities stay in cache, and that the
# keys after the block, which causality excludes, are never multiplied.
QUERY_BLOCK = 128


def accumulate(x: Tensor) -> Tensor:
    """`x` in at least float32: means, exponentials and sums are not taken in half precision."""
    return x if x.dtype == torch.float64 else x.float()


@dataclass(frozen=True, slots=True)
class NormRule:
    """y = w x / rms(x). Frozen: w dx / rms(x), the scale held constant. Jacobian: the derivative."""

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
        return (accumulate(x) * self.inverse_rms).to(x.dtype).mul_(self.weight)

    def push(self, dx: Tensor) -> Tensor:
        scaled = accumulate(dx) * self.inverse_rms
        if self.direction is not None:
            scaled -= self.direction * (self.direction * scaled).mean(-1, keepdim=True)
        return scaled.to(dx.dtype).mul_(self.weight)

    def pull(self, c: Tensor) -> Tensor:
        n = c.shape[-2]
        scaled = accumulate(self.weight * c) * self.inverse_rms[:, :n]
        if self.direction is not None:
            direction = self.direction[:, :n]
            scaled -= direction * (direction * scaled).mean(-1, keepdim=True)
        return scaled.to(c.dtype)


@dataclass(frozen=True, slots=True)
class GateRule:
    """y = silu(g) u, the gated MLP: eq. 1 for the product, eqs. 3 and 4 for the activation.

    The ratio silu(g) / g is sigmoid(g) in closed form: dividing gives NaN at 0 in half precision.
    """

    for_gate: Tensor | None  # B, n, m; None where the gate is frozen
    for_up: Tensor  # B, n, m
    product: Tensor  # the primal output, B, n, m

    @classmethod
    def at(cls, gate: Tensor, up: Tensor, composite: Composite) -> GateRule:
        sigmoid = torch.sigmoid(gate)
        activated = gate * sigmoid
        product = activated * up
        if composite.activation == "frozen":
            return cls(None, activated, product)
        slope = sigmoid
        if composite.activation == "jacobian":
            slope = sigmoid * (1 + gate - activated)
        if composite.share != 1:
            return cls((slope * up).mul_(composite.share), activated.mul_(composite.share), product)
        return cls(slope * up, activated, product)

    def push(self, dgate: Tensor, dup: Tensor) -> Tensor:
        """Tangents of y, written over `dgate`: on a CPU, new memory costs as much as the product."""
        if self.for_gate is None:
            return torch.mul(self.for_up, dup, out=dgate)
        return dgate.mul_(self.for_gate).addcmul_(self.for_up, dup)

    def pull(self, c: Tensor) -> tuple[Tensor | None, Tensor]:
        n = c.shape[-2]
        dgate = None if self.for_gate is None else self.for_gate[:, :n] * c
        return dgate, self.for_up[:, :n] * c


@dataclass(frozen=True, slots=True)
class AttentionRule:
    """o = softmax(q k^T scale) v, causal. Two products (eq. 1) around a softmax (eqs. 3 and 4).

    With p the probabilities and `share` s: ds = s scale (dq k + q dk), dp = p (ds - <p, ds>),
    do = s (dp v + p dv). No dp is ever built: dp v = (p ds) v - rowsum(p ds) (p v).
    Keys may be longer than queries (a cache); the queries are then the last positions.
    """

    q: Tensor  # B, kv, group, n, e
    k: Tensor  # B, kv, m, e
    v: Tensor  # B, kv, m, e
    scale: float
    composite: Composite

    def primal_and_push(self, dq: Tensor, dk: Tensor, dv: Tensor) -> Tensor:
        """Output and its tangents, stacked: (1 + T, B, kv, group, n, e) for T tangents."""
        batch, kv, group, n, e = self.q.shape
        tangents = dq.shape[0]
        out = self.q.new_empty((1 + tangents, batch, kv, group, n, e))
        # One product with [v, dv_1 .. dv_T] gives p v and every p dv.
        values = torch.cat([self.v, *dv], dim=-1)
        softmax_moves = self.composite.softmax == "jacobian"
        if softmax_moves:  # dq k + q dk is one product of [dq, q] and [k, dk]
            dq_and_q = [torch.cat([dq[t], self.q], dim=-1) for t in range(tangents)]
            k_and_dk = [torch.cat([self.k, dk[t]], dim=-1) for t in range(tangents)]
        share, score_share = self.composite.share, self.composite.share * self.scale
        for rows, keys, p in self._blocks(n):
            size = rows.stop - rows.start
            mixed = (p @ values[:, :, :keys]).view(batch, kv, group * size, 1 + tangents, e)
            primal = mixed[..., 0, :]
            out[0, :, :, :, rows] = primal.reshape(batch, kv, group, size, e)
            for t in range(tangents):
                tangent = mixed[..., 1 + t, :]
                if softmax_moves:
                    queries = dq_and_q[t][:, :, :, rows].reshape(batch, kv, group * size, 2 * e)
                    p_ds = (queries @ k_and_dk[t][:, :, :keys].transpose(-1, -2)).mul_(p)
                    moved = p_ds @ self.v[:, :, :keys]
                    moved -= accumulate(p_ds).sum(-1, keepdim=True).to(p_ds.dtype) * primal
                    tangent = torch.add(tangent, moved, alpha=score_share)
                if share != 1:
                    tangent = tangent * share
                out[1 + t, :, :, :, rows] = tangent.reshape(batch, kv, group, size, e)
        return out

    def pull(self, c: Tensor, out: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor]:
        """Cotangents of q, k and v for cotangents `c` (C, kv, group, n, e) of the output `out`.

        One example (B = 1). n may be cut short: positions after it are not reached.
        """
        count, kv, group, n, e = c.shape
        share, score_share = self.composite.share, self.composite.share**2 * self.scale
        softmax_moves = self.composite.softmax == "jacobian"
        cv = c.new_zeros((count, kv, n, e))
        cq = torch.empty_like(c) if softmax_moves else None
        ck = torch.zeros_like(cv) if softmax_moves else None
        for rows, keys, p in self._blocks(n):
            size = rows.stop - rows.start
            block = c[:, :, :, rows].reshape(count, kv, group * size, e)
            k, v, q = self.k[0, :, :keys], self.v[0, :, :keys], self.q[0, :, :, rows]
            cv[:, :, :keys].add_(p[0].transpose(-1, -2) @ block, alpha=share)
            if cq is None or ck is None:
                continue
            primal = out[0, :, :, rows].reshape(kv, group * size, e)
            moved = block @ v.transpose(-1, -2)
            moved -= accumulate(block * primal).sum(-1, keepdim=True).to(moved.dtype)
            moved *= p[0]
            cq[:, :, :, rows] = (moved @ k).reshape(count, kv, group, size, e)
            ck[:, :, :keys] += moved.transpose(-1, -2) @ q.reshape(kv, group * size, e)
        if cq is not None and ck is not None:
            cq *= score_share
            ck *= score_share
        return cq, ck, cv

    def _blocks(self, n: int) -> Iterator[tuple[slice, int, Tensor]]:
        """Query rows, number of keys they see, and probabilities (B, kv, group * rows, keys)."""
        batch, kv, group, _, e = self.q.shape
        cached = self.k.shape[-2] - self.q.shape[-2]
        for start in range(0, n, QUERY_BLOCK):
            rows = slice(start, min(start + QUERY_BLOCK, n))
            size = rows.stop - start
            keys = cached + rows.stop
            queries = self.q[:, :, :, rows].reshape(batch, kv, group * size, e)
            scores = (queries @ self.k[:, :, :keys].transpose(-1, -2)).mul_(self.scale)
            future = scores.new_ones((size, size), dtype=torch.bool).triu_(1)
            scores.view(batch, kv, group, size, keys)[..., -size:].masked_fill_(future, -torch.inf)
            yield rows, keys, accumulate(scores).softmax(-1).to(scores.dtype)
