"""Methods and the nested search that they are cut into, against `cross_validated` as a whole."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from experiments.metrics import compare
from experiments.paper.data import DEFAULTS, GRID, PAPER, estimator_of
from experiments.paper.methods import Model, choose, control, fold_scores, nested, single, uncalibrated
from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.calibration import Candidate, candidates_on
from lrp4rag.classifiers.registry import LSTMClassifier
from lrp4rag.training.folds import HONEST
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.validation import cross_validated
from lrp4rag.util.errors import LRP4RAGError
from tests.experiments.paper.stores import SMALL

ONCE = replace(HONEST, repeats=1)
TWICE = replace(HONEST, repeats=2)
PLAIN = replace(ONCE, nested=False)


def data(sources=24):
    noise = np.random.default_rng(0)
    labels = np.arange(sources) % 2 == 0
    inputs = noise.normal(size=(sources, 6)) + labels[:, None] * np.array([1.0, 0.5, 0, 0, 0, 0])
    return inputs, labels, np.array([f"s{k}" for k in range(sources)])


def network(inputs):
    small = LSTMClassifier(hidden_size=3, layers=1, max_epochs=2)
    return Candidate("x", "lstm", "", small, inputs[:, :, None])


def scores_of(candidates, labels, groups, protocol, **options):
    return [
        [fold_scores(each, labels, groups, protocol, repeat, **options) for each in candidates]
        for repeat in range(protocol.repeats)
    ]


@pytest.mark.parametrize("scoring", ["auroc", "accuracy"])
def test_choosing_among_scored_candidates_equals_the_nested_search(scoring):
    inputs, labels, groups = data(40)
    protocol = replace(TWICE, scoring=scoring)
    candidates = [
        *candidates_on("svm", inputs[:, 1:], "weak")[2:3],
        *candidates_on("svm", inputs[:, :2], "signal")[1:3],
        *candidates_on("threshold", -inputs, "means"),
    ]
    expected = cross_validated(candidates, labels, groups, protocol)
    found = choose(scores_of(candidates, labels, groups, protocol), labels, groups, protocol)
    assert found.chosen == expected.chosen
    assert len(set(found.chosen)) > 1
    assert np.allclose(found.probabilities, expected.probabilities, atol=1e-6)
    assert np.array_equal(found.flagged, expected.flagged)
    assert found.leaks == 0


def test_a_candidate_that_gives_probabilities_needs_no_inner_folds():
    inputs, labels, groups = data()
    candidate = network(inputs)
    expected = cross_validated([candidate], labels, groups, ONCE)
    alone = scores_of([candidate], labels, groups, ONCE, inner=False)
    assert alone[0][0].inner.shape == (0, 24)
    found = choose(alone, labels, groups, ONCE)
    assert np.allclose(found.probabilities, expected.probabilities, atol=1e-7)
    with pytest.raises(LRP4RAGError, match="scores inside the folds"):
        choose([alone[0] * 2], labels, groups, ONCE)


def test_inner_scores_cover_the_training_rows_of_each_fold_only():
    inputs, labels, groups = data(40)
    one = fold_scores(candidates_on("svm", inputs)[0], labels, groups, HONEST)
    assert one.inner.shape == (5, 40)
    # A row is tested in one outer fold, and is among the training rows of the four others.
    assert (np.isfinite(one.inner).sum(0) == 4).all()
    assert np.isfinite(one.scores).all()


@pytest.mark.parametrize("classifier", ["svm", "threshold", "lstm", "forest"])
def test_one_candidate_that_decides_by_itself(classifier):
    inputs, labels, groups = data()
    if classifier == "forest":  # its scores are probabilities
        candidate = Candidate("x", "logistic", "", RandomForestClassifier(5, random_state=0), inputs)
    else:
        candidate = network(inputs) if classifier == "lstm" else candidates_on(classifier, inputs)[0]
    expected = cross_validated([candidate], labels, groups, PLAIN)
    found = uncalibrated(fold_scores(candidate, labels, groups, PLAIN, inner=False))
    assert np.allclose(found.probabilities, expected.probabilities, atol=1e-7)
    assert np.array_equal(found.flagged, expected.flagged)


@pytest.fixture(scope="module")
def small(full_store, context):
    made = context(full_store, generators=(SMALL,))
    return made, made.subsets[SMALL]


def test_metrics_and_differences_are_those_of_the_outcomes(small):
    context, subset = small
    protocol = context.settings.honest
    first, second = (nested([Model(subset, "svm", vector)], protocol) for vector in ("response", "prompt"))
    candidates = [
        candidate
        for length in GRID["svm"][0]
        for candidate in candidates_on("svm", subset.inputs("response", length), str(length))
        if candidate.settings in GRID["svm"][1]
    ]
    expected = cross_validated(candidates, subset.labels, subset.groups, protocol)
    outcomes = context.outcomes([first, second], "test")
    assert np.allclose(outcomes[0].probabilities, expected.probabilities, atol=1e-6)
    metrics, _ = context.metrics([first, second], "test")
    assert metrics == outcome_metrics(outcomes[0], subset.labels, subset.groups, resamples=20)
    (gained,) = context.differences([(first, second)], "test")
    assert gained == compare(*outcomes, subset.labels, subset.groups, resamples=20)
    # The best of both is chosen among the steps that are there, by AUROC or by accuracy.
    models = [Model(subset, "svm", vector) for vector in ("response", "prompt")]
    both, by_accuracy = (nested(models, one) for one in (protocol, context.settings.by_accuracy))
    assert both.steps == by_accuracy.steps == first.steps + second.steps


def test_the_papers_protocol_takes_the_default_setting(small):
    context, subset = small
    method = single(Model(subset, "svm", "response", "zeros"), 220, context.settings.paper)
    inputs = subset.inputs("response", 220, "zeros")
    plain = Candidate("x", "svm", "", estimator_of("svm", "C=1"), inputs)
    expected = cross_validated([plain], subset.labels, subset.groups, PAPER)
    (found,) = context.outcomes([method], "test")
    assert np.array_equal(found.flagged, expected.flagged)
    assert estimator_of("svm", DEFAULTS["svm"])[-1].C == SVC().C


def test_controls_have_the_settings_that_classifiers_on_relevance_have(small):
    context, subset = small
    names = ("constant relevance (zeros)", "hidden state")
    methods = [control(subset, name, context.settings.honest) for name in names]
    constant, hidden = context.outcomes(methods, "test")
    assert {label.split(", ")[-1] for label in constant.chosen} <= set(GRID["svm"][1])
    assert all("hidden state" in label for label in hidden.chosen)
    # The large arrays do not stay in memory.
    assert not any("hidden" in part for part, _ in subset.rows._cache)


def test_under_the_papers_protocol_a_probe_of_states_has_a_fixed_layer_and_penalty(small):
    context, subset = small
    (outcome,) = context.outcomes([control(subset, "hidden state", context.settings.paper)], "test")
    top = len(subset.rows.arrays("hidden_mean", SIGNALS)[0]) - 1
    assert set(outcome.chosen) == {f"hidden state of layer {top}, mean, logistic, C=0.001"}


def test_the_settings_named_here_are_the_classifiers():
    named = {name: settings for name, (_, settings) in GRID.items()}
    for classifier, settings in DEFAULTS.items():
        if classifier != "logistic":
            for name in (settings, *named[classifier]):
                assert estimator_of(classifier, name) is not None
    with pytest.raises(LRP4RAGError, match=r"svm has no 'C=7' but C=0\.1"):
        estimator_of("svm", "C=7")
