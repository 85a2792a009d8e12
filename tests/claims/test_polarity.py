"""Negations, words with an opposite, references to passages, and statements of absence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lrp4rag.claims.find import find_values
from lrp4rag.claims.polarity import (
    OPPOSITES,
    find_absence,
    find_polarity,
    find_references,
    opposed,
    opposites,
)
from lrp4rag.claims.value import Value


@pytest.mark.parametrize(
    ("text", "written", "key"),
    [
        ("You must not smoke", "must not", ("may", 1)),
        ("You mustn't smoke", "mustn't", ("may", 1)),
        ("You mustn\u2019t smoke", "mustn\u2019t", ("may", 1)),
        ("You cannot smoke", "cannot", ("may", 1)),
        ("You can't smoke", "can't", ("may", 1)),
        ("You can smoke", "can", ("may", 0)),
        ("It won't do", "won't", ("will", 1)),
        ("It isn't so", "isn't", ("not", 1)),
        ("but not so", "not", ("not", 1)),
        ("You need not pay", "need not", ("need to", 1)),
        ("no more than ten", "no more than", ("at most", 0)),
        ("not more than ten", "not more than", ("at most", 0)),
        ("up to ten", "up to", ("at most", 0)),
        ("no fewer than ten", "no fewer than", ("at least", 0)),
        ("no later than five", "no later than", ("no later than", 0)),
        ("BEFORE use", "BEFORE", ("before", 0)),
        ("unless told", "unless", ("unless", 0)),
    ],
)
def test_a_word_has_one_key_however_it_is_written(text: str, written: str, key: tuple[str, int]) -> None:
    (found,) = find_polarity(text)
    assert (found.text, found.key) == (written, key)


@pytest.mark.parametrize("text", ["It is so", "They did", "the left one", "knot and mayor", "on the roof"])
def test_frequent_words_are_no_values_alone(text: str) -> None:
    assert list(find_polarity(text)) == []


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("must not", ("must",)),
        ("cannot", ("can",)),
        ("Can't", ("Can",)),
        ("won't", ("will",)),
        ("need not", ("need to",)),
        ("not", ("",)),
        ("before", ("after",)),
        ("Before", ("After",)),
        ("may", ("may not", "must")),
        ("can", ("cannot",)),
        ("up to", ("at least",)),
    ],
)
def test_opposites_are_written_as_the_word_is(text: str, others: tuple[str, ...]) -> None:
    (found,) = find_polarity(text)
    assert opposites(found) == others


def test_opposites_are_mutual_opposed_and_of_one_family() -> None:
    for word, others in OPPOSITES.items():
        for other in others:
            assert word in OPPOSITES[other]
            values = [value for text in (word, other) for value in find_polarity(text)]
            assert len({value.unit for value in values}) <= 1, (word, other)
            assert len(values) < 2 or opposed(*values), (word, other)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("see Passage 2", (2,)),
        ("passages 1 and 3 say", (1, 3)),
        ("passages 3, 1 and 2", (1, 2, 3)),
        ("passages 1-3", (1, 2, 3)),
        ("Passage #4", (4,)),
        ("as stated [2].", (2,)),
        ("as stated [1, 3].", (1, 3)),
    ],
)
def test_a_reference_has_the_numbers_of_its_passages(text: str, numbers: tuple[int, ...]) -> None:
    (found,) = find_references(text)
    assert found.key == numbers


@pytest.mark.parametrize("text", ["the passage", "passage 12345", "[x]", "[12345678]", "passages 9-1"])
def test_other_brackets_and_passages_are_no_references(text: str) -> None:
    assert list(find_references(text)) == []


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("The passages do not mention a fee.", "do not mention"),
        ("Passage 2 doesn't explicitly specify it.", "doesn't explicitly specify"),
        ("The documents do not say when.", "do not say"),
        ("The provided text itself does not contain it.", "does not contain"),
        ("Unable to answer based on given passages.", "Unable to answer"),
        ("There is no information on this.", "no information"),
        ("There is no relevant information.", "no relevant information"),
        ("The fee is not stated.", "is not stated"),
        ("It is not given in the passages.", "is not given in the passages"),
        ("This cannot be answered.", "cannot be answered"),
        ("None of the passages has it.", "None of the passages"),
        ("I couldn\u2019t find it.", "couldn\u2019t find"),
    ],
)
def test_a_statement_of_absence_is_one_value(text: str, written: str) -> None:
    (found,) = find_absence(text)
    assert found.text.endswith(written)
    assert found in find_values(text)


@pytest.mark.parametrize(
    "text",
    [
        "The warranty does not cover damage.",
        "It is not given to children.",
        "You cannot find parking.",
        "They do not offer refunds.",
        "The plan does not include meals.",
    ],
)
def test_a_negation_of_a_fact_is_no_absence(text: str) -> None:
    assert list(find_absence(text)) == []


def polarity(text: str) -> Value:
    (found,) = find_polarity(text)
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("can", "cannot"),
        ("may", "cannot"),  # which stands for "may not"
        ("will", "won't"),
        ("before", "after"),
        ("Before", "AFTER"),
        ("until", "after"),
        ("at least", "at most"),
        ("up to", "at least"),
        ("all", "none"),
        ("include", "exclude"),
        ("may", "must"),
        ("optional", "mandatory"),
        ("required", "voluntary"),
    ],
)
def test_opposite_words_are_opposed(one: str, other: str) -> None:
    assert opposed(polarity(one), polarity(other))
    assert opposed(polarity(other), polarity(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("can", "can"),
        ("cannot", "can't"),
        ("may", "can"),
        ("must not", "may not"),
        ("before", "until"),
        ("before", "later"),
        ("all", "never"),
        ("can", "must"),
    ],
)
def test_other_words_are_not_opposed(one: str, other: str) -> None:
    assert not opposed(polarity(one), polarity(other))
    assert not opposed(polarity(other), polarity(one))


@pytest.mark.parametrize("kind", ["name", "quantity", "date"])
def test_only_polarity_words_are_opposed(kind: str) -> None:
    other = replace(polarity("after"), kind=kind)
    assert not opposed(polarity("before"), other)
    assert not opposed(other, polarity("before"))
