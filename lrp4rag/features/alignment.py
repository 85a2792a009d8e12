"""How a token's word, and its sentence, compare with the passages' words: no model is asked.

Each sentence of the response is aligned with the place (a sentence of a passage) that has most of its content
words, weighted by rarity; neighbours count half (see `values.index`). What follows a sentence changes none of
its features: they are the same while the response is being written.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.words import STOP_WORDS, content_words, stem
from lrp4rag.features.feature import Feature
from lrp4rag.features.record import Record, Values
from lrp4rag.util.text import WORD, normal

_SCOPE = frozenset(
    map(
        stem,
        (
            "all", "any", "anyone", "anything", "anywhere", "always", "each", "every", "everyone",
            "everything", "everywhere", "never", "whatever", "whenever", "including", "regardless", "only",
            "solely", "exclusively", "except", "unless", "both", "entire", "whole", "complete",
        ),
    )
)  # fmt: skip
"""Words that widen a statement, or narrow it."""
_LIMIT = frozenset(
    map(
        stem,
        (
            "only", "if", "unless", "except", "provided", "excluding", "until", "limited", "subject",
            "without", "up", "most", "least",
        ),
    )
)  # fmt: skip
"""Words that limit a statement."""
_SMALL = 1e-6


FEATURES = tuple(
    Feature(*definition)
    for definition in (
        ("stop word", "0 or 1", "the token's word is one of English's most frequent words"),
        ("in no passage", "0 or 1", "no passage has its stem"),
        ("in the place", "0 or 1", "the sentence's place has its stem"),
        ("near the place", "0 or 1", "the place, or a sentence beside it, has its stem"),
        ("in the place's passage", "0 or 1", "the passage of the place has its stem"),
        ("asked", "0 or 1", "the question has its stem"),
        (
            "rarity",
            "0 or more",
            "log inverse frequency of its stem among the passages' sentences; 0 of a stop word",
        ),
        ("similarity", "0 to 1", "of the sentence and its place"),
        ("similarity elsewhere", "0 to 1", "of the sentence and the best place in another passage"),
        (
            "asked there",
            "0 to 1",
            "how much of the question the place's passage has, against the passage with most",
        ),
        ("one passage", "0 or 1", "there is one passage only"),
        ("new after the word before", "0 or 1", "no passage has the pair of stems"),
        ("new before the next word", "0 or 1", "no passage has the pair of stems"),
        ("new after two words", "0 or 1", "no passage has the three stems"),
        ("new between words", "0 or 1", "no passage has the three stems"),
        ("digit", "0 or 1", "the word begins with a digit"),
        ("capital", "0 or 1", "the word begins with a capital"),
        ("sentence's words", "0 or more", "log(1 + content words of the sentence)"),
        ("place in the sentence", "0 to 1", "of the word"),
        ("one sentence", "0 or 1", "it is the response's first sentence"),
        ("novel scope", "0 or 1", "a word that widens or narrows, which is not near the place"),
        ("limits missing", "0 or more", "words that limit, which the place has and the sentence has not"),
        (
            "limits added",
            "0 or more",
            "words that limit, which the sentence has and no sentence near the place has",
        ),
        (
            "away from home",
            "0 to 1",
            "similarity less that in the passage that most of the response so far is aligned with",
        ),
        (
            "asked at the place",
            "0 to 1",
            "how much of the question's words the place and its neighbours have",
        ),
    )
)
NAMES = tuple(feature.name for feature in FEATURES)


def alignment(record: Record) -> Values:
    """Return the `FEATURES` of tokens, (features, t); a token has the values of the first word that it shares
    a character with."""
    encoded = record.encoded
    words = [(match.start(), match.end(), match[0]) for match in WORD.finditer(encoded.response)]
    rows = np.zeros((len(words) + 1, len(FEATURES)))
    if record.context.index.places and words:
        by_sentence = record.of_each("alignment", partial(_rows, record, words))
        for number, row in itertools.chain.from_iterable(aligned for _, aligned in by_sentence):
            rows[number] = row
    places = np.full(len(encoded.response) + 1, len(words))
    for k, (start, end, _) in reversed(list(enumerate(words))):
        places[start:end] = k
    first = [int(places[start:end].min(initial=len(words))) for start, end in encoded.response_offsets]
    return rows[first].T


Aligned = tuple[Values, list[tuple[int, list[float]]]]
"""How similar the places are to all that was said, and the rows of a sentence's words, with their numbers."""


def _rows(record: Record, words: list[tuple[int, int, str]], done: Sequence[Aligned]) -> Iterator[Aligned]:
    context, encoded = record.context, record.encoded
    index, grams, response = context.index, context.grams, encoded.response
    likeness_to_question = np.array(index.similarities(context.question_words))
    passage = np.array([place.passage for place in index.places])
    alone = len(set(passage.tolist())) == 1
    by_passage = _best_by_passage(likeness_to_question, passage)
    most_asked = by_passage.max() + _SMALL
    stems = [stem(normal(word.lower())) for *_, word in words]
    so_far = done[-1][0] if done else np.zeros(len(passage))
    for number, (start, end) in enumerate(encoded.sentences[len(done) :], len(done)):
        inside = [k for k, (at, *_) in enumerate(words) if start <= at < end]
        if not inside:
            yield so_far, []
            continue
        similarity = np.array(record.similarities((start, end)))
        so_far = so_far + similarity
        home = int(_best_by_passage(so_far, passage).argmax())
        best = int(similarity.argmax())
        there = int(passage[best])
        around = [n for n in range(best - 1, best + 2) if 0 <= n < len(passage) and passage[n] == there]
        in_passage = context.words[there]
        stems_of_place = context.stems[best]
        beside = frozenset().union(*(context.stems[n] for n in around))
        by_place = _best_by_passage(similarity, passage)
        stems_of_sentence = {stems[k] for k in inside}
        missing = len((stems_of_place & _LIMIT) - stems_of_sentence)
        added = len((stems_of_sentence & _LIMIT) - beside)
        away = float(similarity[best] - by_place[home])
        by_place[there] = 0.0
        elsewhere = by_place.max()
        aligned = list[tuple[int, list[float]]]()
        for position, k in enumerate(inside):
            word, at = words[k][2], stems[k]
            before, after = stems[k - 1 : k] or [""], stems[k + 1 : inside[-1] + 1][:1] or [""]
            two = stems[k - 2 : k - 1] if k > 1 else [""]
            stopped = word.lower() in STOP_WORDS
            row = (
                k,
                [
                    stopped,
                    at not in grams,
                    at in stems_of_place,
                    at in beside,
                    at in in_passage,
                    at in context.question_words,
                    0.0 if stopped else index.rarity(at),
                    float(similarity[best]),
                    float(elsewhere),
                    float(by_passage[there] / most_asked),
                    alone,
                    (*before, at) not in grams,
                    (at, *after) not in grams,
                    (*two, *before, at) not in grams,
                    (*before, at, *after) not in grams,
                    word[0].isdigit(),
                    word[0].isupper(),
                    math.log1p(len(content_words(response[start:end]))),
                    position / len(inside),
                    number == 0,
                    at in _SCOPE and at not in beside,
                    missing,
                    added,
                    away,
                    float(likeness_to_question[best]),
                ],
            )
            aligned.append(row)
        yield so_far, aligned


def _best_by_passage(similarity: NDArray[np.float64], passage: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the highest similarity of each passage's places, in one go: there can be thousands."""
    best = np.zeros(int(passage.max()) + 1)
    np.maximum.at(best, passage, similarity)
    return best
