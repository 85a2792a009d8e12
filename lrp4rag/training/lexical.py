"""What comparing the words of a response with its passages tells, without any model."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lrp4rag.example import Example
from lrp4rag.features.text import words_of
from lrp4rag.training.tabular import Contenders, logistic, one_number

if TYPE_CHECKING:
    from lrp4rag.training.rows import Rows

FEATURES = (
    "words of the response",
    "distinct words that no passage has",
    "their share of the response's distinct words",
    "distinct numbers that no passage has",
    "share of the response's pairs of neighbouring words that a passage has",
    "longest run of words copied from one passage",
)
PENALTIES = (0.01, 0.1, 1.0)


def novel_words(rows: Rows) -> Contenders:
    """The number of distinct response words that no passage contains."""
    return one_number([lexical_features(example)[1] for example in rows.examples], "novel words")


def lexical(rows: Rows) -> Contenders:
    """Logistic regression on the six `FEATURES`."""
    inputs = np.array([lexical_features(example) for example in rows.examples])
    return logistic(inputs, "lexical", PENALTIES)


def lexical_features(example: Example) -> tuple[float, ...]:
    """The six `FEATURES` of one example, in their order. Words are compared in lower case."""
    response = words_of(example.response or "")
    passages = [words_of(passage) for passage in example.passages]
    known = {word for passage in passages for word in passage}
    pairs = {pair for passage in passages for pair in pairwise(passage)}
    own_pairs = list(pairwise(response))
    novel = set(response) - known
    return (
        float(len(response)),
        float(len(novel)),
        len(novel) / max(len(set(response)), 1),
        float(sum(any(sign.isdigit() for sign in word) for word in novel)),
        sum(pair in pairs for pair in own_pairs) / max(len(own_pairs), 1),
        float(max(_longest_run(response, passage) for passage in passages)),
    )


def _longest_run(response: list[str], passage: list[str]) -> int:
    return SequenceMatcher(None, response, passage, autojunk=False).find_longest_match().size
