"""Run a Hugging Face model on stacks of primal and tangent rows, reversibly, on one instance.

The stack is [primal, tangent 1, .. tangent T] on the batch axis. Linear layers, rotary embeddings
and residual additions are linear and run as they are; only normalisation, the gated MLP, attention
and biases are replaced, because they read the primal rows to transform the tangents.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface

from lrp4rag.errors import LRP4RAGError, RelevanceError
from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.families import Family, family_of
from lrp4rag.lrp.rules import AttentionRule, GateRule, NormRule

ATTENTION = "lrp4rag"
_HOOK = "_lrp4rag_attention"
_ABSENT = object()


@dataclass
class LayerTape:
    """The rules of one decoder layer at the primal activations of one replay, filled by it."""

    attention_norm: NormRule = field(init=False)
    attention: AttentionRule = field(init=False)
    attention_out: Tensor = field(init=False)  # B, kv, group, n, e
    mlp_norm: NormRule = field(init=False)
    gate: GateRule = field(init=False)


@dataclass
class Stack:
    """What the patched modules share: how many rows are primal, and where to record the rules."""

    primal_rows: int = 0  # 0: all of them
    tape: list[LayerTape] | None = None
    final_norm: NormRule | None = None
    finite: list[Tensor] = field(default_factory=list)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Primal rows (B, ...) and tangents (T, B, ...); T is 0 where all rows are primal."""
        rows = self.primal_rows or x.shape[0]
        return x[:rows], x[rows:].view(-1, rows, *x.shape[1:])

    def require_finite(self, dtype: torch.dtype) -> None:
        """Raise `RelevanceError` naming the first layer whose output held NaN or Inf."""
        if self.finite:
            bad = (~torch.stack([flag.to("cpu") for flag in self.finite])).nonzero()
            if len(bad):
                raise_not_finite("push", int(bad[0]), dtype)


def raise_not_finite(direction: str, layer: int, dtype: torch.dtype) -> None:
    hint = "; try --dtype float32" if dtype in (torch.float16, torch.bfloat16) else ""
    name = str(dtype).removeprefix("torch.")
    raise RelevanceError(f"NaN or Inf at layer {layer} during {direction} in {name}{hint}")


def _dispatch(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: Any, **kwargs: Any
) -> tuple[Tensor, None]:
    attention: Callable[..., tuple[Tensor, None]] = getattr(module, _HOOK)
    return attention(query, key, value, **kwargs)


AttentionInterface.register(ATTENTION, _dispatch)


@contextmanager
def patched(model: nn.Module, composite: Composite) -> Iterator[tuple[Family, Stack]]:
    """Replace the three primitives of `model` until the block ends, also when it ends in an error.

    Only this instance is touched: modules get instance attributes, and the configuration that
    selects the attention, which models may share, is copied first.
    """
    family, stack = family_of(model), Stack()
    if any(_HOOK in module.__dict__ for module in model.modules()):
        raise LRP4RAGError("this model is in relevance mode already; leave it before entering again")
    replaced: list[tuple[nn.Module, str, object]] = []
    hooks = []

    def replace(module: nn.Module, name: str, value: object) -> None:
        replaced.append((module, name, module.__dict__.get(name, _ABSENT)))
        module.__dict__[name] = value

    try:
        body = family.part(model, "body")
        hooks.append(body.register_forward_pre_hook(_refuse_padding, with_kwargs=True))
        replace(body, "config", _with_attention(body.config))
        blocks = list(family.blocks(model))
        if not blocks:
            raise LRP4RAGError(f"{type(model).__name__} has no decoder layer: nothing was patched")
        for k, block in enumerate(blocks):
            replace(block.attention, "config", _with_attention(block.attention.config))
            replace(block.attention, _HOOK, _attention_forward(stack, k, composite))
            for which in ("attention_norm", "mlp_norm"):
                norm = getattr(block, which)
                forward = _norm_forward(stack, norm, composite, _record_norm(stack, k, which))
                replace(norm, "forward", forward)
            replace(block.mlp, "forward", _mlp_forward(stack, k, block, composite))
            for linear in block.linears:
                if type(linear) is not nn.Linear:
                    replace(linear, "forward", _unknown_forward(stack, linear.forward))
                elif linear.bias is not None:
                    replace(linear, "forward", _biased_forward(stack, linear))
            hooks.append(block.layer.register_forward_hook(_finite_hook(stack)))
        final_norm = family.part(model, "final_norm")

        def keep_final(rule: NormRule) -> None:
            stack.final_norm = rule if stack.tape is not None else None

        replace(final_norm, "forward", _norm_forward(stack, final_norm, composite, keep_final))
        yield family, stack
    finally:
        for hook in hooks:
            hook.remove()
        for module, name, previous in reversed(replaced):
            if previous is _ABSENT:
                del module.__dict__[name]
            else:
                module.__dict__[name] = previous


