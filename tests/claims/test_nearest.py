"""The sentence of the passages that has most of a statement's words."""

from __future__ import annotations

from lrp4rag.claims.index import Index
from lrp4rag.claims.nearest import nearest

PASSAGES = ["Fish is sold nearby. The tower is 31 metres tall.", "It was built in 1871, of grey granite."]


def found(statement: str, passages: list[str] = PASSAGES):
    one = nearest(Index(passages), passages, statement)
    if one is None:
        return None
    text = passages[one.passage]
    return text[one.start : one.end], [text[start:end] for start, end in one.words]


def test_the_best_sentence_and_the_words_that_it_shares() -> None:
    assert found("A tower of 31 metres.") == ("The tower is 31 metres tall.", ["tower", "31", "metres"])
    assert found("Built of granite in 1871") == (PASSAGES[1], ["built", "1871", "granite"])


def test_words_are_compared_by_their_stems() -> None:
    assert found("The building sells fishes.") == ("Fish is sold nearby.", ["Fish"])


def test_a_share_is_told() -> None:
    whole, half = (nearest(Index(PASSAGES), PASSAGES, one) for one in ("tower tall", "tower elephants"))
    assert whole is not None
    assert half is not None
    assert whole.similarity == 1.0
    assert 0 < half.similarity < 0.6


def test_none_where_no_passage_has_a_word_of_it() -> None:
    for statement in ("Elephants dance.", "", "It is.", "…"):
        assert found(statement) is None
    assert found("tower", []) is None
    assert found("tower", ["", " "]) is None
