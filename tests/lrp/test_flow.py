"""Invariants 2 to 5 of the design: adjoint, push = pull, references, causality; layers and targets."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor

from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.lrp import ATTNLRP, COMPOSITES, Composite, relevance_mode, rules
from lrp4rag.lrp.memory import Sizes
from tests.lrp.checks import (
    assert_close,
    composites,
    llama_of,
    logits_of,
    model_of,
    random_weights,
    some_families,
    variants,
)
from tests.lrp.detached import detached
from tests.lrp.reference import Reference, reference
from tests.tiny import Tokens, random_tokens, tiny_llama

BLOCK = 16
# (n, t): one prompt token, one response token, and N = n + t - 1 at and around one and two blocks of queries.
LENGTHS = [(1, 1), (1, 5), (9, 1), (12, 4), (12, 5), (13, 5), (24, 11)]


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is a matter of speed, and may change; several blocks must be seen by these lengths."""
    monkeypatch.setattr(rules, "QUERY_BLOCK", BLOCK)


@cache
def reference_of(biased: bool, n: int, t: int, composite: str) -> Reference:
    tokens = random_tokens(n, t)
    return reference(llama_of(biased), tokens.prompt_ids, tokens.response_ids, composite)


@composites
@variants
@pytest.mark.parametrize(("n", "t"), LENGTHS)
def test_push_and_pull_equal_the_reference(composite: str, biased: bool, n: int, t: int) -> None:
    """And R_response is one tangent, R_prompt one cotangent; later columns are 0 exactly, others are not."""
    expected, tokens = reference_of(biased, n, t, composite), random_tokens(n, t)
    everywhere = random_weights(2, n + t - 1)
    with relevance_mode(llama_of(biased), composite) as flow:
        matrix = flow.pull(tokens, all_columns=True)
        assert_close(matrix, expected.relevance, 1e-10)
        assert_close(flow.explained_logits, expected.logits, 1e-10)
        assert torch.equal(flow.pull(tokens), matrix[:, :n])
        assert_close(flow.push(tokens, everywhere), everywhere @ expected.relevance.T, 1e-10)
        prompt = everywhere[:, :n] @ expected.relevance[:, :n].T
        assert_close(flow.push(tokens, everywhere[:, :n]), prompt, 1e-10)
        by_push = flow.push(tokens, torch.full((1, n), 1 / n, dtype=torch.float64))[0]
        by_pull = flow.pull(tokens, torch.full((1, t), 1 / t, dtype=torch.float64))[0]
        columns = flow.push(tokens, torch.eye(n + t - 1, dtype=torch.float64)).T
    assert_close(by_push, matrix[:, :n].mean(1), 1e-10)
    assert_close(by_pull, matrix[:, :n].mean(0), 1e-10)
    for one in (matrix, columns):
        for j in range(t):  # z_j is read at position n + j - 1
            assert not one[j, n + j :].any()
            assert one[j, n + j - 1] != 0
    if composite == "cp_lrp" and not biased:
        assert_close(columns.sum(1), expected.logits, 1e-10)
    elif n + t > 30:  # the test above is known to see a difference
        assert not torch.allclose(columns.sum(1), expected.logits, rtol=0.05)


@composites
@variants
@pytest.mark.parametrize(("n", "t"), [(1, 5), (24, 11)])
def test_adjoint(composite: str, biased: bool, n: int, t: int) -> None:
    tokens = random_tokens(n, t)
    u, v = random_weights(1, n + t - 1, seed=1), random_weights(1, t, seed=2)
    with relevance_mode(llama_of(biased), composite) as flow:
        pushed, pulled = flow.push(tokens, u), flow.pull(tokens, v, all_columns=True)
    difference = float((v * pushed).sum() - (pulled * u).sum())
    assert abs(difference) <= 1e-10 * float((v.abs() * pushed.abs()).sum())


@variants
def test_paper_is_gradient_times_input_of_the_models_own_forward(biased: bool) -> None:
    model, tokens = llama_of(biased), random_tokens(20, 6)
    embeddings = model.get_input_embeddings()(tokens.ids).detach().requires_grad_()
    logits = model(inputs_embeds=embeddings, use_cache=False).logits[0, len(tokens.prompt_ids) - 1 :]
    rows = []
    for j, token in enumerate(tokens.response_ids):
        (gradient,) = torch.autograd.grad(logits[j, token], embeddings, retain_graph=True)
        rows.append((gradient * embeddings).sum(-1)[0].detach())
    with relevance_mode(model, "paper") as flow:
        # Hugging Face's norm and softmax compute in float32 whatever the dtype.
        assert_close(flow.pull(tokens, all_columns=True), torch.stack(rows), 1e-5)


