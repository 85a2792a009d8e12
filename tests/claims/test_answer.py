"""How much of a claim no passage has anything of."""

from __future__ import annotations

from lrp4rag.claims.answer import compare_novelty
from lrp4rag.claims.grounds import Grounds
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import Place

PASSAGES = ["The tower is 31 metres tall. Fish is sold nearby."]


def compared(claim: str, question: str = "", passages: list[str] = PASSAGES):
    return compare_novelty(Grounds(question, Index(passages)), Place(0, 0, len(claim), claim))


def test_words_that_no_passage_has() -> None:
    features = compared("The tower is guarded by Elephants.")
    assert (features["new unasked"], features["capital new"]) == (2, 1)


def test_words_of_the_question_are_not_new() -> None:
    assert compared("Elephants guard it.", "Do elephants guard the tower?")["new unasked"] == 0


def test_a_claim_that_a_passage_has() -> None:
    features = compared("Fish is sold.")
    assert (features["whole best"], features["new share"]) == (1, 0)


def test_no_passages_and_no_words() -> None:
    assert compared("Fish.", passages=[]) == {"new words": 1}
    assert compared("It is.") == {"new words": 0}
