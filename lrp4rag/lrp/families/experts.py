"""Mixtures of experts: Mixtral, and Qwen3-MoE with Qwen3's norms of queries and keys."""

from dataclasses import replace

from lrp4rag.lrp.families.family import Family
from lrp4rag.lrp.families.qwen3 import QWEN3

MIXTRAL = Family(
    name="mixtral", architectures=("MixtralForCausalLM",), router="mlp.gate", experts="mlp.experts"
)
QWEN3_MOE = replace(
    QWEN3,
    name="qwen3_moe",
    architectures=("Qwen3MoeForCausalLM",),
    router="mlp.gate",
    experts="mlp.experts",
)
