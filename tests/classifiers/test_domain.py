"""Which examples are unlike the training data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.classifiers.card import Range
from lrp4rag.classifiers.domain import FACETS, Unlike, ends_in, ranges, unlike
from lrp4rag.features.record import Record
from tests.features.records import random_record


@pytest.fixture(scope="module")
def trained() -> dict[str, Range]:
    return ranges(random_record(length, seed=length) for length in range(20, 60))


def told(trained: dict[str, Range], record: Record) -> tuple[Unlike, ...]:
    """Of a response of one sentence."""
    (found,) = unlike(trained, record)
    return found


def test_ranges_hold_what_was_learned_from_and_more(trained) -> None:
    assert set(trained) == set(FACETS)
    assert not any(told(trained, random_record(length, seed=length)) for length in range(20, 60))
    held = trained["response tokens"]
    assert held.low == pytest.approx(np.quantile(range(20, 60), 0.005) / 4)
    assert held.high == pytest.approx(np.quantile(range(20, 60), 0.995) * 2)


@pytest.mark.parametrize("length", [1, 4, 118, 500])
def test_another_length_is_named_and_decides(trained, length: int) -> None:
    *_, last = unlike(trained, random_record(length))  # a sentence that never ends is cut
    (found,) = last
    assert (found.facet, found.decides) == ("response tokens", True)
    assert f"the response's tokens: {length}, trained on 6 to 117" in found.words


@pytest.mark.parametrize(
    ("facet", "decides", "change"),
    [
        ("tokens per word", True, lambda one: {"response": one.response.replace(" ", "_")}),
        ("passages", False, lambda one: {"segment_names": one.segment_names[:3], "spans": one.spans[:3]}),
    ],
)
def test_another_language_decides_and_another_number_of_passages_does_not(
    trained, facet, decides, change
) -> None:
    record = random_record(30)
    encoded = replace(record.encoded, **change(record.encoded))
    (found,) = told(trained, replace(record, encoded=encoded))
    assert (found.facet, found.decides) == (facet, decides)


def tokens_per_word(response: str) -> float:
    """Of a response whose tokens are its characters."""
    record = random_record(3)
    offsets = tuple((k, k + 1) for k in range(len(response)))
    encoded = replace(record.encoded, response=response, response_offsets=offsets)
    whole = np.array([len(offsets)])
    (value,) = FACETS["tokens per word"].of(replace(record, encoded=encoded), whole)
    return float(value)


@pytest.mark.parametrize(
    ("more", "same"),
    [
        (" 15,000,000", True),
        (" parental.leave@hr.example-company.co.uk https://a.example/b?c=d", True),
        (" /usr/local/share/README_v2.md 9f86d081884c7d659a2feaa0c55ad015", True),
        (" $1,234,567.89 +1 (555) 010-9999", True),
        (" \U0001f389\U0001f389 \u2764\ufe0f \U0001f469\u200d\U0001f466", True),
        ("\U0001f389\U0001f44d\U0001f3fd", True),
        (" | --- | 12 | 2021-11-27 |", True),
        ("15000000", True),
        (" \u706f\u53f0\u306f\u5efa\u3066\u3089\u308c\u305f\u706f\u53f0", False),
        (" Gew\u00e4hrleistungsfrist", False),
        (" \u092a\u094d\u0930\u0915\u093e\u0936\u0938\u094d\u0924\u0902\u092d", False),
    ],
)
def test_numbers_and_emoji_are_no_language(more: str, same: bool) -> None:
    words = "It was sold in May last year"
    assert (tokens_per_word(words + more) == tokens_per_word(words)) is same


@pytest.mark.parametrize("response", ["15,000,000", "Oslo: 15,000,000,000", "\U0001f389" * 20, "..." * 9])
def test_of_few_letters_no_language_is_told(response: str) -> None:
    assert tokens_per_word(response) == 1


def test_a_facet_that_is_no_longer_known_is_passed_over(trained) -> None:
    assert not told({**trained, "colour": Range(low=0, high=1)}, random_record(30))


def test_what_is_too_likely_is_told_and_has_a_verdict(trained) -> None:
    """An answer that repeats a passage word for word is likely; one in a strange language is not."""
    (value,) = FACETS["surprise"].of(random_record(30), np.array([30]))
    for low, high, decides in ((value * 2, value * 3, False), (value / 3, value / 2, True)):
        (found,) = told({"surprise": Range(low=low, high=high)}, random_record(30))
        assert (found.facet, found.decides) == ("surprise", decides)


SENTENCES = "All is well here now. Nothing of this is so. This is the end of it."


def of_sentences() -> Record:
    return random_record(16, seed=3, text=SENTENCES)


def test_each_sentence_is_looked_at_with_what_came_before_it_only() -> None:
    """As if the response ended there."""
    record = of_sentences()
    ends = ends_in(record)
    assert ends.tolist() == [5, 10, 16]
    for name, facet in FACETS.items():
        values = facet.of(record, ends)
        for number, end in enumerate(ends):
            offsets = record.encoded.response_offsets[:end]
            encoded = replace(
                record.encoded,
                response=SENTENCES[: offsets[-1][1]],
                response_ids=record.encoded.response_ids[:end],
                response_offsets=offsets,
            )
            cut = replace(record, encoded=encoded, signals={"logprob": record["logprob"][:end]})
            assert ends_in(cut).tolist() == ends[: number + 1].tolist()
            np.testing.assert_array_equal(facet.of(cut, ends_in(cut)), values[: number + 1], err_msg=name)


def test_the_ranges_are_those_of_the_responses_up_to_each_of_their_sentences() -> None:
    held = ranges([of_sentences()])["response tokens"]
    low, high = np.quantile([5, 10, 16], (0.005, 0.995))
    assert (held.low, held.high) == (pytest.approx(low / 4), pytest.approx(high * 2))


def test_a_sentence_is_unlike_the_training_data_only_from_where_the_response_is() -> None:
    held = {"response tokens": Range(low=8, high=12)}
    few, inside, many = unlike(held, of_sentences())
    assert inside == ()
    assert "tokens: 5, trained on 8 to 12" in few[0].words
    assert "tokens: 16, trained on 8 to 12" in many[0].words


def test_a_response_without_a_sentence_is_unlike_nothing(trained) -> None:
    record = random_record(3)
    encoded = replace(record.encoded, response="   ")
    assert unlike(trained, replace(record, encoded=encoded)) == []
