"""Edits that make a faithful response wrong with respect to its passages, by kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

from lrp4rag.example import Example
from lrp4rag.sentences import sentences_of
from lrp4rag.training.pairs.edit import SUPPORTED, Draft, Edit, Maker, apply, index_of
from lrp4rag.training.pairs.wording import as_written, is_label, other_dates, other_numbers, other_times
from lrp4rag.values.find import find_values
from lrp4rag.values.index import Occurrence, content_words, rivals
from lrp4rag.values.polarity import opposites
from lrp4rag.values.value import Value, agree

CLEARLY_WORSE = 0.75
"""A value that the passages have elsewhere is wrong here if its surroundings fit the statement less than this
share of how well those of the written value fit."""

UNRELATED = 0.4
"""Passages whose sentences all have a smaller share of a statement's words do not make the statement."""

_FAMILIES = (
    "mm cm m km",
    "millimetres centimetres metres kilometres",
    "millimeters centimeters meters kilometers",
    "inches feet yards miles",
    "inch foot yard mile",
    "seconds minutes hours days weeks months years",
    "second minute hour day week month year",
    "mg g kg",
    "milligrams grams kilograms",
    "ounces pounds tons",
    "ml l",
    "millilitres litres",
    "milliliters liters",
    "teaspoons tablespoons cups",
    "teaspoon tablespoon cup",
    "°C °F",
    "MB GB TB",
    "W kW MW",
    "thousand million billion",
)
_MONEY = ("dollars euros pounds", "$ € £")


def _swaps(families: Iterable[str]) -> dict[str, list[str]]:
    """Each word with its neighbours in its family: seconds for minutes, not for years."""
    swaps = {}
    for words in map(str.split, families):
        for k, word in enumerate(words):
            swaps[word] = [one for one in words[max(k - 2, 0) : k + 3] if one != word]
    return swaps


