"""The adapter of each architecture (`architectures`), and what a model with it can do."""

from __future__ import annotations

from typing import Any

from lrp4rag.lrp.activations import ACTIVATIONS
from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.families.architectures import FAMILIES
from lrp4rag.lrp.families.family import Family, activation_of, is_plain, require_plain
from lrp4rag.util.errors import InputError


def supported_architectures() -> tuple[str, ...]:
    return tuple(name for family in FAMILIES for name in family.architectures)


def family_of(model: Any) -> Family:
    """Return the adapter for a model; raises `InputError` for an architecture or activation without rules."""
    name = type(model).__name__
    family = next((candidate for candidate in FAMILIES if name in candidate.architectures), None)
    if family is None:
        names = ", ".join(supported_architectures())
        raise InputError(f"unsupported architecture '{name}'; supported: {names}")
    activation = activation_of(model.config)
    if activation not in ACTIVATIONS:
        names = ", ".join(ACTIVATIONS)
        raise InputError(f"{name} with activation '{activation}' is not supported; supported: {names}")
    if getattr(model.config, "use_bidirectional_attention", False):
        raise InputError(f"{name} with bidirectional attention is not supported; it must be causal")
    return family


def require_pull(model: Any) -> None:
    """Raise `LRP4RAGError` where a layer's kernel gives no derivatives, so that `pull` would fail later."""
    for block in family_of(model).blocks(model):
        for linear in block.linears:
            require_plain(linear)


def can_pull(model: Any) -> bool:
    """Say whether every layer gives derivatives."""
    return all(is_plain(linear) for block in family_of(model).blocks(model) for linear in block.linears)


def one_stack(model: Any, first: Composite, second: Composite) -> bool:
    """Say whether tangents of both composites can be pushed through this model together.

    They must treat alike what is computed once for all tangents: norms, soft caps, and experts.
    """
    if first == second:
        return True
    has_experts = any(block.experts is not None for block in family_of(model).blocks(model))
    caps_alike = (first.activation == "jacobian") == (second.activation == "jacobian")
    return first.norm == second.norm and caps_alike and not has_experts
