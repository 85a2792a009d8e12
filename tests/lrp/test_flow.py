"""What a flow keeps and refuses; that its relevance is right, `test_families` tests."""

from __future__ import annotations

import pytest
import torch

from lrp4rag.lrp import ATTNLRP, COMPOSITES, Composite, relevance_mode
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.lrp.checks import assert_close, random_weights
from tests.tiny import Tokens, random_tokens, tiny_llama

TOKENS = random_tokens(11, 6)


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
    (lambda flow: flow.explained_logits, "nothing was replayed"),
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
