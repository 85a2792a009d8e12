"""Quantise a tiny model's linear layers, and undo it: the dequantised twin that push is compared with.

Import it after `pytest.importorskip`, for the packages are optional.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import bitsandbytes as bnb
import torch
import torchao.quantization as ao
from torch import Tensor, nn

from tests.lrp import tiny_families

# Blocks of 64 weights share a scale in NF4, and its bfloat16 kernel wants multiples of 32 outputs.
SHAPE = {
    "vocab_size": 128,
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def build(name: str, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    shape = SHAPE | ({"head_dim": 16} if name == "qwen3_moe" else {})
    return tiny_families.build(name, dtype=dtype, **(shape | changes))


def linears(model: nn.Module, head: bool) -> dict[str, nn.Linear]:
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    if not head:
        del layers["lm_head"]
    return layers


def int8(model: Any, head: bool = False, config: Any = ao.Int8WeightOnlyConfig) -> Any:
    """Int8 weights with one scale per row, which a tied embedding does not share."""
    names = linears(model, head)
    ao.quantize_(model, config(), lambda _, name: name in names)
    return model


dynamic_int8 = partial(int8, config=ao.Int8DynamicActivationInt8WeightConfig)
"""Int8 weights and int8 inputs."""


def nf4(model: Any, head: bool = False, *, exact: bool = False, double: bool = False) -> Any:
    """NF4 weights; `double` quantises their scales too.

    `exact` computes in the model's own dtype also where the processor has bfloat16 instructions,
    for which bitsandbytes rounds inputs and scales.
    """

    def layer(old: nn.Linear) -> nn.Module:
        shape = old.in_features, old.out_features, old.bias is not None
        new = bnb.nn.Linear4bit(*shape, quant_type="nf4", compress_statistics=double)
        if exact:
            new.support_avx512bf16_for_cpu = False
        return new

    return _replaced(model, head, layer)


def llm_int8(model: Any, head: bool = False) -> Any:
    """LLM.int8: int8 weights and int8 inputs."""

    def layer(old: nn.Linear) -> nn.Module:
        shape = old.in_features, old.out_features, old.bias is not None
        return bnb.nn.Linear8bitLt(*shape, has_fp16_weights=False, threshold=6.0)

    return _replaced(model, head, layer)


def twin(quantised: Any, original: Any) -> Any:
    """The model with each quantised layer's dequantised weights in a plain linear layer.

    To be made before the quantised model is called: bitsandbytes packs weights anew at the first call.
    """
    model = copy.deepcopy(original)
    for name, layer in linears(quantised, head=True).items():
        # A parameter of its own, also where the head was tied to the embedding.
        weight = dequantised(layer).to(original.dtype).clone()
        model.get_submodule(name).weight = nn.Parameter(weight, requires_grad=False)
    return model


def dequantised(layer: nn.Linear) -> Tensor:
    weight: Any = layer.weight
    if isinstance(layer, bnb.nn.Linear4bit):
        return bnb.functional.dequantize_4bit(weight.data, weight.quant_state)
    if isinstance(layer, bnb.nn.Linear8bitLt):
        return weight.CB.float() * weight.SCB[:, None] / 127
    return weight.data if type(weight) is nn.Parameter else weight.dequantize()


def _replaced(model: Any, head: bool, make: Callable[[nn.Linear], nn.Module]) -> Any:
    for name, old in linears(model, head).items():
        new = make(old)
        new.load_state_dict({key: value.clone() for key, value in old.state_dict().items()})
        model.set_submodule(name, new.to("cpu"))  # which quantises
    return model.eval()
