"""What only the question supposes supports nothing: a sentence that repeats it is read after the question as
the passages would have it. Responses in capitals are read in plain case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag import Detector, Example
from lrp4rag.claims.derivation import derivations
from lrp4rag.claims.index import Index
from lrp4rag.classifiers.verdict import Assessment, Claims, Contradiction, TokenMarks, with_sentences
from lrp4rag.classifiers.wording import in_plain_case, own_case, premise_of, with_derivations
from lrp4rag.features.replay import PlainReplay
from lrp4rag.reader import Reader
from lrp4rag.util.sentences import sentences_in
from tests.classifiers.samples import relevance_of
from tests.cli.plain_detector import plain_detector

TEMPLATE = "{context}\n\nQ: {question}\nA:"
PASSAGES = ("Items may be returned within 14 days.", "The shop in Marlow is open until 6 pm.")
QUESTION = "Items may be returned within 30 days, right?"


def example_of(response: str, question: str = QUESTION, passages: tuple[str, ...] = PASSAGES) -> Example:
    return Example(question, passages, response)


def repeated_in(example: Example) -> tuple[int, ...]:
    """The sentences of its response that repeat what its question supposes."""
    premise = premise_of(example)
    return () if premise is None else premise.repeated_in(example.response, sentences_in(example.response))


@pytest.mark.parametrize(
    ("response", "sentences"),
    [
        ("Yes, items may be returned within 30 days.", (0,)),
        ("Within 30 days.", (0,)),
        ("The shop is open. Items may be returned within 30 days.", (1,)),
        ("30 days. It is so. Yes, 30 days.", (0, 2)),
    ],
)
def test_sentences_that_repeat_what_is_supposed(response: str, sentences: tuple[int, ...]) -> None:
    found = premise_of(example_of(response))
    assert found is not None
    assert repeated_in(example_of(response)) == sentences
    assert found.example.question == "Items may be returned within 14 days, right?"


@pytest.mark.parametrize(
    "response",
    [
        "Items may be returned within 14 days.",
        "No, within 14 days, not 30 days.",
        "They can't be returned within 30 days.",
        "It is 14 days and not 30 days.",
        "Within 14 days rather than 30 days.",
        "Unfortunately 30 days are too long.",
        "It is so.",
        "\U0001f44d",
    ],
)
def test_what_does_not_repeat_it_is_read_as_it_is(response: str) -> None:
    assert repeated_in(example_of(response)) == ()


@pytest.mark.parametrize(
    ("question", "passages"),
    [
        ("How long may items be returned?", PASSAGES),  # supposes nothing
        (QUESTION, (*PASSAGES, "In June, items may be returned within 30 days.")),  # a passage has it too
        (QUESTION, ("The shop in Marlow is open.",)),  # none has another value
        (QUESTION, ("A cable is 14 days old.",)),  # nor about something else
    ],
)
def test_what_the_passages_have_or_do_not_contradict_is_not_supposed(
    question: str, passages: tuple[str, ...]
) -> None:
    assert premise_of(example_of("Yes, within 30 days.", question, passages)) is None


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("How is it given to a child of 5 years?", "Children from 2 to 6 years are given 5 ml of it."),
        ("Can I bring a suitcase of 25 kg?", "Suitcases up to 23 kg are free, heavier ones cost 60 euros."),
        ("How many ferries are there in July?", "From 1 May to 30 September there are six ferries a day."),
        ("The hotel is 150 euros. Is that refunded?", "Hotels are refunded up to 120 euros a night."),
        ("My bill is from five months ago. Will it do?", "Bills must not be older than three months."),
        (
            "Is the library open on Tuesday at 5 pm?",
            "The library is open Monday to Friday from 9 am to 6 pm.",
        ),
        ("I ordered the shoes 20 days ago. Is it too late?", "Shoes may be returned within 30 days."),
        (
            "I bought it 3 years ago. Is there a warranty?",
            "The warranty is 2 years from the day you bought it.",
        ),
        ("I work 30 hours a week. What leave do I get?", "Who works 38 hours a week has 28 days of leave."),
        ("What do I pay if I take 3 suitcases?", "Two suitcases cost 40 euros, each further one 30 euros."),
        (
            "Which one is for someone who drives 20,000 km?",
            "Tariff M is for 15,000 km, tariff L for 25,000 km.",
        ),
    ],
)
def test_the_asker_s_own_case_is_not_supposed_of_the_passages(question: str, passage: str) -> None:
    assert premise_of(example_of("So it is.", question, (passage,))) is None


@pytest.mark.parametrize(
    ("question", "passage", "instead"),
    [
        ("Can I return shoes within 60 days?", "Shoes may be returned within 30 days.", "30 days"),
        (
            "I heard shoes may be returned within 60 days. Is that so?",
            "Shoes may be returned within 30 days.",
            "30 days",
        ),
        ("Why was the bridge opened in 1967?", "The bridge was opened in 1934.", "1934"),
        ("Does the warranty of 5 years cover it?", "The warranty is 2 years and covers it.", "2 years"),
        ("I have 60 days to return shoes. Where to?", "Shoes may be returned within 30 days.", "30 days"),
        ("If I return shoes within 60 days, what then?", "Shoes may be returned within 30 days.", "30 days"),
        ("My warranty lasts 36 months. And then?", "The warranty lasts 24 months.", "24 months"),
        ("My bag may weigh 10 kg. And a second bag?", "A bag may weigh 8 kg.", "8 kg"),
        (
            "I must be at least 16 years old to rent it?",
            "You must be at least 18 years old to rent it.",
            "18 years",
        ),
        ("Who gets the 6 weeks of leave?", "Partners are entitled to 2 weeks of leave.", "2 weeks"),
    ],
)
def test_what_is_supposed_of_the_passages(question: str, passage: str, instead: str) -> None:
    premise = premise_of(example_of("So it is.", question, (passage,)))
    assert premise is not None
    assert [one.instead.text for one in premise.supposed] == [instead]


def test_a_name_is_repeated_only_where_it_is_affirmed() -> None:
    passages = ("The old lighthouse was designed by Robert Hale.",)
    question = "The old lighthouse was designed by Anna Berg, right?"
    assert repeated_in(example_of("It was designed by Anna Berg.", question, passages)) == ()
    affirmed = example_of("Yes, it was designed by Anna Berg.", question, passages)
    assert repeated_in(affirmed) == (0,)
    found = premise_of(affirmed)
    assert found is not None
    assert found.example.question == "The old lighthouse was designed by Robert Hale, right?"


def test_the_prompt_is_the_same_but_for_the_question() -> None:
    given = example_of("Yes, 30 days.")
    found = premise_of(given)
    assert found is not None
    other = found.example
    assert other.prompt == given.prompt.replace("30 days", "14 days")
    assert (other.passages, other.response) == (given.passages, given.response)
    for one, changed in zip(given.spans, other.spans, strict=True):
        assert (one.kind, one.index) == (changed.kind, changed.index)
        text = given.prompt[one.start : one.end].replace("30 days", "14 days")
        assert other.prompt[changed.start : changed.end] == text


def test_a_value_of_another_length_moves_what_follows() -> None:
    passages = ("Items may be returned within 365 days.", "The shop is open.")
    given = example_of("Yes, 3 days.", "Items may be returned within 3 days, right?", passages)
    found = premise_of(given)
    assert found is not None
    kept = [found.example.prompt[one.start : one.end] for one in found.example.spans if one.kind == "passage"]
    assert kept == [given.prompt[one.start : one.end] for one in given.spans if one.kind == "passage"]


# What is then said.

TEXT = "Hello there! Yes, 30 days. It is so."
ENCODED = relevance_of(np.ones(8), text=TEXT).encoded


def assessed(*probabilities: float, mark: float, start: int = 18) -> Assessment:
    told = Contradiction(start, start + 7, "30 days", "14 days", 0, 29, 36, mark)
    return Assessment(
        max(probabilities[1:]),
        marks=TokenMarks(np.full(8, mark, dtype=np.float32), 0.5),
        claims=Claims(np.array(probabilities), ("nothing", "a claim", "a claim")),
        contradictions=(told,),
    )


def test_a_sentence_that_becomes_more_suspect_is_as_after_the_other_question() -> None:
    found, after = assessed(0.9, 0.2, 0.3, mark=0.25), assessed(0.95, 0.8, 0.9, mark=0.75)
    joined = with_sentences(found, after, (1,), ENCODED, worse=True)
    assert joined.claims.probabilities.tolist() == [0.9, 0.8, 0.3]
    assert joined.probability == 0.8
    assert joined.marks.probabilities.tolist() == [0.25] * 2 + [0.75] * 3 + [0.25] * 3
    assert [one.margin for one in joined.contradictions] == [0.75]
    # What was found stays as it was.
    assert found.claims.probabilities.tolist() == [0.9, 0.2, 0.3]
    assert set(found.marks.probabilities) == {0.25}


def test_a_sentence_that_follows_from_others_is_as_after_passages_that_say_so() -> None:
    found, after = assessed(0.9, 0.8, 0.3, mark=0.75), assessed(0.95, 0.2, 0.9, mark=0.25)
    joined = with_sentences(found, replace(after, contradictions=()), (1, 2), ENCODED, worse=False)
    assert joined.claims.probabilities.tolist() == [0.9, 0.2, 0.3]
    assert joined.probability == 0.3
    assert joined.marks.probabilities.tolist() == [0.75] * 2 + [0.25] * 3 + [0.75] * 3
    assert joined.contradictions == ()


def test_another_question_makes_no_sentence_less_suspect() -> None:
    found, after = assessed(0.1, 0.8, 0.3, mark=0.75), assessed(0.1, 0.2, 0.1, mark=0.25)
    joined = with_sentences(found, after, (1, 2), ENCODED, worse=True)
    assert joined.probability == 0.8
    assert joined.claims.probabilities.tolist() == [0.1, 0.8, 0.3]
    assert set(joined.marks.probabilities) == {0.75}
    assert joined.contradictions == found.contradictions


def test_a_greeting_is_no_reason_to_call_a_response_hallucinated() -> None:
    found, after = assessed(0.1, 0.2, 0.3, mark=0.25), assessed(0.95, 0.1, 0.1, mark=0.75)
    assert with_sentences(found, after, (0, 1), ENCODED, worse=True).probability == 0.3


def test_a_detector_of_responses_reads_no_other_question() -> None:
    one = Assessment(0.4)
    assert with_sentences(one, Assessment(0.9), (0,), ENCODED, worse=True) is one


def test_what_follows_from_a_passage_is_said_behind_it() -> None:
    passages = ("A night costs 40 euros.", "Breakfast is at 8 am.")
    given = Example("What do 3 nights cost?", passages, "At 40 euros a night, 120 euros.", template=TEMPLATE)
    text = given.response
    derived = derivations(text, (0, len(text)), given.question, Index(passages))
    said = with_derivations(given, derived)
    assert said.passages == (
        "A night costs 40 euros. A night costs 40 euros: 40 euros \u00d7 3 = 120 euros.",
        passages[1],
    )
    for span in said.spans:
        part = said.question if span.kind == "question" else said.passages[span.index]
        assert said.prompt[span.start : span.end] == part
    assert with_derivations(given, ()) is given


def test_a_verdict_is_the_more_suspect_of_the_two(tiny_reader: Reader) -> None:
    detector = Detector(plain_detector(tiny_reader), tiny_reader)
    response = "Yes, items may be returned within 30 days. The shop in Marlow is open until 6 pm."
    given = example_of(response)
    found = premise_of(given)
    assert found is not None
    verdict = detector.judge_many([given])[0]
    read = [
        detector.model.assess(PlainReplay(tiny_reader)(tiny_reader.encode(one)))
        for one in (given, found.example)
    ]
    first, second = ([float(one) for one in each.claims.probabilities] for each in read)
    assert first[0] != pytest.approx(second[0], abs=1e-4)
    expected = [max(first[0], second[0]), first[1]]
    assert [one.probability for one in verdict.sentences] == pytest.approx(expected, abs=1e-5)
    assert verdict.probability == pytest.approx(max(expected), abs=1e-5)


# Capitals.

MARLOW = ("The Marlow lighthouse is 31 metres tall.", "Dogs may board the ferry to Sandholm.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("THE MARLOW LIGHTHOUSE IS 31 METRES TALL.", "The Marlow lighthouse is 31 metres tall."),
        ("The Marlow Lighthouse Is 31 Metres Tall.", "The Marlow lighthouse is 31 metres tall."),
        ("MARLOW LIGHTHOUSE", "Marlow lighthouse"),
        ("IT IS 45 METRES TALL!", "It is 45 metres tall!"),
        ("\U0001f44d DOGS MAY BOARD THE FERRY", "\U0001f44d Dogs may board the ferry"),
        ("- DOGS MAY BOARD\n- the ferry is tall", "- Dogs may board\n- the ferry is tall"),
        (
            "It is tall. DOGS MAY BOARD THE FERRY. It is so.",
            "It is tall. Dogs may board the ferry. It is so.",
        ),
    ],
)
def test_words_are_written_as_in_the_passages(text: str, expected: str) -> None:
    assert in_plain_case(text, MARLOW) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "The Marlow lighthouse is 31 metres tall.",
        "Dogs may NOT board the ferry.",  # one word is stressed
        "NASA",
        "Robert Hale Lives In Sandholm",  # of its words, one is a small one
        "31 - 45 %",
        "\u771f\u7684\u5417?",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert in_plain_case(text, MARLOW) == text


@pytest.mark.parametrize(
    "text", ["STRASSE \u00df IS TALL AND \u0130T IS \u0130ZM\u0130R", "\ufb01N IS THE TALL FERRY"]
)
def test_a_text_keeps_its_length_and_its_letters(text: str) -> None:
    """Places in it are those of the text that was read."""
    found = in_plain_case(text, MARLOW)
    assert len(found) == len(text)
    for one, other in zip(found, text, strict=True):
        assert one.lower() == other.lower()


def test_what_was_read_is_read_again_as_it_is() -> None:
    for text in ("THE MARLOW LIGHTHOUSE IS 31 METRES TALL. DOGS MAY BOARD.", "It Is 45 Metres Tall"):
        once = in_plain_case(text, MARLOW)
        assert in_plain_case(once, MARLOW) == once


def test_a_verdict_is_that_of_plain_case_with_the_words_as_they_were_written(tiny_reader: Reader) -> None:
    detector = Detector(plain_detector(tiny_reader), tiny_reader)
    plain = "The Marlow lighthouse is 45 metres tall. Dogs may not board the ferry."
    example = Example("How tall is the lighthouse?", MARLOW, plain)
    expected, found = detector.judge_many([example, replace(example, response=plain.upper())])
    assert found.probability == expected.probability
    assert [one.status for one in found.sentences] == [one.status for one in expected.sentences]
    assert any(one.suspect for one in found.sentences)
    for mine, other in ((found.sentences, expected.sentences), (found.spans, expected.spans)):
        assert [one.text for one in mine] == [one.text.upper() for one in other]
        assert [(one.start, one.end) for one in mine] == [(one.start, one.end) for one in other]
    np.testing.assert_array_equal(found.marks.probabilities, expected.marks.probabilities)
    for mine, other in zip(found.contradictions, expected.contradictions, strict=True):
        assert plain.upper()[mine.start : mine.end] == mine.text == other.text.upper()
        assert mine.instead == other.instead  # the passage is in plain case


def test_a_stream_is_read_as_the_whole_is(tiny_reader: Reader) -> None:
    text = "THE MARLOW LIGHTHOUSE IS 45 METRES TALL. DOGS MAY NOT BOARD THE FERRY."
    with Detector(plain_detector(tiny_reader), tiny_reader, prompt_bytes=2**24) as detector:
        reading = detector.reading("How tall is the lighthouse?", MARLOW)
        pieces = [*reading.feed(text), *reading.end()]
        whole = detector.judge("How tall is the lighthouse?", MARLOW, text)
    assert "".join(one.text for one in pieces) == text
    judged = [one for one in pieces if one.sentence is not None]
    assert [one.sentence.text for one in judged] == [one.text for one in whole.sentences]
    for one, other in zip(judged, whole.sentences, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=1e-4)
        assert one.status == other.status


@pytest.mark.parametrize(
    ("question", "response", "values"),
    [
        (
            "I've worked here for seven years. What notice do I get?",
            "With your 7 years it is two months.",
            ["7 years"],
        ),
        ("I've worked here for seven years. What notice do I get?", "After ten years it is two months.", []),
        ("I am 67. Do I pay?", "At 67 you ride free.", ["67"]),
        ("My 9-year-old has a pass. Does he pay?", "At nine he rides free.", ["nine"]),
        ("I am 67. Do I pay?", "Those of more than 60 ride free.", []),  # a bound is no case
        ("Do I get notice after seven years?", "After seven years it is two months.", []),  # that is asked
        ("I am 7 days late. Do I pay?", "The grace period is 7 days.", []),  # that is a rule
        ("I own a Lenta 8. Do I pay?", "Your Lenta 8 rides free.", []),
        ("I've worked here for five years. What notice do I get?", "After 5 years it is 2 months.", []),
    ],
)
def test_values_of_the_asker_s_own_case(question: str, response: str, values: list[str]) -> None:
    index = Index(("Notice is two months after five years of service.", "People over 65 ride free."))
    cases = [*own_case(response, (0, len(response)), question, index)]
    assert [each.value.text for each in cases] == values
    assert all(response[each.value.start : each.value.end] == each.value.text for each in cases)
    assert all(each.words == f"The asker says: {question.partition('.')[0]}" for each in cases)
