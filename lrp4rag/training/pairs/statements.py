"""Faults of whole statements: a false refusal, what is said of another thing, what no passage says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from lrp4rag.claims.find import find_values
from lrp4rag.claims.value import Value, agree
from lrp4rag.claims.words import content_words
from lrp4rag.claims.written import as_written
from lrp4rag.example import Example
from lrp4rag.training.pairs.edit import SUPPORTED, Draft, Edit, apply, index_of
from lrp4rag.training.pairs.other_values import TEMPERATURE_SCALES, is_common, is_wrong, name_of_another
from lrp4rag.training.pairs.wording import is_label, other_numbers
from lrp4rag.util.sentences import sentences_of

UNRELATED = 0.4
"""Passages whose sentences all have a smaller share of a statement's words do not make the statement."""

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


def refusals(draft: Draft, random: Random) -> Iterator[Edit]:
    """Claim that the passages do not answer, in place of the whole answer."""
    if any(value.kind == "absence" for value in draft.values):
        return
    if any(draft.grounded(start) for start, _ in draft.sentences):
        text = random.choice(REFUSALS).format(topic=_topic(draft.example.question))
        yield Edit("refusal", 0, len(draft.response), text)


def misattributions(draft: Draft, random: Random) -> Iterator[Edit]:
    """Say of the response's subject what a passage says of something else; the passage comes along."""
    yield from _numbers_of_another(draft, random)
    sources = {text: lender for lender in draft.others for text in statements(lender) if _PRONOUN.match(text)}
    for edit in _inserted(draft, random, "misattributed", [*sources]):
        yield replace(edit, passage=_source_of(sources[edit.text.strip()], edit.text))


def inventions(draft: Draft, random: Random) -> Iterator[Edit]:
    """Insert a statement that the passages do not have: one of another source's response."""
    yield from _inserted(
        draft, random, "invention", [text for lender in draft.others for text in statements(lender)]
    )


def statements(example: Example) -> list[str]:
    """Collect the sentences of its response that can stand in another text."""
    texts = [_OPENING.sub("", text) for text in sentences_of(example.response)]
    texts = [text[:1].upper() + text[1:] for text in texts]
    return [text for text in texts if _STANDALONE.match(text) and not _ABOUT_PASSAGES.search(text)]


def _inserted(draft: Draft, random: Random, kind: str, texts: list[str]) -> Iterator[Edit]:
    """Insert statements after sentences of the response, each where the passages have nothing like it."""
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
    """Yield a number of another thing, of which a new passage tells in the words of one that there is: the
    thing has a name of another source, and all numbers are others."""
    for value in draft.shuffled(random, "quantity"):
        around = draft.response[: value.start], draft.response[value.end :]
        if is_label(*around) or draft.supported(value) < SUPPORTED:
            continue
        best = next(occurrence for occurrence in draft.occurrences(value) if agree(value, occurrence.value))
        passage = draft.example.passages[best.passage]
        values = [
            each for place in draft.index.places if place.passage == best.passage for each in place.values
        ]
        names = Counter(each.text for each in values if each.kind == "name" and _is_subject(each.text, draft))
        name = next((name for name, _ in names.most_common()), None)
        new = None if name is None else name_of_another(draft, name, random)
        if name is None or new is None:
            continue
        numbers = {each: _other_numbers(passage, each, random) for each in values if each.kind == "quantity"}
        changed = {quantity: random.choice(texts) for quantity, texts in numbers.items() if texts}
        written = find_values(changed.get(best.value, ""))
        text = as_written(value, written[0]) if written and written[0].kind == "quantity" else None
        if text is None or not is_wrong(draft, value, text):
            continue
        edits = [Edit("", each.start, each.end, instead) for each, instead in changed.items()]
        copy, _ = apply(passage, edits)
        copy = re.sub(rf"\b{re.escape(name)}\b", new.replace("\\", r"\\"), copy)
        if (edit := draft.edit("misattributed", value.start, value.end, text, copy)) is not None:
            yield edit


def _other_numbers(passage: str, value: Value, random: Random) -> list[str]:
    before, after = passage[: value.start], passage[value.end :]
    # "3  Place": a list without lines
    label = after.startswith("  ") or is_label(before, after)
    return [] if label else other_numbers(value, random)


def _is_subject(name: str, draft: Draft) -> bool:
    """Say whether the question or the response names it, and it is no common word."""
    if name in TEMPERATURE_SCALES or is_common(name.split(maxsplit=1)[0], draft):
        return False
    return re.search(rf"\b{re.escape(name.lower())}\b", draft.example.question.lower()) is not None or (
        name in draft.response
    )


def _source_of(example: Example, text: str) -> str:
    """Find the passage of an example that a sentence of its response rests on."""
    index = index_of(tuple(example.passages))
    similarities = index.similarities(content_words(text))
    best = max(range(len(similarities)), key=similarities.__getitem__, default=None)
    return example.passages[0 if best is None else index.places[best].passage]


def _topic(question: str) -> str:
    """Word what a question asks for, to stand after "do not mention"."""
    match = _QUESTION.match(question.strip().rstrip("? ."))
    if match is None or _DANGLING.search(match["rest"]) or "," in question:
        return "the answer to this question"
    return f"{match['word'].lower()} {match['rest']} {match['verb'].lower()}"
