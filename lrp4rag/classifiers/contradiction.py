"""What passages have against a response: values that they have otherwise, and what else alarms suspect of its
sentences; and what each sentence states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.claims import Value, comparable
from lrp4rag.claims.answer import Compared
from lrp4rag.claims.arithmetic import Computed, computed, may_be_total, rounded
from lrp4rag.claims.derivation import derivations
from lrp4rag.claims.grounds import Counterpart
from lrp4rag.claims.index import Index, Occurrence
from lrp4rag.claims.polarity import stated_without
from lrp4rag.claims.signed import signed_clauses
from lrp4rag.claims.stating import Stating, stating_of
from lrp4rag.claims.words import content_words
from lrp4rag.classifiers.alarms import Alarmed
from lrp4rag.classifiers.verdict import Contradiction, Difference, DifferenceKind
from lrp4rag.features.contrast import Claim, Context, Contrast, Scored, claims
from lrp4rag.features.record import Record
from lrp4rag.util.sentences import sentences_in

ALIKE = 0.5
"""Similarity of its surroundings from which another value contradicts one that no passage supports,
whatever the reader finds likelier."""
FAR = 0.25
"""Up to here a place is about something else: it contradicts no value that a passage has."""
_DENIED = re.compile(
    r"\b(?:not|rather than|instead of|never)\s+(?:(?:by|in|on|at|the|a|an)\s+)?$", re.IGNORECASE
)
_SIGN = re.compile(
    r"(?:(?:is|are|was|were|has|have|had|do|does|did|can|could|may|might|must|need|should|will|would|shall)"
    r"(?: not|n['\u2019]t)?|cannot|not|never|no)",
    re.IGNORECASE,
)
LARGEST = 20.0
"""Nats; margins are clipped there where they are compared."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A contradiction with how similar its place in the passages is (0 to 1), and how similar the best place
    is that has the response's value (0 where none has)."""

    contradiction: Contradiction
    similarity: float
    support: float


def contradictions(record: Record) -> list[Placed]:
    """In the order of the response: values for which the reader prefers what a passage has in their place, or
    which no passage has while a place that says nearly the same has another."""

    def further(known: Sequence[list[Placed]]) -> Iterator[list[Placed]]:
        for numbers in record.numbered[len(known) :]:
            inside = (record.contrasts[number] for number in numbers)
            found = (_contradiction(one.claim, one.scored, record.context, record) for one in inside)
            yield [one for one in found if one is not None]

    return [one for placed in record.of_each("contradictions", further) for one in placed]


def with_suspected(
    record: Record, known: Sequence[Contradiction], suspected: Sequence[Contrast]
) -> tuple[Contradiction, ...]:
    """Return the known contradictions and those of further values that are suspected, in the order of the
    response: of each what a passage has in its place, where one has something."""
    taken = {(one.start, one.end) for one in known}
    claims = (one for one in suspected if (one.claim.value.start, one.claim.value.end) not in taken)
    named = (_contradiction(one.claim, one.scored, record.context, record, suspected=True) for one in claims)
    more = (one.contradiction for one in named if one is not None)
    return tuple(sorted((*known, *more), key=lambda one: one.start))


