"""What a comparer makes of sentences, as features of tokens, values and sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.classifiers.alarms import units
from lrp4rag.features.blocks import BLOCKS, reads_comparer
from lrp4rag.features.entailment import FEATURES, pairs_of
from lrp4rag.features.plain import ENTAILMENT
from lrp4rag.features.record import Record
from lrp4rag.features.replay import PlainReplay
from lrp4rag.reader import Reader
from lrp4rag.reader.comparer import Entailment
from tests.features.test_contrast import encoded

PASSAGES = ("Leave lasts 16 weeks. Rest lasts 30 weeks.", "Ask Ada Berg. You may not smoke.")
RESPONSE = "Leave lasts 18 weeks. It is then over."


def entailment(classes: list[float], words: dict[tuple[int, int], float]) -> Entailment:
    logits = np.log(np.array(classes, dtype=np.float32))
    spans = np.array(list(words), dtype=np.intp).reshape(-1, 2)
    return Entailment(logits, spans, np.array(list(words.values()), dtype=np.float32))


FIRST = entailment([0.1, 0.7, 0.2], {(0, 5): -2.0, (6, 11): -1.0, (12, 14): 3.0, (15, 20): 0.5})
SECOND = entailment([0.8, 0.1, 0.1], {(0, 2): -4.0, (3, 5): -3.0})


@pytest.fixture
def record(tiny_reader: Reader) -> Record:
    return replace(PlainReplay(tiny_reader)(encoded(RESPONSE, PASSAGES)), entailed=(FIRST, SECOND))


def test_a_pair_has_the_sentence_before_only_where_it_points_back(record: Record):
    encoded = record.encoded
    first, second = pairs_of(record.context.compared, encoded.response, encoded.sentences)
    assert first.claim == "Leave lasts 18 weeks."
    assert first.lead == encoded.question
    assert "16 weeks" in first.premise
    assert second.lead == f"{encoded.question} {first.claim}"


def test_log_odds_are_those_of_the_classes():
    assert FIRST.unsupported == pytest.approx(np.log(0.9 / 0.1))
    assert FIRST.contradicted == pytest.approx(np.log(7))
    assert FIRST.highest() == 3.0
    assert FIRST.highest(15) == 0.5
    assert FIRST.highest(12, 14) == 3.0
    assert FIRST.highest(14, 15) == FIRST.unsupported  # between words


def test_each_token_has_the_doubt_of_its_word_and_of_its_sentence(record: Record):
    table = BLOCKS[ENTAILMENT](record)
    assert table.shape == (len(record), 3 * len(FEATURES))
    offsets = record.encoded.response_offsets
    inside = [k for k, (start, end) in enumerate(offsets) if start < 14 and end > 12]
    assert table[inside, 0] == pytest.approx([3.0] * len(inside))
    assert table[inside, 1] == pytest.approx([FIRST.unsupported] * len(inside))
    last = [k for k, (start, _) in enumerate(offsets) if start >= 22]
    assert table[last, 2] == pytest.approx([SECOND.contradicted] * len(last))
    assert reads_comparer([BLOCKS[ENTAILMENT]])
    assert not reads_comparer([BLOCKS["plain"], BLOCKS["around"]])


def test_alarms_read_it_of_values_and_sentences_where_they_are_asked_to(record: Record):
    without, found = units(record), units(record, entailed=True)
    (value,) = (row for row in found["values"] if RESPONSE[row.start : row.end] == "18 weeks")
    assert value.features["entailment: highest word here"] == 3.0
    assert value.features["entailment: unsupported"] == pytest.approx(FIRST.unsupported)
    second = found["sentences"][1].features
    assert second["entailment: highest word"] == -3.0
    assert not any(name.startswith("entailment") for row in without["values"] for name in row.features)