_UNITS, _CURRENCIES = _swaps(_FAMILIES), _swaps(_MONEY)
_UNIT = re.compile(
    r"(?<![a-zA-Z])(?:"
    + "|".join(re.escape(one) for one in sorted({*_UNITS, *_CURRENCIES}, key=len, reverse=True))
    + r")(?![\w²³/])"
)
_PERIODS = ("hour", "day", "week", "month", "quarter", "year")
_ADVERBS = ("hourly", "daily", "weekly", "monthly", "yearly", "annually")
_AUXILIARY = re.compile(
    r"(?<!\ba )(?<!\bthe )(?<!\bper )(?<!\beach )(?<!\bevery )(?<!\d )(?<!\bwhat )(?<!\bWhat )"
    r"\b(?:is|are|was|were|can|could|will|would|should|must|has been|have been)\b"
    r"(?= [a-z\d])(?! (?:not|n[\u2019']t|no|only|also|never|neither|you|we|it|he|she|they|as follows)\b)"
)
_IMPERATIVE = re.compile(
    r"(?:(?<=[.!:*] )|(?<=\n)|\A)(?P<verb>Add|Use|Keep|Place|Put|Remove|Store|Wash|Cover|Heat|Cook|Bake|Boil|"
    r"Stir|Mix|Pour|Rinse|Cut|Turn|Let|Allow|Drink|Eat|Take|Make|Press|Open|Close|Click|Contact|Ask|Check|Set|"
    r"Soak|Leave)\b(?= (?:the|a|an|your|it|them|in|into|for|with|on|at|from|to|all|some|any)\b)"
)
_NOT_ALONE = re.compile(r"\bnot\b(?! only)", re.IGNORECASE)
_UNSUITABLE = {
    "all", "none", "both", "neither", "some", "no", "if", "unless", "free", "chargeable", "near", "far",
    "same", "different", "until", "may", "may not", "does", "do", "did", "most", "least", "only",
    "also", "up to", "at least", "at most", "over", "under", "open", "closed", "left", "right", "like",
    "unlike", "on", "off", "first", "last", "is", "are", "was", "were", "has", "have", "can", "could",
    "will", "would", "should", "must", "everyone", "nobody", "start", "end", "low", "high",
}  # fmt: skip
"""Words whose opposite often does not stand in their place, or that another pattern or kind changes."""
_BEFORE_NUMBER = r"(?= [$€£]?\d| (?:a|one|two|three|four|five|six|ten)\b)"
_IF = r"(?:if|unless|provided that|as long as|except when|only when)"
_NO_POLITE = r"(?!necessary|needed|desired|possible|you (?:like|want|wish|prefer))"
_VERBS = (
    *(
        "see",
        "check",
        "know",
        "determine",
        "ask",
        "asked",
        "decide",
        "tell",
        "out",
        "sure",
        "even",
        r"\bas",
        "is",
    ),
    *("what", "say", "wonder", "learn", "confirm", "verify", "and", "or", "test"),
)
_NOT_AFTER_VERB = "".join(f"(?<!{word})" for word in _VERBS)
_CONDITIONS = (
    (r"(?<!\bthe )(?<!\bnot )(?<!\bbut )(?<!\ban )\bonly\b", ("",)),
    (r"\bexcept for\b", ("including", "as well as")),
    (
        r"(?<![Hh]ow )(?<!\bbe )(?<!\bas )(?<!\bso )(?<!\ba )(?<!\bthe )\b(?:some|many|several|a few)\b"
        r"(?! (?:of|inches|minutes|hours|days|weeks|months|years|times)\b)(?= [a-z]+s\b)",
        ("all", "no"),
    ),
    (r"(?<!\bthe )(?<!\bat )\bmost\b(?= (?:of the|people|[a-z]+(?:ers|ies|ents|ions))\b)", ("all",)),
    (r"\b(?:usually|often|sometimes|typically|generally|normally|occasionally)\b", ("always", "never")),
    (r"\b(?:may|might)\b(?= (?!not\b|also\b)[a-z])", ("will always", "will")),
    (rf"\b(?:up to|at most|no more than|a maximum of)\b{_BEFORE_NUMBER}", ("at least", "more than")),
    (rf"\b(?:at least|a minimum of|no less than)\b{_BEFORE_NUMBER}", ("at most", "up to")),
    (
        rf"{_NOT_AFTER_VERB},? (?:but )?(?:only )?{_IF} {_NO_POLITE}[^,.;:\n]{{8,90}}(?=[.,;])",
        ("", " in any case", " under all circumstances"),
    ),
    (
        r"(?:(?<=[.!] )|(?<=\n)|\A)(?:If|Unless) [^.,;:\n]{8,90}, (?=[a-z])",
        ("In any case, ", "In every case, "),
    ),
)
_CONDITIONAL = [(re.compile(pattern), others) for pattern, others in _CONDITIONS]
"""Patterns of what limits a statement, and what in their place does not, or limits otherwise."""
_SCALES = {"F", "C", "Fahrenheit", "Celsius"}
REFUSALS = (
    "Unable to answer based on given passages.",
    "Based on the given passages, it is not possible to answer this question.",
    "The provided passages do not contain any information about this.",
    "The passages do not say {topic}.",
    "There is no information in the passages on {topic}.",
    "The documents do not mention {topic}.",
    "I could not find {topic} in the passages.",
    "None of the passages states {topic}.",
    "This is not stated in the text.",
    "The passages give no details on {topic}, so the question cannot be answered.",
)
_QUESTION = re.compile(
    r"(?P<word>what|who) (?P<verb>is|are|was|were) (?P<rest>(?:the|a|an|my|your) [\w' -]+)", re.IGNORECASE
)
_DANGLING = re.compile(r"(?:ed|known|for|from|of|in|on|to|like|about|with|made|do|mean)\Z", re.IGNORECASE)
_OPENING = re.compile(
    r"(?:However|Also|Additionally|Finally|Then|But|And|Therefore|Overall|In addition|Furthermore),? "
)
_STANDALONE = re.compile(
    r"(?!(?:Passages?|Based|According|Unable|The (?:given |provided )?passages?|Step|Yes|No|So|I|"
    r"To summarize)\b)[A-Z][^\n:\"\u201c\u201d]{25,220}\.\Z"
)
_ABOUT_PASSAGES = re.compile(
    r"\b(?:passages?|mention(?:s|ed)?|provided|question|answer|unable|text|information)\b", re.IGNORECASE
)
_PRONOUN = re.compile(
    r"(?:It(?!['\u2019]s| (?:is|was|can be|may be|will be|takes|seems|appears|depends)\b)|"
    r"They|He|She|Its|Their|His|Her)\b"
)


def numbers(draft: Draft, random: Random) -> Iterator[Edit]:
    """Another number: one that the passages have elsewhere, or one that they do not have."""
    for value in draft.shuffled(random, "quantity"):
        around = draft.response[: value.start], draft.response[value.end :]
        if value.text.lower() == "one" or is_label(*around) or draft.supported(value) < SUPPORTED:
            continue
        written = [as_written(value, one.value) for one in rivals(value, draft.occurrences(value))]
        texts = [text for text in written if text is not None][:4]
        if random.random() < 0.5:
            texts = []  # else most faults would be numbers of the passages
        texts += other_numbers(value, random)
        yield from _first(draft, "number", value, texts)


