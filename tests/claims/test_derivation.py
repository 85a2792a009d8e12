"""Values that follow from what a response states."""

from __future__ import annotations

import pytest

from lrp4rag.claims import derivation
from lrp4rag.claims.derivation import derivations, restatements
from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index

PASSAGES = (
    "Plus costs 34.90 euros a month, Basic 24.90 euros. A day ticket costs 12 euros, and notice is 1 month.",
    "Ferries leave at 7:30 and 18:40 and take 1 hour and 35 minutes; check-in closes 20 minutes before.",
    "A double room is 129 euros, an extra bed 25 euros and a dog 15 euros a night. Groups get 10 % off.",
    "The bridge was opened in 1934 with 240 lamps, of which 60 are lit three times a day.",
    "The rent is 840 euros a month, and the deposit is three months' rent. Power costs 31.5 cents a kWh.",
)
INDEX = Index(PASSAGES)


def derived(response: str, question: str = "What then?") -> list[str]:
    return [one.words for one in derivations(response, (0, len(response)), question, INDEX)]


@pytest.mark.parametrize(
    ("response", "question", "words"),
    [
        (
            "At 34.90 euros, twelve months come to 418.80 euros.",
            "What is it a year?",
            "34.90 euros \u00d7 twelve months",
        ),
        ("Plus is 34.90 euros a month, or 418.80 euros a year.", "", "34.90 euros \u00d7 12 months"),
        (
            "You pay 12 euros for each ticket, so 36 euros.",
            "We are 3 people. What do we pay?",
            "12 euros \u00d7 3",
        ),
        ("Plus is 34.90 and Basic 24.90 euros, which is 10 euros more.", "", "34.90 euros - 24.90 euros"),
        (
            "129 for the double, 25 for the bed and 15 for the dog make 169 euros.",
            "",
            "129 euros + 25 euros + 15 euros",
        ),
        (
            "It leaves at 18:40 and takes 1 hour and 35 minutes, so it arrives at 20:15.",
            "",
            "18:40 + 1 hour and 35 minutes",
        ),
        (
            "Be there by 7:10, as check-in closes 20 minutes before.",
            "When for the 7:30 from Holm?",
            "7:30 - 20 minutes",
        ),
        (
            "The double is 129 euros, the bed 25 and the dog 15, so three nights come to 507 euros.",
            "",
            "129 euros \u00d7 three + 25 euros \u00d7 three + 15 euros \u00d7 three",
        ),
        ("With 10 % off, the double at 129 euros is 116.10 euros.", "", "129 euros - 10 %"),
        ("Opened in 1934, it turned 90 years old in 2024.", "I was there in 2024.", "2024 - 1934"),
        ("60 of the 240 lamps are lit, which is 25 %.", "", "60 / 240"),
        ("60 lamps three times a day are 180 lamps a day.", "How many?", "60 \u00d7 three"),
        ("14 days at 12 euros make 168 euros.", "And for two weeks?", "12 euros \u00d7 14 days"),
        ("Three months' rent, so 2,520 euros.", "", "840 euros \u00d7 Three months"),
        ("At 31.5 cents, that is 787.50 euros.", "For 2,500 kWh?", "31.5 cents \u00d7 2,500 kWh"),
        ("A month later, in February.", "I give notice of 1 month in January.", "January + 1 month"),
    ],
)
def test_what_follows_from_what_is_stated(response: str, question: str, words: str) -> None:
    assert words in derived(response, question)


@pytest.mark.parametrize(
    "response",
    [
        "At 34.90 euros a month, a year comes to 428.80 euros.",  # another result
        "At 35.90 euros a month, a year comes to 430.80 euros.",  # of what no passage has
        "It costs 418.80 euros in all.",  # of what is not stated
        "A double at 129 euros comes to 516 euros.",  # nobody says for how many
        "The crossing takes 1 hour and 35 minutes, and the year has 95 days.",
        "Notice is 1 month, and the contract runs for a year, that is 30 years.",
        "It takes 20 minutes and costs 12 euros, 240 minutes in all.",
        "The double is 129 euros, the bed 25 and the dog 15, so three nights come to 537 euros.",
        "10 % off, so 90 minutes.",
        "There are 2 bridges with 240 lamps and 3 tunnels, so 5 boats.",
        "34.90 euros and 34.90 euros make 69.80 euros.",  # said twice, and not two of them
    ],
)
def test_what_does_not_follow(response: str) -> None:
    assert derived(response) == []


