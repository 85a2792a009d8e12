"""Invariant 1 of the design: the patched model computes what the model computes, and is restored.

And what a model may not be: an architecture without rules, broken, or (for pull) without weight matrices.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from lrp4rag.lrp import relevance_mode
from lrp4rag.util.errors import InputError, LRP4RAGError, RelevanceError
from tests.lrp.checks import assert_close, composites, logits_of, random_weights, state_of
from tests.tiny import Tokens, tiny_config, tiny_llama


@composites
def test_the_model_is_restored_also_after_an_exception(composite: str, tokens: Tokens) -> None:
    """Of the block, or of a replay inside, whose rows must not linger in the next plain call."""
    model = tiny_llama(biased=True)
    before, expected = state_of(model), logits_of(model, tokens.ids)

    def fail(*_: object) -> None:
        raise KeyError

    def fail_inside() -> None:
        with relevance_mode(model, composite) as flow:
            assert state_of(model) != before
            assert not flow.push(tokens, random_weights(2, 11), keep=True).requires_grad  # no graph is held
            assert not flow.pull(tokens).requires_grad
            handle = model.model.layers[1].register_forward_hook(fail)
            with pytest.raises(KeyError):
                flow.push(tokens, random_weights(1, 11))
            handle.remove()
            assert_close(logits_of(model, tokens.ids.expand(3, -1)), expected.expand(3, -1, -1), 1e-6)
            fail()

    with pytest.raises(KeyError):
        fail_inside()
    assert state_of(model) == before
    assert torch.equal(logits_of(model, tokens.ids), expected)


def test_the_model_is_restored_when_entering_fails(tokens: Tokens) -> None:
    model = tiny_llama()
    before = state_of(model)
    calls = []

    def change_the_second_call(_module: object, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        calls.append(output)
        return output + len(calls)

    handle = model.lm_head.register_forward_hook(change_the_second_call)
    with pytest.raises(RelevanceError, match="changed the logits"), relevance_mode(model):
        pass
    handle.remove()
    assert state_of(model) == before


@pytest.mark.parametrize(("factor", "allowed"), [(1.06, True), (1.2, False)])
def test_half_precision_may_round_otherwise_but_not_compute_otherwise(factor: float, allowed: bool) -> None:
    """A model in the shape of Llama 3.1 8B with random weights differs by .050 in bfloat16 on an H200."""
    model = tiny_llama().to(torch.bfloat16)
    calls = []

    def scale_the_second_call(_module: object, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        calls.append(output)
        return output * factor if len(calls) == 2 else output

    model.lm_head.register_forward_hook(scale_the_second_call)
    refused = nullcontext() if allowed else pytest.raises(RelevanceError, match="changed the logits")
    with refused, relevance_mode(model):
        pass


def test_a_forward_on_the_instance_is_put_back() -> None:
    """accelerate stores `forward` on instances; deleting the patch would lose it."""
    model = tiny_llama()
    norm = model.model.layers[0].input_layernorm
    norm.forward = own = norm.forward
    with relevance_mode(model):
        assert norm.forward is not own
    assert norm.__dict__["forward"] is own


@composites
def test_models_that_share_a_config_do_not_affect_each_other(composite: str, tokens: Tokens) -> None:
    config = tiny_config()
    one, other = tiny_llama(config, seed=1), tiny_llama(config, seed=2)
    weights = random_weights(1, 11)
    implementation = config._attn_implementation
    expected = logits_of(other, tokens.ids)
    with relevance_mode(one, composite) as flow:
        alone = flow.push(tokens, weights)
    with relevance_mode(one, composite) as flow:
        assert torch.equal(logits_of(other, tokens.ids), expected)
        assert config._attn_implementation == implementation
        with relevance_mode(other, "paper") as inner:
            assert torch.equal(flow.push(tokens, weights), alone)
            inner.push(tokens, weights)
        assert torch.equal(flow.push(tokens, weights), alone)
    assert config._attn_implementation == implementation
    assert torch.equal(logits_of(other, tokens.ids), expected)


def test_entering_the_same_model_twice_is_an_error(tokens: Tokens) -> None:
    model = tiny_llama()
    before, weights = state_of(model), random_weights(1, 11)
    with relevance_mode(model) as flow:
        expected = flow.push(tokens, weights)
        with pytest.raises(LRP4RAGError, match="already"), relevance_mode(model, "cp_lrp"):
            pass
        assert torch.equal(flow.push(tokens, weights), expected)  # the outer mode goes on
    assert state_of(model) == before


GPT = GPT2Config(vocab_size=31, n_embd=16, n_layer=1, n_head=2, n_positions=16)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GPT2LMHeadModel(GPT), r"GPT2LMHeadModel.*supported: .*LlamaForCausalLM"),
        (lambda: tiny_llama(tiny_config(hidden_act="relu")), r"'relu'.*supported: .*silu"),
        (lambda: tiny_llama(tiny_config(use_bidirectional_attention=True)), "it must be causal"),
    ],
    ids=["architecture", "activation", "attention"],
)
def test_models_without_rules_are_refused_by_name(build, message: str) -> None:
    model = build()
    before = state_of(model)
    with pytest.raises(InputError, match=message), relevance_mode(model):
        pass
    assert state_of(model) == before


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_broken_weight_names_layer_and_dtype(bad: float, tokens: Tokens) -> None:
    """Whether it breaks before the mode is entered, inside it, or only on the way back."""
    model = tiny_llama()
    before, weight = state_of(model), model.model.layers[1].mlp.down_proj.weight
    with relevance_mode(model) as flow:
        flow.push(tokens, random_weights(1, 11), keep=True)
        with torch.no_grad():
            weight[0, 0] = bad
        with pytest.raises(RelevanceError, match=r"layer 1 during pull in float64"):
            flow.pull(tokens)
        flow.forget()
        for run in (lambda: flow.push(tokens, random_weights(1, 11)), lambda: flow.pull(tokens)):
            with pytest.raises(RelevanceError, match=r"layer 1 .*float64"):
                run()
    assert state_of(model) == before
    with pytest.raises(RelevanceError, match=r"layer 1 .*float64"), relevance_mode(model) as flow:
        flow.push(tokens, random_weights(1, 11))


class Opaque(nn.Module):
    """Stands for a quantised linear layer: it computes, but has no plain weight matrix."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.packed = [linear]  # in a list, so that it is no parameter of this module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.packed[0](x)


