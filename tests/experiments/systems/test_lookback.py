"""Lookback Lens on ratios made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from lrp4rag.classifiers.calibration import fit
from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.experiments.systems.lookback import (
    LOOKBACK_WHOLE,
    LOOKBACK_WINDOWS,
    over_tokens,
    ratios_of,
    starts,
    window_flags,
    window_means,
    window_scores,
)
from lrp4rag.training.rows import Rows
from lrp4rag.training.tabular import logistic
from tests.training.labelled import examples, extraction

LAYERS, HEADS = 2, 3


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """40 rows; head 2 of layer 1 looks back less at the first two words where they are annotated."""
    made = examples(40)
    made[3] = replace(made[3], response="Bridge3 It was")  # shorter than a window
    store = extraction(made, tmp_path_factory.mktemp("lookback") / "s").store
    generator = np.random.default_rng(0)
    for example in made:
        length = len(example.response.split())
        ratios = generator.uniform(0.48, 0.52, (LAYERS, HEADS, length))
        if example.hallucinated:
            ratios[1, 2, :2] = 0.05
        arrays = {"lookback": ratios.astype(np.float16), "by_segment": np.zeros((4, length))}
        store.write_arrays(example, "signals", arrays)
    return Rows(store, tuple(made))


def test_windows_begin_so_that_the_last_one_ends_with_the_response():
    assert starts(20, 8).tolist() == [0, 8, 12]
    assert starts(16, 8).tolist() == [0, 8]
    assert starts(10, 1).tolist() == [0, 1, 2]
    assert starts(8, 1).tolist() == starts(5, 8).tolist() == [0]


@pytest.mark.parametrize("stride", [1, 8])
@pytest.mark.parametrize("tokens", range(1, 27))
def test_every_token_is_in_a_window(tokens, stride):
    inside = {token for start in starts(tokens, stride) for token in range(start, start + 8)}
    assert set(range(tokens)) <= inside
    assert max(starts(tokens, stride)) == max(tokens - 8, 0)


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
    assert ratios[0].shape == (len(rows.relevances[0].response), LAYERS * HEADS)
    assert np.array_equal(ratios[0][:, 5], rows.signal("lookback")[0][1, 2])
    inputs = np.concatenate([window_means(one, 8) for one in ratios])
    labels = inputs[:, 5] < np.median(inputs[:, 5])
    model = fit(logistic(inputs, "windows")[0].estimator, inputs, labels, np.zeros(len(labels), dtype=str))
    for one, scores in zip(ratios, window_scores(model, rows), strict=True):
        assert scores == pytest.approx(model.decision_function(window_means(one, 1)), abs=1e-4)


def test_windows_find_the_head_and_the_words(rows):
    learned, others = rows.select(np.arange(30)), rows.select(np.arange(30, 40))
    lens = LOOKBACK_WINDOWS.fit(learned, Kit())
    assert lens.chosen.startswith("windows of 8, logistic, C=")
    assert lens.chosen.endswith((", mean", ", maximum"))
    assert abs(lens.model[-1].coef_[0]).argmax() == 5
    assert lens.outside.rows.tolist() == list(range(30))
    scores = lens.score(others, Kit())
    assert [score.flagged for score in scores] == others.labels.tolist()
    assert [len(score.suspects) for score in scores] == [len(one.response) for one in others.relevances]
    first = np.array([score.suspects[0].score for score in scores])
    assert first[others.labels].min() > first[~others.labels].max()
    assert [score.suspects[0].marked for score in scores] == (first >= lens.threshold).tolist()
    assert any(score.suspects[0].marked for score in scores)
    for score, hallucinated in zip(scores, others.labels, strict=True):
        if hallucinated:
            assert np.argmax([one.score for one in score.suspects]) in (0, 1)


def test_a_response_shorter_than_a_window_is_one_window(rows):
    short = rows.select([3])
    (score,) = LOOKBACK_WINDOWS.fit(rows, Kit()).score(short, Kit())
    assert len({one.score for one in score.suspects}) == 1
    assert [(one.start, one.end) for one in score.suspects] == [(0, 7), (8, 10), (11, 14)]


@pytest.mark.parametrize("baseline", [LOOKBACK_WHOLE, LOOKBACK_WINDOWS])
def test_labels_of_the_rows_judged_are_not_looked_at(rows, baseline):
    learned, others = rows.select(np.arange(30)), rows.select(np.arange(30, 40))
    scorer = baseline.fit(learned, Kit())
    blank = Rows(rows.store, tuple(replace(one, labels=None) for one in others.examples))
    scores = scorer.score(others, Kit())
    assert scorer.score(blank, Kit()) == scores
    assert roc_auc_score(others.labels, [score.probability for score in scores]) > 0.9
    assert baseline.facts.needs == ("signals",)
