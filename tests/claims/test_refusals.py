"""What an answer says to be missing, and whether the passages have it."""

from __future__ import annotations

import pytest

from lrp4rag.claims.answer import Passages
from lrp4rag.claims.refusals import missing_words, refusal_in

DRIFT = "Drift 3 headphones. The Drift 3 costs €199 and comes in black."
PEBBLE = "Pebble S earbuds. The Pebble S weighs 5 g and has Bluetooth 5.3."
CLINIC = "Larkfield Clinic. The clinic has 40 beds."
HEATER = "The heater weighs 4 kg. Its cable is 2 m long."


def outcome(question: str, passages: list[str], answer: str) -> str | None:
    found = refusal_in(Passages(question, passages), answer, 0, len(answer))
    return found and found.outcome


@pytest.mark.parametrize(
    ("question", "passages", "answer"),
    [
        (
            "How much does the Drift 3 cost?",
            [DRIFT, PEBBLE],
            "The documents do not say how much the Drift 3 costs.",
        ),
        (
            "Who is the director of the clinic?",
            [f"{CLINIC} Its director is Dr Ana Moll."],
            "It is not stated who the director of the clinic is.",
        ),
        (
            "When does the office close?",
            ["The office opens at 9 and closes at 17:30 on weekdays."],
            "I could not find when the office closes.",
        ),
        (
            "When does the office close?",
            ["The office opens at 9 and closes at 17:30 on weekdays."],
            "I can\u2019t tell when the office closes.",
        ),
        (
            "What is the warranty on the heater?",
            ["The heater weighs 4 kg. Its warranty runs for three years."],
            "There is no information about the warranty of the heater in the passages.",
        ),
        (
            "Can I bring my dog?",
            ["Dogs are allowed on a lead. Horses are not."],
            "You may bring a bag, but the rules do not say whether dogs are allowed.",
        ),
        (
            "Are campfires allowed there?",
            ["Alder Lake. Campfires are allowed in the metal rings until 10 p.m."],
            "Unfortunately, the texts give no information on whether campfires are allowed there.",
        ),
        (
            "What does the course cost and when does it start?",
            ["The course starts on 16 September. The course fee is 90 euros."],
            "It starts on 16 September; the course fee is not mentioned.",
        ),
    ],
)
def test_a_passage_has_it(question: str, passages: list[str], answer: str) -> None:
    assert outcome(question, passages, answer) == "there"


@pytest.mark.parametrize(
    ("question", "passages", "answer"),
    [
        (
            "Is there parking at the museum?",
            ["The Orrin Museum is open from 10 to 5. Tickets cost €14."],
            "The information does not mention parking at the museum.",
        ),
        ("Who is the director of the clinic?", [CLINIC], "The passages don't say who the director is."),
        (
            "What is the warranty on the heater?",
            [HEATER],
            "They give its weight and length, but no warranty is stated for the heater.",
        ),
        (
            "Does the plan cover dental work?",
            ["The plan covers hospital stays and medicines up to 5,000 euros."],
            "The policy does not mention dental work.",
        ),
        (
            "How much leave do part-time staff get?",
            ["Full-time staff get 26 days of leave."],
            "The sections do not say how much leave part-time staff get.",
        ),
        (
            "Who is the clinic's director, and how many beds has it?",
            [CLINIC],
            "The page gives the number of beds, but it does not name the clinic's director.",
        ),
        (
            "What are the opening hours on Sunday?",
            ["Open Monday to Friday 9-18, Saturday 9-13."],
            "Sunday is not mentioned in the documents.",
        ),
        # Nothing has a price, a weight, a date.
        (
            "What did the light boxes cost?",
            ["The light boxes gave 10,000 lux for 30 minutes."],
            "The passages don't give a price for the light boxes.",
        ),
        ("Is the saw safe?", ["The saw is made of steel."], "The passages don't tell how heavy the saw is."),
        ("Do I pay for skis?", [CLINIC], "What the clinic costs isn't mentioned."),
        ("Can I borrow skis?", [CLINIC], "I'm afraid I can\u2019t tell you that."),
        ("Can I borrow skis?", [CLINIC], "I could not find that anywhere in the information on the clinic."),
        ("Can I borrow skis?", [CLINIC], "That isn't stated in the passages, so please ask the clinic."),
    ],
)
def test_no_passage_knows_it(question: str, passages: list[str], answer: str) -> None:
    assert outcome(question, passages, answer) == "absent"