def test_a_composite_is_a_name_or_a_record_and_attnlrp_by_default(llama, tokens: Tokens) -> None:
    own = Composite("own", 0.5, "frozen", "ratio", "jacobian")
    with relevance_mode(llama, own) as flow:
        relevance = flow.pull(tokens)
        assert flow.composite is own
    with relevance_mode(llama) as flow:
        assert torch.equal(flow.pull(tokens), relevance)
        assert flow.composite is ATTNLRP is COMPOSITES["attnlrp"]
        assert flow.target == "response"


# Batches and chunks.


@composites
def test_a_batch_equals_a_loop(composite: str) -> None:
    tokens, tangents, rows = random_tokens(20, 6), random_weights(11, 25), random_weights(11, 6)
    with relevance_mode(llama_of(True), composite) as flow:
        pushed = torch.cat([flow.push(tokens, row[None]) for row in tangents])
        pulled = torch.cat([flow.pull(tokens, row[None], all_columns=True) for row in rows])
        assert_close(flow.push(tokens, tangents), pushed, 1e-12)
        assert_close(flow.pull(tokens, rows, all_columns=True), pulled, 1e-12)


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_chunks_do_not_change_the_result(chunk: int) -> None:
    tokens, tangents = random_tokens(20, 11), random_weights(10, 20)
    with relevance_mode(llama_of(False)) as flow:
        pulled, pushed = flow.pull(tokens), flow.push(tokens, tangents)
    with relevance_mode(llama_of(False), sizes=Sizes(tangents=chunk, cotangents=chunk)) as flow:
        assert_close(flow.pull(tokens), pulled, 1e-12)
        assert_close(flow.push(tokens, tangents), pushed, 1e-12)
        assert_close(flow.push(tokens, tangents, keep=True), pushed, 1e-12)
        assert_close(flow.pull(tokens), pulled, 1e-12)


def test_cotangents_with_zeros_at_the_end_are_cut_short_correctly(llama) -> None:
    """Pull stops at the last row asked for; also where no row, or only the first, is asked for."""
    tokens = random_tokens(20, 6)
    with relevance_mode(llama) as flow:
        matrix = flow.pull(tokens, all_columns=True)
        for last in range(6):
            weights = random_weights(2, 6)
            weights[:, last + 1 :] = 0
            expected = weights @ matrix
            assert_close(flow.pull(tokens, weights, all_columns=True), expected, 1e-12)
        assert not flow.pull(tokens, torch.zeros(1, 6)).any()


def test_a_recorded_replay_is_not_repeated_and_only_for_its_tokens(llama, tokens: Tokens) -> None:
    weights, other = random_weights(1, 11), random_tokens(13, 4)
    with relevance_mode(llama) as flow:
        pushed, pulled, others = flow.push(tokens, weights), flow.pull(tokens), flow.pull(other)
    replays = []
    handle = llama.model.layers[0].register_forward_hook(lambda *_: replays.append(1))
    with relevance_mode(llama) as flow:
        replays.clear()
        assert torch.equal(flow.push(tokens, weights, keep=True), pushed)
        logits = flow.explained_logits
        assert_close(flow.pull(tokens), pulled, 1e-12)
        assert len(replays) == 1
        flow.push(other, random_weights(1, 13))
        flow.pull(tokens)
        assert torch.equal(flow.explained_logits, logits)  # those of the tokens that were pulled
        assert len(replays) == 2
        flow.forget()
        assert_close(flow.pull(tokens), pulled, 1e-12)
        assert torch.equal(flow.pull(other), others)
        assert len(replays) == 4
    handle.remove()


# Layers.


def reference_at(model, composite: str, tokens: Tokens, layer: int) -> Tensor:
    """Gradient x state at the input of a layer, by autograd on the detach arithmetic: (t, N)."""
    inputs = []
    handle = model.model.layers[layer].register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    with detached(model, composite):
        embeddings = model.get_input_embeddings()(tokens.ids).detach().requires_grad_()
        logits = model(inputs_embeds=embeddings, use_cache=False).logits[0, len(tokens.prompt_ids) - 1 :]
        chosen = logits.gather(1, torch.tensor(tokens.response_ids)[:, None])[:, 0]
        rows = [
            (inputs[0] * torch.autograd.grad(one, inputs[0], retain_graph=True)[0])[0].sum(-1)
            for one in chosen
        ]
    handle.remove()
    return torch.stack(rows).detach()


