"""Which clauses of passages say most of a claim's clause."""

from __future__ import annotations

import time

import numpy as np

from lrp4rag.claims.grounds import Grounds
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import places_of
from lrp4rag.claims.signed import signed_clauses

PASSAGES = ("The tower is 31 metres tall. Fish is sold nearby.", "The castle is cheap.")


def grounds_of(*passages: str) -> Grounds:
    return Grounds("", Index(passages))


def words(text: str):
    return [word for clause in signed_clauses(text) for word in clause.content]


def test_the_clause_with_the_words_is_first() -> None:
    grounds = grounds_of(*PASSAGES)
    aligned = grounds.aligned(words("Fish is sold"))
    assert aligned.places[0].text == "Fish is sold nearby."
    assert aligned.scores.max() == aligned.known_scores.max() == 1
    assert aligned.missing == 0


def test_words_that_no_passage_has_are_missing() -> None:
    aligned = grounds_of(*PASSAGES).aligned(words("elephants dance"))
    assert aligned.missing == 1
    assert not aligned.scores.any()


def test_an_opposite_stands_in_the_place_of_a_word() -> None:
    grounds = grounds_of(*PASSAGES)
    (match,) = grounds.matches(words("expensive"), places_of(PASSAGES[1:])[0].content)
    assert match.sign == -1
    assert PASSAGES[1][match.passage_word.start : match.passage_word.end] == "cheap"


def test_no_passage_and_no_word() -> None:
    for grounds in (grounds_of(), grounds_of("", " . ")):
        assert grounds.aligned(words("tower")).scores.shape == (0,)
    assert not np.any(grounds_of(*PASSAGES).aligned([]).scores)


def test_a_long_passage_takes_no_time_per_pair_of_words() -> None:
    started = time.process_time()
    grounds = grounds_of(" ".join(f"word{number} not other{number}." for number in range(20_000)))
    grounds.aligned(words("word7 other9 nothing else"))
    assert time.process_time() - started < 20