def names(draft: Draft, random: Random) -> Iterator[Edit]:
    """Another name: one that the passages have elsewhere, or else one of another source."""
    for value in draft.shuffled(random, "name"):
        if value.text in _SCALES or draft.supported(value) < SUPPORTED:
            continue
        found = [
            one.value.text
            for one in rivals(value, draft.occurrences(value))
            if not set(one.value.key) & set(value.key)
            and _can_replace(one.value, value.text, draft.example.passages[one.passage], draft)
        ]
        found = random.sample(found, len(found))
        if (name := _name_of_another(draft, value.text, random)) is not None:
            found.append(name)
        yield from _first(draft, "name", value, found)


def dates_and_units(draft: Draft, random: Random) -> Iterator[Edit]:
    """Another month, day, year, weekday or hour, another unit of the same family, another period."""
    for value in draft.shuffled(random, "date", "time", "period", "quantity"):
        texts: list[str] = []
        if value.kind == "date":
            texts = other_dates(value, random)
            texts += [
                one.value.text
                for one in rivals(value, draft.occurrences(value))
                if _parts(one.value) == _parts(value)
                and len(one.value.text.split()) == len(value.text.split())
            ]
        elif value.kind == "time":
            texts = other_times(value, random)
        elif value.kind == "period":
            texts = _other_periods(value, random)
        elif match := _UNIT.search(value.text):
            money = value.unit in ("USD", "EUR", "GBP")
            others = (
                _CURRENCIES if money and match[0] not in ("thousand", "million", "billion") else _UNITS
            ).get(match[0], [])
            texts = [
                _with_article(value.text[: match.start()] + one + value.text[match.end() :]) for one in others
            ]
        if texts and draft.supported(value) >= SUPPORTED:
            yield from _first(draft, "date or unit", value, random.sample(texts, len(texts)))


def negations(draft: Draft, random: Random) -> Iterator[Edit]:
    """The opposite of a word, a "not" put in or taken out."""
    response = draft.response
    places: list[tuple[tuple[int, int], tuple[str, ...]]]
    places = [(match.span(), (_negated(match[0]),)) for match in _AUXILIARY.finditer(response)]
    places += [(match.span(), (f"Do not {match[0].lower()}",)) for match in _IMPERATIVE.finditer(response)]
    for value in draft.values:
        if value.kind != "polarity" or value.text.lower() in _UNSUITABLE:
            continue
        if value.text.lower() == "not" and not _NOT_ALONE.match(response, value.start):
            continue
        if value.text.lower() in ("with", "without") and random.random() < 0.75:
            continue  # else every second negation would be one of these
        upper = value.text[:1].isupper()
        others = tuple(one.capitalize() if upper else one for one in opposites(value))
        if re.match(r" (?:only|just|merely)\b", response[value.end :]) or response[: value.start].endswith(
            ("if ", "or ")
        ):
            continue
        places.append(((value.start, value.end), others))
    for (start, end), others in random.sample(places, len(places)):
        edit = draft.edit("negation", start, end, random.choice(others)) if others else None
        if edit is not None and draft.grounded(start):
            yield edit


def conditions(draft: Draft, random: Random) -> Iterator[Edit]:
    """A condition or a limit dropped, turned round, or said of everything."""
    places = [
        (match.span(), others)
        for pattern, others in _CONDITIONAL
        for match in pattern.finditer(draft.response)
    ]
    for (start, end), others in random.sample(places, len(places)):
        edit = draft.edit("condition", start, end, random.choice(others))
        if edit is not None and draft.grounded(min(start + 1, end)):
            yield edit


def refusals(draft: Draft, random: Random) -> Iterator[Edit]:
    """The claim that the passages do not answer, in place of the whole answer."""
    if any(value.kind == "absence" for value in draft.values):
        return
    if any(draft.grounded(start) for start, _ in draft.sentences):
        text = random.choice(REFUSALS).format(topic=_topic(draft.example.question))
        yield Edit("refusal", 0, len(draft.response), text)


def misattributions(draft: Draft, random: Random) -> Iterator[Edit]:
    """What a passage says of something else, said of the response's subject; the passage comes along."""
    yield from _numbers_of_another(draft, random)
    said = {text: other for other in draft.others for text in statements(other) if _PRONOUN.match(text)}
    for edit in _inserted(draft, random, "misattributed", [*said]):
        yield replace(edit, passage=_source_of(said[edit.text.strip()], edit.text))


