"""Run a Hugging Face model on stacks of primal and tangent rows, reversibly, on one instance.

What is linear runs as it is; norms, the MLP, attention and biases read the primal rows to transform the
tangents, and are replaced (`lrp4rag.lrp.forwards`). Hooks on the layers build the stack and record.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.families import family_of
from lrp4rag.lrp.families.family import Block, Family, activation_of
from lrp4rag.lrp.forwards import (
    ATTENTION,
    HOOK,
    attention_forward,
    biased_forward,
    experts_forward,
    final_norm_forward,
    kernel_forward,
    mlp_forward,
    norm_forward,
)
from lrp4rag.lrp.stack import Stack
from lrp4rag.reader.lock import require_plain
from lrp4rag.reader.placement import cache_in, forward_name
from lrp4rag.util.errors import LRP4RAGError

_ABSENT = object()


@contextmanager
def patched(model: Any, composite: Composite) -> Iterator[tuple[Family, Stack]]:
    """Replace the primitives of `model` until the block ends, also when it ends in an error.

    Only this instance is touched: modules get instance attributes, and the configuration that
    selects the attention, which models may share, is copied first. Hooks that place layers stay around what
    is replaced.
    """
    family, stack = family_of(model), Stack()
    require_plain(model)
    with ExitStack() as undo:

        def replace(module: nn.Module, name: str, value: object) -> None:
            name = forward_name(module) if name == "forward" else name
            undo.callback(_put, module, name, module.__dict__.get(name, _ABSENT))
            _put(module, name, value)

        body = family.part(model, "body")
        undo.callback(body.register_forward_pre_hook(_padding_hook(stack), with_kwargs=True).remove)
        replace(body, "config", _with_attention(body.config))
        blocks = list(family.blocks(model))
        if not blocks:
            raise LRP4RAGError(f"{type(model).__name__} has no decoder layer: nothing was patched")
        for k, block in enumerate(blocks):
            for module, name, value in _replacements(model, family, stack, k, block, composite):
                replace(module, name, value)
            enter = _enter_hook(stack, k, block.rotary)
            undo.callback(block.layer.register_forward_pre_hook(enter, with_kwargs=True).remove)
            undo.callback(block.layer.register_forward_hook(_leave_hook(stack, k)).remove)
        norm = family.part(model, "final_norm")
        replace(norm, "forward", final_norm_forward(stack, norm, family, composite))
        yield family, stack


def _put(module: nn.Module, name: str, value: object) -> None:
    """Set an attribute of the instance alone, or delete it."""
    if value is _ABSENT:
        del module.__dict__[name]
    else:
        module.__dict__[name] = value


def _replacements(
    model: Any, family: Family, stack: Stack, k: int, block: Block, composite: Composite
) -> Iterator[tuple[nn.Module, str, object]]:
    """Yield (module, attribute, value) for the parts of one decoder layer."""
    yield block.attention, "config", _with_attention(block.attention.config)
    yield block.attention, HOOK, attention_forward(stack, k, composite)
    for which, norm in block.norms.items():
        yield norm, "forward", norm_forward(stack, norm, family, composite, (k, which))
    if block.experts is not None:
        yield block.mlp, "forward", experts_forward(stack, k, block.experts, composite)
    else:
        activation = activation_of(model.config)
        yield block.mlp, "forward", mlp_forward(stack, k, block, composite, activation)
    for linear in block.linears:
        if type(linear) is nn.Linear:
            if linear.bias is not None:
                yield linear, "forward", biased_forward(stack, linear)
            continue
        # Only what a module looks up on itself can be hidden from its kernel.
        bias = {**linear._parameters, **linear._buffers}.get("bias")
        if bias is not None:
            yield linear, "bias", None
        yield linear, "forward", kernel_forward(stack, getattr(linear, forward_name(linear)), bias)


def _with_attention(config: Any) -> Any:
    config = copy.copy(config)
    config._attn_implementation = ATTENTION
    return config


def _padding_hook(stack: Stack) -> Callable[..., None]:
    """Note padding: Hugging Face gives an attention without a mask function no mask."""

    def hook(_module: nn.Module, _inputs: object, options: dict[str, Any]) -> None:
        mask = options.get("attention_mask")
        stack.padding = None
        if isinstance(mask, Tensor) and not mask.all():
            if stack.source is None:
                raise LRP4RAGError("padded batches are not supported in relevance mode; run rows one by one")
            stack.padding = mask == 0

    return hook


def _enter_hook(stack: Stack, k: int, rotary: bool) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    """Hook in before a decoder layer: build the stack where it starts, record, and turn all rows alike."""

    def hook(
        _module: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        hidden, *further = inputs
        cos, sin = options["position_embeddings"]
        if stack.inputs is not None:
            primal = stack.primal(hidden)
            # A view would keep the tangents' rows alive with it.
            stack.inputs[k].hidden.append(primal.clone() if len(hidden) > len(primal) else primal)
            stack.inputs[k].rotary.append((cos, sin))
        if k in stack.tapes and rotary:
            stack.tapes[k].rotary = (cos, sin)
        if stack.source is not None and k == stack.start:
            tangents = stack.source(hidden)
            stack.rows = len(hidden)
            _require_stacked(cache_in(options), k, stack.rows * (1 + len(tangents)))
            hidden = torch.cat([hidden[None], tangents]).flatten(0, 1)
        if stack.rows and 1 < len(cos) < len(hidden):  # positions that differ between examples
            times = len(hidden) // len(cos)
            options = {**options, "position_embeddings": (cos.repeat(times, 1, 1), sin.repeat(times, 1, 1))}
        return (hidden, *further), options

    return hook


def _require_stacked(cache: Any, k: int, rows: int) -> None:
    """Raise `LRP4RAGError` for a cache that does not grow with the stack, row by row."""
    if getattr(cache, "is_compileable", False):
        raise LRP4RAGError("static caches are not supported in relevance mode; use a dynamic one")
    keys = getattr(cache.layers[k], "keys", None) if cache is not None and k < len(cache.layers) else None
    if keys is not None and keys.numel() and len(keys) != rows:
        raise LRP4RAGError(
            f"the cache holds {len(keys)} rows and the stack has {rows}: it was filled outside this mode, or "
            "its rows were reordered (beam search is not supported)"
        )


def _leave_hook(stack: Stack, k: int) -> Callable[..., None]:
    def hook(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
        if stack.source is None:
            return
        hidden = output if isinstance(output, Tensor) else output[0]
        if stack.observer is not None:
            stack.observer.layer(k, *stack.split(hidden))
        if hidden.shape[1] == 1:  # while generating, one more kernel a layer is felt, and the state is small
            stack.sums.append(hidden)
            return
        # One sum finds NaN and Inf, since both survive it, and costs less than a test of each value.
        stack.sums.append(hidden.sum(dtype=torch.promote_types(hidden.dtype, torch.float32)))

    return hook
