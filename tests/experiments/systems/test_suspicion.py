"""Parts of a response: which are annotated, and from which score they are marked."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.example import Label
from lrp4rag.experiments.systems.baseline import Suspect
from lrp4rag.experiments.systems.suspicion import NO_PARTS, Suspicion, annotated, marked, threshold_of
from tests.tiny import bridge_example

RESPONSE = "It is old. It is new. It is here."
PARTS = np.array([[0, 10], [11, 21], [22, 33]])


def suspicion(*scores: float) -> Suspicion:
    return Suspicion(PARTS[: len(scores)], np.array(scores))


def test_a_part_is_annotated_where_it_shares_a_character_with_a_span() -> None:
    example = bridge_example(response=RESPONSE, labels=(Label(9, 11), Label(32, 33)))
    assert annotated(suspicion(0, 0, 0), example).tolist() == [True, False, True]
    assert annotated(suspicion(0, 0, 0), bridge_example(response=RESPONSE)).tolist() == [False] * 3


def test_the_threshold_has_the_best_f1_over_all_parts_of_all_responses() -> None:
    rows = [
        bridge_example(1, response=RESPONSE, labels=(Label(0, 5),)),
        bridge_example(2, response=RESPONSE, labels=(Label(12, 25),)),
        bridge_example(3, response=RESPONSE, labels=()),
    ]
    # In falling order: 9 and 8 are annotated, 7 is not, 6 is, 5 and less are not. F1 of the first two is
    # 4/5, with the third 4/6, and of the first four 6/7.
    scores = [suspicion(9, 1, 2), suspicion(7, 8, 6), NO_PARTS]
    assert threshold_of(scores, rows) == 6


def test_without_annotated_parts_none_is_marked() -> None:
    threshold = threshold_of([suspicion(1, 2), NO_PARTS], [bridge_example(response=RESPONSE, labels=())] * 2)
    assert threshold == np.inf
    assert not any(part.marked for part in marked(suspicion(1, 2), threshold))
    assert threshold_of([NO_PARTS], [bridge_example(response=RESPONSE, labels=(Label(0, 5),))]) == np.inf


def test_parts_are_marked_from_the_threshold_on() -> None:
    assert marked(suspicion(0.4, 0.5), 0.5) == (Suspect(0, 10, 0.4, False), Suspect(11, 21, 0.5, True))
    assert marked(NO_PARTS, 0.5) == ()
    with pytest.raises(ValueError, match="shorter"):
        threshold_of([NO_PARTS], [])
