"""Metrics against hand-made numbers and scikit-learn, their bootstrap, and agreement of spans."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from lrp4rag.example import Label
from lrp4rag.training.metrics import (
    Draws,
    Overlap,
    annotated_sentences,
    characters,
    intervals,
    outcome_metrics,
    overlap_metrics,
    sentences,
    token_intervals,
    weighted_metrics,
)
from lrp4rag.training.validation import Outcome
from tests.training.labelled import examples


def response_metrics(labels, probabilities):
    found = weighted_metrics(labels, probabilities, probabilities >= 0.5, np.ones((1, len(labels))))
    return {name: float(value) for name, (value,) in found.items()}


def ece(labels, probabilities):
    return response_metrics(labels, probabilities)["ece"]


def test_calibration_error_by_hand():
    # Two bins of two rows: mean 0.25 and no hit, mean 0.95 and both hit.
    labels, probabilities = np.array([False, False, True, True]), np.array([0.22, 0.28, 0.92, 0.98])
    assert ece(labels, probabilities) == pytest.approx((0.25 + 0.05) / 2)
    assert ece(np.array([False] * 10), np.ones(10)) == 1


def test_what_is_undefined_has_no_number_and_is_left_out_of_draws():
    metrics = response_metrics(np.array([False, False]), np.array([0.1, 0.2]))
    assert np.isnan([metrics["auroc"], metrics["recall"]]).all()
    assert metrics["accuracy"] == 1
    groups = np.array(["a", "b"])
    # Two sources, one of each class: a draw of one source twice has no AUROC.
    found = intervals(np.array([True, False]), np.array([0.9, 0.1]), groups, 0.5, 50)
    assert (found["auroc"].low, found["auroc"].high) == (1, 1)
    assert found["auprc"].value == found["accuracy"].low == 1


def many(rows=90, sources=30, repeats=3, seed=0):
    """Labels, sources of unequal size, and an outcome with ties."""
    rng = np.random.default_rng(seed)
    labels = rng.random(rows) < 0.4
    groups = rng.integers(sources, size=rows).astype(str)
    probabilities = np.clip(rng.random((repeats, rows)) * 0.7 + 0.3 * labels, 0, 1).round(1)
    return labels, groups, Outcome(probabilities, probabilities >= 0.5)


def by_scikit_learn(labels, probabilities, flagged, weights=None):
    kept = {"sample_weight": weights}
    return {
        "auroc": roc_auc_score(labels, probabilities, **kept),
        "auprc": average_precision_score(labels, probabilities, **kept),
        "balanced_accuracy": balanced_accuracy_score(labels, flagged, **kept),
        "accuracy": accuracy_score(labels, flagged, **kept),
        "precision": precision_score(labels, flagged, **kept),
        "recall": recall_score(labels, flagged, **kept),
        "f1": f1_score(labels, flagged, **kept),
    }


def test_weighted_metrics_are_those_of_scikit_learn():
    labels, _, outcome = many()
    weights = np.random.default_rng(1).integers(0, 4, size=(6, 90)).astype(float)
    probabilities, flagged = outcome.probabilities[0], outcome.flagged[0]
    found = weighted_metrics(labels, probabilities, flagged, weights)
    for k, row in enumerate(weights):
        expected = by_scikit_learn(labels, probabilities, flagged, row)
        # A weight is as good as so many copies.
        copies = np.repeat(np.arange(90), row.astype(int))
        expected["ece"] = ece(labels[copies], probabilities[copies])
        assert {name: values[k] for name, values in found.items()} == pytest.approx(expected, abs=1e-12)


def test_the_bootstrap_equals_a_naive_loop_over_drawn_sources():
    labels, groups, outcome = many()
    sources = np.unique(groups)
    rng = np.random.default_rng(7)
    drawn = []
    for _ in range(60):
        picks = rng.integers(len(sources), size=len(sources))
        rows = np.concatenate([np.flatnonzero(groups == sources[k]) for k in picks])
        repeats = [
            response_metrics(labels[rows], probabilities[rows]) for probabilities in outcome.probabilities
        ]
        drawn += repeats
    found = outcome_metrics(outcome, labels, groups, resamples=60, seed=7)
    for name, interval in found.items():
        values = [draw[name] for draw in drawn]
        value = np.mean([response_metrics(labels, row)[name] for row in outcome.probabilities])
        # Noise makes the calibration error larger in every resample.
        surplus = np.mean(values) - value if name == "ece" else 0
        bounds = np.maximum(np.quantile(values, [0.025, 0.975]) - surplus, 0)
        assert [interval.low, interval.high] == pytest.approx(list(bounds)), name
        assert interval.value == pytest.approx(value), name


def test_the_interval_of_a_small_calibration_error_holds_it():
    rng = np.random.default_rng(0)
    probabilities = rng.random(500)
    labels = rng.random(500) < probabilities
    found = intervals(labels, probabilities, np.arange(500).astype(str), 0.5, 200)["ece"]
    assert 0 <= found.low < found.value < found.high < 0.1


def test_all_ways_to_draw_agree():
    labels, groups, outcome = many(repeats=1)
    probabilities, flagged = outcome.probabilities[0], outcome.flagged[0]
    one = outcome_metrics(outcome, labels, groups, resamples=40)
    assert intervals(labels, probabilities, groups, 0.5, 40) == one
    tokens = token_intervals(labels, probabilities, flagged, groups, 40)
    assert tokens == {name: one[name] for name in tokens}
    assert set(one) - set(tokens) == {"ece"}


def test_draws_in_blocks_are_the_same(monkeypatch):
    labels, groups, outcome = many()
    whole = outcome_metrics(outcome, labels, groups, resamples=50)
    monkeypatch.setattr("lrp4rag.training.metrics.BLOCK", 200)
    assert len(list(Draws.of(groups, 50).weights())) == 26
    for name, interval in outcome_metrics(outcome, labels, groups, resamples=50).items():
        assert interval.low == pytest.approx(whole[name].low)
        assert interval.high == pytest.approx(whole[name].high)


# Spans and sentences.


@pytest.mark.parametrize(
    ("marked", "annotated", "expected"),
    [
        ([(0, 4)], [(2, 6)], Overlap(4, 4, 2)),
        ([(0, 4), (2, 6)], [(0, 6)], Overlap(6, 6, 6)),  # what two spans share counts once
        ([], [(0, 3)], Overlap(0, 3, 0)),
        ([(5, 99)], [], Overlap(5, 0, 0)),  # of ten characters
    ],
)
def test_characters(marked, annotated, expected):
    assert characters(marked, annotated, 10) == expected


def test_sentences_that_touch_a_span():
    text = "One is true. Two is not. Three is."
    example = replace(examples(1)[0], response=text, labels=(Label(17, 23),))
    annotated = annotated_sentences(example)
    np.testing.assert_array_equal(annotated, [False, True, False])
    assert sentences(np.array([True, True, False]), annotated) == Overlap(2, 1, 1)


def test_counts_are_summed_before_they_are_divided():
    found = overlap_metrics([Overlap(10, 5, 5), Overlap(0, 15, 0)], np.array(["a", "b"]), resamples=50)
    assert found["precision"].value == pytest.approx(0.5)
    assert found["recall"].value == pytest.approx(0.25)
    assert found["f1"].value == pytest.approx(2 * 5 / 30)
    assert (found["recall"].low, found["recall"].high) == (0, 1)
    nothing = overlap_metrics([Overlap(0, 4, 0)] * 2, np.array(["a", "b"]), resamples=20)
    assert (nothing["precision"].value, nothing["recall"].value) == (None, 0)
