"""Units of measure, money and percentages: how texts write them, and their base units."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_MEASURES: dict[str, dict[str, tuple[float, str]]] = {
    "second": {
        "microsecond": (1e-6, "\u00b5s \u03bcs microsecond microseconds"),
        "millisecond": (1e-3, "ms msec msecs millisecond milliseconds"),
        "second": (1, "s sec secs second seconds"),
        "minute": (60, "min mins minute minutes"),
        "hour": (3600, "h hr hrs hour hours"),
        "day": (86_400, "day days"),
        "week": (604_800, "week weeks"),
        "fortnight": (1_209_600, "fortnight fortnights"),
        "month": (2_629_800, "month months"),
        "year": (31_557_600, "year years yr yrs"),
        "decade": (315_576_000, "decade decades"),
        "century": (3_155_760_000, "century centuries"),
    },
    "meter": {
        "millimeter": (1e-3, "mm millimetre millimetres millimeter millimeters"),
        "centimeter": (0.01, "cm centimetre centimetres centimeter centimeters"),
        "meter": (1, "m metre metres meter meters"),
        "kilometer": (1000, "km kilometre kilometres kilometer kilometers"),
        "inch": (0.0254, "inch inches"),
        "foot": (0.3048, "ft foot feet"),
        "yard": (0.9144, "yd yard yards"),
        "mile": (1609.344, "mi mile miles"),
    },
    "meter ** 2": {
        "hectare": (10_000, "ha hectare hectares"),
        "acre": (4046.87261, "acre acres"),
    },
    "kilogram": {
        "microgram": (1e-9, "\u00b5g \u03bcg mcg microgram micrograms"),
        "milligram": (1e-6, "mg milligram milligrams"),
        "gram": (1e-3, "g gram grams"),
        "kilogram": (1, "kg kilo kilos kilogram kilograms"),
        "metric_ton": (1000, "t tonne tonnes"),
        "ounce": (0.028349523125, "oz ounce ounces"),
        "pound": (0.45359237, "lb lbs"),
    },
    "meter ** 3": {
        "milliliter": (1e-6, "ml mL millilitre millilitres milliliter milliliters"),
        "centiliter": (1e-5, "cl centilitre centilitres"),
        "liter": (1e-3, "l L litre litres liter liters"),
        "gallon": (3.785411784e-3, "gal gallon gallons"),
        "pint": (4.73176473e-4, "pint pints"),
        "quart": (9.46352946e-4, "quart quarts"),
        "fluid_ounce": (2.95735295625e-5, "floz"),
        "cup": (2.365882365e-4, "cup cups"),
        "teaspoon": (4.92892159375e-6, "tsp teaspoon teaspoons"),
        "tablespoon": (1.478676478125e-5, "tbsp tablespoon tablespoons"),
    },
    "kelvin": {
        "degree_Celsius": (1, "\u00b0C degC celsius"),
        "degree_Fahrenheit": (5 / 9, "\u00b0F degF fahrenheit"),
    },
    "watt": {
        "watt": (1, "W watt watts"),
        "kilowatt": (1e3, "kW kilowatt kilowatts"),
        "megawatt": (1e6, "MW megawatt megawatts"),
        "gigawatt": (1e9, "GW gigawatt gigawatts"),
    },
    "joule": {
        "joule": (1, "J joule joules"),
        "kilojoule": (1e3, "kJ kilojoule kilojoules"),
        "kilocalorie": (4184, "kcal calorie calories"),
        "watt_hour": (3.6e3, "Wh"),
        "kilowatt_hour": (3.6e6, "kWh"),
        "megawatt_hour": (3.6e9, "MWh"),
        "gigawatt_hour": (3.6e12, "GWh"),
    },
    "volt": {
        "volt": (1, "V volt volts"),
    },
    "ampere": {
        "ampere": (1, "A amp amps"),
    },
    "coulomb": {
        "milliampere_hour": (3.6, "mAh"),
    },
    "hertz": {
        "hertz": (1, "Hz hertz"),
        "kilohertz": (1e3, "kHz kilohertz"),
        "megahertz": (1e6, "MHz megahertz"),
        "gigahertz": (1e9, "GHz gigahertz"),
    },
    "bit": {
        "bit": (1, "bit bits"),
        "kilobit": (1e3, "Kb kb kbit kilobit kilobits"),
        "megabit": (1e6, "Mb Mbit megabit megabits"),
        "gigabit": (1e9, "Gb Gbit gigabit gigabits"),
        "byte": (8, "byte bytes"),
        "kilobyte": (8e3, "KB kB kilobyte kilobytes"),
        "megabyte": (8e6, "MB megabyte megabytes"),
        "gigabyte": (8e9, "GB gigabyte gigabytes"),
        "terabyte": (8e12, "TB terabyte terabytes"),
    },
    "pascal": {
        "hectopascal": (100, "hPa"),
        "kilopascal": (1000, "kPa"),
        "bar": (1e5, "bar"),
        "psi": (6894.757293168, "psi"),
    },
    "decibel": {
        "decibel": (1, "dB decibel decibels"),
    },
    "degree": {
        "degree": (1, "\u00b0 degree degrees"),
    },
}
"""Units by their base unit: the factor to it, and how texts write them."""

_COMPOUNDS = {
    "meter ** 2": "m\u00b2 m2 sqm",
    "kilometer ** 2": "km\u00b2 km2",
    "foot ** 2": "ft\u00b2 ft2 sqft",
    "meter ** 3": "m\u00b3 m3",
    "megabit / second": "Mbps Mbit/s Mb/s",
    "gigabit / second": "Gbps Gbit/s Gb/s",
    "megabyte / second": "MB/s",
    "kilometer / hour": "km/h kph",
    "mile / hour": "mph",
    "meter / second": "m/s",
}

_WRITTEN = {unit: words for units in _MEASURES.values() for unit, (_, words) in units.items()} | _COMPOUNDS
_FACTORS = {unit: (factor, base) for base, units in _MEASURES.items() for unit, (factor, _) in units.items()}
_KELVINS = {"degree_Celsius": 273.15, "degree_Fahrenheit": 459.67 * 5 / 9}
"""Temperatures at zero degrees."""

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
"""Words and signs for units of measure, and the names of these."""

MONEY = {
    **dict.fromkeys(("$", "us$", "usd", "dollar", "dollars", "us dollar", "us dollars"), "USD"),
    **dict.fromkeys(("u.s. dollars", "american dollars", "buck", "bucks"), "USD"),
    **dict.fromkeys(("a$", "aud", "australian dollars"), "AUD"),
    **dict.fromkeys(("c$", "cad", "canadian dollars"), "CAD"),
    **dict.fromkeys(("\u20ac", "eur", "euro", "euros"), "EUR"),
    **dict.fromkeys(("\u00a3", "gbp", "pounds sterling", "british pounds", "quid"), "GBP"),
    **dict.fromkeys(("\u00a5", "jpy", "yen", "japanese yen"), "JPY"),
    **dict.fromkeys(("chf", "franc", "francs", "swiss francs"), "CHF"),
    **dict.fromkeys(("\u20b9", "inr", "rupee", "rupees", "indian rupees"), "INR"),
    **dict.fromkeys(("sek", "swedish kronor", "kronor"), "SEK"),
    **dict.fromkeys(("nok", "dkk", "norwegian kroner", "danish kroner", "kroner"), "kroner"),
    **dict.fromkeys(("pln", "zloty", "zlotys"), "PLN"),
    **dict.fromkeys(("cny", "yuan", "renminbi"), "CNY"),
}
CURRENCIES = frozenset(MONEY.values())
"""Codes of currencies."""
CENTS = {**dict.fromkeys(("cent", "cents", "\u00a2"), ""), **dict.fromkeys(("penny", "pence", "p"), "GBP")}
"""Hundredths, by the currency; "" is that which the text has, or else the dollar."""
POUNDS = ("pound", "pounds")
"""Money in a text that has signs of it, a weight elsewhere."""
PERCENT = ("%", "percent", "per cent", "pct", "\uff05")
POINTS = ("percentage points", "percentage point", "percent points")

DIMENSIONS = {**dict.fromkeys(CURRENCIES, "money"), "points": "%"}
"""Dimensions of units that no factor converts but that are compared: the wrong currency is a fault."""


def dimension(unit: str) -> str:
    """Return the dimension of a base unit."""
    return DIMENSIONS.get(unit, unit)


@dataclass(frozen=True, slots=True)
class Purse:
    """The meaning of "pounds" in a text (money, or a weight), and the currency of its cents."""

    sterling: bool = False
    cents: str = "USD"

    @classmethod
    def of(cls, *texts: str, priced: bool = False) -> Purse:
        """Decide by the signs of currencies in these texts; cents are euro cents if only euros are
        written. `priced` says that the texts around have a price in pounds: all pounds there are money."""
        euros, dollars = (any(sign in text for text in texts for sign in signs) for signs in _SIGNS)
        paid = (priced or bool(_PAID.search(texts[0]))) and not dollars
        return cls(
            paid or any(sign in text for text in texts for sign in _STERLING),
            "EUR" if euros and not dollars else "USD",
        )


_PAID = re.compile(
    r"\b(?:costs?|paid|pays?|prices?d?|fees?|fares?|salary|worth|(?:m|b)illion pounds)\b", re.IGNORECASE
)
PRICE_IN_POUNDS = re.compile(
    rf"{_PAID.pattern}(?:[^.;?\n]|\.(?=\d)){{0,40}}\bpounds?\b|\bpounds (?:a|per) (?:day|week|month|year)\b",
    re.IGNORECASE,
)
_STERLING = ("\u00a3", "sterling", "pence", "GBP")
_SIGNS = (("\u20ac", "euro", "EUR"), ("$", "dollar", "USD"))


def in_base_unit(amount: float, written: str, purse: Purse) -> tuple[float, str, float]:
    """Convert an amount and its written unit to the base unit ("" for none); return both with the factor.

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


def _converted(amount: float, unit: str) -> tuple[float, str, float]:
    factor, base = _to_base(unit)
    return amount * factor + _KELVINS.get(unit, 0.0), base, factor


@functools.cache
def _to_base(unit: str) -> tuple[float, str]:
    """Return the factor to the base unit and its name, also of "kilometer / hour" and "foot ** 2"."""
    if unit in _FACTORS:
        return _FACTORS[unit]
    if " / " in unit:
        (above, base), (below, time) = map(_to_base, unit.split(" / "))
        return above / below, f"{base} / {time}"
    name, power = unit.split(" ** ")
    factor, base = _FACTORS[name]
    return factor ** int(power), f"{base} ** {power}"
