"""Each rule against autograd on detach arithmetic J: push is J u and pull is J^T v."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from lrp4rag.lrp import ATTNLRP, CP_LRP, PAPER, Composite
from lrp4rag.lrp.activations import ACTIVATIONS
from lrp4rag.lrp.rules import QUERY_BLOCK, AttentionRule, GateRule, NormRule
from tests.lrp.checks import assert_close
from tests.lrp.checks import random_weights as normal
from tests.lrp.detached import attention_under, gated_product, rms_norm

composites = pytest.mark.parametrize("composite", [PAPER, ATTNLRP, CP_LRP], ids=lambda one: one.name)
EPS = 1e-5


def pushed(function: Callable[..., Tensor], inputs: tuple[Tensor, ...], *tangents: Tensor) -> Tensor:
    """J u by autograd, one row for each tangent."""
    rows = zip(*tangents, strict=True)
    return torch.stack([torch.autograd.functional.jvp(function, inputs, row)[1] for row in rows])


def pulled(function: Callable[..., Tensor], inputs: tuple[Tensor, ...], cotangents: Tensor) -> list[Tensor]:
    """J^T c by autograd: for each input, one row for each cotangent."""
    rows = [torch.autograd.functional.vjp(function, inputs, one)[1] for one in cotangents]
    return [torch.stack(part) for part in zip(*rows, strict=True)]


# Normalisation.

weight, x = normal(6) + 1.5, normal(2, 4, 6)


def norm(x: Tensor, composite: Composite) -> Tensor:
    return rms_norm(SimpleNamespace(weight=weight, eps=EPS), x, composite.name)


@composites
def test_norm(composite: Composite) -> None:
    """A pull is of one example, and may be cut short, since no later position is reached."""
    rule, tangents = NormRule.at(x, weight, EPS, composite), normal(3, *x.shape, seed=1)
    assert_close(rule.primal(x), norm(x, composite), 1e-14)
    assert_close(rule.push(tangents), pushed(lambda x: norm(x, composite), (x,), tangents), 1e-13)
    for n in (1, 3, 4):
        cotangents = normal(5, n, 6, seed=1)
        (expected,) = pulled(lambda x: norm(x, composite), (x[0, :n],), cotangents)
        assert_close(NormRule.at(x[:1], weight, EPS, composite).pull(cotangents), expected, 1e-13)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@composites
def test_norm_of_large_values_in_half_precision(composite: Composite, dtype: torch.dtype) -> None:
    """The square of 300 overflows float16: it is taken in float32."""
    large = torch.full((1, 1, 4), 300.0, dtype=dtype)
    rule = NormRule.at(large, torch.ones(4, dtype=dtype), EPS, composite)
    assert torch.equal(rule.primal(large), torch.ones_like(large))
    assert rule.push(large[None]).isfinite().all()
    assert rule.push(large[None]).dtype == rule.pull(large).dtype == dtype


# The gated MLP.

gate, up = 2 * normal(2, 3, 5), normal(2, 3, 5, seed=1)
gate[0, 0, 0] = 0.0


def gated(gate: Tensor, up: Tensor, composite: Composite) -> Tensor:
    return gated_product(nn.SiLU(), gate, up, composite.name)


@composites
def test_gate(composite: Composite) -> None:
    rule = GateRule.at(gate, up, composite)
    dgate, dup = normal(3, *gate.shape, seed=2), normal(3, *gate.shape, seed=3)
    expected = pushed(lambda g, u: gated(g, u, composite), (gate, up), dgate, dup)
    assert_close(rule.product, gated(gate, up, composite), 1e-14)
    assert_close(rule.push(dgate, dup), expected, 1e-13)
    for n in (1, 3):
        cotangents = normal(4, n, 5, seed=2)
        by_gate, by_up = pulled(lambda g, u: gated(g, u, composite), (gate[0, :n], up[0, :n]), cotangents)
        cgate, cup = GateRule.at(gate[:1], up[:1], composite).pull(cotangents)
        assert_close(cup, by_up, 1e-13)
        assert (cgate is None) == (composite.activation == "frozen")
        if cgate is not None:
            assert_close(cgate, by_gate, 1e-13)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("composite", "by_gate"), [(PAPER, 1.5), (ATTNLRP, 0.75), (CP_LRP, 0.0)])
def test_gate_at_zero(composite: Composite, by_gate: float, dtype: torch.dtype) -> None:
    """silu'(0) and the limit of silu(g) / g are both 1/2; up is 3, and `attnlrp` halves the product."""
    zero, three, one = (torch.full((1, 1, 1), value, dtype=dtype) for value in (0, 3, 1))
    rule = GateRule.at(zero, three, composite)
    assert rule.push(one[None].clone(), 0 * one[None]).item() == by_gate
    assert rule.push(0 * one[None], one[None]).item() == 0
    cgate, cup = rule.pull(one)
    assert (0 if cgate is None else cgate.item()) == by_gate
    assert cup.item() == 0