@some_families
@composites
@pytest.mark.parametrize("layer", [1, 2])
def test_push_and_pull_at_a_layer_agree_with_the_reference(name: str, composite: str, layer: int) -> None:
    model, tokens, weights = model_of(name), random_tokens(17, 5), random_weights(2, 21)
    expected = reference_at(model, composite, tokens, layer)
    with relevance_mode(model, composite) as flow:
        assert_close(flow.pull(tokens, all_columns=True, layer=layer), expected, 1e-10)
        assert_close(flow.push(tokens, weights, layer=layer), weights @ expected.T, 1e-10)


@pytest.mark.parametrize("layer", [-1, 3])
def test_a_layer_that_is_not_there(llama, tokens: Tokens, layer: int) -> None:
    with relevance_mode(llama) as flow:
        with pytest.raises(LRP4RAGError, match="from 0 to 2"):
            flow.push(tokens, random_weights(1, 11), layer=layer)
        with pytest.raises(LRP4RAGError, match="from 0 to 2"):
            flow.pull(tokens, layer=layer)


# The target, and weights of any kind.


@composites
def test_target_largest_explains_the_largest_logit(composite: str) -> None:
    """As if the response had been the reader's most likely tokens, but reading the real ones."""
    model, tokens = llama_of(False), random_tokens(20, 6)
    n, weights = len(tokens.prompt_ids), random_weights(1, 20)
    best = logits_of(model, tokens.ids)[0, n - 1 :].max(-1)
    assert best.indices.tolist() != list(tokens.response_ids)
    with relevance_mode(model, composite, target="largest") as flow:
        matrix = flow.pull(tokens, all_columns=True)
        assert_close(flow.explained_logits, best.values, 1e-6)
        assert_close(flow.push(tokens, weights), weights @ matrix[:, :n].T, 1e-10)
    for j, token in enumerate(best.indices.tolist()):
        prefix = Tokens(tokens.prompt_ids, (*tokens.response_ids[:j], token))
        row = reference(model, prefix.prompt_ids, prefix.response_ids, composite).relevance[-1]
        assert_close(matrix[j, : n + j], row, 1e-10)


@pytest.mark.parametrize("name", ["LRP", "", "attn-lrp"])
def test_unknown_composite(llama, name: str) -> None:
    with pytest.raises(InputError, match="paper, attnlrp, cp_lrp"), relevance_mode(llama, name):
        pass


def test_unknown_target(llama) -> None:
    named = pytest.raises(InputError, match=r"'smallest'.*response, largest")
    with named, relevance_mode(llama, target="smallest"):
        pass


@pytest.mark.parametrize("shape", [(11,), (0, 11), (1, 1, 11), (1, 10), (1, 12), (1, 17)])
def test_push_refuses_weights_that_are_not_tangents(llama, tokens: Tokens, shape: tuple[int, ...]) -> None:
    """(T, n) or (T, N), here 11 or 16: anything else would be cut or filled silently."""
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match="weights must be"):
        flow.push(tokens, torch.ones(shape))


@pytest.mark.parametrize("shape", [(6,), (1, 5), (1, 7), (1, 1, 6)])
def test_pull_refuses_weights_of_another_width(llama, tokens: Tokens, shape: tuple[int, ...]) -> None:
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match="weights must be"):
        flow.pull(tokens, torch.ones(shape))


def test_small_cotangents_survive_half_precision() -> None:
    model = tiny_llama(dtype=torch.float16)
    tokens, rows = random_tokens(20, 5), random_weights(2, 5)
    with relevance_mode(model) as flow:
        expected = flow.pull(tokens, rows)
        assert_close(flow.pull(tokens, rows * 2.0**-20) * 2.0**20, expected, 1e-6)


def test_weights_may_be_integers(llama, tokens: Tokens) -> None:
    tangents, rows = torch.randint(-3, 4, (2, 11)), torch.randint(-3, 4, (2, 6))
    with relevance_mode(llama) as flow:
        assert torch.equal(flow.push(tokens, tangents), flow.push(tokens, tangents.double()))
        assert torch.equal(flow.pull(tokens, rows), flow.pull(tokens, rows.double()))