@pytest.mark.parametrize(
    ("question", "passages", "answer"),
    [
        # What a passage says of another model is missing of the one that was asked about.
        (
            "How much does the Pebble S cost?",
            [DRIFT, PEBBLE],
            "The documents do not say how much the Pebble S costs.",
        ),
        # Passages speak of it, and do not say so much.
        ("How do I bake bread?", ["Bake the bread until brown."], "The text does not say how to bake bread."),
        (
            "Is the heater safe?",
            ["The heater is safe."],
            "The text gives no specific information on whether the heater is safe.",
        ),
        # Passages know all that was asked for, or the sentence says more.
        ("How heavy is the heater?", [HEATER], "I can't tell you that."),
        ("Does parking cost much?", [CLINIC], "I can't tell you that."),
        *(
            ("Can I borrow skis?", [CLINIC], answer)
            for answer in (
                "I can't tell you that, but skis cost 9 euros a day.",
                "I could not find that in the documents, but skis cost 9 euros a day.",
                "I can't find that in the documents about the clinic, which has 90 beds.",
                "I can't tell you that, so please pay 9 euros at the desk.",
                "That isn't stated in the passages, but skis are free.",
                "It is not for sale.",
                "It is not part of the clinic.",
                "It is not in the town hall but in the school.",
                "It was not reported.",
                "That is not covered.",
                "We can't say this often enough.",
                "I can't see that changing.",
            )
        ),
        # Nobody asked.
        (
            "How heavy is the heater?",
            [f"{HEATER} The warranty is 3 years."],
            "The warranty is not mentioned.",
        ),
        # They claim something beside.
        (
            "What are the boiling and melting points?",
            ["It melts at 14 °C."],
            "The texts do not mention the boiling point, but it is 78 °C.",
        ),
        # They deny something, and do not say that it is missing.
        (
            "Does it cover dental work?",
            ["The policy does not cover dental work."],
            "The policy does not cover dental work.",
        ),
        ("Are there nuts in it?", ["The cake contains no nuts."], "It contains no nuts."),
        ("Is there lactose in it?", ["The cake contains no nuts."], "It contains no lactose."),
        ("Do they provide towels?", ["They do not provide towels."], "They do not provide towels."),
        ("Do I get a refund?", ["No refund is given after 14 days."], "No refund is given after 14 days."),
        ("Is breakfast included?", ["Breakfast is not included."], "Breakfast is not included."),
        ("May I pay in cash?", ["Cash is not accepted."], "Nothing has to be paid in cash."),
        # Passages have a price, or say that there is none.
        ("What do the beds cost?", ["A bed is £40."], "The text doesn't give a price for the beds."),
        ("What do the beds cost?", ["All beds are free."], "The text doesn't give a price for the beds."),
        (  # nothing there is a quantity
            "How much water does the DW40 use?",
            ["DW40: care. Rinse the filter under running water.", "Spare parts cost £18."],
            "The texts do not say how much water the DW40 uses.",
        ),
        # A number or a heading alone.
        ("What applies in 2025?", ["The return is due on 31 July 2025."], "It is not stated for 2025."),
        ("What is the cost of living?", ["Cost of living."], "The text does not mention the cost of living."),
        ("How heavy is the heater?", [], "The weight of the heater is not stated."),
    ],
)
def test_the_words_do_not_tell(question: str, passages: list[str], answer: str) -> None:
    assert outcome(question, passages, answer) is None


def test_the_sentence_that_has_it_is_named() -> None:
    passages = [HEATER, f"{CLINIC} Its director is Dr Ana Moll."]
    answer = "It has 40 beds. Who the director of the clinic is, the text doesn't say."
    start = answer.index("Who")
    found = refusal_in(
        Passages("How big is the clinic, and who is its director?", passages), answer, start, len(answer)
    )
    assert found is not None
    assert found.place is not None
    place = found.place
    assert passages[place.passage][place.passage_start : place.passage_end] == "Its director is Dr Ana Moll."
    assert (found.start, found.end) == (start, len(answer))


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("The texts don't give the building cost of the Wenlow Canal.", {"build", "cost", "wenlow", "canal"}),
        ("The course fee is not mentioned in the documents, so please ask.", {"course", "fee"}),
        ("No interest rate is given in the passages.", {"rate"}),
        ("They list the fee, but they do not mention paying in instalments.", {"pay", "instalments"}),
        ("It is not stated whether dogs are allowed.", {"dog", "allow"}),
        ("How large the crystals get, the manual doesn't say.", {"large", "crystals"}),
        ("Whether sailing is allowed isn't said.", {"sail", "allow"}),
        ("It describes the trial, but not whether old mattresses are taken.", {"old", "mattresses"}),
        ("Unpaid leave isn't covered in them, so I can't tell you.", {"unpaid"}),
        ("Water damage isn't covered by the policy.", set()),
        ("Breakfast is not included.", set()),
        ("The two rooms are not provided for.", set()),
        ("It must not be given to children.", set()),
    ],
)
def test_what_is_said_to_be_missing(sentence: str, words: set[str]) -> None:
    assert {word.base for word in missing_words(sentence, 0, len(sentence))} == words


def test_a_long_question_and_a_long_sentence_take_no_long(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr("lrp4rag.claims.refusals.relation", lambda *bases: calls.append(bases) or "same")
    words = " ".join(f"word{chr(97 + k % 26)}{chr(97 + k // 26)}" for k in range(300))
    outcome(f"What about {words}?", [CLINIC], f"The texts do not mention {words}.")
    assert len(calls) < 1000


@pytest.mark.parametrize("object", ["that", "this", "it"])
def test_what_only_points_at_the_question_says_nothing(object: str) -> None:
    answer = f"I can't find {object} in the information on the heater."
    assert missing_words(answer, 0, len(answer)) == ()
    for what in ("a timer", "that timer"):
        answer = f"I can't find {what} in the information."
        assert missing_words(answer, 0, len(answer)) != ()
