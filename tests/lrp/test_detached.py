"""The detach-arithmetic reference is right: against the from-scratch Llama, autograd, and conservation."""

from __future__ import annotations

import itertools
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from tests.lrp.checks import (
    BIASED,
    COMPOSITES,
    SPARSE,
    assert_close,
    composites,
    families,
    llama_of,
    logits_of,
    model_of,
    random_weights,
    state_of,
    variants,
)
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
from tests.lrp.tiny_families import build
from tests.tiny import random_tokens

double = pytest.mark.usefixtures("double")

TOKENS = random_tokens(13, 6)  # longer than the families' windows


@cache
def rows(name: str, composite: str) -> tuple[Tensor, Tensor]:
    return reference_rows(model_of(name), TOKENS.prompt_ids, TOKENS.response_ids, composite)


@composites
@variants
def test_agrees_with_the_llama_written_from_scratch(composite: str, biased: bool) -> None:
    model = llama_of(biased)
    logits, relevance = reference_rows(model, TOKENS.prompt_ids, TOKENS.response_ids, composite)
    expected = reference(model, TOKENS.prompt_ids, TOKENS.response_ids, composite)
    assert_close(logits, expected.logits, 1e-10)
    assert_close(relevance, expected.relevance, 1e-10)


@families
@double
def test_it_computes_what_the_model_does_and_restores_it(name: str) -> None:
    model = build(name)
    before, expected = state_of(model), logits_of(model, TOKENS.ids)
    for composite in COMPOSITES:
        with detached(model, composite):
            assert state_of(model) != before
            assert_close(logits_of(model, TOKENS.ids), expected, 1e-11)
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
@double
def test_paper_is_gradient_times_input_of_the_model_itself(name: str) -> None:
    logits, relevance = gradient_times_input(model_of(name), TOKENS.prompt_ids, TOKENS.response_ids)
    assert_close(rows(name, "paper")[0], logits, 1e-10)
    assert_close(rows(name, "paper")[1], relevance, 1e-10)
    own = logits_of(model_of(name), TOKENS.ids)[0, len(TOKENS.prompt_ids) - 1 :]
    own = own[torch.arange(len(TOKENS.response_ids)), list(TOKENS.response_ids)]
    assert_close(logits, own, 1e-11)


@families
@double
def test_composites_differ_and_later_tokens_have_no_relevance(name: str) -> None:
    """Or a composite that changed nothing would pass for another one. Without biases `cp_lrp` conserves."""
    relevance = {composite: rows(name, composite)[1] for composite in COMPOSITES}
    for one, other in itertools.combinations(relevance.values(), 2):
        assert (one - other).abs().max() > 0.05 * other.abs().max()
    for one in relevance.values():
        later = torch.ones_like(one, dtype=torch.bool).triu(len(TOKENS.prompt_ids))
        assert one.isfinite().all()
        assert not one[later].any()
    if name not in BIASED:  # also Gemma 2, whose final soft cap is linear under the ratio rule
        assert_close(relevance["cp_lrp"].sum(-1), rows(name, "cp_lrp")[0], 1e-9)


@double
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
@pytest.mark.parametrize("name", ["llama", "phi3", "gemma2"])
def test_a_gated_mlp_conserves(name: str, composite: str) -> None:
    """attnlrp: half through the gate and half through the other factor."""
    mlp = model_of(name).model.layers[0].mlp
    x, cotangent = random_weights(1, 5, 48).requires_grad_(), random_weights(1, 5, 48, seed=1)
    y = (gated_mlp(mlp, x, composite) * cotangent).sum()
    relevance = x.detach() * torch.autograd.grad(y, x)[0]
    assert_close(relevance.sum(), y.detach(), 1e-10)


@pytest.mark.parametrize("name", sorted(SPARSE))
@double
def test_a_mixture_of_experts_halves_experts_and_router_under_attnlrp(name: str) -> None:
    """At each position: experts conserve, and get 1/2; the router gets 1/2 of its Gradient x Input."""
    block = model_of(name).model.layers[0].mlp
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
