"""The detach-arithmetic reference is right: against the from-scratch Llama, autograd, and conservation."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor, nn

from tests.lrp.checks import assert_close, composites, llama_of, logits_of, random_weights, state_of, variants
from tests.lrp.detached import (
    activation_ratio,
    attention_under,
    detached,
    gated_mlp,
    gradient_times_input,
    mixture_of_experts,
    reference_rows,
    soft_cap,
)
from tests.lrp.reference import reference
from tests.lrp.tiny_families import FAMILIES, build
from tests.tiny import random_tokens

families = pytest.mark.parametrize("family", FAMILIES)
TOKENS = random_tokens(13, 6)  # longer than the families' windows


@cache
def family_model(family: str):
    return build(family)


@cache
def rows(family: str, composite: str) -> tuple[Tensor, Tensor]:
    return reference_rows(family_model(family), TOKENS.prompt_ids, TOKENS.response_ids, composite)


@composites
@variants
def test_agrees_with_the_llama_written_from_scratch(composite: str, biased: bool) -> None:
    model = llama_of(biased)
    logits, relevance = reference_rows(model, TOKENS.prompt_ids, TOKENS.response_ids, composite)
    expected = reference(model, TOKENS.prompt_ids, TOKENS.response_ids, composite)
    assert_close(logits, expected.logits, 1e-10)
    assert_close(relevance, expected.relevance, 1e-10)


@composites
@families
@pytest.mark.usefixtures("double")
def test_patched_logits_equal_the_models_own_in_double_precision(family: str, composite: str) -> None:
    model = family_model(family)
    expected = logits_of(model, TOKENS.ids)
    with detached(model, composite):
        assert_close(logits_of(model, TOKENS.ids), expected, 1e-11)


@composites
@families
def test_patched_logits_equal_the_models_own(family: str, composite: str) -> None:
    model = family_model(family)
    expected = logits_of(model, TOKENS.ids)
    with detached(model, composite):
        assert_close(logits_of(model, TOKENS.ids), expected, 1e-6)


@families
@pytest.mark.usefixtures("double")
def test_explained_logits_are_those_of_the_response(family: str) -> None:
    model = family_model(family)
    own = logits_of(model, TOKENS.ids)[0, len(TOKENS.prompt_ids) - 1 :]
    own = own[torch.arange(len(TOKENS.response_ids)), list(TOKENS.response_ids)]
    explained, _ = reference_rows(model, TOKENS.prompt_ids, TOKENS.response_ids, "paper")
    assert_close(explained, own, 1e-11)


@families
def test_the_model_is_restored(family: str) -> None:
    model = build(family)
    before, expected = state_of(model), logits_of(model, TOKENS.ids)
    with detached(model, "attnlrp"):
        assert state_of(model) != before
    assert state_of(model) == before
    with pytest.raises(IndexError), detached(model, "attnlrp"):
        model(torch.tensor([[97]]))  # no such token
    assert state_of(model) == before
    assert torch.equal(logits_of(model, TOKENS.ids), expected)


def test_a_model_in_single_precision_has_no_reference() -> None:
    with (
        pytest.raises(ValueError, match="float32"),
        detached(build("llama", dtype=torch.float32), "paper"),
    ):
        pass


@families
@pytest.mark.usefixtures("double")
def test_paper_is_gradient_times_input_of_the_model_itself(family: str) -> None:
    example = (family_model(family), TOKENS.prompt_ids, TOKENS.response_ids)
    logits, relevance = gradient_times_input(*example)
    assert_close(reference_rows(*example, "paper")[0], logits, 1e-10)
    assert_close(reference_rows(*example, "paper")[1], relevance, 1e-10)


@families
def test_composites_differ(family: str) -> None:
    """Or a composite that changed nothing would pass for another one."""
    paper, attnlrp, cp_lrp = (rows(family, name)[1] for name in ("paper", "attnlrp", "cp_lrp"))
    for one, other in ((paper, attnlrp), (paper, cp_lrp), (attnlrp, cp_lrp)):
        assert (one - other).abs().max() > 0.05 * other.abs().max()


@composites
@families
def test_no_relevance_from_later_tokens(family: str, composite: str) -> None:
    relevance = rows(family, composite)[1]
    later = torch.ones_like(relevance, dtype=torch.bool).triu(len(TOKENS.prompt_ids))
    assert relevance.isfinite().all()
    assert not relevance[later].any()


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "qwen2"])
def test_cp_lrp_conserves_without_biases(family: str) -> None:
    """Also Gemma 2, whose final soft cap is linear under the ratio rule."""
    logits, relevance = rows(family, "cp_lrp")
    assert_close(relevance.sum(-1), logits, 1e-9)


def test_cp_lrp_conserves_on_qwen2_without_its_value_bias() -> None:
    """The biases of q and k only enter the frozen probabilities; that of v reaches the logit."""
    logits, relevance = rows("qwen2", "cp_lrp")
    assert (relevance.sum(-1) - logits).abs().max() > 0.1
    model = build("qwen2")
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.v_proj.bias.zero_()
    logits, relevance = reference_rows(model, TOKENS.prompt_ids, TOKENS.response_ids, "cp_lrp")
    assert_close(relevance.sum(-1), logits, 1e-9)


@pytest.mark.parametrize("cap", [None, 3.0])
def test_attention_splits_its_products_under_attnlrp(cap: float | None) -> None:
    """v gets 1/2; q and k 1/4 each of the capped scores' plain Gradient x Input (the cap is a ratio)."""
    q, k, v, cotangent = (random_weights(1, 4, 5, 8, seed=seed).requires_grad_() for seed in range(4))
    mask = torch.full((5, 5), -torch.inf, dtype=torch.float64).triu(1)
    out, _ = attention_under("attnlrp")(nn.Identity(), q, k, v, mask, scaling=0.9, softcap=cap)
    y = (out * cotangent.detach().transpose(1, 2)).sum()
    shares = [
        (part * grad).sum() for part, grad in zip((q, k, v), torch.autograd.grad(y, (q, k, v)), strict=True)
    ]

    scores = (q @ k.transpose(-1, -2) * 0.9).detach()
    scores = (scores if cap is None else cap * torch.tanh(scores / cap)).requires_grad_()
    plain = (torch.softmax(scores + mask, dim=-1) @ v.detach() * cotangent.detach()).sum()
    by_scores = (scores * torch.autograd.grad(plain, scores)[0]).sum()
    expected = torch.stack([by_scores / 4, by_scores / 4, plain / 2])
    assert_close(torch.stack(shares).detach(), expected.detach(), 1e-10)