ACTIVATION = {
    "silu": nn.functional.silu,
    "swish": nn.functional.silu,
    "gelu": nn.functional.gelu,
    "gelu_new": partial(nn.functional.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(nn.functional.gelu, approximate="tanh"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_ratio_and_slope_of_an_activation(name: str) -> None:
    f = ACTIVATION[name]
    at = (torch.arange(-20, 21, dtype=torch.float64) / 5).requires_grad_()
    (slope,) = torch.autograd.grad(f(at).sum(), at)
    x = at.detach()
    ratio = ACTIVATIONS[name].ratio(x)
    assert_close(x * ratio, f(x), 1e-12)
    assert ratio[20] == 0.5  # at 0
    assert_close(ACTIVATIONS[name].slope(x, ratio), slope, 1e-12)


# Attention.


def heads(n: int, keys: int | None = None, seed: int = 0, batch: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """q (B, kv, group, n, e), k and v (B, kv, keys, e): two shared heads of three, size 2."""
    keys = keys or n
    q = 2 * normal(batch, 2, 3, n, 2, seed=seed)
    return q, normal(batch, 2, keys, 2, seed=seed + 1), normal(batch, 2, keys, 2, seed=seed + 2)


SCALE = 0.7


def attention(q: Tensor, k: Tensor, v: Tensor, composite: Composite) -> Tensor:
    n, keys = q.shape[-2], k.shape[-2]
    future = torch.full((n, keys), -torch.inf).triu(1 + keys - n)
    out, _ = attention_under(composite.name)(nn.Identity(), q.flatten(1, 2), k, v, future, SCALE)
    return out.transpose(1, 2).unflatten(1, q.shape[1:3])


# (queries, keys): more keys than queries are a cache; around the size of a block of queries.
LENGTHS = [(1, 1), (5, 5), (3, 5), (QUERY_BLOCK, QUERY_BLOCK), (QUERY_BLOCK + 1, QUERY_BLOCK + 3)]


@composites
@pytest.mark.parametrize(
    ("n", "keys", "batch"), [(n, keys, 1 + k % 2) for k, (n, keys) in enumerate(LENGTHS)]
)
def test_attention_primal_and_push(composite: Composite, n: int, keys: int, batch: int) -> None:
    inputs = heads(n, keys, batch=batch)
    rule, each = AttentionRule(*inputs, SCALE, composite), [heads(n, keys, t, batch) for t in (10, 20)]
    tangents = [torch.stack(parts) for parts in zip(*each, strict=True)]
    out = rule.primal_and_push(*tangents)
    assert_close(rule.primal_and_push(*(part[:0] for part in tangents)), out[:1], 1e-13)
    assert_close(out[0], attention(*inputs, composite), 1e-13)
    expected = pushed(lambda q, k, v: attention(q, k, v, composite), inputs, *tangents)
    assert_close(out[1:], expected, 1e-12)


@composites
@pytest.mark.parametrize(
    ("n", "whole"), [*LENGTHS[:3], (QUERY_BLOCK, QUERY_BLOCK + 2), (QUERY_BLOCK + 1, QUERY_BLOCK + 1)]
)
def test_attention_pull(composite: Composite, n: int, whole: int) -> None:
    """`whole` positions were replayed; the cotangents stop at n, and so does what they reach."""
    q, k, v = heads(whole)
    cotangents = normal(4, 1, 2, 3, n, 2, seed=9)
    inputs = (q[..., :n, :], k[..., :n, :], v[..., :n, :])
    expected = pulled(lambda q, k, v: attention(q, k, v, composite), inputs, cotangents)
    rule, out = AttentionRule(q, k, v, SCALE, composite), attention(q, k, v, composite)
    cq, ck, cv = rule.pull(cotangents[:, 0], out)
    assert_close(cv, expected[2][:, 0], 1e-12)
    if composite.softmax == "frozen":
        assert cq is None
        assert ck is None
    else:
        # Of one token alone the softmax is constant: nothing moves, and there is nothing to divide by.
        size = max(1e-3, float(expected[0].abs().max()))
        assert float((cq - expected[0][:, 0]).abs().max()) <= 1e-12 * size
        assert float((ck - expected[1][:, 0]).abs().max()) <= 1e-12 * size
