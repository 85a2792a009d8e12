"""Entailment alone: the mean of the sentences, and the least of them."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.experiments.systems import nli
from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.experiments.systems.ragulator.encoder import read_windows
from lrp4rag.training.rows import Rows
from tests.experiments.systems.couples import unlabelled
from tests.experiments.systems.entailed_kit import StandInKit, WordSupport, towns
from tests.tiny import bridge_example


def test_the_two_numbers_of_given_doubts() -> None:
    assert nli.support_of(np.array([0.1, 0.7, 0.4])) == pytest.approx([1 - 1.2 / 3, 0.3])
    assert nli.support_of(np.array([0.25])).tolist() == [0.75, 0.75]


def test_the_two_numbers_of_a_response() -> None:
    # Two passages of 120 words are two chunks; each sentence is worth the better of them.
    passages = [" ".join([f"{words} are here now."] * 30) for words in ("Red cats", "Grey dogs")]
    example = bridge_example(
        passages=passages, response="Red cats are here. Grey dogs burned. Dragons flew by."
    )
    kit = StandInKit()
    (found,) = nli.measure(Rows(None, (example,)), kit, kit.model)
    # Support by chunk: 4/4 and 2/4; 0/3 and 2/3; 0/3 and 0/3.
    assert found.numbers == pytest.approx([(1 + 2 / 3 + 0) / 3, 0])
    assert found.suspicion.scores == pytest.approx([0, 1 / 3, 1])
    assert [example.response[start:end] for start, end in found.suspicion.spans] == [
        "Red cats are here.",
        "Grey dogs burned.",
        "Dragons flew by.",
    ]
    assert kit.model.calls == [6]


def test_what_the_encoder_of_ragulator_measured_is_read_again(tmp_path) -> None:
    rows, kit = Rows(None, tuple(towns(4))), Kit(tmp_path)
    first, second = WordSupport(), WordSupport()
    read = read_windows(rows, kit, first)
    found = nli.measure(rows, kit, second)
    assert not second.calls
    assert [one.numbers.tolist() for one in read] == [[0], [1], [0], [1]]
    assert [one.numbers.tolist() for one in found] == [[1, 1], [0.5, 0], [1, 1], [0.5, 0]]


def test_the_two_numbers_contend_and_labels_judged_are_not_looked_at() -> None:
    given, judged = Rows(None, tuple(towns(40))), Rows(None, tuple(towns(6, first=100)))
    stale = frozenset(one.source for one in given.examples[:8])
    kit = StandInKit(stale=stale)
    scorer = nli.ENTAILMENT.fit(given, kit)
    assert any(scorer.chosen.startswith(name) for name in nli.NAMES)
    assert scorer.outside.rows.tolist() == list(range(8, 40))
    scores = scorer.score(judged, kit)
    assert [one.flagged for one in scores] == [False, True] * 3
    assert [[part.marked for part in one.suspects] for one in scores[:2]] == [[False, False], [False, True]]
    assert scorer.score(unlabelled(judged), kit) == scores
