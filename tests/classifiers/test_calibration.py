import numpy as np
import pytest

from lrp4rag.classifiers.calibration import fit_calibrated, grouped_folds
from lrp4rag.errors import InputError


def test_no_group_is_on_both_sides_and_every_row_is_tested_once():
    labels = np.array([k % 2 == 0 for k in range(60)])
    groups = np.array([f"g{k // 3}" for k in range(60)])
    tested = []
    for train, test in grouped_folds(labels, groups, 5, seed=0):
        assert not set(groups[train]) & set(groups[test])
        tested += list(test)
    assert sorted(tested) == list(range(60))


def test_too_few_sources_of_a_class_are_refused_with_both_numbers():
    labels = np.array([True, False, False, False, False, False])
    with pytest.raises(InputError, match=r"5 folds need at least 5 sources with hallucinated.*there are 1"):
        grouped_folds(labels, np.arange(6).astype(str), 5, seed=0)


def test_probabilities_are_calibrated_and_rise_with_the_evidence():
    generator = np.random.default_rng(0)
    labels = np.arange(400) % 2 == 0
    # Overlapping classes: the true probability at x is sigmoid(2 x) for these two normals.
    vectors = np.where(labels, 1.0, -1.0)[:, None] + generator.normal(0, 1.0, (400, 1))
    model = fit_calibrated("svm", vectors, labels, np.arange(400).astype(str))
    at = model.predict(np.array([[-1.0], [0.0], [1.0]]))
    assert at[0] < 0.3 < at[1] < 0.7 < at[2]


def test_unknown_classifier_is_refused():
    with pytest.raises(InputError, match="unknown classifier 'oracle'; choose from svm"):
        fit_calibrated("oracle", np.zeros((2, 1)), np.array([True, False]), np.array(["a", "b"]))
