"""Invariants 2 to 5 of the design: adjoint, push = pull, references, causality; layers and targets."""

from __future__ import annotations

import pytest
import torch

from lrp4rag.lrp import ATTNLRP, COMPOSITES, TARGETS, Composite, Target, relevance_mode, rules
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.lrp.checks import (
    assert_close,
    composites,
    llama_of,
    model_of,
    random_weights,
    some_families,
    variants,
)
from tests.lrp.detached import reference_rows
from tests.tiny import Tokens, random_tokens, tiny_llama

TOKENS, BLOCK = random_tokens(11, 6), 16
# (n, t): one prompt token, one response token, and N = n + t - 1 at and around one and two blocks of queries.
LENGTHS = [(1, 1), (1, 5), (9, 1), (12, 4), (12, 5), (13, 5), (24, 11)]


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is a matter of speed, and may change; several blocks must be seen by these lengths."""
    monkeypatch.setattr(rules, "QUERY_BLOCK", BLOCK)


@composites
@variants
@pytest.mark.parametrize(("n", "t"), LENGTHS)
def test_push_and_pull_equal_the_reference(composite: str, biased: bool, n: int, t: int) -> None:
    """And R_response is one tangent, R_prompt one cotangent; later columns are 0 exactly, others are not."""
    tokens, u, v = random_tokens(n, t), random_weights(2, n + t - 1), random_weights(1, t, seed=2)
    logits, expected = reference_rows(llama_of(biased), tokens, composite)
    with relevance_mode(llama_of(biased), composite) as flow:
        matrix = flow.pull(tokens, all_columns=True)
        assert_close(matrix, expected, 1e-10)
        assert_close(flow.explained_logits, logits, 1e-10)
        assert torch.equal(flow.pull(tokens), matrix[:, :n])
        pushed, pulled = flow.push(tokens, u), flow.pull(tokens, v, all_columns=True)
        assert_close(pushed, u @ expected.T, 1e-10)
        assert_close(flow.push(tokens, u[:, :n]), u[:, :n] @ expected[:, :n].T, 1e-10)
        by_push = flow.push(tokens, torch.full((1, n), 1 / n, dtype=torch.float64))[0]
        by_pull = flow.pull(tokens, torch.full((1, t), 1 / t, dtype=torch.float64))[0]
        columns = flow.push(tokens, torch.eye(n + t - 1, dtype=torch.float64)).T
    assert_close(by_push, matrix[:, :n].mean(1), 1e-10)
    assert_close(by_pull, matrix[:, :n].mean(0), 1e-10)
    adjoint = (v * pushed[:1]).sum() - (pulled * u[:1]).sum()
    assert abs(float(adjoint)) <= 1e-10 * float((v * pushed[:1]).abs().sum())
    for one in (matrix, columns):
        for j in range(t):  # z_j is read at position n + j - 1
            assert not one[j, n + j :].any()
            assert one[j, n + j - 1] != 0
    if composite == "cp_lrp" and not biased:
        assert_close(columns.sum(1), logits, 1e-10)
    elif n + t > 30:  # the test above is known to see a difference
        assert not torch.allclose(columns.sum(1), logits, rtol=0.05)


def test_a_composite_is_a_name_or_a_record_and_attnlrp_by_default(llama, tokens: Tokens) -> None:
    own = Composite("own", 0.5, "frozen", "ratio", "jacobian")
    with relevance_mode(llama, own) as flow:
        relevance = flow.pull(tokens)
        assert flow.composite is own
    with relevance_mode(llama) as flow:
        assert torch.equal(flow.pull(tokens), relevance)
        assert flow.composite is ATTNLRP is COMPOSITES["attnlrp"]
        assert flow.target == "response"


def test_cotangents_with_zeros_at_the_end_are_cut_short_correctly(llama) -> None:
    """Pull stops at the last row asked for; also where no row, or only the first, is asked for."""
    tokens = random_tokens(20, 6)
    with relevance_mode(llama) as flow:
        matrix = flow.pull(tokens, all_columns=True)
        for shown in range(7):
            weights = random_weights(2, 6)
            weights[:, shown:] = 0
            difference = flow.pull(tokens, weights, all_columns=True) - weights @ matrix
            assert difference.abs().max() <= 1e-12 * matrix.abs().max()


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


@some_families
@composites
@pytest.mark.parametrize("layer", [1, 2])
def test_push_and_pull_at_a_layer_agree_with_the_reference(name: str, composite: str, layer: int) -> None:
    model, tokens, weights = model_of(name), random_tokens(17, 5), random_weights(2, 21)
    expected = reference_rows(model, tokens, composite, layer=layer)[1]
    with relevance_mode(model, composite) as flow:
        assert_close(flow.pull(tokens, all_columns=True, layer=layer), expected, 1e-10)
        assert_close(flow.push(tokens, weights, layer=layer), weights @ expected.T, 1e-10)


@pytest.mark.parametrize("name", ["LRP", "", "attn-lrp"])
def test_unknown_composite(llama, name: str) -> None:
    with pytest.raises(InputError, match="paper, attnlrp, cp_lrp"), relevance_mode(llama, name):
        pass


NOTHING, ONES = Tokens((1, 2), ()), torch.ones
REFUSED = [
    *((lambda flow, layer=layer: flow.push(TOKENS, ONES(1, 11), layer=layer), "0 to 2") for layer in (-1, 3)),
    *((lambda flow, layer=layer: flow.pull(TOKENS, layer=layer), "0 to 2") for layer in (-1, 3)),
    # Tangents are (T, n) or (T, N), here 11 or 16, cotangents (C, t): others would be cut or filled.
    *(
        (lambda flow, shape=shape: flow.push(TOKENS, ONES(shape)), "weights must be")
        for shape in ((11,), (0, 11), (1, 1, 11), (1, 10), (1, 12), (1, 17))
    ),
    *(
        (lambda flow, shape=shape: flow.pull(TOKENS, ONES(shape)), "weights must be")
        for shape in ((6,), (1, 5), (1, 7), (1, 1, 6))
    ),
    *(
        (
            lambda flow, shape=shape: flow.prefix((1, 2), ONES(2, 2)).extend((1, 2, 3), ONES(shape)),
            r"\(2, 3\)",
        )
        for shape in ((2, 1), (1, 3), (2, 4))
    ),
    (lambda flow: flow.push(NOTHING, ONES(1, 2)), "response has no tokens"),
    (lambda flow: flow.pull(NOTHING), "response has no tokens"),
    (lambda flow: flow.push_batch([NOTHING], [ONES(1, 2)]), "response has no tokens"),
    (lambda flow: flow.prefix((1, 2), ONES(1, 2)).push(()), "response has no tokens"),
    (lambda flow: flow.prefix((), ONES(1, 0)), "at least one token"),
    (lambda flow: flow.push_batch([TOKENS], [ONES(1, 11)], at_once=0), "at_once must be 1"),
    (lambda flow: flow.push_shared([TOKENS, random_tokens(6, 2)], ONES(1, 11)), "one prompt, not 2"),
]


@pytest.mark.parametrize(("run", "message"), REFUSED)
def test_what_cannot_be_is_refused(llama, run, message: str) -> None:
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match=message):
        run(flow)


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


# Other targets than the mode's.

CONTRAST = Target("response", (3, 50, 96, 0, 41, 7))


@pytest.mark.parametrize("target", [*TARGETS, CONTRAST], ids=str)
@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_a_pull_for_a_target_is_that_of_a_mode_with_it(name: str, target: str | Target) -> None:
    weights = random_weights(2, 6)
    with relevance_mode(model_of(name), target=target) as flow:
        expected = flow.pull(TOKENS, weights, all_columns=True)
    with relevance_mode(model_of(name)) as flow:
        assert_close(flow.pull(TOKENS, weights, all_columns=True, target=target), expected, 1e-10)


def test_a_pull_for_a_target_leaves_the_mode_s_own_as_it_is(llama) -> None:
    with relevance_mode(llama) as flow:
        before = flow.pull(TOKENS)
        flow.pull(TOKENS, target=CONTRAST)
        assert torch.equal(flow.pull(TOKENS), before)
        assert flow.target == "response"


def test_a_pull_for_a_target_reads_a_kept_replay(llama) -> None:
    replays = []
    with relevance_mode(llama) as flow:
        expected = flow.pull(TOKENS, target=CONTRAST)
        flow.push(TOKENS, ONES(1, 11), keep=True)
        handle = llama.model.layers[0].register_forward_hook(lambda *_: replays.append(1))
        actual, own = flow.pull(TOKENS, target=CONTRAST), flow.pull(TOKENS)
        handle.remove()
        flow.forget()
        assert_close(actual, expected, 1e-10)
        assert_close(own, flow.pull(TOKENS), 1e-10)
    assert replays == []


def test_a_pull_for_a_target_at_a_layer(llama) -> None:
    with relevance_mode(llama, target=CONTRAST) as flow:
        expected = flow.pull(TOKENS, layer=1)
    with relevance_mode(llama) as flow:
        assert_close(flow.pull(TOKENS, layer=1, target=CONTRAST), expected, 1e-10)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("other", "unknown target 'other'"),
        (Target("response", (1, 2)), "one for each of 6, not 2"),
        (Target("response", (97,)), "0 to 96"),
    ],
    ids=range(3),
)
def test_a_pull_for_what_is_no_target_is_refused(llama, target: str | Target, message: str) -> None:
    with relevance_mode(llama) as flow, pytest.raises(LRP4RAGError, match=message):
        flow.pull(TOKENS, target=target)
