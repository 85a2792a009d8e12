"""Lookback Lens and SAPLMA on signals made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.systems.lookback import (
    LOOKBACK_WINDOWS,
    over_tokens,
    ratios_of,
    starts,
    window_flags,
    window_means,
    window_scores,
)
from experiments.systems.resources import Resources
from experiments.systems.saplma import SAPLMA_LINEAR, SAPLMA_MLP, network
from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.calibration import fit
from lrp4rag.training.controls import logistic
from tests.experiments.systems.stand_ins import extracted, judged
from tests.training.labelled import examples


def rows_with(folder, layers):
    """40 rows. Head 2 of layer 1 looks back less at the first two words where they are annotated; the last
    token's state after layer 12 knows the label, if there are so many."""
    made = examples(40)
    made[3] = replace(made[3], response="Bridge3 It was")  # shorter than a window
    rows = extracted(made, folder)
    generator = np.random.default_rng(0)
    for example in made:
        length, flag = len(example.response.split()), bool(example.hallucinated)
        ratios = generator.uniform(0.48, 0.52, (2, 3, length))
        states = generator.normal(size=(2, layers + 1, 5))
        if flag:
            ratios[1, 2, :2] = 0.05
        if layers >= 12:
            states[1, 12] += 4 * flag
        arrays = {"lookback": ratios, "hidden_mean": states[0], "hidden_last": states[1]}
        arrays = {name: one.astype(np.float16) for name, one in arrays.items()}
        rows.store.write_arrays(example, "signals", arrays | {"by_segment": np.zeros((4, length))})
    return rows


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return rows_with(tmp_path_factory.mktemp("states") / "s", 16)


@pytest.mark.parametrize(
    ("tokens", "stride", "expected"),
    [(20, 8, [0, 8, 12]), (16, 8, [0, 8]), (10, 1, [0, 1, 2]), (8, 1, [0]), (5, 8, [0])],
)
def test_windows_begin_so_that_the_last_one_ends_with_the_response(tokens, stride, expected):
    assert starts(tokens, stride).tolist() == expected


def test_a_window_has_the_mean_of_its_tokens():
    values = np.array([[1.0, 10], [3, 20], [8, 60]])
    assert window_means(values, 1, width=2).tolist() == [[2, 15], [5.5, 40]]
    assert window_means(values, 2, width=2).tolist() == [[2, 15], [5.5, 40]]
    assert window_means(values, 1, width=8).tolist() == [[4, 30]]


def test_a_window_is_hallucinated_where_one_of_its_tokens_is():
    flags = np.array([False, False, True, False, False])
    assert window_flags(flags, 1, width=2).tolist() == [False, True, True, False]
    assert window_flags(flags, 2, width=2).tolist() == [False, True, False]
    assert window_flags(flags[:2], 1, width=8).tolist() == [False]


def test_a_token_is_as_suspect_as_its_windows_on_average():
    # Windows of 2 at 0, 1 and 2: the inner tokens are in two of them.
    assert over_tokens(np.array([1.0, 3, 8]), 4, width=2).tolist() == [1, 2, 5.5, 8]
    assert over_tokens(np.array([7.0]), 3, width=8).tolist() == [7, 7, 7]


def test_the_score_of_a_window_is_that_of_its_mean_ratios(rows):
    ratios = list(ratios_of(rows))
    assert ratios[0].shape == (len(rows.relevances[0].response), 2 * 3)
    assert np.array_equal(ratios[0][:, 5], rows.arrays("lookback", SIGNALS)[0][1, 2])
    inputs = np.concatenate([window_means(one, 8) for one in ratios])
    labels = inputs[:, 5] < np.median(inputs[:, 5])
    model = fit(logistic(inputs, "windows")[0].estimator, inputs, labels, np.zeros(len(labels), dtype=str))
    for one, scores in zip(ratios, window_scores(model, rows), strict=True):
        assert scores == pytest.approx(model.decision_function(window_means(one, 1)), abs=1e-4)


def test_windows_find_the_head_and_the_words(rows):
    learned, others = rows.select(np.arange(30)), rows.select(np.arange(30, 40))
    fitted = LOOKBACK_WINDOWS.fit(learned, Resources())
    assert fitted.chosen.startswith("windows of 8, logistic, C=")
    assert fitted.chosen.endswith((", mean", ", maximum"))
    scores = judged(fitted, others, Resources())
    assert [len(score.parts) for score in scores] == [len(one.response) for one in others.relevances]
    first = np.array([score.parts[0][2] for score in scores])
    assert first[others.labels].min() > first[~others.labels].max()
    assert [score.parts[0][3] for score in scores] == (first >= fitted.threshold).tolist()
    # A response that is shorter than a window is one window.
    (score,) = judged(fitted, rows.select([3]), Resources())
    assert len({part[2] for part in score.parts}) == 1
    assert [part[:2] for part in score.parts] == [(0, 7), (8, 10), (11, 14)]


def test_layers_contend_from_the_middle_to_the_last(rows, tmp_path):
    found, few = network(rows), network(rows_with(tmp_path / "few", 2))
    # 16, 20, 24, 28 and 32 of 32 layers in the paper.
    for candidates, layers in ((found, (8, 10, 12, 14, 16)), (few, (1, 2))):
        names = [f"hidden state of layer {k}, last token" for k in layers]
        assert [one.name for one in candidates] == names
    arrays = rows.store.arrays(rows.examples[7], "signals", ["hidden_last"])["hidden_last"]
    assert np.array_equal(found[2].inputs[7], arrays[12])


def test_the_network_is_the_papers_and_its_few_epochs_do_not_warn(rows):
    (first, *_) = network(rows, seed=3)
    model = fit(first.estimator, first.inputs, rows.labels, rows.groups)[-1]
    assert [len(one) for one in model.intercepts_] == [256, 128, 64, 1]
    assert (model.activation, model.out_activation_, model.solver) == ("relu", "logistic", "adam")
    assert (model.n_iter_, model.random_state) == (5, 3)


@pytest.mark.parametrize("baseline", [SAPLMA_LINEAR, SAPLMA_MLP])
def test_the_layer_that_knows_is_chosen(rows, baseline):
    fitted = baseline.fit(rows.select(np.arange(30)), Resources())
    assert fitted.chosen.startswith("hidden state of layer 12, last token")
