"""Every family: patched logits, the reference in both directions, adjoint, causality and conservation.

Run against the newest transformers that pyproject.toml admits, these tests are the smoke test that an
adapter's names still fit.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from torch import nn

from lrp4rag.lrp import check_conservation, prefix, relevance_mode, rules
from lrp4rag.lrp import families as families_of_lrp
from lrp4rag.lrp.families import supported_architectures
from lrp4rag.lrp.families.architectures import FAMILIES, GEMMA2
from tests.lrp import tiny_families
from tests.lrp.checks import (
    BIASED,
    COMPOSITES,
    NAMES,
    SOME_NAMES,
    SPARSE,
    assert_close,
    composites,
    families,
    logits_of,
    model_of,
    random_weights,
    reference_of,
    some_families,
    state_of,
)
from tests.lrp.detached import detached, gradient_times_input, mixture_of_experts, reference_rows
from tests.lrp.entry_points import ENTRY_POINTS, FEW, assert_agree
from tests.lrp.llama_reference import llama_rows
from tests.lrp.tiny_families import build
from tests.tiny import random_tokens


def test_every_supported_architecture_is_tested() -> None:
    tested = {tiny_families.FAMILIES[name].model for name in NAMES}
    assert tested == set(supported_architectures())
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that are a matter of speed: several blocks and stages must be seen by these lengths."""
    monkeypatch.setattr(rules, "QUERY_BLOCK", 16)
    monkeypatch.setattr(prefix, "STAGE", 4)


@families
@composites
def test_patched_logits_equal_the_models_own(name: str, composite: str) -> None:
    """Of a batch; the model is restored."""
    model, ids = model_of(name), torch.cat([random_tokens(34, 1, seed=seed).ids for seed in (0, 1)])
    expected, before = logits_of(model, ids), state_of(model)
    with relevance_mode(model, composite):
        assert_close(logits_of(model, ids), expected, 1e-6)
    assert state_of(model) == before


# (n, t): one prompt token, one response token, and N = n + t - 1 at and around one and two blocks of queries.
LENGTHS = [(1, 1), (1, 5), (9, 1), (12, 4), (12, 5), (13, 5), (24, 11)]
CASES = [*((name, 17, 5) for name in NAMES), *(("llama_biased", n, t) for n, t in LENGTHS)]


@pytest.mark.parametrize(("name", "n", "t"), CASES)
@composites
def test_every_entry_point_agrees_with_the_reference(name: str, n: int, t: int, composite: str) -> None:
    tokens, _, expected = reference_of(name, composite, n, t)
    with relevance_mode(model_of(name), composite) as flow:
        assert_agree(flow, tokens, expected, names=ENTRY_POINTS if name in SOME_NAMES else FEW)


@some_families
@composites
def test_pull_is_the_adjoint_of_push(name: str, composite: str) -> None:
    """R_response is one tangent, R_prompt one cotangent; later tokens have no relevance, others have."""
    tokens, n, t = random_tokens(17, 5), 17, 5
    u, v, one = random_weights(2, 21), random_weights(2, 5, seed=1), torch.ones(1, 1, dtype=torch.float64)
    with relevance_mode(model_of(name), composite) as flow:
        matrix = flow.pull(tokens, all_columns=True)
        assert_close(flow.pull(tokens, v, all_columns=True) @ u.T, v @ flow.push(tokens, u).T, 1e-10)
        assert_close(flow.push(tokens, one.expand(1, n) / n)[0], matrix[:, :n].mean(1), 1e-10)
        assert_close(flow.pull(tokens, one.expand(1, t) / t)[0], matrix[:, :n].mean(0), 1e-10)
        pushed = flow.push(tokens, torch.eye(n + t - 1, dtype=torch.float64)[n - 1 :]).T
    for rows in (matrix[:, n - 1 :], pushed):
        for j in range(t):  # z_j is read at position n + j - 1
            assert not rows[j, j + 1 :].any()
            assert rows[j, j] != 0


@pytest.mark.parametrize(
    ("name", "layer", "composite"),
    [
        *((name, 2, "attnlrp") for name in NAMES),
        *((name, 1, composite) for name in SOME_NAMES for composite in COMPOSITES),
    ],
)
def test_relevance_at_a_layer_agrees_with_the_reference(name: str, layer: int, composite: str) -> None:
    tokens, logits, expected = reference_of(name, composite, layer=layer)
    weights = random_weights(2, 21)
    with relevance_mode(model_of(name), composite) as flow:
        assert_close(flow.pull(tokens, all_columns=True, layer=layer), expected, 1e-10)
        assert_close(flow.push(tokens, weights, layer=layer), weights @ expected.T, 1e-10)
        assert_close(flow.explained_logits, logits, 1e-10)


@families
def test_cp_lrp_alone_conserves_where_there_are_no_biases(name: str) -> None:
    """At every layer. And composites differ, or one that changed nothing would pass for another."""
    model, tokens, relevance = model_of(name), random_tokens(17, 5), []
    for composite in COMPOSITES:
        with relevance_mode(model, composite) as flow:
            relevance.append(flow.pull(tokens, all_columns=True))
            conserves = composite == "cp_lrp" and name not in BIASED
            assert torch.allclose(relevance[-1].sum(1), flow.explained_logits, rtol=1e-6) == conserves
    for first, second in itertools.combinations(relevance, 2):
        assert (first - second).abs().max() > 0.05 * second.abs().max()
    with relevance_mode(model, "cp_lrp") as flow:
        for layer in range(len(model.model.layers)):
            total = flow.pull(tokens, all_columns=True, layer=layer).sum(1)
            if name in BIASED:
                assert (total - flow.explained_logits).abs().max() > 0.01
            else:
                assert_close(total, flow.explained_logits, 1e-6)


@composites
def test_a_decoder_with_norms_after_its_parts_only(composite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty path of `Family` is a part that the architecture has not, also for the norms of Llama."""
    model, tokens = build("gemma2"), random_tokens(17, 5)
    for layer in model.model.layers:
        layer.input_layernorm = layer.pre_feedforward_layernorm = nn.Identity()
    monkeypatch.setattr(families_of_lrp, "FAMILIES", [replace(GEMMA2, attention_norm="", mlp_norm="")])
    expected = reference_rows(model, tokens, composite)[1]
    with relevance_mode(model, composite) as flow:
        assert_agree(flow, tokens, expected)
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


@pytest.mark.parametrize("name", ["llama", "llama_biased"])
@composites
def test_it_agrees_with_a_llama_from_scratch(name: str, composite: str) -> None:
    tokens, logits, relevance = reference_of(name, composite)
    expected = llama_rows(model_of(name), tokens.prompt_ids, tokens.response_ids, composite)
    assert_close(logits, expected[0], 1e-10)
    assert_close(relevance, expected[1], 1e-10)


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