def _refuse_padding(_module: nn.Module, _inputs: object, options: dict[str, Any]) -> None:
    mask = options.get("attention_mask")
    if isinstance(mask, Tensor) and not mask.all():
        raise LRP4RAGError("padded batches are not supported in relevance mode; run rows one by one")


def _with_attention(config: Any) -> Any:
    config = copy.copy(config)
    config._attn_implementation = ATTENTION
    return config


def _record_norm(stack: Stack, layer: int, which: str) -> Callable[[NormRule], None]:
    def record(rule: NormRule) -> None:
        if stack.tape is not None:
            setattr(stack.tape[layer], which, rule)

    return record


def _norm_forward(
    stack: Stack, norm: Any, composite: Composite, record: Callable[[NormRule], None]
) -> Callable[[Tensor], Tensor]:
    def forward(x: Tensor) -> Tensor:
        primal, tangents = stack.split(x)
        rule = NormRule.at(primal, norm.weight, norm.variance_epsilon, composite)
        record(rule)
        if not len(tangents):
            return rule.primal(x)
        if rule.direction is None:  # frozen: primal and tangents transform alike
            return rule.push(x.view(-1, *primal.shape)).view_as(x)
        return torch.cat([rule.primal(primal)[None], rule.push(tangents)]).view_as(x)

    return forward


def _mlp_forward(stack: Stack, layer: int, block: Any, composite: Composite) -> Callable[[Tensor], Tensor]:
    def forward(x: Tensor) -> Tensor:
        mixed = block.gate(x)
        gate, dgate = stack.split(mixed)
        up, dup = stack.split(block.up(x))
        rule = GateRule.at(gate, up, composite)
        if stack.tape is not None:
            stack.tape[layer].gate = rule
        rule.push(dgate, dup)
        gate.copy_(rule.product)
        output: Tensor = block.down(mixed)
        return output

    return forward


def _attention_forward(stack: Stack, layer: int, composite: Composite) -> Callable[..., tuple[Tensor, None]]:
    def forward(query: Tensor, key: Tensor, value: Tensor, scaling: float, **_: Any) -> tuple[Tensor, None]:
        kv = key.shape[1]
        q, dq = stack.split(query.unflatten(1, (kv, -1)))
        k, dk = stack.split(key)
        v, dv = stack.split(value)
        rule = AttentionRule(q, k, v, scaling, composite)
        out = rule.primal_and_push(dq, dk, dv)
        if stack.tape is not None:
            stack.tape[layer].attention, stack.tape[layer].attention_out = rule, out[0]
        return out.flatten(2, 3).flatten(0, 1).transpose(1, 2), None

    return forward


def _biased_forward(stack: Stack, linear: nn.Linear) -> Callable[[Tensor], Tensor]:
    """W x + b on the primal rows, W dx on the tangents: a bias has no tangent."""

    def forward(x: Tensor) -> Tensor:
        y = F.linear(x, linear.weight)
        y[: stack.primal_rows or len(y)] += linear.bias
        return y

    return forward


def _unknown_forward(stack: Stack, original: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same for a layer that adds its bias itself, as quantised kernels do: its value at 0 is the bias."""

    def forward(x: Tensor) -> Tensor:
        y = original(x)
        y[stack.primal_rows or len(y) :] -= original(torch.zeros_like(x[:1, :1]))
        return y

    return forward


def _finite_hook(stack: Stack) -> Callable[..., None]:
    def hook(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
        hidden = output if isinstance(output, Tensor) else output[0]
        stack.finite.append(torch.isfinite(hidden).all())

    return hook