@pytest.mark.parametrize(
    ("response", "question"),
    [
        (
            "Returns within 30 days. You bought it 16 days ago, so you have 46 days left.",
            "I bought it 16 days ago.",
        ),
        ("With the 10 % discount, the bed at 25 euros costs 27.50 euros.", ""),
        ("The bed at 25 euros costs 2.50 euros with the 10 % discount.", ""),
        ("Give 1 month's notice before 31 March, so by 30 April.", "By 31 March?"),
        ("A ticket costs 12 euros; for 3 people the total is 4 euros each.", "For 3 people?"),
        ("60 lamps every 4 hours, so 240 lamps in all.", "Every 4 hours?"),
        ("A bed costs 25 euros, a dog 15 euros, and a cat 40 euros.", ""),
        ("Check-in closes 20 minutes before departure at 7:30, so be there by 7:50.", ""),
        ("It costs 34.90 euros a year, so monthly payments of 418.80 euros.", "How much a year?"),
    ],
)
def test_an_operation_has_its_direction(response: str, question: str) -> None:
    assert derived(response, question) == []


def test_a_term_is_added_only_where_the_sentence_has_all_of_it() -> None:
    assert (
        derived("A double is 129 euros, so with a bed at 25 euros it is 179 euros.", "We are 2 people.") == []
    )
    said = derived(
        "A double is 129 euros, so with 2 beds at 25 euros each it is 179 euros.", "We are 2 people."
    )
    assert said == ["129 euros + 25 euros \u00d7 2"]


def test_one_follows_from_another_and_the_passage_of_an_operand_is_told() -> None:
    response = "At 12 euros a ticket, 4 people pay 48 euros a month. That is 576 euros a year."
    (found,) = derivations(response, (53, len(response)), "What do 4 people pay?", INDEX)
    assert (found.value.text, found.passage) == ("576 euros", 0)
    assert found.words == "48 euros \u00d7 12 months"
    assert response[found.value.start : found.value.end] == "576 euros"


@pytest.mark.parametrize(
    ("response", "passage", "words"),
    [
        (
            "That is £42.50 a year instead of £85.",
            "The permit costs £85 a year. Electric cars pay half price.",
            "£85",
        ),
        ("The fee of £1,150 is halved, to £575.", "The fee is £1,150. If it fails we charge half.", "£1,150"),
    ],
)
def test_half_of_a_value_where_the_passage_says_half(response: str, passage: str, words: str) -> None:
    (one,) = derivations(response, (0, len(response)), "", Index([passage]))
    assert one.words == f"{words} \u00d7 0.5"
    size = passage.replace("half price", "a half-size price").replace("charge half", "wait half an hour")
    sentence = (0, len(response))
    if "halved" not in response:
        assert derivations(response, sentence, "", Index([size])) == ()


MUSEUM = (
    "Adults £11.50, children £6. Open until 20.30 on Thursdays; last admission is 45 minutes before closing. "
    "On Thursday evenings all tickets are half price. One adult is required for every six pupils."
)
PERMITS = (
    "A permit costs £58 a year; cars above 150 g pay a supplement of £30. Tenants over 66 pay "
    "three quarters. An own car is paid 45p a mile. Excess: £100. The bridge was built from 1868 to 1873."
)
PAINT = "Coverage: 7.5 m² per litre and coat. Cans of 2.5 litres."
LOAN = "It ends on 18 January 2026. Ask for an extension in writing at least six weeks before the end."
RACE = "She won in 2:24:18 and missed the record by only 11 seconds."
TRIAL = (
    "212 people took part. Sleep rose by 31 minutes, and by 9 minutes in the control group. 18 dropped out."
)


