"""Sentences of answers, and their evidence, changed by rules: faults that nothing but comparing can tell.

What is denied, restricted or told of another thing is changed on one side, which makes a supported sentence
wrong, or on both, which leaves it right: so neither "not" nor a restriction tells by itself what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

from experiments.comparer.claims import exchanged, names_in
from lrp4rag.claims.answer import Span
from lrp4rag.reader.comparer import Pair
from lrp4rag.training.labelled_pairs import LabelledPair, Told

SET = "by rule"
CHANGED = 0.35
"""The part of supported sentences that is changed where no two things can change places, which are few."""
IN_BOTH, IN_EVIDENCE = 0.34, 0.5
"""The part of changes that both sides have; and of others, that on the evidence's side."""
RESTRICTIONS = (
    "only for members", "only on weekdays", "except on public holidays", "if it was ordered before noon",
    "only with a valid ticket", "unless the owner objects", "but not in winter", "only until the end of May",
    "only after a doctor has agreed", "if the amount is above 50 euros", "except for children under six",
    "only in the first year", "provided that a deposit was paid", "only when the engine is cold",
    "unless it rains", "only for orders from abroad", "only once", "but not at weekends",
    "only if two people sign", "except in the northern district", "only with the newer model",
    "as long as stocks last", "only for those over 65", "if the device was registered",
    "but only with written permission", "only during opening hours", "except for students",
    "only where no other rule applies", "if the temperature stays below 30 degrees", "only by appointment",
)  # fmt: skip
_DENIED = {
    "can": ("cannot", "can't", "can not", "can never"),
    "could": ("could not", "couldn't"),
    "must": ("must not", "mustn't", "need not"),
    "may": ("may not", "must not"),
    "should": ("should not", "shouldn't"),
    "will": ("will not", "won't", "will no longer", "will never"),
    "would": ("would not", "wouldn't"),
    "is": ("is not", "isn't", "is no longer", "is never"),
    "are": ("are not", "aren't", "are no longer", "are never"),
    "was": ("was not", "wasn't", "was never"),
    "were": ("were not", "weren't", "were never"),
    "with": ("without",),
    "allowed": ("forbidden", "prohibited"),
    "included": ("excluded", "not included"),
    "free": ("not free",),
    "possible": ("impossible", "not possible"),
    "available": ("unavailable", "not available"),
    "valid": ("invalid", "no longer valid"),
    "necessary": ("unnecessary", "not necessary"),
    "required": ("not required",),
    "always": ("never", "not always"),
    "before": ("after",),
    "above": ("below",),
    "more": ("less",),
    "higher": ("lower",),
    "increased": ("decreased",),
    "most": ("least",),
    "first": ("last",),
    "start": ("end",),
    "open": ("closed",),
}
"""Words, and what says the opposite in their place; a change takes one for the other in either direction."""
_OPPOSITES: dict[str, tuple[str, ...]] = {
    denied: (word,) for word, every in _DENIED.items() for denied in every
} | _DENIED
_CUE = re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, _OPPOSITES), key=len, reverse=True))})\b(?! not\b)")
_CODE = re.compile(r"\b[A-Z][\w-]*(?: (?:[A-Z][\w-]*|[A-Z]?\d[\w-]*))*")
_DIGITS = re.compile(r"\d+")
_END = re.compile(r"[.;]?\s*$")
_SENTENCE = re.compile(r"[^.!?|]+(?:\.(?!\s)[^.!?|]*)*[.!?]?")

Rule = Callable[[LabelledPair, Random], LabelledPair | None]


def by_rules(answers: Sequence[LabelledPair], seed: int = 0) -> Iterator[LabelledPair]:
    """Yield changed sentences of supported answers, each beside the sentence that it was made of."""
    random = Random(seed)
    names = [name for one in answers for name in names_in(one.pair.premise)]

    def value(one: LabelledPair, random: Random) -> LabelledPair | None:
        return exchanged(one, random, names)

    others: tuple[Rule, ...] = (value, denied, restricted)
    for one in answers:
        if one.wrong or not one.pair.premise or one.pair.claim.rstrip().endswith(":"):
            continue
        more = random.sample(others, len(others)) if random.random() < CHANGED else []
        for rule in (of_another, *more):
            made = rule(one, random)
            if made is not None:
                yield replace(one, set=SET)
                yield replace(made, set=SET)
                break


