"""Counter-claims: a sentence as the passages that deny it would have it.

"It may be used for more than 7 days" becomes "It may not be …" where a passage says "must not be used". Who
judges both can tell which one the passages support: that is easier than to judge one alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lrp4rag.claims.additions import additions, without
from lrp4rag.claims.answer import Compared, Passages
from lrp4rag.claims.compare import Comparison, have_same_numbers
from lrp4rag.claims.derivation import derivations, restatements
from lrp4rag.claims.exchanges import exchanges
from lrp4rag.claims.grounds import Counterpart
from lrp4rag.claims.lexicon import base, relation
from lrp4rag.claims.opposites import opposites
from lrp4rag.claims.places import Place
from lrp4rag.claims.signed import signed_clauses
from lrp4rag.claims.verbs import finite_verbs
from lrp4rag.claims.words import stem, word_set
from lrp4rag.claims.written import numbers_in
from lrp4rag.util.sentences import sentences_in

LEAST = 0.3
"""How sure a denial is (see `Counterpart`) that is worth a counter-claim, at least."""
MOST = 2
"""Counter-claims of each kind, at most."""
FITS = 0.5
"""How well a passage's value fits the place of the sentence's, at least, that is worth a counter-claim; and
how well the sentence's fits one of a passage, at most."""
FEWEST = 3
"""Words with content that a clause has at least of which it is enough that the passages say its opposite."""
_NOT_IN_PLACE = word_set("only every each all any both no none not nothing nobody")
"""Words whose meaning depends on more than the word in whose place they would be put."""
_AUXILIARY = (
    r"\b(?:is|are|was|were|has|have|had|may|must|can|will|shall|should|would|could|might|do|does|did)\b"
)
_DUTY = r"\b(?:must|(?:has|have|had|needs?) to)\b"
_FORBIDDEN = re.compile(
    r"\b(?:(?:must|may)(?: not|n['\u2019]t)|cannot|can['\u2019]t|forbidden|prohibited|allowed|permitted)\b",
    re.IGNORECASE,
)
"""Words by which a passage says what must not be done; without them it need not be done."""
NEAR = 60
"""Characters of a passage around a denied word in which it may say so."""
_DENIALS: tuple[tuple[str, str], ...] = (
    (r"\bcannot\b", "can"),
    (r"\b(c)an['\u2019]t\b", r"\1an"),
    (r"\b(w)on['\u2019]t\b", r"\1ill"),
    (r"\b(?:do|does|did)(?: not|n['\u2019]t) ", ""),
    (r"\bneed(?: not|n['\u2019]t)\b", "must"),
    (r"\bmust(?: not|n['\u2019]t)\b", "may"),
    (r"\b(\w+)n['\u2019]t\b", r"\1"),
    (r"\b(?:not|never|no longer) ", ""),
    (r"\bwithout\b", "with"),
    (r"\bno(?:body| one)\b", "everybody"),
    (r"\bno ", "a "),
)
"""Denials, and what takes their place where nothing is denied; the first that fits."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|[,;]")
_SUPPOSED = re.compile(
    r"\b(?:if|unless|when|whenever|until|(?:as|so) long as|provided|providing|in case)\b[^,;:.]*\Z",
    re.IGNORECASE,
)
"""Before a word of a condition, which denies nothing: "as long as the level isn't 4"."""
_NOT = re.compile(r"\b(?:not|no|never|cannot|without|nobody|none)\b|n['\u2019]t\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"(?:\b(?:not|never)|n['\u2019]t)(?: be)? (?:exceed\w*|surpass\w*|over|above|under|below|beyond|more|less"
    r"|fewer|longer|shorter|later|earlier|older|younger|heavier|lighter|higher|lower)\b",
    re.IGNORECASE,
)
"""Denials that deny nothing: "must not exceed" is a maximum."""
_PARTICLE = re.compile(r"(?P<yes>yes)\b|no(?=[,.:;!])\b", re.IGNORECASE)
"""The answer to the question in short, before the sentence that gives it in full."""


@dataclass(frozen=True, slots=True)
class CounterClaim:
    """A sentence in other `words`: as the passages have it at the place that `denial` names. It `is_said`
    where a clause of theirs has all words of the clause that was turned, denied as they are there, and none
    has them denied as the sentence does. Its `kind` tells how it comes about: by a "denial", by an "opposite"
    phrase (`claims.opposites`), by an "exchange" of words (`claims.exchanges`), without an "addition"
    (`claims.additions`), or by another "value" in the place of the sentence's, or one of the same number
    in another "unit"."""

    words: str
    denial: Counterpart
    is_said: bool = False
    kind: Literal["denial", "opposite", "exchange", "addition", "unit", "value"] = "denial"


def counter_claims(text: str, passages: Passages, sentence: Compared) -> list[CounterClaim]:
    """Return the wordings that a sentence of a text would have if it said what the passages say, each once:
    the surest of each kind."""
    claims: dict[str, CounterClaim] = {}
    wording = text[sentence.start : sentence.end]
    place = Place(0, sentence.start, sentence.end, text)
    for opposite in itertools.islice(opposites(passages.index, place), MOST):
        words = _with_theirs(wording, sentence.start, opposite, passages.texts)
        if words != wording:
            claims[words] = CounterClaim(words, opposite, kind="opposite")
    for words, counter in _denials(text, passages.texts, sentence).items():
        if counter.is_said or words not in claims:
            claims[words] = counter
    for exchange in itertools.islice(exchanges(passages, place), MOST):
        words = _with_theirs(wording, sentence.start, exchange, passages.texts)
        claims.setdefault(words, CounterClaim(words, exchange, kind="exchange"))
    for addition in itertools.islice(additions(passages.index, place), MOST):
        words = without(wording, addition.start - sentence.start, addition.end - sentence.start)
        claims.setdefault(words, CounterClaim(words, addition, kind="addition"))
    for value in itertools.islice(_values(passages, place, sentence), MOST):
        words = _with_theirs(wording, sentence.start, value, passages.texts)
        is_unit = have_same_numbers(text[value.start : value.end], value.instead(passages.texts))
        claims.setdefault(words, CounterClaim(words, value, kind="unit" if is_unit else "value"))
    return list(claims.values())


def _values(passages: Passages, place: Place, sentence: Compared) -> Iterator[Counterpart]:
    """Yield the passages' values in the place of those of a sentence that they contradict, and that are not
    derived from others."""
    rivals = [rival for value in sentence.values if (rival := _rival(place, value, passages)) is not None]
    if not rivals:
        return
    span = place.start, place.end
    derived = itertools.chain(
        derivations(place.source, span, passages.question, passages.index),
        restatements(place.source, span, passages.index),
    )
    starts = {derivation.value.start for derivation in derived}
    yield from (rival for rival in rivals if rival.start not in starts)


def _rival(place: Place, value: Comparison, passages: Passages) -> Counterpart | None:
    """Return what contradicts a value of a sentence, if something does, that the sentence does not have too:
    unless the question has the value, a passage nearly has it there, it is part of a longer number, such as
    the seconds of a time in a race, or a name, in whose place others stand more often."""
    if value.kind == "name" or value.status != "contradicted" or value.rival is None or value.passage is None:
        return None
    fit = value.fit(value.passage, *value.rival)
    if fit is None or fit < FITS or value.features["near fit"] > FITS or value.features["asked"]:
        return None
    before, behind = (
        place.source[max(value.start - 2, 0) : value.start],
        place.source[value.end : value.end + 2],
    )
    is_part = re.fullmatch(r"\d[:.]", before) or re.fullmatch(r"[:.]\d", behind)
    is_there = _has_with_words(passages.texts[value.passage], value.text)
    if is_part or is_there or value.rival_text in place.text:
        return None
    return Counterpart(value.start, value.end, value.passage, *value.rival, fit)


def _has_with_words(passage: str, value: str) -> bool:
    """Say whether a passage has a number with a word or two before its noun: "5 unused days", "five days"."""
    numbers, noun = numbers_in(value), value.rsplit(maxsplit=1)[-1].rstrip("s")
    matches = re.finditer(rf"(?<!\S)(?=(\S+) (?:[\w-]+ ){{1,2}}{re.escape(noun)})", passage, re.IGNORECASE)
    return bool(numbers) and any(numbers_in(match[1]) == numbers for match in matches)


def _with_theirs(wording: str, here: int, counterpart: Counterpart, passages: Sequence[str]) -> str:
    """Return a sentence that begins at character `here` with a passage's words in the place of some."""
    start, end = counterpart.start - here, counterpart.end - here
    return wording[:start] + _as(wording[start:end], counterpart.instead(passages)) + wording[end:]


