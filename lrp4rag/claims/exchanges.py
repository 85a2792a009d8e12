"""Words in whose place a passage has others: "must reach the treasurer", and "the secretary".

The words around them are the same in both, so that the sentence with the passage's words in their place can
be judged beside it (`claims.counterclaims`). Most are names of things, which are no values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from lrp4rag.claims.answer import Passages
from lrp4rag.claims.grounds import Counterpart
from lrp4rag.claims.lexicon import base, relation
from lrp4rag.claims.places import Place, Token
from lrp4rag.claims.words import content_words, word_set

LONGEST = 3
"""Words that are exchanged, at most."""
REACH = 8
"""Words on either side of them that are compared, at most."""
ENOUGH = 2
"""Words with content around words that passages have elsewhere, at least; around new words, 1."""
_DETERMINERS = word_set("the a an your our their his her its my this that")
_SAME = dict.fromkeys(_DETERMINERS, "the") | {"or": "and"}
_LEADING = _DETERMINERS | word_set(
    """
    in on at to from by of for with into onto through via under over behind near inside outside between after
    before during each every any no and or only as per if when unless without than like against around along
    within both either because once since while where that which who
    one two three four five six seven eight nine ten twelve
    """
)
"""Words before the name of a thing."""
_VERBS = word_set(
    """
    is are was were be been being has have had may must can will shall should would could do does did need
    needs get gets not
    """
)
_EDGE = re.compile(r"[,;:.!?()\u2013\u2014]|\b(?:and|or|but)\b", re.IGNORECASE)
_SHORT = 3
"""Letters of a short form, at least."""


@dataclass(frozen=True, slots=True, order=True)
class _Exchange:
    """Words `start` to `end` of a sentence and `there` to `stop` of a passage's, the last ones included: how
    many words next to them are the `same` in both, and how many of these have `content`. `shorter` (0 at
    most) is the larger, the fewer words are exchanged."""

    content: int
    same: int
    shorter: int
    start: int
    end: int
    there: int
    stop: int


def exchanges(passages: Passages, sentence: Place) -> Iterator[Counterpart]:
    """Yield words of a sentence of a response, and those in their place: first those with most words in
    common around them. The weight is the share of the sentence's words that the passage's sentence has."""
    heads = {
        number: 1 if _is_new(passages, word) else ENOUGH
        for number, word in enumerate(sentence.tokens)
        if _is_head(word)
    }
    closest = passages.index.closest(content_words(sentence.text)) if heads else []
    candidates = [
        (exchange, similarity, number)
        for number, similarity in closest
        if similarity > 0
        for exchange in _exchanges(sentence, passages.index.places[number], heads)
    ]
    yielded = set[tuple[int, int, tuple[str, ...]]]()
    for exchange, similarity, number in sorted(candidates, reverse=True):
        place = passages.index.places[number]
        words = tuple(token.word for token in place.tokens[exchange.there : exchange.stop + 1])
        if (key := (exchange.start, exchange.end, words)) in yielded:
            continue  # passages overlap
        yielded.add(key)
        yield Counterpart(
            sentence.start + sentence.tokens[exchange.start].start,
            sentence.start + sentence.tokens[exchange.end].end,
            place.passage,
            place.start + place.tokens[exchange.there].start,
            place.start + place.tokens[exchange.stop].end,
            similarity,
        )


def _is_new(passages: Passages, token: Token) -> bool:
    """Say whether neither the passages nor the question have a word, nor one of its sense."""
    word, grounds = base(token.word), passages.grounds
    return not grounds.related(word) and all(word != each.base for each in grounds.question_words)


def _is_head(token: Token) -> bool:
    """Say whether a word may be the last one of a name of a thing."""
    return bool(token.stem) and token.word.isalpha() and token.word not in _VERBS


def _exchanges(sentence: Place, place: Place, heads: Mapping[int, int]) -> Iterator[_Exchange]:
    """Yield for each of the `heads`, the last words of what may be exchanged, the best exchange with so many
    words with content around it."""
    tokens, place_tokens = sentence.tokens, place.tokens
    mine, theirs = ([_key(token) for token in words] for words in (tokens, place_tokens))
    before, after = _runs(mine, theirs), _runs(mine[::-1], theirs[::-1])
    free = [stop for stop, word in enumerate(place_tokens) if _is_head(word) and word.stem not in mine]
    instead = {stop: tuple(_starts(place, stop)) for stop in free}
    for end, fewest in heads.items():
        if tokens[end].stem in theirs:
            continue
        candidates, starts, is_last = [], tuple(_starts(sentence, end)), _is_last(sentence, end)
        for stop in free:
            right = after[len(tokens) - 1 - end][len(place_tokens) - 1 - stop]
            if not (right or (is_last and _is_last(place, stop))):
                continue
            if _are_one(tokens[end].word, place_tokens[stop].word):
                continue
            for start, there in product(starts, instead[stop]):
                left = before[start][there]
                if not (left or there == 0 or _is_edge(sentence, start)):
                    continue
                around = (*tokens[start - left : start], *tokens[end + 1 : end + 1 + right])
                content = sum(bool(token.stem) for token in around)
                names = tokens[start : end + 1], place_tokens[there : stop + 1]
                if content >= fewest and not _are_initials(*names):
                    shorter = start + there - end - stop
                    candidates.append(_Exchange(content, left + right, shorter, start, end, there, stop))
        if candidates:
            yield max(candidates)


def _key(token: Token) -> str:
    """Return the key by which words are the same: all determiners are, and "and" and "or"."""
    return token.stem or _SAME.get(token.word, token.word)


def _runs(first: Sequence[str], second: Sequence[str]) -> list[list[int]]:
    """Return how many words before word i of one text and word j of another are the same, up to `REACH`."""
    runs = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, word in enumerate(first):
        for j, second_word in enumerate(second):
            if word == second_word:
                runs[i + 1][j + 1] = min(runs[i][j] + 1, REACH)
    return runs


def _are_one(first: str, second: str) -> bool:
    """Say whether words are short and long forms, as "Fri" and "Friday" are, or of one sense."""
    short, long = sorted((first, second), key=len)
    is_short = len(short) >= _SHORT and long.startswith(short)
    return is_short or relation(base(first), base(second)) in ("same", "synonym")


def _are_initials(first: Sequence[Token], second: Sequence[Token]) -> bool:
    """Say whether one of two names is the initials of the other: "CEO"."""
    short, long = sorted((first, second), key=len)
    return len(short) == 1 < len(long) and short[0].word == "".join(token.word[0] for token in long)


def _starts(sentence: Place, end: int) -> Iterator[int]:
    """Yield where the name of a thing may begin that ends with a word."""
    tokens = sentence.tokens
    for start in range(end, max(end - LONGEST, -1), -1):
        is_part = tokens[start].stem and tokens[start].word.isalpha()
        if start < end and (not is_part or _is_edge(sentence, start + 1)):
            return
        if _is_edge(sentence, start) or tokens[start - 1].word in _LEADING:
            yield start


def _is_last(place: Place, number: int) -> bool:
    """Say whether a name of a thing ends with a word."""
    return _is_edge(place, number + 1) or not place.tokens[number + 1].stem


def _is_edge(sentence: Place, number: int) -> bool:
    """Say whether a sentence, or a part of it, ends before a word."""
    tokens = sentence.tokens
    if not 0 < number < len(tokens):
        return True
    return _EDGE.search(sentence.text, tokens[number - 1].start, tokens[number].end) is not None
