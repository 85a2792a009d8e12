"""Invariants 2 to 5 of the design: adjoint, push = pull, references, causality; targets and weights."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.lrp import ATTNLRP, COMPOSITES, Composite, relevance_mode, rules
from lrp4rag.lrp.memory import Sizes
from tests.lrp.checks import assert_close, composites, logits_of, model_of, random_weights, variants
from tests.lrp.reference import Reference, reference
from tests.tiny import Tokens, random_tokens, tiny_llama

BLOCK = 64
# (n, t): one prompt token, one response token, and N = n + t - 1 at and around one and two blocks of queries.
LENGTHS = [(1, 1), (1, 5), (9, 1), (60, 4), (60, 5), (61, 5), (120, 11)]


@pytest.fixture(autouse=True)
def _blocks_of_64_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is a matter of speed, and may change; several blocks must be seen by these lengths."""
    monkeypatch.setattr(rules, "QUERY_BLOCK", BLOCK)


@cache
def reference_of(biased: bool, n: int, t: int, composite: str) -> Reference:
    tokens = random_tokens(n, t)
    return reference(model_of(biased), tokens.prompt_ids, tokens.response_ids, composite)


# Invariants 2 and 3: the two directions are one map.


@composites
@variants
@pytest.mark.parametrize(("n", "t"), [(1, 5), (11, 6), (61, 5), (120, 11)])
def test_adjoint(composite: str, biased: bool, n: int, t: int) -> None:
    tokens = random_tokens(n, t)
    u, v = random_weights(1, n + t - 1, seed=1), random_weights(1, t, seed=2)
    with relevance_mode(model_of(biased), composite) as flow:
        pushed, pulled = flow.push(tokens, u), flow.pull(tokens, v, all_columns=True)
    forward, backward = float((v * pushed).sum()), float((pulled * u).sum())
    scale = float((v.abs() * pushed.abs()).sum())
    assert abs(forward - backward) <= 1e-10 * scale


@composites
@variants
@pytest.mark.parametrize(("n", "t"), LENGTHS)
def test_push_is_the_row_means_and_pull_the_column_means(
    composite: str, biased: bool, n: int, t: int
) -> None:
    tokens = random_tokens(n, t)
    with relevance_mode(model_of(biased), composite) as flow:
        matrix = flow.pull(tokens)
        by_push = flow.push(tokens, torch.full((1, n), 1 / n, dtype=torch.float64))[0]
        by_pull = flow.pull(tokens, torch.full((1, t), 1 / t, dtype=torch.float64))[0]
    assert matrix.shape == (t, n)
    assert_close(by_push, matrix.mean(1), 1e-10)
    assert_close(by_pull, matrix.mean(0), 1e-10)


# Invariant 4: references.


@composites
@variants
@pytest.mark.parametrize(("n", "t"), LENGTHS)
def test_pull_equals_the_reference(composite: str, biased: bool, n: int, t: int) -> None:
    expected, tokens = reference_of(biased, n, t, composite), random_tokens(n, t)
    with relevance_mode(model_of(biased), composite) as flow:
        everything = flow.pull(tokens, all_columns=True)
        assert_close(everything, expected.relevance, 1e-10)
        assert torch.equal(flow.pull(tokens), everything[:, :n])
        assert_close(flow.explained_logits, expected.logits, 1e-10)


@composites
@variants
@pytest.mark.parametrize(("n", "t"), LENGTHS)
def test_push_equals_the_reference(composite: str, biased: bool, n: int, t: int) -> None:
    expected, tokens = reference_of(biased, n, t, composite), random_tokens(n, t)
    everywhere, prompt = random_weights(2, n + t - 1), random_weights(2, n, seed=1)
    with relevance_mode(model_of(biased), composite) as flow:
        assert_close(flow.push(tokens, everywhere), everywhere @ expected.relevance.T, 1e-10)
        assert_close(flow.push(tokens, prompt), prompt @ expected.relevance[:, :n].T, 1e-10)


@pytest.mark.parametrize(("n", "t"), LENGTHS)
def test_cp_lrp_sums_to_the_logit_without_biases(n: int, t: int) -> None:
    tokens = random_tokens(n, t)
    with relevance_mode(model_of(False), "cp_lrp") as flow:
        pushed = flow.push(tokens, torch.ones(1, n + t - 1, dtype=torch.float64))[0]
        pulled = flow.pull(tokens, all_columns=True).sum(1)
        assert_close(pushed, flow.explained_logits, 1e-10)
        assert_close(pulled, flow.explained_logits, 1e-10)


