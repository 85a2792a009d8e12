"""Sentences as the passages that deny them would have them."""

from __future__ import annotations

import pytest

from lrp4rag.claims.answer import Passages, compare_answer
from lrp4rag.claims.counterclaims import MOST, counter_claims
from lrp4rag.util.sentences import sentences_in


def wordings(passage: str, text: str) -> list[str]:
    """Those of all sentences of a text."""
    passages = Passages("", [passage])
    compared = compare_answer(passages, text, list(sentences_in(text)))
    return [one.words for each in compared for one in counter_claims(text, passages, each)]


@pytest.mark.parametrize(
    ("passage", "claim", "counter"),
    [
        (
            "The spray must not be used for more than 7 days.",
            "It may be used for more than 7 days.",
            "It may not be used for more than 7 days.",
        ),
        ("Children may be given the syrup.", "Children may not be given the syrup.", "Children may be"),
        (
            "Unused days can be carried over.",
            "Unused days can't be carried over.",
            "Unused days can be carried",
        ),
        (
            "Unused days cannot be carried over.",
            "Unused days can be carried over.",
            "Unused days cannot be carried over.",
        ),
        (
            "Cash advances bear interest.",
            "Cash advances never bear interest.",
            "Cash advances bear interest.",
        ),
        ("Dogs must wear a lead.", "Dogs need not wear a lead.", "Dogs must wear a lead."),
        ("Changes are not possible.", "Changes are possible.", "Changes are not possible."),
        ("The tank was never emptied.", "The tank was emptied.", "The tank was not emptied."),
        ("Trainees are excluded.", "Trainees are included.", "Trainees are excluded."),
        (
            "Bring the mower inside before the first frost.",
            "Bring the mower inside after the first frost.",
            "Bring the mower inside before the first frost.",
        ),
        (
            "Soldiers had to hand in all arms.",
            "Soldiers did not have to hand in arms.",
            "Soldiers have to hand",
        ),
        ("Milk is not included.", "Yes, milk is included.", "No, milk is not included."),
        ("Dogs are allowed.", "No, dogs are not allowed.", "Yes, dogs are allowed."),
        (
            "The cover does not include water.",
            "The cover includes water.",
            "The cover does not include water.",
        ),
        ("Guests do not need a visa.", "Guests need a visa.", "Guests do not need a visa."),
        (
            "Parking on the balcony is prohibited.",
            "You may park on the balcony.",
            "You may not park on the balcony.",
        ),
        ("Dogs do not have to wear a lead.", "Dogs must wear a lead.", "Dogs need not wear a lead."),
        ("Dogs must not wear a lead.", "Dogs have to wear a lead.", "Dogs must not wear a lead."),
        ("Everybody needs a ticket.", "Nobody needs a ticket.", "Everybody needs a ticket."),
    ],
)
def test_a_denied_sentence_says_what_the_passage_says(passage: str, claim: str, counter: str) -> None:
    found = wordings(f"{passage} Bags travel free of charge, and tickets cost 5 euros.", claim)
    assert any(words.startswith(counter) for words in found), found


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("Changes are not possible.", "Changes are not possible."),
        ("Changes are possible until noon.", "Changes are possible."),
        ("The tower is 31 metres tall.", "It was built by Ada Penhale."),
        ("", "Changes are possible."),
    ],
)
def test_what_nothing_denies_has_no_counter_claim(passage: str, claim: str) -> None:
    assert wordings(passage, claim) == []


def test_the_rest_of_the_response_stays() -> None:
    text = "Bags travel free. Dogs are allowed, and bicycles cost 15 euros."
    (words,) = wordings("Dogs are not allowed. Bicycles cost 15 euros. Bags travel free.", text)
    assert words == "Dogs are not allowed, and bicycles cost 15 euros."


def test_there_are_few_of_them() -> None:
    passage = "Dogs, cats, birds, mice and fish are not allowed, never fed, not washed and not sold."
    assert (
        len(wordings(passage, "Dogs are allowed, birds are fed, mice are washed and fish are sold.")) <= MOST
    )


ALLOWED, NOT_ALLOWED = "Dogs are allowed in the cabin.", "Dogs are not allowed in the cabin."
ALDER = (
    "Campfires are allowed in the stone rings only, from 5 p.m. to 10 p.m., and not when the fire danger "
    "level is 4 or 5."
)


