"""An independent reference for every family: the composites as detach arithmetic on the ordinary model.

Nothing of `lrp4rag.lrp` is used. Normalisation, gated MLPs, attention, mixtures of experts and
soft-capping are written out in float64, where a composite changes only what autograd sees: holding a
factor constant is `x.detach()`, a share of 1/2 for each factor of a computed product c is
`0.5 c + 0.5 c.detach()`. All else runs as it is. Relevance is then Gradient x Input, one backward pass
for each response token. The masks are the ones that the model makes for its own eager attention.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface

from tests.lrp.tiny_families import TinyFamily, family_of
from tests.tiny import Tokens

COMPOSITES = ("paper", "attnlrp", "cp_lrp")
Explain = Callable[[Tensor], Tensor]


def reference_rows(
    model: Any, tokens: Tokens, composite: str, explain: Explain | None = None, layer: int = 0
) -> tuple[Tensor, Tensor]:
    """`gradient_times_input` under a composite."""
    with detached(model, composite):
        return gradient_times_input(model, tokens, explain, layer)


def gradient_times_input(
    model: Any, tokens: Tokens, explain: Explain | None = None, layer: int = 0
) -> tuple[Tensor, Tensor]:
    """Explained values (t), by default the response's logits, and <x, dz/dx> of each column (t, N).

    x is the input of a decoder layer, of the model as it stands.
    """
    inputs: list[Tensor] = []
    hook = model.model.layers[layer].register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    embeddings = model.get_input_embeddings()(tokens.ids).detach().requires_grad_()
    logits = model(inputs_embeds=embeddings, use_cache=False).logits[0, len(tokens.prompt_ids) - 1 :]
    hook.remove()
    explained = explain(logits) if explain else of_tokens(logits, tokens.response_ids)
    rows = [
        (inputs[0] * torch.autograd.grad(one, inputs[0], retain_graph=True)[0])[0].sum(-1)
        for one in explained
    ]
    return explained.detach(), torch.stack(rows).detach()


def of_tokens(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """The logit of one token at each position (t), from logits (t, vocabulary)."""
    return logits.gather(1, torch.tensor(ids)[:, None])[:, 0]


@contextmanager
def detached(model: Any, composite: str) -> Iterator[None]:
    """Let autograd on `model`, a float64 model, see the composite; everything is restored on exit."""
    if composite not in COMPOSITES or model.dtype != torch.float64:
        raise ValueError(f"no reference for composite '{composite}' in {model.dtype}")
    family = family_of(model)
    with pytest.MonkeyPatch.context() as patch:
        # Configurations may be shared between models: modules get copies.
        body_config = _config(model, _attn_implementation="eager")  # decides the masks
        patch.setitem(model.model.__dict__, "config", body_config)
        for module in model.modules():
            if hasattr(module, "o_proj"):
                own_config = _config(module, _attn_implementation=f"detached_{composite}")
                patch.setitem(module.__dict__, "config", own_config)
            elif (forward := _forward_of(module, family, composite)) is not None:
                patch.setitem(module.__dict__, "forward", forward)
        cap = getattr(model.config, "final_logit_softcapping", None)
        if cap is not None:
            # The model caps the logits in its own forward: capped by the head, it must not cap again.
            patch.setitem(model.__dict__, "config", _config(model, final_logit_softcapping=None))
            head = model.lm_head
            patch.setitem(
                head.__dict__, "forward", lambda x: soft_cap(F.linear(x, head.weight), cap, composite)
            )
        yield


def _config(module: Any, **changes: Any) -> Any:
    config = copy.copy(module.config)
    for name, value in changes.items():
        setattr(config, name, value)
    return config


def _forward_of(module: Any, family: TinyFamily, composite: str) -> Callable[..., Tensor] | None:
    """The rewritten forward of a norm, a gated MLP or a mixture of experts; None for anything else."""
    if type(module).__name__ == family.norm:
        return lambda x: rms_norm(module, x, composite, family.offset)
    if isinstance(getattr(module, "down_proj", None), nn.Linear):
        return lambda x: gated_mlp(module, x, composite)
    if hasattr(module, "experts"):
        return lambda x: mixture_of_experts(module, x, composite)
    return None


def product(c: Tensor, composite: str) -> Tensor:
    """A product that has been computed: each factor's gradient is halved under AttnLRP."""
    return 0.5 * c + 0.5 * c.detach() if composite == "attnlrp" else c