def _denials(text: str, passages: Sequence[str], sentence: Compared) -> dict[str, CounterClaim]:
    """Return the counter-claims of the surest denials, by their words."""
    claims: dict[str, CounterClaim] = {}
    wording = text[sentence.start : sentence.end]
    limits = [match.span() for match in _LIMIT.finditer(text, sentence.start, sentence.end)]
    for denial in sentence.denials:
        if any(start <= denial.start < end for start, end in limits):
            continue
        if denial.weight < LEAST or len(claims) == MOST:
            break
        turned = _turned(text, passages, sentence, denial)
        if turned is not None and turned[0] != wording:
            words, by_sign = turned
            is_supposed = _SUPPOSED.search(text[sentence.start : denial.start])
            is_said = by_sign and not is_supposed and _is_said(wording, words, passages)
            claims.setdefault(words, CounterClaim(words, denial, is_said))
    return claims


def _is_said(wording: str, words: str, passages: Sequence[str]) -> bool:
    """Say whether a clause of the passages has all words of a turned clause of the sentence `words`, in their
    order and denied as they are there, and no clause has them denied otherwise. Clauses of the sentence's own
    `wording` are not turned."""
    clauses = _signed(wording)
    turned = [clause for clause in _signed(words) if len(clause.words) >= FEWEST and clause not in clauses]
    candidates = [clause for passage in passages for clause in _signed(passage)] if turned else []
    for clause in turned:
        if any(candidate.has(clause) for candidate in candidates):
            otherwise = {(word, -sign) for word, sign in clause.words}
            return not any(otherwise <= set(candidate.words) for candidate in candidates)
    return False


