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
from lrp4rag.claims.compare import Comparison, have_same_numbers
from lrp4rag.claims.derivation import derivations
from lrp4rag.claims.grounds import Counterpart
from lrp4rag.claims.index import Occurrence
from lrp4rag.claims.polarity import stated_without
from lrp4rag.claims.signed import signed_clauses
from lrp4rag.claims.stating import Stating, stating_of
from lrp4rag.claims.words import content_words
from lrp4rag.classifiers.alarms import Alarmed
from lrp4rag.classifiers.verdict import Contradiction, Difference, DifferenceKind
from lrp4rag.features.contrast import Claim, Context, Contrast, claims
from lrp4rag.features.record import Record
from lrp4rag.util.sentences import sentences_in

ALIKE = 0.5
"""Similarity of its surroundings from which another value contradicts one that no passage supports,
whatever the reader finds likelier."""
FAR = 0.25
"""Up to here a place is about something else: it contradicts no value that a passage has."""
BETTER = 0.1
"""How much better a value fits its slot, at least, that is named rather than the one the reader prefers."""
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
    """Return, in the order of the response, values for which the reader prefers what a passage has in their
    place, or which no passage has while a place that says nearly the same has another."""

    def further(done: Sequence[list[Placed]]) -> Iterator[list[Placed]]:
        for numbers in record.numbered[len(done) :]:
            candidates = (_contradiction(record.contrasts[number], record) for number in numbers)
            yield [placed for placed in candidates if placed is not None]

    return [placed for sentence in record.of_each("contradictions", further) for placed in sentence]


def with_suspected(
    record: Record, contradictions: Sequence[Contradiction], suspected: Sequence[Contrast]
) -> tuple[Contradiction, ...]:
    """Return the contradictions and those of further values that are suspected, in the order of the response:
    of each what a passage has in its place, where one has something."""
    spans = {(contradiction.start, contradiction.end) for contradiction in contradictions}
    candidates = (
        _contradiction(contrast, record, suspected=True)
        for contrast in suspected
        if (contrast.claim.value.start, contrast.claim.value.end) not in spans
    )
    further = (placed.contradiction for placed in candidates if placed is not None)
    return tuple(sorted((*contradictions, *further), key=lambda contradiction: contradiction.start))


def of_their_slots(
    contradictions: Sequence[Contradiction], compared: Sequence[Compared]
) -> tuple[Contradiction, ...]:
    """Return contradictions with the passages' values of what the response says it of, where the reader
    prefers those of something else: of thirty rooms it prefers the number of any. How much it prefers the
    values of the slots is not known."""
    slots = {
        (value.start, value.end): value
        for sentence in compared
        for value in sentence.values
        if value.status == "contradicted"
    }
    pairs = ((each, slots.get((each.start, each.end))) for each in contradictions)
    return tuple(of_slot(slot) if slot and _is_better(slot, each) else each for each, slot in pairs)


def _is_better(slot: Comparison, contradiction: Contradiction) -> bool:
    """Say whether the value that fits a slot is to be named rather than the one that the reader prefers."""
    passage, start, end = contradiction.passage, contradiction.passage_start, contradiction.passage_end
    if slot.features["subject rival"] == 1.0 and slot.passage != passage:
        return True
    preferred, (first, last) = slot.fit(passage, start, end), slot.rival or (0, 0)
    if preferred is None or have_same_numbers(contradiction.text, contradiction.instead):
        return False
    return slot.fits[slot.passage or 0, first, last] - preferred >= BETTER


def of_slot(value: Comparison) -> Contradiction:
    """Return what contradicts a value by the texts alone."""
    passage, (start, end) = value.passage or 0, value.rival or (0, 0)
    return Contradiction(
        value.start, value.end, value.text, value.rival_text, passage, start, end, margin=None
    )