def rms_norm(norm: Any, x: Tensor, composite: str, offset: float = 0.0) -> Tensor:
    """Over the last dimension, which is a head's where a model normalises queries and keys."""
    eps = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
    scale = (x.square().mean(-1, keepdim=True) + eps) ** -0.5
    return (offset + norm.weight) * x * (scale if composite == "paper" else scale.detach())


def soft_cap(x: Tensor, cap: float, composite: str) -> Tensor:
    """cap tanh(x / cap), with its derivative or as x times the ratio (1 at 0) held constant."""
    capped = cap * torch.tanh(x / cap)
    if composite == "paper":
        return capped
    return x * torch.where(x == 0, 1.0, capped / x).detach()


def activation_ratio(name: str, x: Tensor) -> Tensor:
    """f(x) / x in closed form, by the class name of the activation."""
    if name in ("SiLU", "SiLUActivation"):
        return torch.sigmoid(x)
    if name == "GELUTanh":
        return 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    raise ValueError(f"no ratio for the activation {name}")


def gated_product(activation: nn.Module, gate: Tensor, up: Tensor, composite: str) -> Tensor:
    ratio = activation_ratio(type(activation).__name__, gate)
    activated = {"paper": gate * ratio, "attnlrp": gate * ratio.detach(), "cp_lrp": (gate * ratio).detach()}[
        composite
    ]
    return product(activated * up, composite)


def gated_mlp(mlp: Any, x: Tensor, composite: str) -> Tensor:
    if hasattr(mlp, "gate_up_proj"):  # Phi-3: one matrix, the gate's rows first
        gate, up = mlp.gate_up_proj(x).chunk(2, dim=-1)
        return mlp.down_proj(gated_product(mlp.activation_fn, gate, up, composite))
    return mlp.down_proj(gated_product(mlp.act_fn, mlp.gate_proj(x), mlp.up_proj(x), composite))


def mixture_of_experts(block: Any, x: Tensor, composite: str) -> Tensor:
    """Every expert on every position, weighted by 0 where the router does not choose it."""
    weights = routing_weights(block.gate, x)
    if composite == "cp_lrp":
        weights = weights.detach()
    out = torch.zeros_like(x)
    experts = block.experts
    for expert in range(experts.num_experts):
        gate, up = F.linear(x, experts.gate_up_proj[expert]).chunk(2, dim=-1)
        hidden = gated_product(experts.act_fn, gate, up, composite)
        output = F.linear(hidden, experts.down_proj[expert])
        out = out + product(weights[..., expert, None] * output, composite)
    return out


def routing_weights(router: Any, x: Tensor) -> Tensor:
    """Weights of all experts (..., experts): a softmax, of which the largest `top_k` are kept.

    Mixtral always divides them by their sum; Qwen3-MoE where `norm_topk_prob` says so. Which experts
    are kept is constant.
    """
    probabilities = torch.softmax(F.linear(x, router.weight), dim=-1)
    chosen = probabilities.topk(router.top_k, dim=-1).indices
    weights = probabilities * torch.zeros_like(probabilities).scatter(-1, chosen, 1.0)
    if getattr(router, "norm_topk_prob", True):
        weights = weights / weights.sum(-1, keepdim=True)
    return weights


def attention_under(composite: str) -> Callable[..., tuple[Tensor, None]]:
    def attention(
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor,
        scaling: float,
        softcap: float | None = None,
        **_: Any,
    ) -> tuple[Tensor, None]:
        """softmax(cap(q k^T scaling) + mask) v: (B, heads, N, e) in, (B, N, heads, e) out."""
        groups = query.shape[1] // key.shape[1]
        key, value = (part.repeat_interleave(groups, dim=1) for part in (key, value))
        scores = product(query @ key.transpose(-1, -2), composite) * scaling
        if softcap is not None:
            scores = soft_cap(scores, softcap, composite)
        p = torch.softmax(scores + attention_mask, dim=-1)
        p = p.detach() if composite == "cp_lrp" else p
        return product(p @ value, composite).transpose(1, 2), None

    return attention


for _composite in COMPOSITES:
    AttentionInterface.register(f"detached_{_composite}", attention_under(_composite))