@dataclass(frozen=True, slots=True)
class _Signed:
    """The `words` with content of a clause, each with its sign: -1 where it is denied; and whether a "not" or
    the like stands in it, rather than a "prevents"."""

    words: tuple[tuple[str, int], ...]
    has_not: bool

    def has(self, clause: _Signed) -> bool:
        """Say whether it has the words of another clause without others between them."""
        last = len(self.words) - len(clause.words)
        runs = (self.words[k : k + len(clause.words)] for k in range(last + 1))
        return self.has_not == clause.has_not and clause.words in runs


@lru_cache(maxsize=256)
def _signed(text: str) -> tuple[_Signed, ...]:
    return tuple(
        _Signed(
            tuple((word.base, word.sign) for word in clause.content),
            _NOT.search(text, clause.start, clause.end) is not None,
        )
        for start, end in sentences_in(text)
        for clause in signed_clauses(text, start, end)
    )


def _turned(
    text: str, passages: Sequence[str], sentence: Compared, denial: Counterpart
) -> tuple[str, bool] | None:
    """Return the sentence with the denied word's clause turned (True), or with the passage's word in its
    place (False); None where neither can be."""
    words = text[denial.start : denial.end]
    passage_words = denial.instead(passages)
    start, end, turned = denial.start, denial.end, None
    first, second = words.lower(), passage_words.lower()
    same = stem(first) == stem(second) or relation(base(first), base(second)) in ("same", "synonym")
    by_sign = same or re.fullmatch(f"{_DUTY}|{_AUXILIARY}", first) is not None
    if not by_sign:
        if not {first, second} & _NOT_IN_PLACE:
            turned = _as(words, passage_words)
    else:
        for clause in signed_clauses(text, sentence.start, sentence.end):
            if clause.start <= denial.start < clause.end and not _LIMIT.search(
                text, clause.start, clause.end
            ):
                start, end = clause.start, clause.end
                around = slice(max(denial.passage_start - NEAR, 0), denial.passage_end + NEAR)
                is_forbidden = bool(_FORBIDDEN.search(passages[denial.passage][around]))
                turned = _with_other_sign(text[start:end], denial.start - start, is_forbidden)
    if turned is None:
        return None
    wording = text[sentence.start : start] + turned + text[end : sentence.end]
    if particle := _PARTICLE.match(wording):
        wording = _as(particle[0], "no" if particle["yes"] else "yes") + wording[particle.end() :]
    return wording, by_sign


def _as(like: str, text: str) -> str:
    """Return a text with a capital where `like` has one."""
    return text[:1].upper() + text[1:] if like[:1].isupper() else text


def _with_other_sign(clause: str, at: int, is_forbidden: bool) -> str | None:
    """Return a clause without its denial, or with one; None where it has no verb. Of several the nearest one
    before character `at` is turned, else the first one after it. What must be done must not be where it
    `is_forbidden`, and need not be otherwise."""

    def nearest(starts: Sequence[int]) -> int | None:
        return min(starts, key=lambda start: (start > at, abs(start - at)), default=None)

    begin = particle.end() if (particle := _PARTICLE.match(clause)) else 0
    denials = dict[int, tuple[int, str]]()
    for pattern, instead in _DENIALS:
        for match in re.compile(pattern, re.IGNORECASE).finditer(clause, begin):
            if not any(start < match.end() and match.start() < end for start, (end, _) in denials.items()):
                denials[match.start()] = match.end(), _as(match[0], match.expand(instead))
    if (start := nearest([*denials])) is not None:
        end, plain = denials[start]
        return clause[:start] + plain + clause[end:]
    auxiliaries = {
        match.start(): match.end() for match in re.finditer(f"{_DUTY}|{_AUXILIARY}", clause, re.IGNORECASE)
    }
    if (start := nearest([*auxiliaries])) is not None:
        end = auxiliaries[start]
        if re.fullmatch(_DUTY, clause[start:end], re.IGNORECASE):
            return f"{clause[:start]}{'must' if is_forbidden else 'need'} not{clause[end:]}"
        return clause[:end] + ("not" if clause[start:end].lower() == "can" else " not") + clause[end:]
    words = list(_WORD.finditer(clause))
    finite = finite_verbs([word[0].lower() for word in words])
    start = nearest([word.start() for word, is_verb in zip(words, finite, strict=True) if is_verb])
    if start is None:
        return None
    verb = next(word[0] for word in words if word.start() == start)
    return f"{clause[:start]}{_denied(verb)}{clause[start + len(verb) :]}"


def _denied(verb: str) -> str:
    """Return a finite verb with a "not": "covers" becomes "does not cover"."""
    plain = base(verb.lower())
    did = "does" if plain + "s" == verb.lower() or verb.lower().endswith("es") else "did"
    return _as(verb, f"{'do' if plain == verb.lower() else did} not {plain}")