@pytest.mark.parametrize(
    ("passage", "response", "question", "words"),
    [
        (MUSEUM, "In the evening an adult pays £5.75.", "", ["£11.50 \u00d7 half"]),
        (MUSEUM, "In the evening an adult pays £5.25.", "", []),
        (MUSEUM, "A child gets in for £3.", "", []),  # one digit may be half of anything
        (MUSEUM, "Be there by a quarter to eight for admission.", "", ["20.30 - 45 minutes"]),
        (MUSEUM, "Be there by a quarter past eight for admission.", "", []),
        (MUSEUM, "You need five adults.", "We come with 28 pupils.", ["28 / six"]),
        (MUSEUM, "You need four adults.", "We come with 28 pupils.", []),
        (MUSEUM, "You need five adults.", "We come with 28 dogs.", []),
        (PERMITS, "That is £88 with the £30 surcharge.", "", ["£58 + £30"]),
        (PERMITS, "That is £88.", "", []),
        (PERMITS, "That leaves £1,300 once the excess is off.", "It cost £1,400.", ["£1,400 - £100"]),
        (
            PERMITS,
            "For 280 miles you get £126.",
            "It is 140 miles each way.",
            ["140 miles \u00d7 2", "45p \u00d7 280 miles"],
        ),
        (PERMITS, "For 290 miles you get £126.", "It is 140 miles each way.", []),
        (
            PERMITS,
            "Over 66 you pay £43.50, or 87 if there are two of you.",
            "",
            ["£58 \u00d7 three quarters", "£43.50 \u00d7 two"],
        ),
        (PERMITS, "The bridge took some five years to build.", "", ["1873 - 1868"]),
        (PERMITS, "The bridge took some six years to build.", "", []),
        (
            TRIAL,
            "Sleep rose by half an hour, 22 minutes more than in the control group.",
            "",
            ["31 minutes - 9 minutes"],
        ),
        (TRIAL, "Sleep rose for 22 minutes.", "", []),  # nothing is compared
        (TRIAL, "Sleep rose, 21 minutes more than in the control group.", "", []),
        (PAINT, "Two coats on 30 m² take 8 litres.", "", ["30 m² \u00d7 2 / 7.5 m²"]),
        (PAINT, "Two coats on 30 m² take 9 litres.", "", []),
        (LOAN, "As it ends on 18 January 2026, ask by 7 December.", "", ["18 January 2026 - six weeks"]),
        (LOAN, "As it ends on 18 January 2026, ask by 17 December.", "", []),
        (RACE, "She missed the record of 2:24:07.", "", ["2:24:18 - 11 seconds"]),
        (RACE, "She missed the record of 2:24:06.", "", []),
        (TRIAL, "Of the 212 people, 194 took part until the end.", "", ["212 - 18"]),
    ],
)
def test_what_a_passage_gives_with_words_that_tell_of_it(
    passage: str, response: str, question: str, words: list[str]
) -> None:
    found = derivations(response, (0, len(response)), question, Index([passage]))
    assert [one.words for one in found] == words


@pytest.mark.parametrize(
    ("passage", "response", "words"),
    [
        (
            "Display 139 euros, battery 49 euros; both together 20 euros off.",
            "The display costs 139 euros and the battery 49 euros; together there is 20 euros off, so {}.",
            "139 euros + 49 euros - 20 euros",
        ),
        (
            "From 10 units a laptop costs 13 euros per week.",
            "At 13 euros per week, 12 laptops for three weeks come to {}.",
            "13 euros \u00d7 12 \u00d7 three weeks",
        ),
        (
            "4.20 euros per hour, 0.32 euros per kilometre.",
            "Five hours at 4.20 euros and 60 km at 0.32 euros come to {}.",
            "4.20 euros \u00d7 Five hours + 0.32 euros \u00d7 60 km",
        ),
    ],
)
def test_a_bill_of_several_operations(passage: str, response: str, words: str) -> None:
    right = {"Display": "168 euros", "From": "468 euros", "4.20": "40.20 euros"}[passage.split(maxsplit=1)[0]]
    for amount, expected in ((right, [words]), ("479 euros", [])):
        answer, question = response.format(amount), "What do 12 laptops cost for a 3 week course?"
        found = derivations(answer, (0, len(answer)), question, Index([passage]))
        assert [one.words for one in found] == expected