@pytest.mark.parametrize("composite", ["paper", "attnlrp"])
def test_the_other_composites_do_not_conserve(composite: str) -> None:
    """So that the test above is known to see a difference."""
    reference_ = reference_of(False, 60, 5, composite)
    assert not torch.allclose(reference_.relevance.sum(1), reference_.logits, rtol=0.05)


@variants
def test_paper_is_gradient_times_input_of_the_models_own_forward(biased: bool) -> None:
    model, tokens = model_of(biased), random_tokens(20, 6)
    embeddings = model.get_input_embeddings()(tokens.ids).detach().requires_grad_()
    logits = model(inputs_embeds=embeddings, use_cache=False).logits[0, len(tokens.prompt_ids) - 1 :]
    rows = []
    for j, token in enumerate(tokens.response_ids):
        (gradient,) = torch.autograd.grad(logits[j, token], embeddings, retain_graph=True)
        rows.append((gradient * embeddings).sum(-1)[0].detach())
    with relevance_mode(model, "paper") as flow:
        # Hugging Face's norm and softmax compute in float32 whatever the dtype.
        assert_close(flow.pull(tokens, all_columns=True), torch.stack(rows), 1e-5)


def test_a_composite_can_be_given_as_a_record(llama, tokens: Tokens) -> None:
    own = Composite("own", 0.5, "frozen", "ratio", "jacobian")
    with relevance_mode(llama, own) as flow:
        relevance = flow.pull(tokens)
        assert flow.composite is own
    with relevance_mode(llama, "attnlrp") as flow:
        assert torch.equal(flow.pull(tokens), relevance)
        assert flow.composite is ATTNLRP is COMPOSITES["attnlrp"]


def test_the_default_composite_is_attnlrp(llama) -> None:
    with relevance_mode(llama) as flow:
        assert flow.composite is ATTNLRP
        assert flow.target == "response"


# Invariant 5: causality, batches and chunks.


@composites
@variants
@pytest.mark.parametrize(("n", "t"), [(1, 5), (11, 6), (60, 8)])
def test_no_relevance_from_later_tokens(composite: str, biased: bool, n: int, t: int) -> None:
    """z_j is read at position n + j - 1 (j from 0): later columns are 0 exactly, that one is not."""
    tokens = random_tokens(n, t)
    with relevance_mode(model_of(biased), composite) as flow:
        pulled = flow.pull(tokens, all_columns=True)
        pushed = flow.push(tokens, torch.eye(n + t - 1, dtype=torch.float64)).T
    for matrix in (pulled, pushed):
        for j in range(t):
            assert (matrix[j, n + j :] == 0).all()
            assert matrix[j, n + j - 1] != 0


@composites
def test_a_batch_of_tangents_equals_a_loop(composite: str) -> None:
    tokens, weights = random_tokens(30, 6), random_weights(11, 35)
    with relevance_mode(model_of(True), composite) as flow:
        batch = flow.push(tokens, weights)
        loop = torch.cat([flow.push(tokens, row[None]) for row in weights])
    assert batch.shape == (11, 6)
    assert_close(batch, loop, 1e-12)


@composites
def test_a_batch_of_cotangents_equals_a_loop(composite: str) -> None:
    tokens, weights = random_tokens(30, 6), random_weights(11, 6)
    with relevance_mode(model_of(True), composite) as flow:
        batch = flow.pull(tokens, weights, all_columns=True)
        loop = torch.cat([flow.pull(tokens, row[None], all_columns=True) for row in weights])
    assert batch.shape == (11, 35)
    assert_close(batch, loop, 1e-12)


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_chunks_do_not_change_the_result(chunk: int) -> None:
    tokens, tangents = random_tokens(20, 11), random_weights(10, 20)
    with relevance_mode(model_of(False)) as flow:
        pulled, pushed = flow.pull(tokens), flow.push(tokens, tangents)
    with relevance_mode(model_of(False), sizes=Sizes(tangents=chunk, cotangents=chunk)) as flow:
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
        assert (flow.pull(tokens, torch.zeros(1, 6)) == 0).all()


def test_a_kept_replay_gives_the_same_pull_without_another(llama, tokens: Tokens) -> None:
    weights = random_weights(1, 11)
    with relevance_mode(llama) as flow:
        expected_pushed, expected = flow.push(tokens, weights), flow.pull(tokens)
    replays = []
    handle = llama.model.layers[0].register_forward_hook(lambda *_: replays.append(1))
    with relevance_mode(llama) as flow:
        replays.clear()
        assert torch.equal(flow.push(tokens, weights, keep=True), expected_pushed)
        assert_close(flow.pull(tokens), expected, 1e-12)
        assert len(replays) == 1
        flow.forget()
        assert_close(flow.pull(tokens), expected, 1e-12)
        assert len(replays) == 2
    handle.remove()


