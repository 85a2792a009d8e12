"""Units of measure, money and percentages: how texts write them, and their base units."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

_WRITTEN = {
    "microsecond": "\u00b5s \u03bcs microsecond microseconds",
    "millisecond": "ms msec msecs millisecond milliseconds",
    "second": "s sec secs second seconds",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "fortnight": "fortnight fortnights",
    "month": "month months",
    "year": "year years yr yrs",
    "decade": "decade decades",
    "century": "century centuries",
    "millimeter": "mm millimetre millimetres millimeter millimeters",
    "centimeter": "cm centimetre centimetres centimeter centimeters",
    "meter": "m metre metres meter meters",
    "kilometer": "km kilometre kilometres kilometer kilometers",
    "inch": "inch inches",
    "foot": "ft foot feet",
    "yard": "yd yard yards",
    "mile": "mi mile miles",
    "meter ** 2": "m\u00b2 m2 sqm",
    "kilometer ** 2": "km\u00b2 km2",
    "foot ** 2": "ft\u00b2 ft2 sqft",
    "hectare": "ha hectare hectares",
    "acre": "acre acres",
    "meter ** 3": "m\u00b3 m3",
    "microgram": "\u00b5g \u03bcg mcg microgram micrograms",
    "milligram": "mg milligram milligrams",
    "gram": "g gram grams",
    "kilogram": "kg kilo kilos kilogram kilograms",
    "metric_ton": "t tonne tonnes",
    "ounce": "oz ounce ounces",
    "pound": "lb lbs",
    "milliliter": "ml mL millilitre millilitres milliliter milliliters",
    "centiliter": "cl centilitre centilitres",
    "liter": "l L litre litres liter liters",
    "gallon": "gal gallon gallons",
    "pint": "pint pints",
    "quart": "quart quarts",
    "fluid_ounce": "floz",
    "cup": "cup cups",
    "teaspoon": "tsp teaspoon teaspoons",
    "tablespoon": "tbsp tablespoon tablespoons",
    "degree_Celsius": "\u00b0C degC celsius",
    "degree_Fahrenheit": "\u00b0F degF fahrenheit",
    "watt": "W watt watts",
    "kilowatt": "kW kilowatt kilowatts",
    "megawatt": "MW megawatt megawatts",
    "gigawatt": "GW gigawatt gigawatts",
    "watt_hour": "Wh",
    "kilowatt_hour": "kWh",
    "megawatt_hour": "MWh",
    "gigawatt_hour": "GWh",
    "volt": "V volt volts",
    "ampere": "A amp amps",
    "milliampere_hour": "mAh",
    "hertz": "Hz hertz",
    "kilohertz": "kHz kilohertz",
    "megahertz": "MHz megahertz",
    "gigahertz": "GHz gigahertz",
    "kilocalorie": "kcal calorie calories",
    "joule": "J joule joules",
    "kilojoule": "kJ kilojoule kilojoules",
    "bit": "bit bits",
    "kilobit": "Kb kb kbit kilobit kilobits",
    "megabit": "Mb Mbit megabit megabits",
    "gigabit": "Gb Gbit gigabit gigabits",
    "megabit / second": "Mbps Mbit/s Mb/s",
    "gigabit / second": "Gbps Gbit/s Gb/s",
    "megabyte / second": "MB/s",
    "byte": "byte bytes",
    "kilobyte": "KB kB kilobyte kilobytes",
    "megabyte": "MB megabyte megabytes",
    "gigabyte": "GB gigabyte gigabytes",
    "terabyte": "TB terabyte terabytes",
    "kilometer / hour": "km/h kph",
    "mile / hour": "mph",
    "meter / second": "m/s",
    "bar": "bar",
    "psi": "psi",
    "hectopascal": "hPa",
    "kilopascal": "kPa",
    "decibel": "dB decibel decibels",
    "degree": "\u00b0 degree degrees",
}
_SPELT = {
    **{f"degrees {scale}": "degree_Celsius" for scale in ("C", "Celsius", "celsius", "centigrade")},
    **{f"degrees {scale}": "degree_Fahrenheit" for scale in ("F", "Fahrenheit", "fahrenheit")},
    **{
        f"{word} {per} {time}": f"{unit} / {time}"
        for unit in ("centimeter", "meter", "kilometer", "foot", "mile", "milliliter", "liter", "gallon")
        for word in _WRITTEN[unit].split()
        if len(word) > 2
        for per, times in (("per", "second minute hour"), ("a", "second minute"), ("an", "hour"))
        for time in times.split()
    },
    **{
        f"{square} {word}": f"{unit} ** 2"
        for square in ("square", "sq", "sq.")
        for unit in ("meter", "kilometer", "foot", "mile", "inch", "yard")
        for word in _WRITTEN[unit].split()
        if square != "square" or len(word) > 2
    },
    **{
        f"cubic {word}": f"{unit} ** 3"
        for unit in ("meter", "centimeter", "foot", "yard")
        for word in _WRITTEN[unit].split()
        if len(word) > 2
    },
    **{f"fluid {word}": "fluid_ounce" for word in ("ounce", "ounces")},
    **{f"kilowatt{gap}{word}": "kilowatt_hour" for gap in (" ", "-") for word in ("hour", "hours")},
    **{f"fl{dot} oz": "fluid_ounce" for dot in ("", ".")},
}
UNITS = {word: unit for unit, words in _WRITTEN.items() for word in words.split()} | _SPELT
"""Words and signs for units of measure, by the name that pint knows."""

MONEY = {
    **dict.fromkeys(("$", "us$", "usd", "dollar", "dollars", "us dollar", "us dollars"), "USD"),
    **dict.fromkeys(("u.s. dollars", "american dollars", "buck", "bucks"), "USD"),
    **dict.fromkeys(("a$", "aud", "australian dollars"), "AUD"),
    **dict.fromkeys(("c$", "cad", "canadian dollars"), "CAD"),
    **dict.fromkeys(("\u20ac", "eur", "euro", "euros"), "EUR"),
    **dict.fromkeys(("\u00a3", "gbp", "pounds sterling", "british pounds"), "GBP"),
    **dict.fromkeys(("\u00a5", "jpy", "yen", "japanese yen"), "JPY"),
    **dict.fromkeys(("chf", "franc", "francs", "swiss francs"), "CHF"),
    **dict.fromkeys(("\u20b9", "inr", "rupee", "rupees", "indian rupees"), "INR"),
    **dict.fromkeys(("sek", "swedish kronor", "kronor"), "SEK"),
    **dict.fromkeys(("nok", "dkk", "norwegian kroner", "danish kroner", "kroner"), "kroner"),
    **dict.fromkeys(("pln", "zloty", "zlotys"), "PLN"),
    **dict.fromkeys(("cny", "yuan", "renminbi"), "CNY"),
}
CURRENCIES = frozenset(MONEY.values())
"""Their codes."""
CENTS = {**dict.fromkeys(("cent", "cents", "\u00a2"), ""), **dict.fromkeys(("penny", "pence"), "GBP")}
"""Hundredths, by the currency; "" is that which the text has, or else the dollar."""
POUNDS = ("pound", "pounds")
"""Money in a text that has signs of it, a weight elsewhere."""
PERCENT = ("%", "percent", "per cent", "pct", "\uff05")
POINTS = ("percentage points", "percentage point", "percent points")

DIMENSIONS = {**dict.fromkeys(CURRENCIES, "money"), "points": "%"}
"""Of units that no factor converts and that are compared all the same: the wrong currency is a fault."""

_NO_RATIO_SCALE = ("decibel", "degree")


def dimension(unit: str) -> str:
    """Return the dimension of a base unit."""
    return DIMENSIONS.get(unit, unit)


@dataclass(frozen=True, slots=True)
class Purse:
    """The meaning of "pounds" in a text (money, or a weight), and the currency of its cents."""

    sterling: bool = False
    cents: str = "USD"

    @classmethod
    def of(cls, *texts: str) -> Purse:
        """By the signs of currencies in these texts; cents are euro cents where only euros are written."""
        euros, dollars = (any(sign in text for text in texts for sign in signs) for signs in _SIGNS)
        paid = bool(_PAID.search(texts[0])) and not dollars
        return cls(
            paid or any(sign in text for text in texts for sign in _STERLING),
            "EUR" if euros and not dollars else "USD",
        )


_PAID = re.compile(
    r"\b(?:costs?|paid|pays?|prices?d?|fees?|fares?|salary|worth|(?:m|b)illion pounds)\b", re.IGNORECASE
)
_STERLING = ("\u00a3", "sterling", "pence", "GBP")
_SIGNS = (("\u20ac", "euro", "EUR"), ("$", "dollar", "USD"))


def in_base_unit(amount: float, written: str, purse: Purse) -> tuple[float, str, float]:
    """An amount and the unit that a text writes after it, in the base unit ("" where there is none), with
    the factor between them.

    Temperatures come to kelvins; plain degrees and decibels stay.
    """
    small = written.casefold()
    if not written or small in PERCENT:
        return amount, "%" if written else "", 1.0
    if small in POINTS:
        return amount, "points", 1.0
    if small in CENTS:
        return amount / 100, CENTS[small] or purse.cents, 0.01
    if small in POUNDS:
        return (amount, "GBP", 1.0) if purse.sterling else _converted(amount, "pound")
    if small in MONEY:
        return amount, MONEY[small], 1.0
    measure = UNITS.get(written) or UNITS.get(small)
    return _converted(amount, measure) if measure else (amount, "", 1.0)


def _converted(amount: float, measure: str) -> tuple[float, str, float]:
    if measure in _NO_RATIO_SCALE:
        return amount, measure, 1.0
    factor, offset, base = _to_base(measure)
    return amount * factor + offset, base, factor


@functools.cache
def _to_base(measure: str) -> tuple[float, float, str]:
    """Factor, offset and name of the base unit; the offset is of temperatures."""
    registry = _registry()
    unit = registry.parse_units(measure)
    zero = registry.Quantity(0.0, unit).to_base_units()
    one = registry.Quantity(1.0, unit).to_base_units()
    offset = float(zero.magnitude)
    return float(one.magnitude) - offset, offset, str(one.units)


@functools.cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()
