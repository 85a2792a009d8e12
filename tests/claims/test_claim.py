import pytest

from lrp4rag.claims.claim import Claim, are_siblings, claims_of, names_in
from lrp4rag.claims.find import find_values
from lrp4rag.claims.places import Place, places_of


def claims(response: str, question: str = "") -> list[Claim]:
    return claims_of(places_of([response]), find_values(question))


def subjects(response: str, question: str = "") -> list[tuple[list[str], str]]:
    found = (claim.subject for claim in claims(response, question))
    return [([name.text for name in subject.names], subject.origin) for subject in found]


@pytest.mark.parametrize(
    ("response", "question", "expected"),
    [
        ("The Brio 3 runs for 22 minutes.", "", [(["Brio 3"], "clause")]),
        (
            "The Brio 3 is small. It runs for 22 minutes.",
            "",
            [(["Brio 3"], "clause"), (["Brio 3"], "before")],
        ),
        ("It runs for 22 minutes.", "How long does the Brio 3 run?", [(["Brio 3"], "question")]),
        ("22 minutes.", "How long does it run?", [([], "")]),
        ("", "How long does the Brio 3 run?", []),
    ],
)
def test_subject_stands_in_the_clause_or_before_it_or_in_the_question(response, question, expected):
    assert subjects(response, question) == expected


def test_two_models_in_one_sentence_are_two_claims_with_their_own_values():
    found = claims("The Brio 3 runs for 22 minutes, and the Brio 5 runs for 38 minutes.")
    assert [[value.text for value in claim.values] for claim in found] == [
        ["Brio 3", "22 minutes"],
        ["Brio 5", "38 minutes"],
    ]


def test_offsets_are_those_of_the_response():
    response = "Hello. In 2021, the Brio 3 cost 40 euros; it costs 45 euros today."
    found = claims(response)
    assert [response[claim.start : claim.end] for claim in found] == [claim.text for claim in found]
    items = [item for claim in found for item in claim.values]
    assert [response[item.start : item.end] for item in items] == [item.text for item in items]
    words = [token for claim in found for token in claim.tokens]
    assert [response[token.start : token.end].lower() for token in words] == [token.word for token in words]


@pytest.mark.parametrize(
    "sentence",
    [
        "From 1887 she studied at Uldheim, where women were admitted; she took her degree in 1892.",
        "Sizes S/M (L/XL): 9 (12) balls in slate, 2 (3) balls in foam.",
        "Her younger sister Louisa, who is often confused with her, exhibited in 1875.",
        "- storage, per season: 46 euros",
    ],
)
def test_no_value_gets_lost_between_clauses(sentence):
    kinds = ("quantity", "date", "time", "period", "name")
    expected = [value.text for value in find_values(sentence) if value.kind in kinds]
    parts = Place(0, 0, len(sentence), sentence).parts
    assert sorted(value.text for part in parts for value in part.values) == sorted(expected)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("the Brio 3", "the Brio 5", True),
        ("the Brio 3", "the Brio 3", False),
        ("the Brio 3", "Anna Kern", False),
        ("Lower Linn", "Upper Linn", True),
    ],
)
def test_siblings_share_a_word_and_are_others(first, second, expected):
    names, others = (names_in(find_values(f"We know {text}.")) for text in (first, second))
    assert are_siblings(names, others) is expected
