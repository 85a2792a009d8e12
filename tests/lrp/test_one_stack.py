"""Tangents of two composites in one stack equal those of a stack each; others are refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from lrp4rag.lrp import ATTNLRP, CP_LRP, PAPER, Composite, relevance_mode
from lrp4rag.lrp.families import one_stack
from lrp4rag.lrp.forwards import norm_forward
from lrp4rag.lrp.memory import Sizes
from lrp4rag.lrp.stack import Stack
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.lrp.checks import NAMES, SPARSE, assert_close, model_of, random_weights, reference_of
from tests.tiny import Tokens, random_tokens

# Neighbours of one composite, and changes between them.
MIXED = [ATTNLRP, CP_LRP, CP_LRP, ATTNLRP, CP_LRP]
PROMPT = random_tokens(19, 1).prompt_ids
RESPONSE = random_tokens(1, 6, seed=6).response_ids


def test_which_models_let_attnlrp_and_cp_lrp_share() -> None:
    shared = {name for name in NAMES if one_stack(model_of(name), ATTNLRP, CP_LRP)}
    assert shared == set(NAMES) - SPARSE


@pytest.mark.parametrize("name", ["llama_biased", "qwen3", "gemma2"])
@pytest.mark.parametrize("own", [ATTNLRP, CP_LRP], ids=lambda composite: composite.name)
def test_a_mixed_stack_equals_the_reference(name: str, own: Composite) -> None:
    """At once and token by token, of whatever size; later tangents of no composite are the flow's own."""
    tokens, logits, _ = reference_of(name, "attnlrp")
    n, weights = len(tokens.prompt_ids), random_weights(len(MIXED), 21)
    rows = torch.stack([reference_of(name, one.name)[2] for one in MIXED])  # T, t, N
    expected = torch.einsum("tn,tjn->tj", weights, rows)
    alone = weights @ reference_of(name, own.name)[2].T
    for sizes in (None, Sizes(queries=5, positions=7, tangents=2)):
        with relevance_mode(model_of(name), own, sizes=sizes) as flow:
            prefix = flow.prefix(tokens.prompt_ids, weights[:, :n], composites=MIXED)
            assert_close(prefix.push(tokens.response_ids, weights[:, n:]), expected, 1e-10)
            assert_close(flow.explained_logits, logits, 1e-10)
            for j, token in enumerate(tokens.response_ids):
                assert_close(prefix.push([token]), expected[:, j : j + 1], 1e-10)
                if j + 1 < len(tokens.response_ids):
                    prefix.extend([token], weights[:, n + j : n + j + 1])
            assert_close(flow.push(tokens, weights), alone, 1e-10)


@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("gemma2", PAPER, Composite("halves", 0.5, "jacobian", "jacobian", "frozen")),
        ("gemma2", CP_LRP, Composite("gates", 0.5, "frozen", "ratio", "frozen")),
        ("mixtral", CP_LRP, CP_LRP),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_composites_that_treat_norms_and_caps_alike_share(
    name: str, own: Composite, other: Composite
) -> None:
    """And later tangents of no composite are the flow's own. Experts take one composite only."""
    model, weights, tokens = model_of(name), random_weights(3, 19), Tokens(PROMPT, RESPONSE)
    with relevance_mode(model, other) as flow:
        others = flow.push(tokens, weights)
    with relevance_mode(model, own) as flow:
        expected = flow.push(tokens, weights)
        mixed = flow.prefix(PROMPT, weights, composites=[own, other, own]).push(RESPONSE)
        tolerance = 1e-10 if name != "mixtral" else 1e-6  # whose routing sums in float32
        assert_close(mixed, torch.stack([expected[0], others[1], expected[2]]), tolerance)
        assert_close(flow.prefix(PROMPT, weights).push(RESPONSE), expected, tolerance)
        assert torch.equal(flow.push(tokens, weights), expected)
    assert own == other or not torch.allclose(expected, others, rtol=1e-2)


def test_a_prefix_without_tangents_reads_only(llama) -> None:
    with relevance_mode(llama) as flow:
        state = flow.prefix(PROMPT).states(RESPONSE)
        assert state.tangents.shape == (0, 1, 6, 48)
        hidden = llama.model(torch.tensor([[*PROMPT, *RESPONSE[:-1]]]), use_cache=False).last_hidden_state
        assert_close(state.primal, hidden[:, 18:].detach(), 1e-10)


@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("llama", PAPER, ATTNLRP),
        ("llama", ATTNLRP, PAPER),
        ("gemma2", ATTNLRP, Composite("slopes", 0.5, "frozen", "jacobian", "jacobian")),
        ("mixtral", ATTNLRP, CP_LRP),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_what_cannot_share_a_stack_is_refused(name: str, own: Composite, other: Composite) -> None:
    weights = random_weights(2, 19)
    with relevance_mode(model_of(name), own) as flow:
        with pytest.raises(InputError, match=rf"'{other.name}' and '{own.name}' cannot share one stack"):
            flow.prefix(PROMPT, weights, composites=[own, other])
        for count in (0, 1, 3):
            with pytest.raises(LRP4RAGError, match=rf"2 tangents need 2 composites, got {count}"):
                flow.prefix(PROMPT, weights, composites=[own] * count)


# Frozen norms multiply all rows of a stack by one factor, and set the primal rows after that.


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_frozen_norm_scales_tangents_and_leaves_the_primal_rows(kind: str, dtype: torch.dtype) -> None:
    """Two examples and three tangents; the primal rows are the module's own, to the last bit."""
    generator = torch.Generator().manual_seed(0)
    norm = (LlamaRMSNorm if kind == "llama" else Gemma2RMSNorm)(16).to(dtype)
    offset = 0.0 if kind == "llama" else 1.0
    with torch.no_grad():
        norm.weight.copy_(1 - offset + 0.3 * torch.randn(16, generator=generator))
        stacked = torch.randn(8, 5, 16, generator=generator, dtype=torch.float64).to(dtype)
        family = SimpleNamespace(norm_offset=offset, heads_first=False)
        forward = norm_forward(Stack(rows=2), norm, family, ATTNLRP, (0, "attention_norm"))
        output, plain = forward(stacked.clone()), norm(stacked[:2])
    if dtype == torch.float64:  # the module computes in float32
        assert_close(output[:2], plain, 1e-6)
    else:
        assert torch.equal(output[:2], plain)
    wide = stacked.double()
    eps = norm.variance_epsilon if kind == "llama" else norm.eps
    scale = (wide[:2].square().mean(-1, keepdim=True) + eps) ** -0.5
    expected = (offset + norm.weight.double()) * scale * wide[2:].view(3, 2, 5, 16)
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 1e-2}[dtype]
    assert_close(output[2:].double().view(3, 2, 5, 16), expected.detach(), tolerance)
