"""A stored reading that is cut after a sentence is that of the response that ends there."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag import Example
from lrp4rag.features.plain import PlainTable
from lrp4rag.features.replay import AROUND, PlainReplay
from lrp4rag.features.states import StateBlock
from lrp4rag.reader import Reader
from lrp4rag.sentences import split_sentences
from lrp4rag.training.along_evidence import until

PASSAGES = (
    "The Marlow lighthouse is 31 metres tall and was built in 1873.",
    "Fish is sold nearby on 3 days.",
)
RESPONSE = "It is 30 metres tall. It was built in 1871 and not later. Fish is sold there on 5 days a week."


@pytest.fixture(scope="module")
def replay(tiny_reader: Reader) -> PlainReplay:
    return PlainReplay(tiny_reader)


def record_of(replay: PlainReplay, reader: Reader, response: str):
    return replay(reader.encode(Example("How tall is it?", PASSAGES, response)))


def test_likelihoods_and_states_are_those_of_the_shorter_response(replay, tiny_reader) -> None:
    whole = record_of(replay, tiny_reader, RESPONSE)
    for _, end in split_sentences(RESPONSE):
        shorter, cut = record_of(replay, tiny_reader, RESPONSE[:end]), until(whole, end)
        assert cut.encoded == shorter.encoded
        for name in ("logprob", "entropy", "rank", "best", "best_in_passages", "mass"):
            np.testing.assert_allclose(cut.signals[name], shorter.signals[name], atol=1e-4, err_msg=name)
        np.testing.assert_allclose(cut.states[AROUND], shorter.states[AROUND], atol=2e-2)


def test_alternatives_are_those_whose_values_are_there(replay, tiny_reader) -> None:
    whole = record_of(replay, tiny_reader, RESPONSE)
    sentences = split_sentences(RESPONSE)
    assert len(whole.signals["places"]) > 3
    counts = []
    for _, end in sentences:
        shorter, cut = record_of(replay, tiny_reader, RESPONSE[:end]), until(whole, end)
        counts.append(len(cut.signals["places"]))
        known = {tuple(row[:3]) for row in shorter.signals["places"].tolist()}
        assert {tuple(row[:3]) for row in cut.signals["places"].tolist()} <= known
        assert (cut.signals["places"][:, 4] <= len(cut)).all()
        for block in (PlainTable(), StateBlock(AROUND)):
            ours, theirs = block(cut), block(shorter)
            assert ours.shape == theirs.shape
        likelihoods = PlainTable(("likelihoods", "alignment"))
        np.testing.assert_allclose(likelihoods(cut), likelihoods(shorter), atol=2e-3)
    assert counts[0] < counts[-1] == len(whole.signals["places"])
