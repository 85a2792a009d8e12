"""Evidence by kind of label, against counts by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.example import Label
from lrp4rag.training.kind_evidence import kind_evidence
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store
from tests.classifiers.samples import relevance_of
from tests.training.labelled import examples
from tests.training.stored import CONFIGURATION

EVIDENT, SUBTLE, BASELESS = "Evident Conflict", "Subtle Conflict", "Evident Baseless Info"


def rows_of(folder: Path, kinds: list[list[str]], generators: list[str]) -> Rows:
    """Each row's labels are its first words, one of each kind."""
    store, made = Store.open(folder, CONFIGURATION), []
    for k, (example, theirs) in enumerate(zip(examples(len(kinds)), kinds, strict=True)):
        starts = [sum(len(word) + 1 for word in example.response.split(" ")[:n]) for n in range(len(theirs))]
        labels = tuple(Label(start, start + 3, kind) for start, kind in zip(starts, theirs, strict=True))
        made.append(replace(example, id=f"r{k}", labels=labels, generator=generators[k]))
    store.add_examples(made)
    for example in made:
        words = len(example.response.split(" "))
        store.write(example, relevance_of(np.ones(words, dtype=np.float32), text=example.response))
    return Rows(store, tuple(made))


def unmarked(rows: Rows) -> list[np.ndarray]:
    return [np.zeros(len(one.response_ids), dtype=bool) for one in rows.encodings]


def test_responses_of_one_kind_are_told_from_faithful_ones(tmp_path: Path) -> None:
    kinds = [[], [], [EVIDENT], [SUBTLE, EVIDENT], [BASELESS], [BASELESS, EVIDENT]]
    rows = rows_of(tmp_path, kinds, ["a", "b", "a", "b", "a", "b"])
    scores = np.array([0.2, 0.6, 0.5, 0.7, 0.9, 0.1])
    found = {one.kind: one for one in kind_evidence(rows, scores, unmarked(rows), resamples=20)}
    assert list(found) == ["Baseless Info", "Conflict", BASELESS, EVIDENT, SUBTLE]
    assert {kind: one.responses for kind, one in found.items()} == {
        "Baseless Info": 1, "Conflict": 2, BASELESS: 1, EVIDENT: 1, SUBTLE: 0,
    }  # fmt: skip
    assert found["Conflict"].auroc.value == pytest.approx(3 / 4)
    assert found["Conflict"].within_generators.value == 1
    assert found["Baseless Info"].auroc.value == 1
    assert found[SUBTLE].auroc.value is None


def test_spans_are_touched_where_a_token_in_them_is_marked(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, [[], [EVIDENT, BASELESS], [EVIDENT], [SUBTLE]], ["a"] * 4)
    marks = unmarked(rows)
    marks[1][0] = marks[3][1] = True
    found = {one.kind: one for one in kind_evidence(rows, np.zeros(4), marks, resamples=20)}
    assert {kind: (one.spans, one.touched.value) for kind, one in found.items()} == {
        "Baseless Info": (1, 0.0),
        "Conflict": (3, pytest.approx(1 / 3)),
        BASELESS: (1, 0.0),
        EVIDENT: (2, 0.5),
        SUBTLE: (1, 0.0),
    }


def test_labels_without_kinds_give_nothing(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, [[], []], ["a", "a"])
    assert kind_evidence(rows, np.zeros(2), unmarked(rows), resamples=20) == []
