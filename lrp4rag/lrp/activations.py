"""Non-linearities y = f(x) as x times a factor: the ratio f(x) / x, and the derivative.

Ratios are in closed form, since f(x) / x is NaN or wrong at 0 (LRP4RAG, arXiv 2408.15533, eqs. 3 and 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lrp4rag.lrp.composites import Composite


@dataclass(frozen=True, slots=True)
class Activation:
    """`ratio(x)` is f(x) / x; `slope(x, ratio(x))` is f'(x)."""

    ratio: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]


def _silu_slope(x: Tensor, sigmoid: Tensor) -> Tensor:
    return sigmoid * (1 + x - x * sigmoid)


def _gelu_ratio(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def _gelu_slope(x: Tensor, ratio: Tensor) -> Tensor:
    return ratio + x * torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


_TANH_SCALE, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715


def _gelu_tanh_ratio(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.tanh(_TANH_SCALE * (x + _TANH_CUBE * x * x * x)))


def _gelu_tanh_slope(x: Tensor, ratio: Tensor) -> Tensor:
    # With ratio r = (1 + tanh)/2, 1 - tanh^2 = 4 r (1 - r).
    return ratio + 2 * x * ratio * (1 - ratio) * _TANH_SCALE * (1 + 3 * _TANH_CUBE * x * x)


_SILU = Activation(torch.sigmoid, _silu_slope)
_GELU = Activation(_gelu_ratio, _gelu_slope)
_GELU_TANH = Activation(_gelu_tanh_ratio, _gelu_tanh_slope)

ACTIVATIONS = {
    "silu": _SILU,
    "swish": _SILU,
    "gelu": _GELU,
    "gelu_pytorch_tanh": _GELU_TANH,
    "gelu_new": _GELU_TANH,
}
"""By the names that Hugging Face configurations use."""


def cap_factor(x: Tensor, cap: float, composite: Composite) -> tuple[Tensor, Tensor]:
    """Cap softly, y = cap tanh(x / cap): return y, and what a tangent is multiplied by.

    The derivative where the composite takes Jacobians of activations, the ratio y / x otherwise.
    """
    scaled = x / cap
    squashed = torch.tanh(scaled)
    if composite.activation == "jacobian":
        return cap * squashed, 1 - squashed * squashed
    small = scaled.abs() < 1e-3  # where tanh(s) / s is 1 - s^2 / 3 to all digits of a double's half
    safe = torch.where(small, 1, scaled)
    return cap * squashed, torch.where(small, 1 - scaled * scaled / 3, squashed / safe)
