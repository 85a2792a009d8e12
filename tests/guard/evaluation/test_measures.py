"""Measures of results by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.example import Example, Label
from lrp4rag.guard.evaluation.result import MEASURES, flagged_by_kind, measured, measures_of
from tests.guard.evaluation.results import LENGTH, result, results

FOUR = [
    result("hit", True, True),
    result("miss", True, False),
    result("alarm", False, True, faithfulness=None),
    result("passed", False, False),
    result("no verdict", False, None, faithfulness=0.0),
]


def test_each_measure_is_what_its_name_says() -> None:
    found = {name: one.value for name, one in measures_of(FOUR, resamples=20).items()}
    assert set(found) == set(MEASURES)
    assert found == pytest.approx(
        {
            "auroc": 0.5,
            "balanced_accuracy": 0.5,
            "accuracy": 0.5,
            "precision": 0.5,
            "recall": 0.5,
            "f1": 0.5,
            "sentence_f1": 0.5,
            "span_f1": 0.5,
            "with_verdict": 0.8,
            "hallucinated_served": 0.5,
            "faithful_withheld": 2 / 3,
            "served": 0.4,
            "faithfulness": (0.5 + 1 + 1) / 3,
        }
    )


def test_a_label_over_the_whole_response_tells_no_place() -> None:
    whole = result("whole", True, True, labels=((0, LENGTH),))
    found = measures_of([*FOUR, whole], resamples=20)
    assert found["span_f1"].value == found["sentence_f1"].value == 0.5
    assert found["recall"].value == pytest.approx(2 / 3)


def test_without_any_verdict_only_decisions_are_measured() -> None:
    none = [result(k, bool(k % 2), None) for k in range(4)]
    values = measured(none)(np.ones((3, 4)))
    assert all(np.isnan(values[name]).all() for name in ("auroc", "f1", "sentence_f1", "faithfulness"))
    assert (values["with_verdict"] == 0).all()
    assert (values["faithful_withheld"] == 1).all()
    assert np.isnan(values["hallucinated_served"]).all()


def test_intervals_hold_their_values() -> None:
    found = measures_of(results(40, wrong=5), resamples=200)
    assert found["recall"].low < found["recall"].value == 0.75 < found["recall"].high


def test_kinds_of_labels_are_counted_once_a_response() -> None:
    examples = [
        Example("Q?", ["P."], "Some words here.", labels=labels, id=str(k))
        for k, labels in enumerate(
            [
                (Label(0, 4, "number"), Label(5, 9, "number"), Label(10, 14, "invented")),
                (Label(0, 4, "number"),),
                (Label(0, 4),),
                (),
                (Label(0, 4, "number"),),
            ]
        )
    ]
    flags = [True, False, True, True, None]
    judged = [
        result(k, bool(one.labels), flag) for k, (one, flag) in enumerate(zip(examples, flags, strict=True))
    ]
    found = flagged_by_kind(examples, judged)
    assert {kind: (one.part, one.count) for kind, one in found.items()} == {
        "invented": (1, 1),
        "number": (1, 2),
    }
