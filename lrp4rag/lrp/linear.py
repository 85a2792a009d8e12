"""Linear layers: plain ones, and those with a kernel of their own (quantised, or with an adapter).

Push only calls them. Pull multiplies by the transpose of their weights, which such a kernel does not give.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lrp4rag.errors import LRP4RAGError

PROBED_ROWS = 256


def plain_matrix(module: Any) -> Tensor:
    """The layer's weights (out, in); raises `LRP4RAGError` where its kernel keeps no plain matrix."""
    weight = getattr(module, "weight", None)
    if not is_plain(module):
        kind = type(module).__name__
        if type(module) is nn.Linear:
            kind += f" with {type(weight).__name__} weights"
        raise LRP4RAGError(
            f"relevance cannot be pulled through this model: {kind} gives no derivatives (is it quantised?). "
            "Use push, which needs none: a verdict, R_response and relevance by segment are pushed; "
            "R_prompt, R* and the words that a sentence rests on (--html, --png) are pulled"
        )
    assert isinstance(weight, Tensor)
    return weight


def is_plain(module: Any) -> bool:
    """Whether the layer is a linear layer of PyTorch's own, with a floating-point matrix as its weight."""
    if type(module).forward is not nn.Linear.forward:
        return False
    weight = module.weight
    return type(weight) in (Tensor, nn.Parameter) and weight.ndim == 2 and weight.is_floating_point()


@torch.no_grad()
def kernel_matrix(module: Any, inputs: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Any linear layer's weights (out, in), in the layer's own arithmetic where no other way is known."""
    if is_plain(module):
        return plain_matrix(module)
    weight: Any = getattr(module, "weight", None)
    # Every tensor has the method, and on a kernel's packed bytes it gives nonsense: only a class that
    # brings its own, as torchao's do, knows what it holds.
    if isinstance(weight, Tensor) and type(weight).dequantize is not Tensor.dequantize:
        return weight.dequantize()
    bias = module(torch.zeros((1, inputs), dtype=dtype, device=device))
    eye = torch.eye(inputs, dtype=dtype, device=device)
    return torch.cat([(module(rows) - bias).T for rows in eye.split(PROBED_ROWS)], dim=1)
