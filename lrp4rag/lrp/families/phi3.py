"""Phi-3 and Phi-4: one fused layer for query, key and value, another for gate and up."""

from lrp4rag.lrp.families.family import Family

PHI3 = Family(
    name="phi3",
    architectures=("Phi3ForCausalLM",),
    fused_qkv="self_attn.qkv_proj",
    fused_gate_up="mlp.gate_up_proj",
)
