import math
import time

import pytest

from lrp4rag.claims.compare import Comparer, Comparison, Slots
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import places_of

TABLE = """Robots compared

| Model | Battery | Charge |
|---|---|---|
| Brio 3 | 22 minutes | 2 hours |
| Brio 5 | 38 minutes | 3 hours |
"""
LISTS = """Brio 3:
- runs for 22 minutes
- charges in 2 hours

Brio 5:
- runs for 38 minutes
- charges in 3 hours"""
PRONOUNS = "The Brio 3 is small. It runs for 22 minutes. The Brio 5 is large. It runs for 38 minutes."
QUESTION = "How long does the Brio 3 run?"


def slots_of(question: str, passages: list[str], response: str) -> list[Slots]:
    return Comparer(question, Index(passages)).compare(places_of([response]))


def compared(question: str, passages: list[str], response: str) -> list[Comparison]:
    slots = slots_of(question, passages, response)
    return [comparison for sentence in slots for comparison in sentence.comparisons()]


def comparison_of(question: str, passages: list[str], response: str, text: str) -> Comparison:
    return next(item for item in compared(question, passages, response) if item.text == text)


@pytest.mark.parametrize("passage", [TABLE, LISTS, PRONOUNS])
@pytest.mark.parametrize("response", ["The Brio 3 runs for {}.", "It runs for {}.", "{}."])
def test_value_of_another_model_is_contradicted(passage, response):
    wrong = comparison_of(QUESTION, [passage], response.format("38 minutes"), "38 minutes")
    assert (wrong.status, wrong.rival_text) == ("contradicted", "22 minutes")
    assert wrong.rival is not None
    assert passage[slice(*wrong.rival)] == "22 minutes"
    right = comparison_of(QUESTION, [passage], response.format("22 minutes"), "22 minutes")
    assert (right.status, right.rival_text) == ("supported", "22 minutes")


PLANTS = [
    "The Quarne works made 4,200 tonnes of glass in 2019 and 5,100 tonnes in 2021.",
    "The bridge was designed by Anna Kern and built by Piet Harmsen. It opened on 3 May 1932.",
    "Parcels are kept at the depot for 10 days. Complaints must be sent within 3 weeks.",
]


@pytest.mark.parametrize(
    ("response", "text", "status"),
    [
        ("The bridge was designed by Anna Kern.", "Anna Kern", "supported"),
        ("It opened on 3 May 1932.", "3 May 1932", "supported"),
        ("The bridge opened on 5 May 1932.", "5 May 1932", "contradicted"),
        ("Parcels are kept at the depot for 12 days.", "12 days", "contradicted"),
        ("Parcels are kept at the depot for 3 weeks.", "3 weeks", "contradicted"),
        ("Complaints must be sent within 21 days.", "21 days", "supported"),
        ("Its paint weighs 70 kg.", "70 kg", "unsupported"),
        ("The works made 900 tonnes more in 2021 than in 2019.", "900 tonnes", "computed"),
    ],
)
def test_status(response, text, status):
    found = comparison_of("What do we know?", PLANTS, response, text)
    assert found.status == status
    assert response[found.start : found.end] == text


def test_right_year_fits_better_than_the_other_one():
    right = comparison_of("", PLANTS, "In 2021, the works made 5,100 tonnes of glass.", "5,100 tonnes")
    wrong = comparison_of("", PLANTS, "In 2021, the works made 4,200 tonnes of glass.", "4,200 tonnes")
    assert wrong.features["near gap"] > right.features["near gap"]


def test_number_below_a_unit_in_the_head_of_its_column_is_supported():
    table = "Prices in euros\n\n| Service | Car | SUV |\n|---|---|---|\n| change of wheels | 29 | 38 |\n"
    found = comparison_of("", [table], "A change of wheels costs 38 euros for an SUV.", "38 euros")
    assert found.status == "supported"


def test_range_is_supported_as_a_whole():
    passage = "Store the reagent at 2 to 8 \u00b0C for 14 days."
    statuses = {item.status for item in compared("", [passage], "Keep it at 2 to 8 \u00b0C for two weeks.")}
    assert statuses == {"supported"}


def test_sentence_of_a_sibling_rests_on_another_subject():
    passages = [
        "About the Brio 3. The case is made of steel and may be washed.",
        "About the Brio 5. The blades must be oiled every week by hand.",
    ]
    slots = slots_of("How do I clean the Brio 3?", passages, "The blades must be oiled every week.")
    found = slots[0].subject()
    assert (found["away"], found["siblings"], found["asked at home"]) == (1.0, 1.0, 0.0)


def test_word_from_another_place_is_behind_those_of_its_own():
    passages = ["The card covers the bus and the museum.", "At night the tram replaces all trains."]
    responses = ("The card covers the tram.", "The card covers the bus.")
    behind, own = (slots_of("", passages, response)[0].clauses()["words behind"] for response in responses)
    assert behind > own


@pytest.mark.parametrize("passages", [[], [""], ["..."]])
@pytest.mark.parametrize("response", ["", "...", "It costs 5 euros.", "| a | b |", "\u00ad\u200b"])
def test_nothing_to_compare_with_or_compare(passages, response):
    assert all(item.status != "supported" for item in compared("", passages, response))


def test_features_are_finite_or_not_a_number_and_always_the_same():
    response = "Anna Kern designed it in 1932. The Brio 3 runs for 5 minutes. Yes."
    slots = slots_of(QUESTION, [*PLANTS, TABLE, LISTS], response)
    rows = [item.features for sentence in slots for item in sentence.comparisons()]
    assert len({frozenset(row) for row in rows}) == 1
    sentences = [
        {**sentence.clauses(), **sentence.subject([other.passages for other in slots[:number]])}
        for number, sentence in enumerate(slots)
    ]
    assert len({frozenset(row) for row in sentences}) == 1
    assert not any(math.isinf(value) for row in [*rows, *sentences] for value in row.values())


def test_long_prompts_take_a_time_linear_in_their_length():
    passages = [f"Model Z{k} costs {k + 10} euros and weighs {k % 7 + 2} kg." for k in range(600)]
    comparer = Comparer("What does model Z5 cost?", Index(passages))
    start = time.process_time()
    (slots,) = comparer.compare(places_of(["Model Z5 costs 15 euros."]))
    found = slots.comparisons()
    assert time.process_time() - start < 5
    assert {item.status for item in found} == {"supported"}


@pytest.mark.parametrize(
    ("passage", "response", "text", "rival"),
    [
        ("It was built between 1871 and 1873.", "It was built between 1871 and 1879.", "1879", "1873"),
        (
            "The Marlow light stands on the northern tip of Gull Island.",
            "The Marlow light stands on the northern tip of Seal Island.",
            "Seal Island",
            "Gull Island",
        ),
    ],
)
def test_the_rival_is_one_that_the_response_does_not_say(passage, response, text, rival) -> None:
    (slots,) = Comparer("", Index([passage])).compare(places_of([response]))
    (found,) = [one for one in slots.comparisons() if one.text == text]
    assert (found.status, found.rival_text) == ("contradicted", rival)
