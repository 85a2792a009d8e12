"""Which values of annotated responses are wrong, and which are clear enough to learn from."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.features.replay import PlainReplay
from lrp4rag.features.values import FEATURES
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.training.values import ValueRows
from tests.features.test_contrast import encoded

PASSAGES = ("Leave lasts 16 weeks. Rest lasts 30 weeks.",)
RESPONSE = "Leave lasts 18 weeks. Rest lasts 30 weeks."


def values_of(tiny_reader: Reader, *annotated: str) -> ValueRows:
    record = PlainReplay(tiny_reader)(encoded(RESPONSE, PASSAGES))
    spans = [(RESPONSE.index(text), RESPONSE.index(text) + len(text)) for text in annotated]
    return ValueRows.of(record, tokens_in(record.encoded.response_offsets, spans), 3, 7)


@pytest.mark.parametrize(
    ("annotated", "wrong", "clear"),
    [
        ((), [False, False], [True, True]),
        (("18",), [True, False], [True, True]),
        (("18 weeks", "30 weeks"), [True, True], [True, True]),
        (("Leave lasts 18 weeks. Rest lasts",), [True, False], [False, True]),
    ],
    ids=["faithful", "a part of it", "two spans", "a long span"],
)
def test_values_are_wrong_where_they_are_what_is_annotated(tiny_reader, annotated, wrong, clear) -> None:
    values = values_of(tiny_reader, *annotated)
    assert values.table.shape == (2, len(FEATURES))
    assert values.wrong.tolist() == wrong
    assert values.clear.tolist() == clear
    assert values.owner.tolist() == [3, 3]
    assert values.sentence.tolist() == [7, 8]


def test_some_responses_are_taken_with_their_numbers(tiny_reader: Reader) -> None:
    values = ValueRows.joined([values_of(tiny_reader), values_of(tiny_reader, "18")])
    assert len(values.table) == 4
    some = values.take(np.array([3]))
    assert some.owner.tolist() == [0] * 4
    assert not len(values.take(np.array([2])).table)
    assert not len(ValueRows.joined([]).table)
