"""Every family: patched logits, the reference in both directions, adjoint, causality and conservation.

Run against the newest transformers that pyproject.toml admits, these tests are the smoke test that an
adapter's names still fit.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from lrp4rag.lrp import check_conservation, relevance_mode
from lrp4rag.lrp import families as families_of_lrp
from lrp4rag.lrp.families import supported_architectures
from lrp4rag.lrp.families.architectures import FAMILIES, GEMMA2
from tests.lrp import tiny_families
from tests.lrp.checks import (
    BIASED,
    COMPOSITES,
    NAMES,
    SPARSE,
    assert_close,
    composites,
    families,
    logits_of,
    model_of,
    random_weights,
    reference_of,
    state_of,
)
from tests.lrp.detached import detached, gradient_times_input, mixture_of_experts, reference_rows
from tests.lrp.tiny_families import build
from tests.tiny import random_tokens


def test_every_supported_architecture_is_tested_and_documented() -> None:
    tested = {tiny_families.FAMILIES[name].model for name in NAMES}
    assert tested == set(supported_architectures())
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    page = (Path(__file__).parents[2] / "docs" / "families.md").read_text()
    assert set(re.findall(r"`(\w+ForCausalLM)`", page)) == tested


@families
@composites
def test_patched_logits_equal_the_models_own(name: str, composite: str) -> None:
    model, ids = model_of(name), random_tokens(30, 1).ids
    expected, before = logits_of(model, ids), state_of(model)
    with relevance_mode(model, composite):
        assert_close(logits_of(model, ids), expected, 1e-6)
    assert state_of(model) == before


@families
@composites
def test_push_and_pull_agree_with_the_reference_and_each_other(name: str, composite: str) -> None:
    tokens, logits, expected = reference_of(name, composite)
    weights, rows = random_weights(3, 21), random_weights(2, 5, seed=1)
    with relevance_mode(model_of(name), composite) as flow:
        pushed = flow.push(tokens, weights)
        assert_close(flow.explained_logits, logits, 1e-10)
        matrix = flow.pull(tokens, all_columns=True)
        pulled = flow.pull(tokens, rows, all_columns=True)
        cached = flow.prefix(tokens.prompt_ids, weights[:, :17])
        assert_close(cached.push(tokens.response_ids, weights[:, 17:]), pushed, 1e-6)
    assert_close(matrix, expected, 1e-10)
    assert_close(pushed, weights @ expected.T, 1e-10)
    assert_close(pulled, rows @ matrix, 1e-10)
    assert_close(pulled @ weights.T, rows @ pushed.T, 1e-10)  # one is the other's adjoint
    for j in range(5):  # no relevance from later tokens
        assert not matrix[j, 17 + j :].any()


@families
def test_composites_differ(name: str) -> None:
    """Or one that changed nothing would pass for another."""
    relevance = [reference_of(name, composite)[2] for composite in COMPOSITES]
    for one, other in itertools.combinations(relevance, 2):
        assert (one - other).abs().max() > 0.05 * other.abs().max()


@families
def test_cp_lrp_conserves_at_every_layer_where_there_are_no_biases(name: str) -> None:
    model, tokens = model_of(name), random_tokens(17, 5)
    with relevance_mode(model, "cp_lrp") as flow:
        for layer in range(len(model.model.layers)):
            total = flow.pull(tokens, all_columns=True, layer=layer).sum(1)
            if name in BIASED:
                assert float((total - flow.explained_logits).abs().max()) > 0.01
            else:
                assert_close(total, flow.explained_logits, 1e-6)


@composites
def test_a_decoder_with_norms_after_its_parts_only(composite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty path of `Family` is a part that the architecture has not, also for the norms of Llama."""
    model, tokens, weights = build("gemma2"), random_tokens(17, 5), random_weights(3, 21)
    for layer in model.model.layers:
        layer.input_layernorm = layer.pre_feedforward_layernorm = nn.Identity()
    monkeypatch.setattr(families_of_lrp, "FAMILIES", [replace(GEMMA2, attention_norm="", mlp_norm="")])
    logits, expected = reference_rows(model, tokens, composite)
    with relevance_mode(model, composite) as flow:
        assert_close(flow.pull(tokens, all_columns=True), expected, 1e-10)
        assert_close(flow.push(tokens, weights), weights @ expected.T, 1e-10)
        assert_close(flow.explained_logits, logits, 1e-10)
    assert check_conservation(model, composite, tokens).conserves(1e-6) == (composite == "cp_lrp")


# The reference itself, where float32 is float64.

double = pytest.mark.usefixtures("double")
TOKENS = random_tokens(13, 6)  # longer than the families' windows


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


@families
@double
def test_paper_is_gradient_times_input_of_the_model_itself(name: str) -> None:
    logits, relevance = gradient_times_input(model_of(name), TOKENS)
    for actual, expected in zip(
        reference_rows(model_of(name), TOKENS, "paper"), (logits, relevance), strict=True
    ):
        assert_close(actual, expected, 1e-10)


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