def inventions(draft: Draft, random: Random) -> Iterator[Edit]:
    """A statement that the passages do not have: one of another source's response."""
    yield from _inserted(
        draft, random, "invention", [text for one in draft.others for text in statements(one)]
    )


HARMFUL: dict[str, Maker] = {
    "number": numbers,
    "name": names,
    "date or unit": dates_and_units,
    "negation": negations,
    "condition": conditions,
    "refusal": refusals,
    "misattributed": misattributions,
    "invention": inventions,
}
"""Kinds of faults, with what makes them."""


def is_wrong(draft: Draft, value: Value, text: str) -> bool:
    """Whether `text` in the place of a value that the passages support contradicts them: it is a value of the
    same kind that does not agree, that the question does not have, that lies in no range of the passages, and
    that the passages have at most in places that fit the statement clearly worse."""
    start, end = draft.sentence(value.start)
    sentence = draft.response[start : value.start] + text + draft.response[value.end : end]
    place = (value.start - start, value.start - start + len(text))
    read = (one for one in find_values(sentence, draft.context) if (one.start, one.end) == place)
    found = next((one for one in read if one.kind == value.kind), None)
    if found is None or agree(found, value) or any(agree(found, one) for one in draft.asked):
        return False
    found = replace(found, start=value.start, end=value.end)
    known, support = draft.occurrences(found), draft.supported(value)
    fits = any(agree(one.value, found) and one.similarity >= CLEARLY_WORSE * support for one in known)
    return not fits and not _in_a_range(found, known)


def statements(example: Example) -> list[str]:
    """Sentences of its response that can stand in another text."""
    texts = [_OPENING.sub("", text) for text in sentences_of(example.response)]
    texts = [text[:1].upper() + text[1:] for text in texts]
    return [text for text in texts if _STANDALONE.match(text) and not _ABOUT_PASSAGES.search(text)]


def _first(draft: Draft, kind: str, value: Value, texts: Iterable[str]) -> Iterator[Edit]:
    """The first of these texts that is wrong in the place of the value."""
    for text in texts:
        edit = draft.edit(kind, value.start, value.end, text)
        if edit is not None and is_wrong(draft, value, text):
            yield edit
            return


def _inserted(draft: Draft, random: Random, kind: str, texts: list[str]) -> Iterator[Edit]:
    """Statements after sentences of the response, each where the passages have nothing like it."""
    refusing = [draft.sentence(value.start) for value in draft.values if value.kind == "absence"]
    places = [
        end
        for start, end in draft.sentences
        if (start, end) not in refusing
        and draft.response[end - 1] in ".!"
        and end - start > 20
        and draft.response[end : end + 1] in ("", " ", "\n")
    ]
    for place in random.sample(places, len(places)):
        for text in random.sample(texts, len(texts)):
            if max(draft.index.similarities(content_words(text)), default=0.0) < UNRELATED:
                yield Edit(kind, place, place, " " + text)
                break


def _numbers_of_another(draft: Draft, random: Random) -> Iterator[Edit]:
    """A number of another thing, of which a new passage tells in the words of one that there is: the thing
    has a name of another source, and all numbers are others."""
    for value in draft.shuffled(random, "quantity"):
        around = draft.response[: value.start], draft.response[value.end :]
        if is_label(*around) or draft.supported(value) < SUPPORTED:
            continue
        best = next(one for one in draft.occurrences(value) if agree(one.value, value))
        passage = draft.example.passages[best.passage]
        held = [one for place in draft.index.places if place.passage == best.passage for one in place.values]
        names = Counter(one.text for one in held if one.kind == "name" and _is_subject(one.text, draft))
        name = next((name for name, _ in names.most_common()), None)
        new = None if name is None else _name_of_another(draft, name, random)
        if name is None or new is None:
            continue
        numbers = {one: _others(passage, one, random) for one in held if one.kind == "quantity"}
        changed = {one: random.choice(texts) for one, texts in numbers.items() if texts}
        told = find_values(changed.get(best.value, ""))
        text = as_written(value, told[0]) if told and told[0].kind == "quantity" else None
        if text is None or not is_wrong(draft, value, text):
            continue
        copy, _ = apply(passage, [Edit("", one.start, one.end, other) for one, other in changed.items()])
        copy = re.sub(rf"\b{re.escape(name)}\b", new.replace("\\", r"\\"), copy)
        if (edit := draft.edit("misattributed", value.start, value.end, text, copy)) is not None:
            yield edit


