"""Baselines on what the reader computes, against signals made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from lrp4rag.training import internal, likelihood
from lrp4rag.training.controls import CONTROLS, Setting, available
from lrp4rag.training.folds import HONEST
from lrp4rag.training.rows import Rows
from lrp4rag.training.search import cross_validated
from lrp4rag.training.tabular import logistic
from tests.training.labelled import examples, extraction

LAYERS, HEADS, SIZE = 14, 3, 5


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """40 rows; the state of layer 12 at the last token knows the label, and nothing else does."""
    made = examples(40)
    store = extraction(made, tmp_path_factory.mktemp("signals") / "s").store
    generator = np.random.default_rng(0)
    for example in made:
        length = len(example.response.split())
        states = generator.normal(size=(2, LAYERS + 1, SIZE))
        states[1, 12, 0] += 6 * bool(example.hallucinated)
        arrays = {
            "by_segment": generator.normal(size=(4, length)),
            "logprob": -generator.random(length),
            "logprob_without_passages": -1 - generator.random(length),
            "entropy": generator.random(length),
            "lookback": generator.random((LAYERS, HEADS, length)),
            "hidden_mean": states[0],
            "hidden_last": states[1],
        }
        store.write_arrays(example, "signals", {name: a.astype(np.float16) for name, a in arrays.items()})
    return Rows(store, tuple(made))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (likelihood.log_probability, lambda row: row["logprob"].mean()),
        (likelihood.entropy, lambda row: row["entropy"].mean()),
        (
            likelihood.passage_gain,
            lambda row: row["logprob"].mean() - row["logprob_without_passages"].mean(),
        ),
    ],
)
def test_likelihoods_are_means_over_tokens(rows, make, expected):
    values = [expected(rows.store.arrays(example, "signals")) for example in rows.examples]
    for contender in make(rows):
        assert contender.inputs[:, 0] == pytest.approx(values, abs=1e-5)
    if make is likelihood.passage_gain:
        assert min(values) > 0  # the passages help


def test_lookback_has_a_column_of_each_head(rows):
    (first, *_) = internal.lookback(rows)
    assert first.inputs.shape == (40, LAYERS * HEADS)
    arrays = rows.store.arrays(rows.examples[7], "signals")
    assert first.inputs[7, 4 * HEADS + 2] == pytest.approx(arrays["lookback"][4, 2].mean(), rel=1e-5)


def test_the_probe_finds_the_layer_that_knows(rows):
    contenders = internal.hidden_probe(rows)
    names = [
        f"hidden state of layer {layer}, {place}" for place in ("mean", "last token") for layer in (6, 12, 14)
    ]
    assert list(dict.fromkeys(contender.name for contender in contenders)) == names
    assert len({contender.settings for contender in contenders}) == len(internal.PENALTIES)
    outcome = cross_validated(contenders, rows.labels, rows.groups, replace(HONEST, repeats=1, folds=2))
    assert all(name.startswith("hidden state of layer 12, last token, logistic") for name in outcome.chosen)
    assert (outcome.flagged[0] == rows.labels).mean() > 0.9


def test_with_signals_no_control_is_left_out(rows):
    kept, left_out = available(rows)
    assert kept == list(CONTROLS)
    assert left_out == {}
    setting = Setting.of(replace(HONEST, lengths=(8,)))
    for name in kept:
        contenders = CONTROLS[name].make(rows, setting)
        assert {len(contender.inputs) for contender in contenders} == {40}, name


def test_logistic_regression_is_that_of_scikit_learn_on_standardised_columns():
    generator = np.random.default_rng(0)
    inputs, labels = generator.normal(3, 7, size=(50, 2)), generator.random(50) < 0.5
    (contender,) = logistic(inputs, "x", [0.3])
    scaled = StandardScaler().fit_transform(inputs)
    expected = LogisticRegression(C=0.3).fit(scaled, labels).decision_function(scaled)
    assert np.allclose(contender.estimator.fit(inputs, labels).decision_function(inputs), expected)
    assert contender.label == "x, logistic, C=0.3"
