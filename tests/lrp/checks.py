"""Helpers of the relevance tests: shared models and references, random weights, comparison and state."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor, nn

from tests.lrp import tiny_families
from tests.lrp.detached import reference_rows
from tests.tiny import Tokens, random_tokens

COMPOSITES = ("paper", "attnlrp", "cp_lrp")
composites = pytest.mark.parametrize("composite", COMPOSITES)

NAMES = tuple(tiny_families.FAMILIES)
families = pytest.mark.parametrize("name", NAMES)
# One with sliding layers, one with experts, one with odd norms and soft caps; `test_families` has them all.
SOME_NAMES = ("qwen3", "mixtral", "gemma2")
some_families = pytest.mark.parametrize("name", SOME_NAMES)

# Where `cp_lrp` does not sum to the logit: a bias is a source of its own.
BIASED = {"llama_biased", "qwen2"}
SPARSE = {"qwen3_moe", "qwen3_moe_unnormalised", "mixtral"}


@cache
def model_of(name: str):
    """The tiny model of a family. Shared: a test that changes it builds its own."""
    return tiny_families.build(name)


@cache
def reference_of(
    name: str, composite: str, n: int = 17, t: int = 5, layer: int = 0
) -> tuple[Tokens, Tensor, Tensor]:
    """Tokens, their logits and R* over all columns (t, N), by autograd on detach arithmetic."""
    tokens = random_tokens(n, t)
    logits, rows = reference_rows(model_of(name), tokens, composite, layer=layer)
    return tokens, logits, rows


def logits_of(model, ids: Tensor) -> Tensor:
    with torch.no_grad():
        return model(ids, use_cache=False).logits


def assert_close(actual: Tensor, expected: Tensor, tolerance: float, what: str = "") -> None:
    """Equal up to `tolerance` times the largest expected value."""
    assert actual.shape == expected.shape, what
    error = float((actual - expected).abs().max() / expected.abs().max())
    assert error <= tolerance, f"relative error {error:.1e} {what}"


def random_weights(*shape: int, seed: int = 0) -> Tensor:
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