@pytest.mark.parametrize(
    ("claim", "passages", "said"),
    [
        (ALLOWED, ["The ferry leaves at 8 am.", NOT_ALLOWED], True),
        (ALLOWED, [f"{NOT_ALLOWED} Ask the staff."], True),
        (NOT_ALLOWED, ["Dogs are always allowed in the cabin."], True),
        (ALLOWED, [NOT_ALLOWED, ALLOWED], False),  # the passages disagree
        (ALLOWED, ["Dogs are not allowed in the saloon."], False),
        ("Dogs are allowed.", ["Dogs are not allowed."], False),  # so few words may be of another subject
        (
            "Campfires may be lit in the stone rings from 5 p.m. to 10 p.m. when the fire danger level is "
            "not 4 or 5.",
            [ALDER],
            False,
        ),
    ],
)
def test_what_a_clause_of_the_passages_says_is_known(claim: str, passages: list[str], said: bool) -> None:
    given = Passages("", passages)
    compared = compare_answer(given, claim, list(sentences_in(claim)))
    found = [one.is_said for each in compared for one in counter_claims(claim, given, each)]
    assert any(found) is said


def test_a_limit_denies_nothing() -> None:
    claim = "The total weight must not exceed 130 kg."
    passages = Passages("", ["Maximum total weight with rider 130 kg."])
    (compared,) = compare_answer(passages, claim, list(sentences_in(claim)))
    assert compared.denials
    assert counter_claims(claim, passages, compared) == []


PLANS = [
    "Hearth Plus. The fee of £6.50 is waived in any month in which at least £1,800 is paid in. "
    "Notice must be given 4 weeks ahead. Up to 5 unused days may be carried over by 30 November.",
    "Hearth Basic. The fee is £2 a month. Notice must be given 9 weeks ahead.",
]


@pytest.mark.parametrize(
    ("claim", "counter", "kind"),
    [
        (
            "The fee of £6.50 is waived in any month in which at least £1,500 is paid in.",
            "The fee of £6.50 is waived in any month in which at least £1,800 is paid in.",
            "value",
        ),
        (
            "For Hearth Plus, notice must be given 4 months ahead.",
            "For Hearth Plus, notice must be given 4 weeks ahead.",
            "unit",
        ),
    ],
)
def test_a_contradicted_value_becomes_the_passages(claim: str, counter: str, kind: str) -> None:
    passages = Passages("What does Hearth Plus cost?", PLANS)
    (compared,) = compare_answer(passages, claim, list(sentences_in(claim)))
    assert [(each.words, each.kind) for each in counter_claims(claim, passages, compared)] == [
        (counter, kind)
    ]


RACE = [
    "Lidet Worana won the race of the 31st Porthaven Marathon on Sunday, 14 April, in 2:24:18 and missed the "
    "course record by only 11 seconds."
]
FERRY = [
    "Route 3: Port Annick - Skerrow. From 1 May to 30 September a bicycle space has to be reserved, at the "
    "latest by noon on the day before sailing. Outside this period just turn up.",
    "How to reserve. Bicycle spaces on route 3 can be reserved on our website or by telephone with the "
    "harbour office, daily from 8:00 to 16:00. No booking fee is charged.",
]
MISSION = [
    "Launched from Kourel on 9 April 2021 on a Stratos 5 rocket, the Halcyon-2 orbiter reached Venus on 22 "
    "November 2021. It carries six instruments. The mission was planned for three years."
]
LOAN = [
    "Agreement between the Museum of Torvik (Lender) and the Hall of Arts Brenmark (Borrower). The painting "
    "is insured for 340,000 thalers by the Borrower with an insurer approved by the Lender."
]


@pytest.mark.parametrize(
    ("question", "passages", "claim"),
    [
        (
            "Is £1,500 a month enough?",
            PLANS,
            "The fee of £6.50 is waived in any month in which at least £1,500 is paid in.",
        ),
        ("", PLANS, "With Hearth Plus, five days may be carried over by 30 November."),  # "5 unused days"
        ("", PLANS, "With Hearth Plus, notice must be given 4 weeks ahead."),
        ("", PLANS, "The fee of £6.50 adds up to £78 over 12 months."),  # it has what contradicts it
        (
            "",
            FERRY,
            "You must secure a space by midday on the eve of your trip, either on the website or by ringing "
            "the harbour office, with no fee for booking.",
        ),  # "noon"
        ("", RACE, "Lidet Worana won the Porthaven Marathon, and missed the course record of 2:24:07."),
        ("", MISSION, "The orbiter got to Venus in late November 2021."),
        ("", LOAN, "The painting is insured for 340,000 thalers with a company that Torvik has approved."),
    ],
)
def test_a_value_that_may_be_right_has_no_counter_claim(
    question: str, passages: list[str], claim: str
) -> None:
    given = Passages(question, passages)
    compared = compare_answer(given, claim, list(sentences_in(claim)))
    kinds = {counter.kind for each in compared for counter in counter_claims(claim, given, each)}
    assert not kinds & {"unit", "value"}