@pytest.mark.parametrize("name", ["mlp.down_proj", "mlp.gate_proj", "self_attn.v_proj", "self_attn.o_proj"])
def test_push_needs_no_weight_matrix_and_pull_says_so(name: str, tokens: Tokens) -> None:
    """Tangents get no bias, though quantised layers keep theirs in full precision."""
    model, weights = tiny_llama(biased=True), random_weights(2, 11)
    with relevance_mode(model) as flow:
        expected = flow.push(tokens, weights)
    layer = model.model.layers[1]
    layer.set_submodule(name, Opaque(layer.get_submodule(name)))
    with relevance_mode(model) as flow:
        assert_close(flow.push(tokens, weights), expected, 1e-12)
        with pytest.raises(LRP4RAGError, match=r"Opaque.*push"):
            flow.pull(tokens)


def test_padded_batches_are_refused(llama) -> None:
    """The patched attention is causal only: it would read the padding."""
    ids, mask = torch.arange(10).view(2, 5), torch.ones(2, 5, dtype=torch.long)
    with relevance_mode(llama), torch.no_grad():
        llama(ids, attention_mask=mask)
        mask[0, 0] = 0
        with pytest.raises(LRP4RAGError, match="padded batches are not supported"):
            llama(ids, attention_mask=mask)
