"""Baselines that count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.experiments.systems.words import LENGTH
from lrp4rag.training.rows import Rows
from tests.training.labelled import examples, extraction


def test_length_is_the_number_of_words_and_tells_long_from_short(tmp_path: Path) -> None:
    made = [
        replace(one, response=f"{one.response} It is so, and it is here.") if one.hallucinated else one
        for one in examples(40)
    ]
    rows = Rows(extraction(made, tmp_path / "s").store, tuple(made))
    (contender, *_) = LENGTH.make(rows, Kit())
    words = np.array([len(one.response.replace(".", "").replace(",", "").split()) for one in made])
    assert contender.inputs.tolist() == words[:, None].tolist()
    scores = LENGTH.fit(rows.select(range(30)), Kit()).score(rows.select(range(30, 40)), Kit())
    assert [one.flagged for one in scores] == rows.labels[30:].tolist()