def compared(some: Sequence[Placed], sentences: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Return the columns `decision.COMPARED` of S sentences, (S, 4): whether they have a contradicted value,
    and of these the largest margin and similarity, and whether no passage has one; 0 without any."""
    rows = np.zeros((len(sentences), 4))
    for row, (start, end) in zip(rows, sentences, strict=True):
        inside = [one for one in some if start <= one.contradiction.start and one.contradiction.end <= end]
        if inside:
            margin = max(one.contradiction.margin or 0.0 for one in inside)
            row[:] = (
                1.0,
                np.clip(margin, -LARGEST, LARGEST),
                max(one.similarity for one in inside),
                any(not one.support for one in inside),
            )
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class Statements:
    """Of the S sentences of a response: what each states, the columns `decision.COMPARED` (S, 4) of its
    values, and the response's contradicted values themselves."""

    stating: tuple[Stating, ...]
    compared: NDArray[np.float64]
    contradictions: tuple[Contradiction, ...]

    @classmethod
    def of(cls, record: Record) -> Statements:
        """Without contradictions where values were not scored."""
        text, sentences = record.encoded.response, record.encoded.sentences
        known = contradictions(record) if record.has_contrasts else []
        return cls(
            tuple(stating_of(text, sentences)),
            compared(known, sentences),
            tuple(one.contradiction for one in known),
        )


def _contradiction(
    claim: Claim, scored: tuple[Scored, ...], context: Context, record: Record, *, suspected: bool = False
) -> Placed | None:
    value, start = claim.value, claim.sentence[0]
    if value.kind != "polarity" and _DENIED.search(record.encoded.response[start : value.start]):
        return None  # what is denied is not said
    sentence = record.encoded.response[slice(*claim.sentence)]
    if computed_of(claim, record) is not None:
        return None  # no place has what is computed from several
    stands = _stands(claim, context)
    for occurrence, margin in _others(claim, scored, context, record):
        if stands and occurrence.similarity <= max(claim.support, FAR):
            continue  # what a passage says of something else contradicts nothing
        if suspected and value.kind == "name" and occurrence.value.text in sentence:
            continue  # the sentence names that one beside it
        if not claim.support and may_be_total(value, sentence, occurrence, context.passages, context.index):
            continue
        if suspected or margin > 0 or (not stands and occurrence.similarity >= ALIKE):
            found = Contradiction(
                value.start,
                value.end,
                value.text,
                occurrence.value.text,
                occurrence.passage,
                occurrence.value.start,
                occurrence.value.end,
                margin,
            )
            return Placed(found, occurrence.similarity, claim.support)
    return None


def _stands(claim: Claim, context: Context) -> bool:
    """Say whether a passage has a value, or has it as it is written; words with an opposite stand
    everywhere."""
    value = claim.value
    if value.kind == "polarity":
        return False
    if claim.support or value.text.isdigit():
        return claim.support > 0
    written = re.compile(rf"(?<!\w){re.escape(value.text)}(?!\w)")
    found = ((k, one) for k, passage in enumerate(context.passages) for one in written.finditer(passage))
    return any(not _is_part(one, k, value, context) for k, one in found)


def _is_part(found: re.Match[str], passage: int, value: Value, context: Context) -> bool:
    """Say whether it stands within another quantity: "5 kg" of "2.5 kg", "3%" of "-3%"."""
    return value.kind == "quantity" and any(
        one.start <= found.start() < one.end and one.end - one.start > len(found[0])
        for place in context.index.places
        if place.passage == passage
        for one in place.values
        if comparable(value, one)
    )


def computed_of(claim: Claim, record: Record) -> Computed | None:
    """Compute a quantity that no passage has from those that one has."""
    if claim.support or claim.value.kind != "quantity":
        return None
    sentence, context = record.encoded.response[slice(*claim.sentence)], record.context
    return computed(
        claim.value, sentence, context.passages, context.index, record.similarities(claim.sentence)
    )


def _rounded(claim: Claim, record: Record) -> Computed | None:
    """Return what a quantity rounds: a place that has it more exactly and other words of its sentence too."""
    value, (start, end) = claim.value, claim.sentence
    if not claim.support or value.kind != "quantity":
        return None
    response, index = record.encoded.response, record.context.index
    similarities = index.similarities(
        content_words(f"{response[start : value.start]} {response[value.end : end]}")
    )
    return rounded(value, [one for one in index.occurrences(value, similarities) if one.similarity > FAR])


def computed_values(record: Record, response: str, question: str) -> tuple[Computed, ...]:
    """Return the values of a response that no passage has and that follow from those of one, and of the
    question; their texts are those of `response`, as it was written."""
    known = [one.claim for one in record.contrasts] if record.has_contrasts else None
    every = claims(record.encoded, record.context) if known is None else known
    found = [computed_of(claim, record) or _rounded(claim, record) for claim in every]
    given = record.encoded.response, question, record.context.index
    by_place = {(one.start, one.end): one for one in (*_derived(record, *given), *found) if one is not None}
    return tuple(replace(one, text=response[slice(*place)]) for place, one in sorted(by_place.items()))


def _derived(record: Record, response: str, question: str, index: Index) -> Iterator[Computed]:
    for sentence in record.encoded.sentences:
        for one in derivations(response, sentence, question, index):
            value = one.value
            yield Computed(value.start, value.end, value.text, one.words, one.passage, ())


def _others(
    claim: Claim, scored: tuple[Scored, ...], context: Context, record: Record
) -> Iterator[tuple[Occurrence, float]]:
    """Yield the places with another value and its margin, the largest margin first. A
    place that shares no word with the value's surroundings is about something else."""
    if claim.value.kind != "polarity":
        for one in scored:
            occurrence = one.alternative.occurrence
            if occurrence is not None and occurrence.similarity > 0:
                yield occurrence, one.margin
    elif scored and (place := _opposed(claim, context, record)) is not None:
        yield place, scored[0].margin


def _stated(claim: Claim, context: Context, similarities: Sequence[float]) -> Occurrence | None:
    """Where the most similar place says without a "not" what a value says with one: plain "is" and "has"
    are no values themselves."""
    number = max(range(len(similarities)), key=similarities.__getitem__, default=None)
    if number is None or similarities[number] < ALIKE:
        return None
    place = context.index.places[number]
    if (span := stated_without(claim.value, place.text)) is None:
        return None
    value = replace(claim.value, start=span[0], end=span[1], text=place.text[slice(*span)])
    return Occurrence(value.shifted(place.start), place.passage, similarities[number])


def _opposed(claim: Claim, context: Context, record: Record) -> Occurrence | None:
    """Return the most similar place that says the opposite of a polarity word, unless a better one says the
    same."""
    similarities = record.similarities(claim.sentence)
    _, best = context.index.polarity(claim.value, similarities)
    if best is None and claim.value.key[1]:
        best = _stated(claim, context, similarities)
    return best if best is not None and best.similarity >= claim.support else None


Span = tuple[int, int]

NAMED: Mapping[str, DifferenceKind] = {
    "condition": "left out",
    "refusal": "answered",
    "attribution": "said of another",
}
"""What an alarm's sentence differs in, by the alarm's name (without "text")."""
DENIED = "negation"
"""The alarm of sentences that deny what passages say, or say what they deny."""
AROUND = " \t\n,;:.()"
SUSPECTED = 0.5
"""The probability by an alarm's networks from which its difference is named."""


def denials(
    answer: str, compared: list[Compared], passages: tuple[str, ...], alarmed: Alarmed
) -> list[Contradiction]:
    """Name the clauses of passages that deny, or are denied by, the sentences that the alarm suspects."""
    return [
        denied(answer, passages, place)
        for number in _suspected(DENIED, alarmed, len(compared))
        for place in compared[number].denials[:1]
    ]


def denied(answer: str, passages: Sequence[str], place: Counterpart) -> Contradiction:
    """Name a clause that a passage denies, and the passage's: the words are in both, the clauses tell."""
    start, end = _clause(answer, place.start, place.end)
    first, last = _clause(passages[place.passage], place.passage_start, place.passage_end)
    text, instead = answer[start:end], passages[place.passage][first:last]
    return Contradiction(start, end, text, instead, place.passage, first, last, margin=None)


def exchanged(answer: str, passages: Sequence[str], place: Counterpart) -> Contradiction:
    """Name the words of a sentence in whose place a passage has others."""
    text = answer[place.start : place.end]
    instead = passages[place.passage][place.passage_start : place.passage_end]
    there = place.passage, place.passage_start, place.passage_end
    return Contradiction(place.start, place.end, text, instead, *there, margin=None)


def added(answer: str, passages: Sequence[str], place: Counterpart) -> Contradiction:
    """Name a phrase that a sentence added, and the sentence of the passages that is without it."""
    text = answer[place.start : place.end]
    start = place.start + len(text) - len(text.lstrip(AROUND))
    return exchanged(answer, passages, replace(place, start=start))


def with_clauses(
    known: Iterable[Contradiction], clauses: Iterable[Contradiction]
) -> tuple[Contradiction, ...]:
    """Return the contradictions with those of clauses, in the order of the response. A clause has the place
    of what was known of itself, and of its "is", "may" or "not", which tell nothing by themselves."""
    clauses = tuple(clauses)

    def is_told(one: Contradiction) -> bool:
        around = [(each.start, each.end) for each in clauses if each.start <= one.start < each.end]
        return bool(around) and ((one.start, one.end) in around or bool(_SIGN.fullmatch(one.text)))

    kept = (one for one in known if not is_told(one))
    return tuple(sorted((*kept, *clauses), key=lambda one: one.start))


def differences(
    compared: list[Compared], passages: tuple[str, ...], alarmed: Alarmed
) -> tuple[Difference, ...]:
    """Name what else passages have against the sentences that alarms suspect, in their order."""
    suspected = [
        (number, kind) for name, kind in NAMED.items() for number in _suspected(name, alarmed, len(compared))
    ]
    return tuple(
        Difference(kind, *here, passage, *there, passages[passage][slice(*there)], subject)
        for number, kind in sorted(suspected)
        for here, passage, there, subject in _places(kind, compared[number])
    )


def _suspected(name: str, alarmed: Alarmed, count: int) -> list[int]:
    """Number the sentences that an alarm suspects, with a reader or without one."""
    names = [each for each in (name, f"text {name}") if each in alarmed.log_odds]
    return [
        number
        for each in names
        for number, chance in enumerate(expit(alarmed.by_sentence(each, count)))
        if chance >= SUSPECTED
    ]


def _clause(text: str, start: int, end: int) -> Span:
    """Return the clause around some characters, without the white space and signs around it."""
    for first, last in sentences_in(text):
        for clause in signed_clauses(text, first, last) if first <= start < last else ():
            if clause.start <= start < clause.end:
                inside = text[clause.start : clause.end]
                left = len(inside) - len(inside.lstrip(AROUND))
                return clause.start + left, max(clause.start + len(inside.rstrip(AROUND)), end)
    return start, end


def _places(kind: DifferenceKind, sentence: Compared) -> Iterator[tuple[Span, int, Span, str]]:
    """Yield the characters of the response, the passage, its characters and its subject, of the surest."""
    whole = sentence.start, sentence.end
    if kind == "left out":
        for left in sentence.left_out[:1]:
            yield whole, left.passage, (left.start, left.end), ""
    elif kind == "said of another":
        home = sentence.home
        if home is not None and home.subject:
            yield whole, home.passage, (home.start, home.end), home.subject[0].text
    elif sentence.answered is not None:
        place = sentence.answered
        yield (place.start, place.end), place.passage, (place.passage_start, place.passage_end), ""
