"""Helpers of the relevance tests: shared models and references, random weights, comparison and state."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor, nn

from tests.lrp import tiny_families
from tests.lrp.detached import reference_rows
from tests.tiny import Tokens, random_tokens, tiny_llama

COMPOSITES = ("paper", "attnlrp", "cp_lrp")
composites = pytest.mark.parametrize("composite", COMPOSITES)
variants = pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])

NAMES = tuple(tiny_families.FAMILIES)
families = pytest.mark.parametrize("name", NAMES)
# One with sliding layers, one with experts, one with odd norms and soft caps; `test_families` has them all.
some_families = pytest.mark.parametrize("name", ["qwen3", "mixtral", "gemma2"])

# Where `cp_lrp` does not sum to the logit: a bias is a source of its own.
BIASED = {"qwen2"}
SPARSE = {"qwen3_moe", "qwen3_moe_unnormalised", "mixtral"}


@cache
def llama_of(biased: bool):
    return tiny_llama(biased=biased)


@cache
def model_of(name: str):
    """The tiny model of a family. Shared: a test that changes it builds its own."""
    return tiny_families.build(name)


@cache
def reference_of(name: str, composite: str) -> tuple[Tokens, Tensor, Tensor]:
    """Tokens (17, 5), their logits and R* over all columns, by autograd on detach arithmetic."""
    tokens = random_tokens(17, 5)
    logits, rows = reference_rows(model_of(name), tokens, composite)
    return tokens, logits, rows


def logits_of(model, ids: Tensor) -> Tensor:
    with torch.no_grad():
        return model(ids, use_cache=False).logits


def assert_close(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    """Equal up to `tolerance` times the largest expected value."""
    assert actual.shape == expected.shape
    error = float((actual - expected).abs().max() / expected.abs().max())
    assert error <= tolerance, f"relative error {error:.1e}"


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