def test_a_kept_replay_is_not_used_for_other_tokens(llama, tokens: Tokens) -> None:
    other = random_tokens(13, 4)
    with relevance_mode(llama) as flow:
        expected = flow.pull(other)
    with relevance_mode(llama) as flow:
        flow.push(tokens, random_weights(1, 11), keep=True)
        assert torch.equal(flow.pull(other), expected)


@composites
def test_the_size_of_the_blocks_does_not_matter(composite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, expected = random_tokens(61, 5), reference_of(True, 61, 5, composite).relevance
    weights = random_weights(2, 65)
    with relevance_mode(model_of(True), composite) as flow:
        for size in (1, 7, 65, 1000):
            monkeypatch.setattr(rules, "QUERY_BLOCK", size)
            flow.forget()
            assert_close(flow.pull(tokens, all_columns=True), expected, 1e-10)
            assert_close(flow.push(tokens, weights), weights @ expected.T, 1e-10)


# The target.


@composites
def test_target_largest_explains_the_largest_logit(composite: str) -> None:
    """As if the response had been the reader's most likely tokens, but reading the real ones."""
    model, tokens = model_of(False), random_tokens(20, 6)
    n = len(tokens.prompt_ids)
    best = logits_of(model, tokens.ids)[0, n - 1 :].max(-1)
    assert best.indices.tolist() != list(tokens.response_ids)
    with relevance_mode(model, composite, target="largest") as flow:
        matrix = flow.pull(tokens, all_columns=True)
        assert_close(flow.explained_logits, best.values, 1e-6)
        weights = random_weights(1, n)
        assert_close(flow.push(tokens, weights), weights @ matrix[:, :n].T, 1e-10)
    for j, token in enumerate(best.indices.tolist()):
        prefix = Tokens(tokens.prompt_ids, (*tokens.response_ids[:j], token))
        row = reference(model, prefix.prompt_ids, prefix.response_ids, composite).relevance[-1]
        assert_close(matrix[j, : n + j], row, 1e-10)


# Errors.


@pytest.mark.parametrize("name", ["LRP", "", "attn-lrp"])
def test_unknown_composite(llama, name: str) -> None:
    with pytest.raises(InputError, match="paper, attnlrp, cp_lrp"), relevance_mode(llama, name):
        pass


def test_unknown_target(llama) -> None:
    named = pytest.raises(InputError, match=r"'smallest'.*response, largest")
    with named, relevance_mode(llama, target="smallest"):
        pass


@pytest.mark.parametrize("shape", [(11,), (0, 11), (1, 1, 11)])
def test_push_refuses_weights_that_are_not_tangents(llama, tokens: Tokens, shape: tuple[int, ...]) -> None:
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match="weights must be"):
        flow.push(tokens, torch.zeros(shape))


@pytest.mark.parametrize("width", [1, 10, 12, 17])
def test_push_refuses_weights_of_another_width(llama, tokens: Tokens, width: int) -> None:
    """(T, n) or (T, N), here 11 or 16: anything else would be cut or filled silently."""
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match="weights must be"):
        flow.push(tokens, torch.ones(1, width))


@pytest.mark.parametrize("shape", [(6,), (1, 5), (1, 7), (1, 1, 6)])
def test_pull_refuses_weights_of_another_width(llama, tokens: Tokens, shape: tuple[int, ...]) -> None:
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match="weights must be"):
        flow.pull(tokens, torch.ones(shape))


def test_pull_tells_the_logits_of_its_own_tokens(llama) -> None:
    """Also where its replay was kept from before another push."""
    one, other = random_tokens(11, 6), random_tokens(11, 3)
    with relevance_mode(llama) as flow:
        flow.push(one, random_weights(1, 11), keep=True)
        expected = flow.explained_logits
        flow.push(other, random_weights(1, 11))
        flow.pull(one)
        assert torch.equal(flow.explained_logits, expected)


def test_small_cotangents_survive_half_precision() -> None:
    model = tiny_llama(dtype=torch.float16)
    tokens, rows = random_tokens(20, 5), random_weights(2, 5)
    with relevance_mode(model) as flow:
        expected = flow.pull(tokens, rows)
        assert_close(flow.pull(tokens, rows * 2.0**-20) * 2.0**20, expected, 1e-6)


def test_weights_may_be_integers(llama) -> None:
    tokens = random_tokens(11, 6)
    tangents, rows = torch.randint(-3, 4, (2, 11)), torch.randint(-3, 4, (2, 6))
    with relevance_mode(llama) as flow:
        assert torch.equal(flow.push(tokens, tangents), flow.push(tokens, tangents.double()))
        assert torch.equal(flow.pull(tokens, rows), flow.pull(tokens, rows.double()))