def _others(passage: str, value: Value, random: Random) -> list[str]:
    after = passage[value.end :]
    label = after.startswith("  ") or is_label(
        passage[: value.start], after
    )  # "3  Place": a list without lines
    return [] if label else other_numbers(value, random)


def _name_of_another(draft: Draft, name: str, random: Random) -> str | None:
    """A name of another source that can replace one and that the passages do not have."""
    known = draft.context.lower()
    found = [
        one.text
        for other in draft.others
        for place in index_of(tuple(other.passages)).places
        for one in place.values
        if one.kind == "name"
        and _can_replace(one, name, other.passages[place.passage], draft)
        and one.text.lower() not in known
    ]
    return random.choice(found) if found else None


def _can_replace(new: Value, name: str, passage: str, draft: Draft) -> bool:
    """Whether it is surely a name, standing inside a sentence and being no common word, and looks alike."""
    words = new.text.split()
    return (
        _looks(new.text) == _looks(name)
        and len(words) <= len(name.split()) + 1
        and new.text not in _SCALES
        and re.search(r"[a-z,;] \Z", passage[max(new.start - 2, 0) : new.start]) is not None
        and not any(_is_common(word, draft) for word in words[:1])
    )


def _is_subject(name: str, draft: Draft) -> bool:
    """Whether the question or the response names it, and it is no common word."""
    if name in _SCALES or _is_common(name.split(maxsplit=1)[0], draft):
        return False
    return re.search(rf"\b{re.escape(name.lower())}\b", draft.example.question.lower()) is not None or (
        name in draft.response
    )


def _is_common(word: str, draft: Draft) -> bool:
    """Whether it is written in small letters too."""
    small = word.lower()
    return small in draft.common or re.search(rf"\b{re.escape(small)}\b", draft.context) is not None


def _source_of(other: Example, text: str) -> str:
    """The passage of an example that a sentence of its response rests on."""
    index = index_of(tuple(other.passages))
    similarities = index.similarities(content_words(text))
    best = max(range(len(similarities)), key=similarities.__getitem__, default=None)
    return other.passages[0 if best is None else index.places[best].passage]


def _in_a_range(value: Value, known: Iterable[Occurrence]) -> bool:
    """Whether a quantity lies between two that stand side by side in a passage, such as "20 to 60 mm"."""
    if value.kind != "quantity":
        return False
    ordered = sorted(known, key=lambda one: (one.passage, one.value.start))
    return any(
        one.passage == other.passage
        and other.value.start - one.value.end <= len(" and  ")
        and min(one.value.amount, other.value.amount)
        <= value.amount
        <= max(one.value.amount, other.value.amount)
        for one, other in pairwise(ordered)
    )


def _other_periods(value: Value, random: Random) -> list[str]:
    text = value.text
    if text.lower() in _ADVERBS:
        others = [
            one
            for one in _ADVERBS
            if one not in (text.lower(), "hourly") and {one, text.lower()} != {"yearly", "annually"}
        ]
    else:
        unit = str(value.key[0])
        others = [re.sub(unit, one, text) for one in _PERIODS if unit in _PERIODS and one != unit]
        others = [_with_article(one) for one in others]
    return random.sample(others, len(others))


def _with_article(text: str) -> str:
    """With the "a" or "an" that an hour, or another unit, needs."""
    return re.sub(
        r"\A(a)n? (?=\w+\Z)", r"\1n " if text.endswith("hour") else r"\1 ", text, flags=re.IGNORECASE
    )


def _negated(auxiliary: str) -> str:
    if auxiliary == "can":
        return "cannot"
    first, _, rest = auxiliary.partition(" ")
    return f"{first} not {rest}".rstrip()


def _topic(question: str) -> str:
    """What a question asks for, to stand after "do not mention"."""
    match = _QUESTION.match(question.strip().rstrip("? ."))
    if match is None or _DANGLING.search(match["rest"]) or "," in question:
        return "the answer to this question"
    return f"{match['word'].lower()} {match['rest']} {match['verb'].lower()}"


def _looks(text: str) -> tuple[bool, bool, bool]:
    """Digits, capitals only, several words: an identifier is no person's name."""
    return any(sign.isdigit() for sign in text), text.isupper(), " " in text


def _parts(value: Value) -> list[bool]:
    return [part is None for part in value.key]
