"""Dates, times of the day, and how often."""

from __future__ import annotations

import pytest

from lrp4rag.claims import agree
from lrp4rag.claims.dates import find_dates, find_periods, find_times


@pytest.mark.parametrize(
    ("text", "written", "key"),
    [
        ("due 2021-03-05 at last", "2021-03-05", (2021, 3, 5, None)),
        ("until 3.9. at last", "3.9.", (None, 9, 3, None)),
        ("3.9.", "3.9.", (None, 9, 3, None)),
        ("3.9.2021", "3.9.2021", (2021, 9, 3, None)),
        ("13/9/2021", "13/9/2021", (2021, 9, 13, None)),
        ("9/13/2021", "9/13/2021", (2021, 9, 13, None)),
        ("9/3/2021", "9/3/2021", (2021, None, None, None)),
        ("the 3rd of March", "3rd of March", (None, 3, 3, None)),
        ("March 3rd, 2021", "March 3rd, 2021", (2021, 3, 3, None)),
        ("on Sept. 3", "Sept. 3", (None, 9, 3, None)),
        ("in March 2021", "March 2021", (2021, 3, None, None)),
        ("since 1998", "1998", (1998, None, None, None)),
        ("In 1800 farmers left", "1800", (1800, None, None, None)),
        ("in the 1990s", "1990s", (1990, None, None, None)),
        ("from May on", "May", (None, 5, None, None)),
        ("In May sales rose", "May", (None, 5, None, None)),
        ("on New Year\u2019s Eve", "New Year\u2019s Eve", (None, 12, 31, None)),
        ("on Christmas Day", "Christmas Day", (None, 12, 25, None)),
        ("every Tuesday", "Tuesday", (None, None, None, 1)),
    ],
)
def test_a_date_has_the_parts_that_are_written(text: str, written: str, key: tuple[int | None, ...]) -> None:
    (found,) = find_dates(text)
    assert (found.text, found.key) == (written, key)
    assert text[found.start : found.end] == written


def test_both_years_of_a_range_are_dates() -> None:
    assert [one.key[0] for one in find_dates("2019-2021")] == [2019, 2021]


@pytest.mark.parametrize(
    "text",
    [
        "It may rain",
        "May I come in",
        "The price fell to 36.6. Then",
        "It costs 10.5. Then",
        "1800 calories",
        "1600 m\u00b2",
        "\u00a32000",
        "call 555-2012",
        "15000",
        "2,000",
        "they march on",
    ],
)
def test_other_numbers_and_words_are_no_dates(text: str) -> None:
    assert list(find_dates(text)) == []


@pytest.mark.parametrize(
    ("text", "written", "minutes"),
    [
        ("at 12:30", "12:30", 750),
        ("at 9 am", "9 am", 540),
        ("at 9.15 p.m. sharp", "9.15 p.m.", 1275),
        ("at 12:05 AM", "12:05 AM", 5),
        ("at 24:00", "24:00", 0),
        ("at 12 noon", "12 noon", 720),
        ("before midnight", "midnight", 0),
        ("7 o'clock in the evening", "7 o'clock in the evening", 1140),
        ("at half past eight in the morning", "half past eight in the morning", 510),
        ("on Thursdays until 20.30", "20.30", 1230),
        ("not after 17.00", "17.00", 1020),
    ],
)
def test_a_time_is_minutes_after_midnight(text: str, written: str, minutes: int) -> None:
    (found,) = find_times(text)
    assert (found.text, found.key) == (written, (minutes,))


def test_both_ends_of_opening_hours_are_times() -> None:
    assert [one.key for one in find_times("Tuesday to Sunday 9.30 to 17.30")] == [(570, 12), (1050,)]


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("6:00 to 6:50 pm", [1080, 1130]),
        ("9:30 to 10:15 am", [570, 615]),
        ("11:30 to 1:15 pm", [690, 795]),
        ("10:00\u201312:30 pm", [600, 750]),
        ("15:00 to 17:00", [900, 1020]),
        ("0:30 to 1:15 pm", [30, 795]),
    ],
)
def test_the_end_of_a_range_tells_the_half_of_the_day(text: str, minutes: list[int]) -> None:
    assert [one.key[0] for one in find_times(text)] == minutes


@pytest.mark.parametrize(("text", "minutes"), [("by 9 o'clock", 540), ("at quarter to nine", 525)])
def test_a_clock_does_not_tell_the_half_of_the_day(text: str, minutes: int) -> None:
    (found,) = find_times(text)
    (evening,) = find_times(f"{(minutes + 720) // 60}:{minutes % 60:02}")
    assert found.key == (minutes, 12)
    assert agree(found, evening)
    assert agree(evening, found)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a ratio of 3:1",
            "9 amps",
            "1:23:45",
            "I am here",
            "35:70",
            "it rose to 17.50",
            "from 7.50 to 9.50",
        ),
        *("open daily, entry from 7.50 euros", "on Sundays at 1.25 times the wage", "Tuesday: 7.50"),
    ],
)
def test_other_figures_are_no_times(text: str) -> None:
    assert list(find_times(text)) == []


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("\u00a330 per month", "month"),
        ("three days a week", "week"),
        ("once per calendar year", "year"),
        ("a weekly report", "week"),
        ("taken daily", "day"),
        ("an annual fee", "year"),
        ("25 days a quarter", "quarter"),
        ("Every fortnight", "fortnight"),
    ],
)
def test_a_period_says_how_often(text: str, unit: str) -> None:
    (found,) = find_periods(text)
    assert found.key == (unit,)