def compared(placed: Sequence[Placed], sentences: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Return the columns `decision.COMPARED` of S sentences, (S, 4): whether they have a contradicted value,
    and of these the largest margin and similarity, and whether no passage has one; 0 without any."""
    rows = np.zeros((len(sentences), 4))
    for row, (start, end) in zip(rows, sentences, strict=True):
        inside = [
            each for each in placed if start <= each.contradiction.start and each.contradiction.end <= end
        ]
        if inside:
            margin = max(each.contradiction.margin or 0.0 for each in inside)
            row[:] = (
                1.0,
                np.clip(margin, -LARGEST, LARGEST),
                max(each.similarity for each in inside),
                any(not each.support for each in inside),
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
        """Gather them of a record, without contradictions where values were not scored."""
        text, sentences = record.encoded.response, record.encoded.sentences
        placed = contradictions(record) if record.has_contrasts else []
        return cls(
            tuple(stating_of(text, sentences)),
            compared(placed, sentences),
            tuple(each.contradiction for each in placed),
        )


def _contradiction(contrast: Contrast, record: Record, *, suspected: bool = False) -> Placed | None:
    """Return what contradicts a value, None where nothing does."""
    claim, context, response = contrast.claim, record.context, record.encoded.response
    value, sentence = claim.value, response[slice(*claim.sentence)]
    if value.kind != "polarity" and _DENIED.search(response[claim.sentence[0] : value.start]):
        return None  # what is denied is not said
    if computed_of(claim, record) is not None:
        return None  # no place has what is computed from several
    stands = _stands(claim, context)
    for occurrence, margin in _rivals(contrast, record):
        if stands and occurrence.similarity <= max(claim.support, FAR):
            continue  # what a passage says of something else contradicts nothing
        if suspected and value.kind == "name" and occurrence.value.text in sentence:
            continue  # the sentence names that one beside it
        if not claim.support and may_be_total(value, sentence, occurrence, context.passages, context.index):
            continue
        if suspected or margin > 0 or (not stands and occurrence.similarity >= ALIKE):
            contradiction = Contradiction(
                value.start,
                value.end,
                value.text,
                occurrence.value.text,
                occurrence.passage,
                occurrence.value.start,
                occurrence.value.end,
                margin,
            )
            return Placed(contradiction, occurrence.similarity, claim.support)
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
    matches = (
        (k, match) for k, passage in enumerate(context.passages) for match in written.finditer(passage)
    )
    return any(not _is_within_quantity(match, k, value, context) for k, match in matches)


def _is_within_quantity(match: re.Match[str], passage: int, value: Value, context: Context) -> bool:
    """Say whether a quantity stands within another one: "5 kg" in "2.5 kg", "3%" in "-3%"."""
    return value.kind == "quantity" and any(
        quantity.start <= match.start() < quantity.end and quantity.end - quantity.start > len(match[0])
        for place in context.index.places
        if place.passage == passage
        for quantity in place.values
        if comparable(value, quantity)
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
    occurrences = index.occurrences(value, similarities)
    return rounded(value, [occurrence for occurrence in occurrences if occurrence.similarity > FAR])


def computed_values(record: Record, response: str, question: str) -> tuple[Computed, ...]:
    """Return the values of a response that no passage has and that follow from those of one, and of the
    question; their texts are those of `response`, as it was written."""
    every = (
        [contrast.claim for contrast in record.contrasts]
        if record.has_contrasts
        else claims(record.encoded, record.context)
    )
    by_span = {(value.start, value.end): value for value in _derived(record, question)}
    for claim in every:
        if (value := computed_of(claim, record) or _rounded(claim, record)) is not None:
            by_span[value.start, value.end] = value
    return tuple(replace(value, text=response[slice(*span)]) for span, value in sorted(by_span.items()))


def _derived(record: Record, question: str) -> Iterator[Computed]:
    """Yield the values that a response derives from those of a passage and of the question."""
    for sentence in record.encoded.sentences:
        for derivation in derivations(record.encoded.response, sentence, question, record.context.index):
            value = derivation.value
            yield Computed(value.start, value.end, value.text, derivation.words, derivation.passage, ())


def _rivals(contrast: Contrast, record: Record) -> Iterator[tuple[Occurrence, float]]:
    """Yield the places with another value and its margin, the largest margin first. A place that shares no
    word with the value's surroundings is about something else."""
    if contrast.claim.value.kind != "polarity":
        for scored in contrast.scored:
            occurrence = scored.alternative.occurrence
            if occurrence is not None and occurrence.similarity > 0:
                yield occurrence, scored.margin
    elif contrast.scored and (opposed := _opposed(contrast.claim, record)) is not None:
        yield opposed, contrast.scored[0].margin


def _stated(claim: Claim, context: Context, similarities: Sequence[float]) -> Occurrence | None:
    """Return where the most similar place says without a "not" what a value says with one: plain "is" and
    "has" are no values themselves."""
    number = max(range(len(similarities)), key=similarities.__getitem__, default=None)
    if number is None or similarities[number] < ALIKE:
        return None
    place = context.index.places[number]
    if (span := stated_without(claim.value, place.text)) is None:
        return None
    value = replace(claim.value, start=span[0], end=span[1], text=place.text[slice(*span)])
    return Occurrence(value.shifted(place.start), place.passage, similarities[number])


def _opposed(claim: Claim, record: Record) -> Occurrence | None:
    """Return the most similar place that says the opposite of a polarity word, unless a better one says the
    same."""
    similarities, context = record.similarities(claim.sentence), record.context
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
    source = place.passage, place.passage_start, place.passage_end
    return Contradiction(place.start, place.end, text, place.instead(passages), *source, margin=None)


def added(answer: str, passages: Sequence[str], place: Counterpart) -> Contradiction:
    """Name a phrase that a sentence added, and the sentence of the passages that is without it."""
    text = answer[place.start : place.end]
    start = place.start + len(text) - len(text.lstrip(AROUND))
    return exchanged(answer, passages, replace(place, start=start))


def with_clauses(
    contradictions: Iterable[Contradiction], clauses: Iterable[Contradiction]
) -> tuple[Contradiction, ...]:
    """Return the contradictions with those of clauses, in the order of the response. A clause takes the place
    of what contradicts itself, and its "is", "may" or "not", which tell nothing by themselves."""
    clauses = tuple(clauses)

    def is_replaced(value: Contradiction) -> bool:
        around = [
            (clause.start, clause.end) for clause in clauses if clause.start <= value.start < clause.end
        ]
        return bool(around) and ((value.start, value.end) in around or bool(_SIGN.fullmatch(value.text)))

    values = (value for value in contradictions if not is_replaced(value))
    return tuple(sorted((*values, *clauses), key=lambda contradiction: contradiction.start))


def differences(
    compared: list[Compared], passages: tuple[str, ...], alarmed: Alarmed
) -> tuple[Difference, ...]:
    """Name what else passages have against the sentences that alarms suspect, in their order."""
    suspected = [
        (number, kind) for name, kind in NAMED.items() for number in _suspected(name, alarmed, len(compared))
    ]
    return tuple(
        Difference(kind, *span, passage, *source, passages[passage][slice(*source)], subject)
        for number, kind in sorted(suspected)
        for span, passage, source, subject in _counterparts(kind, compared[number])
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


def _counterparts(kind: DifferenceKind, sentence: Compared) -> Iterator[tuple[Span, int, Span, str]]:
    """Yield of the surest difference its characters in the response, the passage, the characters there, and
    the subject."""
    span = sentence.start, sentence.end
    if kind == "left out":
        for condition in sentence.left_out[:1]:
            yield span, condition.passage, (condition.start, condition.end), ""
    elif kind == "said of another":
        home, names = sentence.home, ("subject: home of subject behind", "subject: subject at home")
        # A clause of its own subject may say as much; where that is best, the question asked for another.
        if home is not None and home.subject and any(sentence.features[name] > 0 for name in names):
            yield span, home.passage, (home.start, home.end), home.subject[0].text
    elif sentence.answered is not None:
        place = sentence.answered
        yield (place.start, place.end), place.passage, (place.passage_start, place.passage_end), ""
