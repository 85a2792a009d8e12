"""Classifiers on hidden states made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from lrp4rag.classifiers.calibration import fit
from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.experiments.systems.saplma import SAPLMA_LINEAR, SAPLMA_MLP, network
from lrp4rag.training.rows import Rows
from tests.training.labelled import examples, extraction

LAYERS, SIZE = 16, 5


def rows_with(folder, layers):
    """40 rows; the last token's state after layer 12 knows the label, and nothing else does."""
    made = examples(40)
    store = extraction(made, folder).store
    generator = np.random.default_rng(0)
    for example in made:
        states = generator.normal(size=(2, layers + 1, SIZE))
        if layers >= 12:
            states[1, 12] += 4 * bool(example.hallucinated)
        arrays = {"hidden_mean": states[0], "hidden_last": states[1]}
        store.write_arrays(example, "signals", {name: a.astype(np.float16) for name, a in arrays.items()})
    return Rows(store, tuple(made))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return rows_with(tmp_path_factory.mktemp("states") / "s", LAYERS)


def test_layers_contend_from_the_middle_to_the_last(rows, tmp_path):
    found = network(rows)
    # 16, 20, 24, 28 and 32 of 32 layers in the paper.
    assert [one.name for one in found] == [
        f"hidden state of layer {k}, last token" for k in (8, 10, 12, 14, 16)
    ]
    states = rows.store.arrays(rows.examples[7], "signals", ["hidden_last"])["hidden_last"]
    assert np.array_equal(found[2].inputs[7], states[12])
    few = network(rows_with(tmp_path / "few", 2))
    assert [one.name for one in few] == [f"hidden state of layer {k}, last token" for k in (1, 2)]


def test_the_network_is_the_papers_and_its_few_epochs_do_not_warn(rows):
    (first, *_) = network(rows, seed=3)
    model = fit(first.estimator, first.inputs, rows.labels, rows.groups)[-1]
    assert [len(one) for one in model.intercepts_] == [256, 128, 64, 1]
    assert (model.activation, model.out_activation_, model.solver) == ("relu", "logistic", "adam")
    assert (model.n_iter_, model.random_state) == (5, 3)


@pytest.mark.parametrize("baseline", [SAPLMA_LINEAR, SAPLMA_MLP])
def test_the_layer_that_knows_is_chosen_and_labels_judged_are_not_looked_at(rows, baseline):
    learned, others = rows.select(np.arange(30)), rows.select(np.arange(30, 40))
    scorer = baseline.fit(learned, Kit())
    assert scorer.chosen.startswith("hidden state of layer 12, last token")
    scores = scorer.score(others, Kit())
    assert roc_auc_score(others.labels, [score.probability for score in scores]) > 0.9
    assert any(score.flagged for score in scores)
    assert all(score.suspects is None for score in scores)
    blank = Rows(rows.store, tuple(replace(one, labels=None) for one in others.examples))
    assert scorer.score(blank, Kit()) == scores
    assert baseline.facts.needs == ("signals",)
