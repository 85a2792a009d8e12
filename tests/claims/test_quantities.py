"""Numbers, units, money, ranges, fractions, and what looks like them."""

from __future__ import annotations

import pytest

from lrp4rag.claims.find import find_values
from lrp4rag.claims.quantities import find_quantities
from lrp4rag.claims.surroundings import Surroundings

HOUR, DAY, YEAR = 3600.0, 86400.0, 31557600.0


@pytest.mark.parametrize(
    ("text", "written", "amount", "unit"),
    [
        ("It takes two weeks.", "two weeks", 14 * DAY, "second"),
        ("a 16-week course", "16-week", 16 * 7 * DAY, "second"),
        ("for three more weeks", "three more weeks", 21 * DAY, "second"),
        ("cook an hour and a quarter", "an hour and a quarter", 1.25 * HOUR, "second"),
        ("a quarter of an hour later", "a quarter of an hour", HOUR / 4, "second"),
        ("three quarters of an hour", "three quarters of an hour", 0.75 * HOUR, "second"),
        ("wait half an hour", "half an hour", HOUR / 2, "second"),
        ("a half-hour walk", "a half-hour", HOUR / 2, "second"),
        ("two and a half years ago", "two and a half years", 2.5 * YEAR, "second"),
        ("a two-and-a-half-year term", "two-and-a-half-year", 2.5 * YEAR, "second"),
        ("two years and a half ago", "two years and a half", 2.5 * YEAR, "second"),
        ("for two decades", "two decades", 20 * YEAR, "second"),
        ("It takes about an hour.", "an hour", HOUR, "second"),
        ("\u00a330 per month", "\u00a330", 30, "GBP"),
        ("late books cost 20p a day", "20p", 0.2, "GBP"),
        ("a record of 2:24:07", "2:24:07", 2 * HOUR + 24 * 60 + 7, "second"),
        ("costs US$ 5.50 each", "US$ 5.50", 5.5, "USD"),
        ("worth 940 million dollars", "940 million dollars", 9.4e8, "USD"),
        ("worth $5m", "$5m", 5e6, "USD"),
        ("a budget of 15,000 \u20ac", "15,000 \u20ac", 15000, "EUR"),
        ("a budget of 15 000 euros", "15 000 euros", 15000, "EUR"),
        ("two and a half million euros", "two and a half million euros", 2.5e6, "EUR"),
        ("nineteen per cent of it", "nineteen per cent", 19, "%"),
        ("a slope of 35 %", "35 %", 35, "%"),
        ("a third of the staff", "a third of", 100 / 3, "%"),
        ("fell by a quarter", "a quarter", 25, "%"),
        ("two-thirds voted", "two-thirds", 200 / 3, "%"),
        ("half a million readers", "half a million", 5e5, ""),
        ("a hundred and five guests", "a hundred and five", 105, ""),
        ("two million three hundred thousand", "two million three hundred thousand", 2.3e6, ""),
        ("two dozen eggs", "two dozen", 24, ""),
        ("1 1/2 cups of milk", "1 1/2 cups", 1.5 * 2.365882365e-4, "meter ** 3"),
        ("\u00bd cup of milk", "\u00bd cup", 0.5 * 2.365882365e-4, "meter ** 3"),
        ("600 m\u00b2 of lawn", "600 m\u00b2", 600, "meter ** 2"),
        ("5 pounds of flour", "5 pounds", 2.26796185, "kilogram"),
        ("5 pounds or \u00a35", "5 pounds", 5, "GBP"),
        ("at 350 degrees F", "350 degrees F", 449.817, "kelvin"),
        ("down to -18 \u00b0C", "-18 \u00b0C", 255.15, "kelvin"),
        ("a noise of 40 dB", "40 dB", 40, "decibel"),
        ("the 19th floor", "19th", 19, "ordinal"),
        ("Take 5 a day", "5", 5, ""),
        ("twice daily", "twice", 2, ""),
        ("once a week", "once", 1, ""),
    ],
)
def test_a_quantity_comes_to_its_base_unit(text: str, written: str, amount: float, unit: str) -> None:
    found = next(find_quantities(text))
    assert (found.text, found.unit) == (written, unit)
    assert found.amount == pytest.approx(amount, rel=1e-5)
    assert text[found.start : found.end] == written


