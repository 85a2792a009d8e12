"""What the patched modules of a model compute: the same on primal rows, the rules' maps on tangents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface

from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.experts import Experts, ExpertsRule
from lrp4rag.lrp.families.family import Block, Family
from lrp4rag.lrp.rules import AttentionRule, GateRule, NormRule, accumulate, runs
from lrp4rag.lrp.stack import Stack
from lrp4rag.reader.lock import ATTENTION_HOOK

ATTENTION = "lrp4rag"
HOOK = ATTENTION_HOOK

Forward = Callable[[Tensor], Tensor]


def _dispatch(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: Any, **kwargs: Any
) -> tuple[Tensor, None]:
    attention: Callable[..., tuple[Tensor, None]] = getattr(module, HOOK)
    return attention(query, key, value, **kwargs)


AttentionInterface.register(ATTENTION, _dispatch)


def _push_norm(stack: Stack, norm: Any, family: Family, composite: Composite, x: Tensor) -> tuple[Any, ...]:
    """Return (rule, output of the whole stack)."""
    primal, tangents = stack.split(x)
    # An offset is added in float32, as Hugging Face does: in half precision 1 + w would lose w.
    weight = norm.weight if not family.norm_offset else family.norm_offset + accumulate(norm.weight)
    eps = norm.variance_epsilon if hasattr(norm, "variance_epsilon") else norm.eps
    rule = NormRule.at(primal, weight, eps, composite)
    if not len(tangents):
        return rule, rule.primal(x)
    if rule.direction is None:  # frozen: one product for all rows, but the primal row as the model has it
        pushed = rule.push(x.view(-1, *primal.shape))
        pushed[0] = rule.primal(primal)
        return rule, pushed.view_as(x)
    return rule, torch.cat([rule.primal(primal)[None], rule.push(tangents)]).view_as(x)


def norm_forward(
    stack: Stack, norm: Any, family: Family, composite: Composite, place: tuple[int, str]
) -> Forward:
    layer, which = place
    turned = family.heads_first and which in ("query_norm", "key_norm")

    def forward(x: Tensor) -> Tensor:
        rule, output = _push_norm(stack, norm, family, composite, x)
        if layer in stack.tapes:
            stack.tapes[layer].norms[which] = rule.heads_second() if turned else rule
        result: Tensor = output
        return result

    return forward


def final_norm_forward(stack: Stack, norm: Any, family: Family, composite: Composite) -> Forward:
    """Make the last part that sees the stack: it keeps the tangents and returns the primal rows."""

    def forward(x: Tensor) -> Tensor:
        rule, output = _push_norm(stack, norm, family, composite, x)
        if stack.keep_final is not None:
            stack.keep_final(rule)
        stack.final = stack.split(output)
        return stack.final[0]

    return forward


def mlp_forward(stack: Stack, layer: int, block: Block, composite: Composite, activation: str) -> Forward:
    assert block.dense is not None
    down = block.dense[2].linear

    def forward(x: Tensor) -> Tensor:
        mixed, ups = block.gate_and_up(x)
        gate, dgate = stack.split(mixed)
        up, dup = stack.split(ups)
        rule = GateRule.at(gate, up, composite, activation)
        if layer in stack.tapes:
            stack.tapes[layer].mlp = rule
        rules = {composite: rule}
        for of_tangents, which in runs(stack.composites or (composite,) * len(dgate)):
            if of_tangents not in rules:
                rules[of_tangents] = GateRule.at(gate, up, of_tangents, activation)
            rules[of_tangents].push(dgate[which], dup[which])
        gate.copy_(rule.product)
        output: Tensor = down(mixed)
        return output

    return forward


def experts_forward(stack: Stack, layer: int, experts: Experts, composite: Composite) -> Forward:
    def forward(x: Tensor) -> Tensor:
        output, rule = ExpertsRule.primal_and_push(experts, x, stack.rows or len(x), composite)
        if layer in stack.tapes:
            stack.tapes[layer].mlp = rule
        return output

    return forward


def attention_forward(stack: Stack, layer: int, composite: Composite) -> Callable[..., tuple[Tensor, None]]:
    def forward(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        sliding_window: int | None = None,
        softcap: float | None = None,
        **_: Any,
    ) -> tuple[Tensor, None]:
        q, dq = stack.split(query.unflatten(1, (key.shape[1], -1)))
        k, dk = stack.split(key)
        v, dv = stack.split(value)
        # A sliding cache holds the last keys only, and padding covers all of them.
        padding = None if stack.padding is None else stack.padding[:, -k.shape[-2] :].to(k.device)
        rule = AttentionRule(q, k, v, scaling, composite, sliding_window, softcap, padding, stack.block)
        watched = rule
        if stack.observer is not None:
            watched = replace(rule, watch=partial(stack.observer.attention, layer))
        out = watched.primal_and_push(dq, dk, dv, stack.composites)
        if layer in stack.tapes:
            if len(dq):  # views would keep the tangents' rows alive with them
                rule = replace(rule, q=q.clone(), k=k.clone(), v=v.clone())
            stack.tapes[layer].attention = rule
            stack.tapes[layer].attention_out = out[0].clone() if len(dq) else out[0]
        return out.flatten(2, 3).flatten(0, 1).transpose(1, 2), None

    return forward


def biased_forward(stack: Stack, linear: Any) -> Forward:
    """Compute W x + b on the primal rows, W dx on the tangents: a bias has no tangent."""

    def forward(x: Tensor) -> Tensor:
        y = F.linear(x, linear.weight)
        stack.primal(y).add_(linear.bias)
        return y

    return forward


def kernel_forward(stack: Stack, original: Forward, bias: Tensor | None) -> Forward:
    """Do the same for a layer with a kernel of its own, as quantised ones have, from which `bias` is hidden.

    Taking the bias off again would cost the tangents digits in half precision, where biases are large.
    What the kernel still answers at 0 is a bias that it keeps in a way of its own; this is taken off.
    """
    at_zero: list[Tensor] = []

    def forward(x: Tensor) -> Tensor:
        y = original(x)
        if len(x) > stack.rows > 0:
            if not at_zero:
                at_zero.append(original(torch.zeros_like(x[:1, :1])))
            y[stack.rows :] -= at_zero[0]
        if bias is not None:
            stack.primal(y).add_(bias)
        return y

    return forward
