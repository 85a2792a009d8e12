"""Controls that a result is set beside, and the candidates they are made of."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.paper.data import PAPER
from experiments.tokens import controls
from experiments.tokens.controls import CONTROLS, Setting, available
from lrp4rag.classifiers import Features
from lrp4rag.training import controls as package
from lrp4rag.training.controls import flag_everything
from lrp4rag.training.folds import HONEST, ONCE
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import cross_validated
from lrp4rag.util.errors import InputError
from tests.training.labelled import examples, extraction

SETTING = Setting("svm", (Features(length=9), Features(length=200)))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    labelled = examples(40)
    return Rows(extraction(labelled, tmp_path_factory.mktemp("controls") / "s").store, tuple(labelled))


def inputs_of(candidates, name):
    (found,) = {id(each.inputs): each.inputs for each in candidates if each.name == name}.values()
    return found


def lengths(rows):
    return [len(row.response) for row in rows.relevances]


def test_a_setting_takes_the_lengths_and_the_resampling_of_a_protocol():
    assert Setting.of(PAPER) == Setting("svm", (Features("total", 220, "zeros"),))
    honest = Setting.of(HONEST, "forest", "response")
    assert [features.length for features in honest.features] == list(HONEST.lengths)
    assert {(features.vector, features.mode) for features in honest.features} == {("response", "interpolate")}
    # R* has fewer steps than that, always the same number.
    assert Setting.of(HONEST, "lstm", "matrix").features == (Features("matrix", 64),)
    with pytest.raises(InputError, match="unknown feature 'wine'"):
        Setting.of(HONEST, "svm", "wine")


def test_every_length_and_every_setting_is_a_candidate(rows):
    found = controls.relevance(rows, SETTING)
    assert [each.name for each in found] == ["total, 9"] * 4 + ["total, 200"] * 4
    assert len({each.settings for each in found}) == 4
    assert np.array_equal(inputs_of(found, "total, 200"), Features(length=200)(rows.relevances))


def test_length_is_the_number_of_response_tokens(rows):
    assert {each.classifier for each in package.length(rows)} == {"logistic", "svm"}
    assert inputs_of(package.length(rows), "length")[:, 0].tolist() == lengths(rows)


def test_constant_relevance_hides_the_length_only_when_interpolated(rows):
    hidden = CONTROLS["constant relevance (interpolate)"].make(rows, SETTING)
    shown = CONTROLS["constant relevance (zeros)"].make(rows, SETTING)
    assert np.allclose(inputs_of(hidden, "total, 200"), 1)
    assert (inputs_of(shown, "total, 200") != 0).sum(1).tolist() == lengths(rows)


def test_shuffled_rows_are_the_same_rows_in_another_order(rows):
    def shuffled(seed=0):
        return inputs_of(controls.shuffled_rows(rows, replace(SETTING, seed=seed)), "total, 9")

    real = inputs_of(controls.relevance(rows, SETTING), "total, 9")
    assert not np.array_equal(real, shuffled())
    assert sorted(real.tolist()) == sorted(shuffled().tolist())
    assert np.array_equal(shuffled(), shuffled())
    assert not np.array_equal(shuffled(), shuffled(seed=1))


def test_shuffled_tokens_keep_each_rows_values(rows):
    length = max(lengths(rows))
    # Padded to one length the values are all there, then zeros.
    setting = Setting("svm", (Features(length=length, mode="pad_last"),))
    real, shuffled = (
        inputs_of(make(rows, setting), f"total, {length}")
        for make in (controls.relevance, controls.shuffled_tokens)
    )
    for values, row in zip(shuffled, rows.relevances, strict=True):
        assert sorted(values[: len(row.response)]) == pytest.approx(sorted(row.total))
    assert not np.allclose(real, shuffled)


def test_noise_has_the_length_of_the_response_and_nothing_else(rows):
    setting = Setting("svm", (Features(length=200, mode="zeros"),))
    values = inputs_of(controls.noise(rows, setting), "total, 200")
    assert (values != 0).sum(1).tolist() == lengths(rows)
    assert values[values != 0].std() == pytest.approx(1, abs=0.1)
    totals = np.corrcoef(values.sum(1), [row.total.sum() for row in rows.relevances])
    assert abs(totals[0, 1]) < 0.4


@pytest.mark.parametrize("vector", ["total", "segments", "matrix", "matrix_t"])
def test_imitations_have_the_shape_of_the_features(rows, vector):
    rng = np.random.default_rng(0)
    relevances = []
    for row in rows.relevances:
        by_segment, resampled = (rng.normal(size=shape) for shape in ((4, len(row.response)), (64, 16)))
        relevances.append(replace(row, by_segment=by_segment, resampled=resampled))
    held = SimpleNamespace(relevances=relevances)
    setting = Setting.of(replace(HONEST, lengths=(12,)), "svm", vector)
    real = controls.relevance(held, setting)[0].inputs
    imitations = (partial(controls.constant, mode="zeros"), controls.shuffled_tokens, controls.noise)
    for make in imitations:
        imitation = make(held, setting)[0].inputs
        assert imitation.shape == real.shape
        assert not np.allclose(imitation, real)


def test_shuffling_leaves_chance_and_the_result_is_better(rows):
    setting = Setting("svm", (Features(length=9),))

    def auroc(make):
        outcome = cross_validated(make(rows, setting), rows.labels, rows.groups, ONCE)
        return outcome_metrics(outcome, rows.labels, rows.groups, resamples=200)["auroc"]

    real, chance = auroc(controls.relevance), auroc(controls.shuffled_rows)
    assert real.low > 0.9
    assert chance.low < 0.5 < chance.high


def test_what_the_store_lacks_is_left_out_with_the_reason(rows):
    kept, left_out = available(rows)
    assert kept == list(CONTROLS)[:8]
    assert set(kept) | set(left_out) == set(CONTROLS)
    assert set(left_out.values()) == {"the store has no signals"}
    assert available(rows, ["length only", "entropy"]) == (
        ["length only"],
        {"entropy": "the store has no signals"},
    )
    with pytest.raises(InputError, match="unknown control 'luck'"):
        available(rows, ["luck"])


def test_flag_everything_flags_everything():
    labels = np.array([True, True, False, True])
    outcome = flag_everything(labels, HONEST)
    metrics = outcome_metrics(outcome, labels, np.arange(4).astype(str), resamples=20)
    assert outcome.flagged.shape == (3, 4)
    assert metrics["recall"].value == 1
    assert metrics["accuracy"].value == metrics["precision"].value == 0.75
    assert metrics["auroc"].value == 0.5
    assert metrics["ece"].value == pytest.approx(0.25)
