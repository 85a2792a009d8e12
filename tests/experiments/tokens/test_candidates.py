"""Candidates on words and on what the reader computes, against examples and signals made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from experiments.tokens import candidates as of
from experiments.tokens.candidates import LEXICAL_FEATURES, lexical, lexical_features
from experiments.tokens.controls import CONTROLS, Setting, available
from lrp4rag.training.controls import logistic, novel_words
from lrp4rag.training.folds import HONEST, ONCE
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import cross_validated
from tests.tiny import bridge_example
from tests.training.labelled import examples, extraction

LAYERS, HEADS, SIZE = 14, 3, 5


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """40 rows; the state of layer 12 at the last token knows the label, and nothing else does."""
    labelled = examples(40)
    store = extraction(labelled, tmp_path_factory.mktemp("signals") / "s").store
    rng = np.random.default_rng(0)
    for example in labelled:
        length = len(example.response.split())
        states = rng.normal(size=(2, LAYERS + 1, SIZE))
        states[1, 12, 0] += 6 * bool(example.hallucinated)
        arrays = {
            "by_segment": rng.normal(size=(4, length)),
            "logprob": -rng.random(length),
            "logprob_without_passages": -1 - rng.random(length),
            "entropy": rng.random(length),
            "lookback": rng.random((LAYERS, HEADS, length)),
            "hidden_mean": states[0],
            "hidden_last": states[1],
        }
        store.write_arrays(example, "signals", {name: a.astype(np.float16) for name, a in arrays.items()})
    return Rows(store, tuple(labelled))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (of.log_probability, lambda row: row["logprob"].mean()),
        (of.entropy, lambda row: row["entropy"].mean()),
        (of.passage_gain, lambda row: (row["logprob"] - row["logprob_without_passages"]).mean()),
    ],
)
def test_likelihoods_are_means_over_tokens(rows, make, expected):
    values = [expected(rows.store.arrays(example, "signals")) for example in rows.examples]
    for candidate in make(rows):
        assert candidate.inputs[:, 0] == pytest.approx(values, abs=1e-5)


def test_lookback_has_a_column_of_each_head(rows):
    (first, *_) = of.lookback(rows)
    assert first.inputs.shape == (40, LAYERS * HEADS)
    arrays = rows.store.arrays(rows.examples[7], "signals")
    assert first.inputs[7, 4 * HEADS + 2] == pytest.approx(arrays["lookback"][4, 2].mean(), rel=1e-5)


def test_the_probe_finds_the_layer_that_knows(rows):
    candidates = of.hidden_probe(rows)
    names = [
        f"hidden state of layer {layer}, {place}" for place in ("mean", "last token") for layer in (6, 12, 14)
    ]
    assert list(dict.fromkeys(candidate.name for candidate in candidates)) == names
    assert len({candidate.settings for candidate in candidates}) == len(of.STATE_PENALTIES)
    outcome = cross_validated(candidates, rows.labels, rows.groups, replace(ONCE, folds=2))
    assert all(name.startswith("hidden state of layer 12, last token, logistic") for name in outcome.chosen)
    assert (outcome.flagged[0] == rows.labels).mean() > 0.9


def test_with_signals_no_control_is_left_out(rows):
    kept, left_out = available(rows)
    assert kept == list(CONTROLS)
    assert left_out == {}
    setting = Setting.of(replace(HONEST, lengths=(8,)))
    for name in kept:
        candidates = CONTROLS[name].make(rows, setting)
        assert {len(candidate.inputs) for candidate in candidates} == {40}, name


def test_logistic_regression_is_that_of_scikit_learn_on_standardised_columns():
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(3, 7, size=(50, 2)), rng.random(50) < 0.5
    (candidate,) = logistic(inputs, "x", [0.3])
    scaled = StandardScaler().fit_transform(inputs)
    expected = LogisticRegression(C=0.3).fit(scaled, labels).decision_function(scaled)
    assert np.allclose(candidate.estimator.fit(inputs, labels).decision_function(inputs), expected)
    assert candidate.label == "x, logistic, C=0.3"


def lexical_by_name(response, **changes):
    found = lexical_features(bridge_example(1, response=response, **changes))
    return dict(zip(LEXICAL_FEATURES, found, strict=True))


def test_novel_words_and_numbers_are_those_that_no_passage_has():
    row = lexical_by_name("The BRIDGE was opened by Queen Zoë, Queen of Gondor.")
    assert row["distinct words that no passage has"] == 5  # by, queen, zoë, of, gondor
    assert row["words of the response"] == 10
    assert row["their share of the response's distinct words"] == pytest.approx(5 / 9)
    row = lexical_by_name("Opened in 1901, not in 1902 or 3rd of 44.")
    assert row["distinct numbers that no passage has"] == 3
    assert list(lexical_by_name("...").values()) == [0] * 6


def test_copied_pairs_and_runs_end_where_a_passage_ends():
    row = lexical_by_name("x b c d e f g y", passages=["a b c d", "e f g"])
    # Of x-b, b-c, c-d, d-e, e-f, f-g, g-y a passage has four: d-e runs over the end of one.
    assert row["share of the response's pairs of neighbouring words that a passage has"] == 4 / 7
    assert row["longest run of words copied from one passage"] == 3


def test_rows_become_candidates_of_six_columns():
    rows = Rows(None, tuple(bridge_example(k, response=f"The bridge {'x ' * k} is old") for k in range(4)))
    for candidate in lexical(rows):
        assert candidate.inputs.shape == (4, len(LEXICAL_FEATURES))
        assert candidate.inputs[:, 0].tolist() == [4, 5, 6, 7]
    assert np.array_equal(novel_words(rows)[0].inputs[:, 0], lexical(rows)[0].inputs[:, 1])
