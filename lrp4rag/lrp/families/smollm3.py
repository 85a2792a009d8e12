"""SmolLM3: Llama's names; some layers do not turn queries and keys by their positions."""

from lrp4rag.lrp.families.family import Family

SMOLLM3 = Family(name="smollm3", architectures=("SmolLM3ForCausalLM",), uses_rotary="self_attn.use_rope")
