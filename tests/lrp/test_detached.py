"""The detach-arithmetic reference computes what the model does, and its `paper` is plain autograd."""

from __future__ import annotations

import pytest
import torch

from tests.lrp.checks import (
    COMPOSITES,
    SPARSE,
    assert_close,
    families,
    logits_of,
    model_of,
    random_weights,
    state_of,
)
from tests.lrp.detached import detached, gradient_times_input, mixture_of_experts, reference_rows
from tests.lrp.tiny_families import build
from tests.tiny import random_tokens

pytestmark = pytest.mark.usefixtures("double")

TOKENS = random_tokens(13, 6)  # longer than the families' windows


@families
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


@families
def test_paper_is_gradient_times_input_of_the_model_itself(name: str) -> None:
    logits, relevance = gradient_times_input(model_of(name), TOKENS)
    for actual, expected in zip(
        reference_rows(model_of(name), TOKENS, "paper"), (logits, relevance), strict=True
    ):
        assert_close(actual, expected, 1e-10)


@pytest.mark.parametrize("name", sorted(SPARSE))
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
