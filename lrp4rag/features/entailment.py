"""What a comparer makes of each sentence of a response, beside the few sentences of the passages that say
most of it (`premise_of`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lrp4rag.claims.answer import Passages, Span
from lrp4rag.claims.index import Index
from lrp4rag.claims.words import content_words
from lrp4rag.example import Example
from lrp4rag.features.feature import Feature
from lrp4rag.reader.comparer import Entailment, Pair
from lrp4rag.util.sentences import sentences_in

SENTENCES, WORDS, LOOKED_AT = 3, 95, 12
"""Of the passages that are read, at most; and sentences among which these are chosen."""
ASKED, UNLIKE, BEFORE, FURTHER = 0.25, 0.06, 0.5, 0.15
"""Weights, beside that of a place's likeness to a claim: of its likeness to the question (where it has no
word of the claim, the second), to the sentence before, and of words that no chosen place has."""
OPENING = 10
"""Words with which a passage begins, which say what it is about."""
FEW = 4
"""Words with content, of which a sentence that says by itself what it is about has as many."""
_POINTS_BACK = re.compile(
    r"\W*(?:only|after|before|then|once|it|they|he|she|this|these|those|each|both|its|their|his|her|that|so"
    r"|but|and|otherwise|instead|also|until|if so|if not|in that|at that|for that|for this)\b",
    re.IGNORECASE,
)


def points_back(claim: str) -> bool:
    """Say whether a sentence is to be read with the one before it."""
    return len(content_words(claim)) < FEW or bool(_POINTS_BACK.match(claim))


def premise_of(passages: Passages, claim: str, before: str = "") -> str:
    """Return the sentences of the passages that say most of a claim, in their order, each passage's after its
    first words; "" for passages without text. `before` is the sentence before it, of a claim that points back
    to it."""
    index = passages.index
    if not index.places:
        return ""
    words, scores = content_words(claim), _likeness(passages, claim)
    if before:
        scores = [score + BEFORE * near for score, near in zip(scores, _similar(index, before), strict=True)]
        words |= content_words(before)
    return _written(index, _chosen(index, words, scores))


def _similar(index: Index, text: str) -> list[float]:
    return index.similarities(content_words(text))


def _likeness(passages: Passages, claim: str) -> list[float]:
    pairs = zip(_similar(passages.index, claim), passages.asked, strict=True)
    return [likeness + ASKED * asked if likeness else UNLIKE * asked for likeness, asked in pairs]


def _chosen(index: Index, words: frozenset[str], scores: list[float]) -> list[int]:
    """Return the numbers of the places that are read: the best, then those with most that the others lack."""
    places = index.places
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], number))[:LOOKED_AT]
    chosen, left = order[:1], words - places[order[0]].words
    length = len(places[order[0]].text.split())
    candidates = order[1:]
    while candidates and len(chosen) < SENTENCES:
        worth = {
            number: scores[number] + FURTHER * sum(map(index.rarity, sorted(left & places[number].words)))
            for number in candidates
        }
        best = max(candidates, key=worth.__getitem__)
        candidates.remove(best)
        if length + len(places[best].text.split()) <= WORDS:
            chosen.append(best)
            left -= places[best].words
            length += len(places[best].text.split())
    return sorted(chosen)


def _written(index: Index, numbers: list[int]) -> str:
    words, last = list[str](), -1
    for number in numbers:
        place = index.places[number]
        if last < 0 or place.passage != index.places[last].passage:
            first = next(k for k, each in enumerate(index.places) if each.passage == place.passage)
            words += ["|"] if words else []
            if number != first:
                words += [*index.places[first].text.split()[:OPENING], "..."]
        elif number != last + 1:
            words.append("...")
        if place.heading and place.heading not in " ".join(words):
            words.append(place.heading)
        words.append(place.text)
        last = number
    return " ".join(" ".join(words).split())


FEATURES = (
    Feature("doubt of the word", "any", "log odds, by the comparer, that the token's word is wrong", "nat"),
    Feature("doubt of the sentence", "any", "log odds, by the comparer, that it is not supported", "nat"),
    Feature("contradicted", "any", "its log-probability of a contradiction, less that of support", "nat"),
)
"""Of tokens; 0 outside of sentences."""
OF_ALARMS = "entailment: "
"""What the names of features of values and sentences begin with."""


def pairs_of(passages: Passages, response: str, sentences: Sequence[Span], first: int = 0) -> list[Pair]:
    """Return what a comparer reads of each sentence from number `first` on: its premise, the question, the
    sentence before where it points back to that, and itself."""
    pairs, last = [], response[slice(*sentences[first - 1])] if first else ""
    for start, end in sentences[first:]:
        claim = response[start:end]
        before = last if points_back(claim) else ""
        lead = f"{passages.question} {before}".strip()
        pairs.append(Pair(premise_of(passages, claim, before), lead, claim))
        last = claim
    return pairs


def pairs_of_each(examples: Iterable[Example]) -> Iterator[tuple[Example, tuple[Span, ...], list[Pair]]]:
    """Yield each response's example, its sentences and their pairs; a prompt is read once for responses that
    follow each other."""
    passages, key = Passages("", ()), None
    for example in examples:
        if key != (example.question, example.passages):
            key = example.question, example.passages
            passages = Passages(example.question, example.passages)
        response = example.response or ""
        sentences = sentences_in(response)
        yield example, sentences, pairs_of(passages, response, sentences)


def entailment_features(entailment: Entailment, start: int, end: int) -> dict[str, float]:
    """Return the features of characters `start` to `end` of a sentence, log odds by name."""
    return {
        f"{OF_ALARMS}unsupported": entailment.unsupported,
        f"{OF_ALARMS}contradicted": entailment.contradicted,
        f"{OF_ALARMS}highest word": entailment.highest(),
        f"{OF_ALARMS}highest word here": entailment.highest(start, end),
    }
