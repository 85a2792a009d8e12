"""Units: every token is in exactly one, so relevance adds up to the same at every granularity."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.lrp.units import grouped, prompt_units, response_units
from lrp4rag.reader.encoding import Encoded, encode
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


def test_words_by_hand() -> None:
    # Tokens with their leading space, a word of two tokens, a line break of its own, a control token.
    encoded = hand_made("Ab cdef.\n gh", ((0, 0), (0, 2), (2, 5), (5, 8), (8, 9), (9, 12)))
    units = prompt_units(encoded, "word")
    assert [unit.label for unit in units] == ["Ab", "cdef.", "gh"]
    assert [unit.tokens for unit in units] == [(0, 1), (2, 3, 4), (5,)]


def test_a_token_over_two_words_goes_where_most_of_it_is() -> None:
    encoded = hand_made("a bcd e", ((0, 4), (4, 7)))  # "a bc" and "d e"
    assert [unit.tokens for unit in prompt_units(encoded, "word")] == [(), (0, 1), ()]


def test_sentences_by_hand() -> None:
    encoded = hand_made("One. Two words.\nThree", ((0, 3), (3, 4), (4, 8), (8, 15), (15, 16), (16, 21)))
    units = prompt_units(encoded, "sentence")
    assert [unit.label for unit in units] == ["One.", "Two words.", "Three"]
    assert [unit.tokens for unit in units] == [(0, 1), (2, 3, 4), (5,)]


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
        own = response_units(encoded, granularity)
        assert sorted(token for unit in own for token in unit.tokens) == list(
            range(len(encoded.response_ids))
        )


def test_sums_by_hand() -> None:
    encoded = hand_made("Ab cdef.\n gh", ((0, 0), (0, 2), (2, 5), (5, 8), (8, 9), (9, 12)))
    values = np.array([1, 2, 4, 8, 16, 32], dtype=np.float32)
    assert grouped(values, prompt_units(encoded, "word")).tolist() == [3, 28, 32]


def test_bad_input() -> None:
    encoded = encode(bridge_example(), tiny_tokenizer())
    with pytest.raises(InputError, match="no passages"):
        response_units(encoded, "passage")
    with pytest.raises(InputError, match=r"'letter'.*token, word, sentence, passage"):
        prompt_units(encoded, "letter")
    with pytest.raises(InputError, match="the values 3"):
        grouped(np.zeros(3, dtype=np.float32), prompt_units(encoded, "word"))
