"""Llama 2 and 3.x, and everything that ships as `LlamaForCausalLM` (SmolLM2, TinyLlama, ...)."""

from lrp4rag.lrp.families.family import Family

LLAMA = Family(name="llama", architectures=("LlamaForCausalLM",))
