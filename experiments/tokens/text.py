"""Features that need no model: how a token's word compares with the passages' words, and the length.

The bundled detector does not read them: they are the baseline that detectors are compared with.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from experiments.tokens.features import TokenFeature
from lrp4rag.features.record import Record, Values
from lrp4rag.util.text import WORD, words_of


def passages_of(record: Record) -> list[str]:
    """The text of each passage, as the prompt has it."""
    encoded = record.encoded
    found = []
    for k in range(2, len(encoded.segment_names)):
        pairs = zip(encoded.prompt_offsets, encoded.segments, strict=True)
        places = [place for place, segment in pairs if segment == k]
        if places:
            found.append(encoded.text[min(start for start, _ in places) : max(end for _, end in places)])
    return found


def novel_word(record: Record) -> Values:
    known = {word for passage in passages_of(record) for word in words_of(passage)}
    return _by_token(record, [word not in known for word in words_of(record.encoded.response)])


def novel_number(record: Record) -> Values:
    known = {word for passage in passages_of(record) for word in words_of(passage)}
    response = words_of(record.encoded.response)
    return _by_token(record, [word not in known and any(map(str.isdigit, word)) for word in response])


def novel_pair(record: Record) -> Values:
    return _by_token(record, _novel_pairs(record))


def copied_run(record: Record) -> Values:
    """Words in a row whose pairs some passage has, on a logarithmic scale."""
    novel = np.array(_novel_pairs(record), dtype=bool)
    runs = np.zeros(len(novel))
    for part in np.split(np.arange(len(novel)), np.flatnonzero(novel)):
        runs[part] = np.log1p(len(part))
    return _by_token(record, runs)


def length(record: Record) -> Values:
    return np.full(len(record), np.log1p(len(record)))


def _novel_pairs(record: Record) -> list[bool]:
    """Of each word of the response: that no passage has it after the word before; the first is."""
    pairs = {pair for passage in passages_of(record) for pair in pairwise(words_of(passage))}
    words = words_of(record.encoded.response)
    return [True, *(pair not in pairs for pair in pairwise(words))][: len(words)]


def _by_token(record: Record, values: list[bool] | Values) -> Values:
    """The largest value of the words that a token has characters of; 0 for none."""
    encoded = record.encoded
    places = np.full(len(encoded.response) + 1, -1)
    for k, match in enumerate(WORD.finditer(encoded.response)):
        places[match.start() : match.end()] = k
    given = np.append(np.asarray(values, dtype=np.float64), 0.0)  # the last one stands for no word
    return np.array([given[places[start:end]].max(initial=0.0) for start, end in encoded.response_offsets])


_ALL = (
    ("novel word", "text", novel_word, "-", "0 or 1", "no passage has the token's word (in lower case)"),
    ("novel number", "text", novel_number, "-", "0 or 1", "the same, and the word has a digit"),
    ("novel pair", "text", novel_pair, "-", "0 or 1", "no passage has the word after the one before it"),
    ("copied run", "text", copied_run, "-", "0 or more", "log(1 + words in a row that a passage has so)"),
    ("length", "text", length, "-", "0 or more", "log(1 + number of response tokens)"),
)
TEXT_FEATURES: dict[str, TokenFeature] = {one[0]: TokenFeature(*one) for one in _ALL}
