"""The pieces, put together, are what the nested search gives."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from lrp4rag.classifiers.calibration import Contender, contenders_of
from lrp4rag.classifiers.lstm import LSTMClassifier
from lrp4rag.errors import LRP4RAGError
from lrp4rag.experiments.paper.judge import choose, judge, uncalibrated
from lrp4rag.training.folds import HONEST
from lrp4rag.training.search import cross_validated

TWICE = replace(HONEST, repeats=2)


def data(sources=40, seed=0):
    generator = np.random.default_rng(seed)
    labels = np.arange(sources) % 2 == 0
    inputs = generator.normal(size=(sources, 6)) + labels[:, None] * np.array([1.0, 0.5, 0, 0, 0, 0])
    return inputs, labels, np.array([f"s{k}" for k in range(sources)])


def judged(contenders, labels, groups, protocol, **options):
    return [
        [judge(each, labels, groups, protocol, repeat, **options) for each in contenders]
        for repeat in range(protocol.repeats)
    ]


@pytest.mark.parametrize("scoring", ["auroc", "accuracy"])
def test_choosing_among_judged_contenders_equals_the_nested_search(scoring):
    inputs, labels, groups = data()
    protocol = replace(TWICE, scoring=scoring)
    contenders = [
        *contenders_of("svm", inputs[:, 1:], "weak")[2:3],
        *contenders_of("svm", inputs[:, :2], "signal")[1:3],
        *contenders_of("threshold", -inputs, "means"),
    ]
    expected = cross_validated(contenders, labels, groups, protocol)
    found = choose(judged(contenders, labels, groups, protocol), labels, groups, protocol)
    assert found.chosen == expected.chosen
    assert len(set(found.chosen)) > 1
    assert np.allclose(found.probabilities, expected.probabilities, atol=1e-12)
    assert np.array_equal(found.flagged, expected.flagged)
    assert found.leaks == 0


def test_a_contender_that_gives_probabilities_needs_no_inner_folds():
    inputs, labels, groups = data(24)
    protocol = replace(HONEST, repeats=1)
    network = LSTMClassifier(hidden_size=3, layers=1, max_epochs=2)
    contender = Contender("x", "lstm", "", network, inputs[:, :, None])
    expected = cross_validated([contender], labels, groups, protocol)
    alone = judged([contender], labels, groups, protocol, inner=False)
    assert alone[0][0].inner.shape == (0, 24)
    assert np.allclose(
        choose(alone, labels, groups, protocol).probabilities, expected.probabilities, atol=1e-7
    )
    with pytest.raises(LRP4RAGError, match="judged inside the folds"):
        choose([alone[0] * 2], labels, groups, protocol)


def test_inner_scores_cover_the_training_rows_of_each_fold_only():
    inputs, labels, groups = data()
    one = judge(contenders_of("svm", inputs)[0], labels, groups, HONEST)
    assert one.inner.shape == (5, 40)
    # A row is judged in one outer fold, and is among the training rows of the four others.
    assert (np.isfinite(one.inner).sum(0) == 4).all()
    assert np.isfinite(one.scores).all()


@pytest.mark.parametrize("classifier", ["svm", "threshold", "lstm"])
def test_one_contender_that_decides_by_itself(classifier):
    inputs, labels, groups = data(24)
    protocol = replace(TWICE, nested=False)
    contender = contenders_of(classifier, inputs)[0]
    if classifier == "lstm":
        network = LSTMClassifier(hidden_size=3, layers=1, max_epochs=2)
        contender = replace(contender, estimator=network, inputs=inputs[:, :, None])
    expected = cross_validated([contender], labels, groups, protocol)
    found = uncalibrated([row[0] for row in judged([contender], labels, groups, protocol, inner=False)])
    assert np.allclose(found.probabilities, expected.probabilities, atol=1e-7)
    assert np.array_equal(found.flagged, expected.flagged)


def test_one_contender_whose_scores_are_probabilities():
    inputs, labels, groups = data(24)
    protocol = replace(HONEST, repeats=1, nested=False)
    contender = Contender("x", "logistic", "", RandomForestClassifier(5, random_state=0), inputs)
    expected = cross_validated([contender], labels, groups, protocol)
    found = uncalibrated([row[0] for row in judged([contender], labels, groups, protocol, inner=False)])
    assert np.array_equal(found.probabilities, expected.probabilities)
    assert np.array_equal(found.flagged, expected.flagged)