@pytest.mark.parametrize("composite", ["attnlrp", "cp_lrp"])
@pytest.mark.parametrize("family", ["llama", "phi3", "gemma2"])
def test_a_gated_mlp_conserves(family: str, composite: str) -> None:
    """attnlrp: half through the gate and half through the other factor."""
    mlp = family_model(family).model.layers[0].mlp
    x, cotangent = random_weights(1, 5, 48).requires_grad_(), random_weights(1, 5, 48, seed=1)
    y = (gated_mlp(mlp, x, composite) * cotangent).sum()
    relevance = x.detach() * torch.autograd.grad(y, x)[0]
    assert_close(relevance.sum(), y.detach(), 1e-10)


@pytest.mark.parametrize("family", ["qwen3_moe", "qwen3_moe_unnormalised", "mixtral"])
@pytest.mark.usefixtures("double")
def test_a_mixture_of_experts_halves_experts_and_router_under_attnlrp(family: str) -> None:
    """At each position: experts conserve, and get 1/2; the router gets 1/2 of its Gradient x Input."""
    block = family_model(family).model.layers[0].mlp
    x, cotangent = random_weights(5, 48), random_weights(5, 48, seed=1)
    explained, routed = x.clone().requires_grad_(), x.clone().requires_grad_()
    y = (mixture_of_experts(block, explained, "attnlrp") * cotangent).sum(-1)
    relevance = (x * torch.autograd.grad(y.sum(), explained)[0]).sum(-1)
    _, weights, chosen = block.gate(routed)
    plain = (block.experts(x, chosen, weights) * cotangent).sum()
    by_router = (x * torch.autograd.grad(plain, routed)[0]).sum(-1)
    assert_close(relevance, 0.5 * y.detach() + 0.5 * by_router, 1e-10)
    assert by_router.abs().max() > 0.1


@pytest.mark.parametrize(
    ("activation", "f"),
    [
        ("SiLU", nn.functional.silu),
        ("GELUActivation", nn.functional.gelu),
        ("GELUTanh", lambda x: nn.functional.gelu(x, approximate="tanh")),
    ],
)
def test_ratios_are_those_of_the_activations(activation: str, f) -> None:
    x = torch.linspace(-4, 4, 41, dtype=torch.float64)  # 0 among them
    assert_close(x * activation_ratio(activation, x), f(x), 1e-10)
    at_zero = activation_ratio(activation, torch.zeros(1, dtype=torch.float64))
    assert float(at_zero) == pytest.approx(0.5)


def test_a_soft_cap_has_its_derivative_or_its_ratio() -> None:
    x = torch.tensor([-4.0, 0.0, 1e-3, 2.0], dtype=torch.float64, requires_grad=True)
    capped = 3 * torch.tanh(x.detach() / 3)
    for composite in ("attnlrp", "cp_lrp"):
        out = soft_cap(x, 3.0, composite)
        assert_close(out.detach(), capped, 1e-12)
        ratio = torch.autograd.grad(out.sum(), x)[0]
        assert_close(ratio * x.detach(), capped, 1e-12)
        assert ratio[1] == 1
    derivative = torch.autograd.grad(soft_cap(x, 3.0, "paper").sum(), x)[0]
    assert_close(derivative, 1 - (capped / 3) ** 2, 1e-12)