def test_a_count_may_be_supposed_and_a_price_be_bare() -> None:
    assert derived("A bed costs 25 euros each, so seven would be 175 euros.") == ["25 euros \u00d7 seven"]
    assert derived("Plus is 34.90 euros a month, or 418.80 a year.") == ["34.90 euros \u00d7 12 months"]


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ("You have 21 days for it.", "three weeks"),
        ("It is open until midday.", "noon"),
        ("It is guaranteed for 24 months.", "Two years"),
        ("You have three weeks for it.", None),
        ("You have 3 weeks for it.", None),
        ("It took 30 days.", None),  # a month may have 31
        ("It was 3 May 2023.", None),  # the passage does not know the day
        ("You have 20 days for it.", None),
        ("It is shut on Monday.", None),  # one of the weekdays, which are no other words for it
    ],
)
def test_values_in_other_words(response: str, words: str | None) -> None:
    passage = (
        "Books are lent for three weeks, on weekdays until noon. Two years are guaranteed. "
        "It took one month, in May 2023."
    )
    found = [one.words for one in restatements(response, (0, len(response)), Index([passage]))]
    assert found == ([] if words is None else [words])


@pytest.mark.parametrize(
    ("response", "question", "words"),
    [
        (
            "A suitcase is 34 euros, and you owe 36 euros of fees.",
            "What do I pay for four days?",
            "9 euros \u00d7 four days",
        ),
        ("The suitcase is 34 euros; at the counter it is 21 euros dearer.", "", "55 euros - 34 euros"),
        ("A suitcase is 34 euros, and you owe 36 euros of fees.", "What do I pay for four cars?", None),
        ("The suitcase is 34 euros, a bag 21 euros.", "", None),
    ],
)
def test_what_only_a_passage_has_each_day_or_beside_it(
    response: str, question: str, words: str | None
) -> None:
    passage = "Drivers pay 9 euros a day. A suitcase costs 34 euros, and 55 euros at the counter."
    found = derivations(response, (0, len(response)), question, Index([passage]))
    assert [one.words for one in found] == ([] if words is None else [words])


TRIP = "The trip costs £285 per child; of two children each pays 10% less. The deposit is £60 per child."
CARTRIDGES = "Aquapure cartridge, pack of 3. Price per pack: €18.90."
BRIDGES = (
    "The Hesk Bridge is 1,140 metres long.",
    "The Tarn Bridge crosses the fjord further north. At 860 metres it is the shorter one.",
)
VIADUCT = "The arches were destroyed by a flood in 1911 and rebuilt in concrete the following year."
BRIDGE = "After the flood of 1926 the bridge was closed, and it was taken down two years later."
MILL = "The mill was closed in 1926, two years after the flood, and burnt down twenty-one years later."
PAINTER = "Ilse Marenka (4 June 1887 - 19 January 1961) was a painter. She moved to Averill in 1911."
PICTURE = "Her best-known picture, The Salt Carriers (1887), hangs in Averill, where she moved in 1911."
BROTHERS = "Ilse Marenka (1887 - 1961) and her brother Jan Marenka (1895 - 1970) moved in 1911."
BORN = "She was born in Bergen on 4 June 1887, moved to Averill in 1911 and died in 1961."
STUDENTS = "A room costs £125, and breakfast £20. Members get 10% off."
PACKS = "Pack of 3: €18.90. Pack of 6: €30.00. The kettle costs €45."
SEATS = "£80 per adult and £60 per child."
LATER = "It burned in March 1911 and was closed half a year later; less than two years later it was sold."
SEASON = "The arches were destroyed in 1911. The following year they were rebuilt."
RYE = "Bake the rye for 20 minutes at 240 °C, then for 35 minutes at 200 °C. It keeps for 7 days."
BIN = "Deleted files stay in the Bin for 60 days. A request takes 14 days."
CLUB = "Members may resign at the end of the calendar year. Notice must reach the secretary in writing."


