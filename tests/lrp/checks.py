"""Helpers of the relevance tests: shared models, random weights, comparison, and a model's state."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import nn

from tests.tiny import tiny_llama

NAMES = ("paper", "attnlrp", "cp_lrp")

composites = pytest.mark.parametrize("composite", NAMES)
variants = pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])


@cache
def model_of(biased: bool):
    return tiny_llama(biased=biased)


def logits_of(model, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model(ids, use_cache=False).logits


def assert_close(actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """Equal up to `tolerance` times the largest expected value."""
    assert actual.shape == expected.shape
    error = float((actual - expected).abs().max() / expected.abs().max())
    assert error <= tolerance, f"relative error {error:.1e}"


def random_weights(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def state_of(model: nn.Module) -> dict[str, object]:
    """What a patch could leave behind, of every module."""
    return {
        name: (
            {key: id(value) for key, value in module.__dict__.items()},
            getattr(getattr(module, "config", None), "_attn_implementation", None),
            len(module._forward_hooks),
            len(module._forward_pre_hooks),
            module.training,
        )
        for name, module in model.named_modules()
    }
