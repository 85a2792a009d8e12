"""Units of measure, money and percentages: how texts write them, and their base units."""

from __future__ import annotations

import functools
from typing import Any

_WRITTEN = {
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
    "mile": "mile miles",
    "meter ** 2": "m\u00b2 m2 sqm",
    "kilometer ** 2": "km\u00b2 km2",
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
    "gallon": "gallon gallons",
    "cup": "cup cups",
    "teaspoon": "tsp teaspoon teaspoons",
    "tablespoon": "tbsp tablespoon tablespoons",
    "degree_Celsius": "\u00b0C degC celsius",
    "degree_Fahrenheit": "\u00b0F degF fahrenheit",
    "watt": "W watt watts",
    "kilowatt": "kW kilowatt kilowatts",
    "megawatt": "MW megawatt megawatts",
    "kilowatt_hour": "kWh",
    "volt": "V volt volts",
    "ampere": "A amp amps",
    "hertz": "Hz hertz",
    "kilocalorie": "kcal calorie calories",
    "byte": "byte bytes",
    "kilobyte": "KB kB kilobyte kilobytes",
    "megabyte": "MB megabyte megabytes",
    "gigabyte": "GB gigabyte gigabytes",
    "terabyte": "TB terabyte terabytes",
    "kilometer / hour": "km/h kph",
    "mile / hour": "mph",
    "meter / second": "m/s",
    "bar": "bar",
    "decibel": "dB decibel decibels",
    "degree": "\u00b0 degree degrees",
}
UNITS = {word: unit for unit, words in _WRITTEN.items() for word in words.split()} | {
    f"degrees {scale}": unit
    for unit, scales in (
        ("degree_Celsius", "C Celsius celsius"),
        ("degree_Fahrenheit", "F Fahrenheit fahrenheit"),
    )
    for scale in scales.split()
}
"""Words and signs for units of measure, by the name that pint knows."""

MONEY = {
    **dict.fromkeys(("$", "us$", "usd", "dollar", "dollars"), "USD"),
    **dict.fromkeys(("\u20ac", "eur", "euro", "euros"), "EUR"),
    **dict.fromkeys(("\u00a3", "gbp"), "GBP"),
    **dict.fromkeys(("\u00a5", "jpy", "yen"), "JPY"),
    **dict.fromkeys(("chf", "franc", "francs"), "CHF"),
    **dict.fromkeys(("cent", "cents", "pence"), "cent"),
}
CURRENCIES = frozenset(MONEY.values()) - {"cent"}
"""Their codes."""
POUNDS = ("pound", "pounds")
"""Money in a text that has signs of it, a weight elsewhere."""
PERCENT = ("%", "percent", "per cent", "percentage points", "percentage point")

_NO_RATIO_SCALE = ("decibel", "degree")


def in_base_unit(amount: float, written: str, *, sterling: bool) -> tuple[float, str]:
    """An amount and the unit that a text writes after it, in the base unit; "" where there is none.

    Temperatures come to kelvins; plain degrees and decibels stay. `sterling`: "pounds" are money.
    """
    small = written.casefold()
    if not written or small in PERCENT:
        return amount, "%" if written else ""
    if small in POUNDS:
        return (amount, "GBP") if sterling else _converted(amount, "pound")
    if small in MONEY:
        return amount, MONEY[small]
    measure = UNITS.get(written) or UNITS.get(small)
    return _converted(amount, measure) if measure else (amount, "")


def _converted(amount: float, measure: str) -> tuple[float, str]:
    if measure in _NO_RATIO_SCALE:
        return amount, measure
    factor, offset, base = _to_base(measure)
    return amount * factor + offset, base


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
