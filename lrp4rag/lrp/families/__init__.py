"""One adapter per architecture, each a small file that names where the architecture keeps its parts."""

from __future__ import annotations

from torch import nn

from lrp4rag.errors import InputError
from lrp4rag.lrp.families.family import Block, Family
from lrp4rag.lrp.families.llama import LLAMA

FAMILIES: tuple[Family, ...] = (LLAMA,)

__all__ = ["FAMILIES", "Block", "Family", "family_of", "supported_architectures"]


def supported_architectures() -> tuple[str, ...]:
    return tuple(name for family in FAMILIES for name in family.architectures)


def family_of(model: nn.Module) -> Family:
    """The adapter for a model; raises `InputError` for an architecture or activation without rules."""
    name = type(model).__name__
    for family in FAMILIES:
        if name in family.architectures:
            break
    else:
        known = ", ".join(supported_architectures())
        raise InputError(f"unsupported architecture '{name}'; supported: {known}")
    activation = getattr(model.config, "hidden_act", "silu")
    if activation not in family.activations:
        known = ", ".join(family.activations)
        raise InputError(f"{name} with activation '{activation}' is not supported; supported: {known}")
    return family
