"""What the comparer tells alone, in figures."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.comparer import Scored, by_kind, measure
from lrp4rag.reader.comparer import Pair
from lrp4rag.training.labelled_pairs import LabelledPair


def scored(scores: list[tuple[str, float]]) -> Scored:
    pairs = [
        LabelledPair(Pair("", "", str(k)), "c" if kind else "e", None, f"s{k // 4}", "set", kind)
        for k, (kind, _) in enumerate(scores)
    ]
    return Scored(pairs, np.array([score for _, score in scores]))


def test_figures_of_known_scores() -> None:
    found = scored([("", -2.0), ("name", 1.0), ("", -1.0), ("name", -0.5)] * 10)
    figures = measure(found)
    assert figures["auroc"]["value"] == 1.0
    assert figures["balanced_accuracy"]["value"] == pytest.approx(0.75)
    kinds = by_kind(found)
    assert kinds == {"name": {"faults": 20, "auroc": 1.0, "flagged": 1.0}}


def test_a_kind_with_few_faults_is_not_measured() -> None:
    found = scored([("", -2.0), ("", 3.0)] * 20 + [("name", 1.0)] * 3 + [("number", 1.0)] * 9)
    assert by_kind(found) == {"number": {"faults": 9, "auroc": 0.5, "flagged": 0.0}}
