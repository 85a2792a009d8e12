"""Where the surroundings of a statement are in passages, and which values stand there."""

from __future__ import annotations

import pytest

from lrp4rag.claims import find_values
from lrp4rag.claims.index import NEIGHBOUR, Index, Occurrence, rivals, support
from lrp4rag.claims.value import Value
from lrp4rag.claims.words import content_words, stem

PASSAGES = (
    "The pool opens at 7 am. Children swim free until the age of 6 years. A locker costs 2 euros.",
    "Parental leave lasts 16 weeks. Apply to the office in Turin.\nSick pay ends after 26 weeks.",
    "",
)


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PASSAGES)


def occurrences(index: Index, statement: str) -> tuple[Value, list[Occurrence]]:
    value = next(one for one in find_values(statement) if one.kind == "quantity")
    around = statement[: value.start] + statement[value.end :]
    return value, index.occurrences(value, index.similarities(content_words(around)))


def test_places_are_sentences_with_the_characters_of_their_passage(index: Index) -> None:
    assert [place.passage for place in index.places] == [0, 0, 0, 1, 1, 1]
    for place in index.places:
        for value in place.values:
            assert PASSAGES[place.passage][value.start : value.end] == value.text
            assert place.start <= value.start < value.end <= place.end


@pytest.mark.parametrize(
    ("statement", "says", "supported"),
    [
        ("Parental leave lasts 18 weeks.", "16 weeks", False),
        ("Parental leave lasts 112 days.", "16 weeks", True),
        ("Sick pay ends after half a year.", "26 weeks", True),
        ("Sick pay ends after twenty-six weeks.", "26 weeks", True),
        ("Children swim free until 6 years.", "6 years", True),
        ("A locker costs 3 euros.", "2 euros", False),
        ("A locker costs \u20ac2.", "2 euros", True),
    ],
)
def test_the_most_similar_place_tells_what_the_passages_say(
    index: Index, statement: str, says: str, supported: bool
) -> None:
    value, found = occurrences(index, statement)
    assert found[0].value.text == says
    assert (support(value, found) == found[0].similarity) is supported
    assert (found[0] in rivals(value, found)) is not supported


def test_occurrences_are_sorted_and_comparable(index: Index) -> None:
    value, found = occurrences(index, "Parental leave lasts 18 weeks.")
    similarities = [one.similarity for one in found]
    assert similarities == sorted(similarities, reverse=True)
    assert {one.value.unit for one in found} == {value.unit}


def test_rivals_hold_each_value_once() -> None:
    index = Index(["Rest for 2 weeks. Sleep for 14 days. Walk for 3 days."])
    value, found = occurrences(index, "Run for 4 days.")
    assert sorted(one.value.text for one in rivals(value, found)) == ["2 weeks", "3 days"]


def test_a_rare_word_counts_more_than_a_frequent_one(index: Index) -> None:
    assert index.rarity("unheard") > index.rarity(stem("parental")) > index.rarity("week") > 0


def test_similarity_is_the_weighted_share_of_words(index: Index) -> None:
    assert index.similarities([]) == [0.0] * 6
    assert index.similarities(["locker"]) == [0, NEIGHBOUR, 1, 0, 0, 0]


def test_nothing_supports_a_value_that_no_passage_has() -> None:
    value, found = occurrences(Index([]), "It costs 3 euros.")
    assert found == []
    assert support(value, found) == 0


def test_similarities_do_not_depend_on_the_order_of_the_words() -> None:
    index = Index(["Ada rows. Ben rows and swims. Cleo rows, swims and dives. Dora dives, climbs and sings."])
    words = ["row", "swim", "dive", "climb", "sing", "fly", "ski", "read"]
    orders = [words[k:] + words[:k] for k in range(len(words))]
    assert len({tuple(index.similarities(order)) for order in orders}) == 1