def of_another(one: LabelledPair, random: Random) -> LabelledPair | None:
    """Let two things of the evidence change places: one that the question or the sentence names, and one that
    neither does, of the same form. None where there are no two."""
    asked = f"{one.pair.lead} {one.pair.claim}"
    found = {match[0] for match in _CODE.finditer(one.pair.premise) if len(match[0]) > 1}
    pairs = [
        (own, other)
        for own in sorted(found)
        if re.search(rf"\b{re.escape(own)}\b", asked)
        for other in sorted(found)
        if _alike(own, other) and not re.search(rf"\b{re.escape(other)}\b", asked)
    ]
    if not pairs:
        return None
    own, other = random.choice(pairs)
    either = re.compile(rf"\b(?:{re.escape(own)}|{re.escape(other)})\b")
    premise = either.sub(lambda match: other if match[0] == own else own, one.pair.premise)
    return _wrong(one, replace(one.pair, premise=premise), "not_e", None, "misattributed")


def _alike(own: str, other: str) -> bool:
    """Say whether two names differ in their numbers alone, as those of two models or tariffs do."""
    return own != other and bool(_DIGITS.search(own)) and _DIGITS.sub("", own) == _DIGITS.sub("", other)


def denied(one: LabelledPair, random: Random) -> LabelledPair | None:
    """Say the opposite in the sentence, in what it shares with the evidence, or in both."""
    claim, premise = one.pair.claim, one.pair.premise
    cues = list(_CUE.finditer(claim))
    if not cues:
        return None
    cue = random.choice(cues)
    instead = random.choice(_OPPOSITES[cue[0]])
    new = claim[: cue.start()] + instead + claim[cue.end() :]
    span = (cue.start(), cue.start() + len(instead))
    there = _shared(claim, cue, premise)
    if there is None:
        return _wrong(one, replace(one.pair, claim=new), "c", span, "negation")
    changed = premise[: there[0]] + random.choice(_OPPOSITES[cue[0]]) + premise[there[1] :]
    if random.random() < IN_BOTH and len(_OPPOSITES[cue[0]]) == 1:
        return replace(one, pair=replace(one.pair, claim=new, premise=changed), spans=())
    if random.random() < IN_EVIDENCE:
        return _wrong(one, replace(one.pair, premise=changed), "c", cue.span(), "negation")
    return _wrong(one, replace(one.pair, claim=new), "c", span, "negation")


def _shared(claim: str, cue: re.Match[str], premise: str) -> Span | None:
    """Return where the evidence has a cue beside the same word as the claim."""
    after, before = re.match(r" \w+", claim[cue.end() :]), re.search(r"\w+ $", claim[: cue.start()])
    for text in ([f"{cue[0]}{after[0]}"] if after else []) + ([f"{before[0]}{cue[0]}"] if before else []):
        found = re.search(rf"\b{re.escape(text)}\b", premise)
        if found is not None:
            start = found.start() + text.index(cue[0])
            return start, start + len(cue[0])
    return None


def restricted(one: LabelledPair, random: Random) -> LabelledPair | None:
    """Add a restriction to the sentence, to that of the evidence which is most like it, or to both."""
    claim, premise, text = one.pair.claim, one.pair.premise, random.choice(RESTRICTIONS)
    words = {*claim.lower().split()}
    sentences = list(_SENTENCE.finditer(premise))
    if not sentences or len(words) < 5:
        return None
    nearest = max(sentences, key=lambda found: len(words & {*found[0].lower().split()}))
    if 2 * len(words & {*nearest[0].lower().split()}) < len(words):
        return None  # a restriction of something else changes nothing
    said = _with(nearest[0], text)
    changed = premise[: nearest.start()] + said + premise[nearest.end() :]
    new = _with(claim, text)
    if random.random() < IN_BOTH:
        return replace(one, pair=replace(one.pair, claim=new, premise=changed), spans=())
    if random.random() < IN_EVIDENCE:
        return _wrong(one, replace(one.pair, premise=changed), "not_e", None, "condition")
    start = new.index(text)
    return _wrong(one, replace(one.pair, claim=new), "not_e", (start, start + len(text)), "condition")


def _with(sentence: str, restriction: str) -> str:
    end = _END.search(sentence)
    place = len(sentence) if end is None else end.start()
    return f"{sentence[:place]}, {restriction}{sentence[place:]}"


def _wrong(one: LabelledPair, pair: Pair, label: Told, span: Span | None, kind: str) -> LabelledPair:
    return replace(one, pair=pair, label=label, spans=None if span is None else (span,), kind=kind)
