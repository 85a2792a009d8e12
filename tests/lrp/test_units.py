"""Units: every token is in exactly one, so relevance adds up to the same at every granularity."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.units import between, grouped, prompt_units, response_units
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import Encoded, encode
from lrp4rag.util.errors import InputError
from tests.tiny import bridge_example, tiny_tokenizer


def hand_made(text: str, offsets: tuple[tuple[int, int], ...]) -> Encoded:
    return Encoded(
        prompt_ids=tuple(range(len(offsets))),
        response_ids=(1,),
        text=text,
        response="x",
        prompt_offsets=offsets,
        response_offsets=((0, 1),),
        segments=(0,) * len(offsets),
        segment_names=("template", "question"),
    )


WORDS = hand_made("Ab cdef.\n gh", ((0, 0), (0, 2), (2, 5), (5, 8), (8, 9), (9, 12)))
SENTENCES = hand_made("One. Two words.\nThree", ((0, 3), (3, 4), (4, 8), (8, 15), (15, 16), (16, 21)))
BOTH = hand_made("a bcd e", ((0, 4), (4, 7)))  # "a bc" and "d e"


@pytest.mark.parametrize(
    ("encoded", "granularity", "labels", "tokens"),
    [
        # Tokens with their leading space, a word of two tokens, a line break of its own, a control token.
        (WORDS, "word", ["Ab", "cdef.", "gh"], [(0, 1), (2, 3, 4), (5,)]),
        (SENTENCES, "sentence", ["One.", "Two words.", "Three"], [(0, 1), (2, 3, 4), (5,)]),
        # A token over two words goes where most of it is.
        (BOTH, "word", ["a", "bcd", "e"], [(), (0, 1), ()]),
    ],
)
def test_units_by_hand(encoded: Encoded, granularity: str, labels: list[str], tokens: list[tuple]) -> None:
    units = prompt_units(encoded, granularity)
    assert [(unit.label, unit.tokens) for unit in units] == list(zip(labels, tokens, strict=True))


@pytest.mark.parametrize("text", ["", "   \n"])
def test_a_text_without_words_is_one_unit(text: str) -> None:
    encoded = hand_made(text, tuple((k, k + 1) for k in range(len(text))))
    (unit,) = prompt_units(encoded, "word")
    assert unit.tokens == tuple(range(len(text)))


@pytest.mark.parametrize("granularity", ["token", "word", "sentence", "passage"])
def test_every_token_is_in_one_unit_and_the_sum_stays(granularity: str) -> None:
    example = bridge_example(response="It opened in 1900. A café №0 stands there.\n\nYes.")
    encoded = encode(example, tiny_tokenizer())
    values = np.random.default_rng(0).normal(size=(3, len(encoded.prompt_ids))).astype(np.float32)
    units = prompt_units(encoded, granularity)
    members = sorted(token for unit in units for token in unit.tokens)
    assert members == list(range(len(encoded.prompt_ids)))
    result = grouped(values, units)
    assert result.shape == (3, len(units))
    np.testing.assert_allclose(result.sum(-1), values.sum(-1), rtol=1e-5)
    np.testing.assert_allclose(grouped(values.T, units, axis=0), result.T)
    if granularity == "passage":
        assert [unit.label for unit in units] == list(encoded.segment_names)
        assert [set(unit.tokens) for unit in units] == [
            {i for i, segment in enumerate(encoded.segments) if segment == k} for k in range(len(units))
        ]
    else:
        own = [token for unit in response_units(encoded, granularity) for token in unit.tokens]
        assert sorted(own) == list(range(len(encoded.response_ids)))


def test_bad_input() -> None:
    encoded = encode(bridge_example(), tiny_tokenizer())
    with pytest.raises(InputError, match="no passages"):
        response_units(encoded, "passage")
    with pytest.raises(InputError, match=r"'letter'.*token, word, sentence, passage"):
        prompt_units(encoded, "letter")
    with pytest.raises(InputError, match="the values 3"):
        grouped(np.zeros(3, dtype=np.float32), prompt_units(encoded, "word"))


# Relevance between units is R* summed over their tokens, computed in the cheaper direction.


@pytest.mark.parametrize(
    ("response", "prompt"),
    [("token", "token"), ("word", "sentence"), ("sentence", "word"), ("sentence", "passage")],
)
def test_units_sum_the_matrix(tiny_reader: Reader, response: str, prompt: str) -> None:
    encoded = tiny_reader.encode(bridge_example(response="It was opened in 1900. A café stands there."))
    n = len(encoded.prompt_ids)
    with relevance_mode(tiny_reader.model) as flow:
        matrix = flow.pull(encoded, all_columns=True).double().numpy()
        logits = flow.explained_logits.double().numpy()
        result = between(flow, encoded, response=response, prompt=prompt)
    assert result.values.shape == (len(result.rows), len(result.columns))
    scale = np.abs(matrix).max()
    for k, row in enumerate(result.rows):
        chosen = list(row.tokens)
        for i, column in enumerate(result.columns):
            expected = matrix[np.ix_(chosen, list(column.tokens))].sum()
            assert abs(result.values[k, i] - expected) < 1e-4 * scale
        assert abs(result.own[k] - matrix[chosen, n:].sum()) < 1e-4 * scale
        assert result.logits[k] == pytest.approx(logits[chosen].sum(), rel=1e-4)


def test_it_costs_a_pass_for_each_unit_of_the_smaller_side(tiny_reader: Reader) -> None:
    """Seen in what is called: one pushed chunk for passages, one pull for sentences by words."""
    encoded = tiny_reader.encode(bridge_example(response="It was opened in 1900."))
    with relevance_mode(tiny_reader.model) as flow:
        calls = []
        push, pull = flow.push, flow.pull
        flow.push = lambda *args, **options: calls.append("push") or push(*args, **options)
        flow.pull = lambda *args, **options: calls.append("pull") or pull(*args, **options)
        between(flow, encoded, response="token", prompt="passage")
        between(flow, encoded, response="sentence", prompt="word")
    assert calls == ["push", "pull"]


def test_layers_and_targets_are_noted(tiny_reader: Reader) -> None:
    encoded = tiny_reader.encode(bridge_example())
    with relevance_mode(tiny_reader.model, "cp_lrp", target="response-mean") as flow:
        result = between(flow, encoded, layer=1)
    assert (result.composite, result.target, result.layer) == ("cp_lrp", "response-mean", 1)
    # cp_lrp conserves at every layer: prompt and earlier tokens together are the explained value.
    np.testing.assert_allclose(result.values.sum(1) + result.own, result.logits, rtol=1e-3, atol=1e-3)