@pytest.mark.parametrize(
    ("passages", "response", "words"),
    [
        ((TRIP,), "For the twins that is £120 in deposits.", ["£60 \u00d7 2"]),
        ((TRIP,), "A deposit is £120.", []),
        ((TRIP,), "If you return it, the deposit is £120.", []),
        ((TRIP,), "A tenth off the trip is £256.50, £513 for both.", ["£285 - 10%", "£256.50 \u00d7 2"]),
        ((TRIP,), "A tenth off the trip is £259.50.", []),
        ((TRIP,), "The trip is £256.50.", []),  # nothing tells of a discount
        ((TRIP,), "A tenth off a laptop is £256.50.", []),  # that is another matter
        ((CARTRIDGES,), "A pack works out at €6.30 apiece.", ["€18.90 / 3"]),
        ((CARTRIDGES,), "A pack works out at €9.45 apiece.", []),
        (
            BRIDGES,
            "It is 1,140 metres, 280 metres longer than the Tarn Bridge.",
            ["1,140 metres - 860 metres"],
        ),
        (BRIDGES, "It is 1,140 metres, 280 metres longer than the Old Bridge.", []),
        (BRIDGES, "The Hesk Bridge is 1,140 metres, 280 metres longer than others.", []),
        ((VIADUCT,), "Its arches were put back in concrete in 1912.", ["1911, the following year"]),
        ((VIADUCT,), "Its arches were put back in concrete in 1913.", []),
        ((VIADUCT,), "Its concrete is of the 1910s.", []),
        ((BRIDGE,), "The bridge was shut after the flood and demolished in 1928.", ["1926, two years later"]),
        ((MILL,), "The mill burnt down in 1947.", ["1926, twenty-one years later"]),
        ((MILL,), "The mill burnt down in 1927.", []),
        ((MILL,), "The mill was closed in 1928.", []),
        ((PAINTER,), "In 1911, aged 24, she moved to Averill.", ["1911 - 4 June 1887"]),
        ((PAINTER,), "In 1911, aged 27, she moved to Averill.", []),
        ((PAINTER,), "In 1911 she moved to 24 Averill Road.", []),
        ((PAINTER,), "In 1911, aged 24 months, she moved to Averill.", []),
        ((PAINTER,), "In 1911 Karl Brandt, aged 24, moved to Averill.", []),
        ((PICTURE,), "In 1911, aged 24, she moved to Averill.", []),
        (
            (CLUB,),
            "You leave as of 31 December, in writing to the secretary.",
            ["the end of the calendar year"],
        ),
        ((CLUB,), "You leave as of 30 November, in writing to the secretary.", []),
        ((CLUB,), "You leave as of 31 December 2019, in writing to the secretary.", []),
        ((CLUB,), "The sale ends on 31 December.", []),
        ((RYE,), "The rye bakes for 55 minutes in all.", ["20 minutes + 35 minutes"]),
        ((RYE,), "The rye bakes for 55 minutes.", []),
        ((RYE,), "The rye bakes for 65 minutes in all.", []),
        ((BIN,), "The files are there, with 20 days to spare.", ["60 days - 40 days"]),
        ((BIN,), "The files are there, with 25 days to spare.", []),
        ((BIN,), "The files were there for 20 days.", []),
    ],
)
def test_what_passages_have_and_the_response_does_not_say(
    passages: tuple[str, ...], response: str, words: list[str]
) -> None:
    question = "I deleted them 40 days ago. What then?"
    found = derivations(response, (0, len(response)), question, Index(passages))
    assert [one.words for one in found] == words


def test_what_stands_far_before_a_sentence_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an answer of many sentences would take time with the square of their number."""
    before, last = (
        "Nothing else is charged there. " * 200,
        "Plus is 34.90 and Basic 24.90 euros, which is 10 euros more.",
    )
    sentence, read = (len(before), len(before) + len(last)), list[str]()
    monkeypatch.setattr(derivation, "find_values", lambda text: read.append(text) or find_values(text))
    (one,) = derivations(before + last, sentence, "", INDEX)
    assert (before + last)[one.value.start : one.value.end] == "10 euros"
    assert [*restatements(before + last, sentence, INDEX)] == []
    assert max(map(len, read)) < len(before) / 2
