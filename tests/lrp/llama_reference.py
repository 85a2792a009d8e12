"""A second reference: a Llama in float64, from scratch, with the composites as detach arithmetic.

Nothing of `lrp4rag.lrp` or of `tests.lrp.detached` is used. A composite changes only what autograd sees:
holding a factor constant is `x.detach()`, giving each factor of a product the share s is
`s c + (1 - s) c.detach()`. Relevance is then Gradient x Input, one backward pass for each response token.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def llama_rows(
    model: Any, prompt_ids: tuple[int, ...], response_ids: tuple[int, ...], composite: str
) -> tuple[Tensor, Tensor]:
    """Explained logits (t) and R* over all columns (t, N), of a Hugging Face Llama's weights."""
    weights = {name: value.detach().double() for name, value in model.state_dict().items()}
    ids = torch.tensor([*prompt_ids, *response_ids[:-1]])
    embeddings = weights["model.embed_tokens.weight"][ids].requires_grad_()
    hidden = _body(weights, model.config, embeddings, composite)
    hidden = hidden[len(prompt_ids) - 1 :]
    logits = (hidden * weights["lm_head.weight"][list(response_ids)]).sum(-1)
    rows = [
        (embeddings * torch.autograd.grad(logit, embeddings, retain_graph=True)[0]).sum(-1)
        for logit in logits
    ]
    return logits.detach(), torch.stack(rows).detach()


def _body(weights: dict[str, Tensor], config: Any, x: Tensor, composite: str) -> Tensor:
    for layer in range(config.num_hidden_layers):
        part = {
            name.removeprefix(f"model.layers.{layer}."): value
            for name, value in weights.items()
            if name.startswith(f"model.layers.{layer}.")
        }
        normed = _norm(x, part["input_layernorm.weight"], config.rms_norm_eps, composite)
        x = x + _attention(part, config, normed, composite)
        normed = _norm(x, part["post_attention_layernorm.weight"], config.rms_norm_eps, composite)
        x = x + _mlp(part, normed, composite)
    return _norm(x, weights["model.norm.weight"], config.rms_norm_eps, composite)


def _linear(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def _norm(x: Tensor, weight: Tensor, eps: float, composite: str) -> Tensor:
    scale = 1 / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    return weight * x * (scale if composite == "paper" else scale.detach())


def _product(c: Tensor, composite: str) -> Tensor:
    """A product that has been computed: each factor's gradient is halved under AttnLRP."""
    return 0.5 * c + 0.5 * c.detach() if composite == "attnlrp" else c


def _mlp(weights: dict[str, Tensor], x: Tensor, composite: str) -> Tensor:
    gate, up = _linear(weights, "mlp.gate_proj", x), _linear(weights, "mlp.up_proj", x)
    activated = {
        "paper": gate * gate.sigmoid(),
        "attnlrp": gate * gate.sigmoid().detach(),
        "cp_lrp": (gate * gate.sigmoid()).detach(),
    }[composite]
    return _linear(weights, "mlp.down_proj", _product(activated * up, composite))


def _attention(weights: dict[str, Tensor], config: Any, x: Tensor, composite: str) -> Tensor:
    n, size = len(x), config.head_dim
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    q = _linear(weights, "self_attn.q_proj", x).view(n, heads, size).transpose(0, 1)
    k = _linear(weights, "self_attn.k_proj", x).view(n, kv_heads, size).transpose(0, 1)
    v = _linear(weights, "self_attn.v_proj", x).view(n, kv_heads, size).transpose(0, 1)
    cos, sin = _rotary(n, size, config.rope_parameters["rope_theta"])
    q, k = (heads_of * cos + _rotate_half(heads_of) * sin for heads_of in (q, k))
    outputs = []
    for head in range(heads):
        shared = head // (heads // kv_heads)
        scores = _product(q[head] @ k[shared].T, composite) / size**0.5
        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        p = torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
        p = p.detach() if composite == "cp_lrp" else p
        outputs.append(_product(p @ v[shared], composite))
    return _linear(weights, "self_attn.o_proj", torch.cat(outputs, dim=-1))


def _rotary(n: int, size: int, theta: float) -> tuple[Tensor, Tensor]:
    # In float32, as Hugging Face computes the angles whatever the dtype: they are constants of the
    # model, and 1e-10 against it needs the same ones.
    inverse = 1.0 / theta ** (torch.arange(0, size, 2).float() / size)
    angles = torch.arange(n).float()[:, None] * inverse
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos().double(), angles.sin().double()


def _rotate_half(x: Tensor) -> Tensor:
    left, right = x.chunk(2, dim=-1)
    return torch.cat([-right, left], dim=-1)