@pytest.mark.parametrize(
    ("text", "amounts", "unit"),
    [
        ("between 20 and 60 mm", [0.02, 0.06], "meter"),
        ("20 to 60 mm", [0.02, 0.06], "meter"),
        ("20\u201360 mm", [0.02, 0.06], "meter"),
        ("20 x 60 mm", [0.02, 0.06], "meter"),
        ("10-15%", [10, 15], "%"),
        ("two or three days", [2 * DAY, 3 * DAY], "second"),
        ("\u20ac5 to 10", [5, 10], "EUR"),
        ("3 to 4 million", [3e6, 4e6], ""),
        ("$3 to $4 million", [3e6, 4e6], "USD"),
        ("900 to 1 million", [900, 1e6], ""),
        ("-5 to -1 \u00b0C", [268.15, 272.15], "kelvin"),
    ],
)
def test_a_range_shares_its_unit(text: str, amounts: list[float], unit: str) -> None:
    found = list(find_quantities(text))
    assert [one.unit for one in found] == [unit, unit]
    assert [one.amount for one in found] == pytest.approx(amounts)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("It takes 5 days\u30101\u2020source\u3011.", "5 days"),
        ("It takes 5 days[^1].", "5 days"),
        ("It takes 5 days **1**.", "5 days"),
        ("It takes 5 days (7).", "5 days"),
        ("It takes 5 days\u2077.", "5 days"),
        ("It takes seven (7) days.", "seven"),
        ("It takes 3\u200b0 days.", "3\u200b0 days"),
    ],
)
def test_a_mark_that_cites_is_no_quantity(text: str, written: str) -> None:
    assert [one.text for one in find_values(text) if one.kind == "quantity"] == [written]


def test_numbers_joined_by_an_and_stay_apart() -> None:
    assert [(one.amount, one.unit) for one in find_quantities("six and 7 km")] == [(6, ""), (7000, "meter")]


@pytest.mark.parametrize(
    "text",
    [
        "3. Place the beets in water",
        "Do this:\n  12) Stir",
        "**4.** Rinse",
        "Peel them. 2. Boil them.",
        "(1) wash, (2) dry",
        "no one came",
        "one of them left",
        "Nasa runs 24/7",
        "a third party",
        "the second half",
        "at half past",
        "a half-life",
        "the 4x4 and 5abc",
        "in 1080p",
        "9" * 400,
    ],
)
def test_what_only_looks_like_a_quantity_is_none(text: str) -> None:
    assert list(find_quantities(text)) == []


@pytest.mark.parametrize(
    ("text", "noun"),
    [
        ("25 working days a year", "working day"),
        ("four wheels are driven", "wheel"),
        ("10 of them", ""),
        ("three times within a day", "time"),
        ("six passes in all", "passe"),
    ],
)
def test_a_plain_count_has_a_noun(text: str, noun: str) -> None:
    assert next(find_quantities(text)).noun == noun


@pytest.mark.parametrize(
    ("around", "unit"),
    [
        ("One machine costs 5.20 pounds.", "GBP"),
        ("Tyne Plus is 6 pounds a month.", "GBP"),
        ("Take 6 pounds of flour.", "kilogram"),
        ("It costs 40 dollars and weighs 6 pounds.", "kilogram"),
    ],
)
def test_pounds_are_money_where_the_texts_around_have_a_price_in_pounds(around: str, unit: str) -> None:
    (found,) = find_quantities("9 pounds for the larger", Surroundings(around))
    assert found.unit == unit
