import numpy as np
import pytest

from lrp4rag.classifiers import Features
from lrp4rag.errors import InputError
from lrp4rag.experiments import protocol
from lrp4rag.experiments.train import data_hash, labelled, train
from tests.experiments.labelled import examples, extraction
from tests.tiny import bridge_example


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    rows = examples()
    made = extraction(rows, tmp_path_factory.mktemp("store") / "s")
    return rows, train(rows, made, features=Features(length=20), command="lrp4rag train x", resamples=50)


def test_the_card_says_what_it_was_trained_on(trained):
    rows, detector = trained
    training = detector.card.training
    assert training.generators == {"g1": 40}
    assert training.sources == sorted({row.content_hash for row in rows})
    assert training.data_hash == data_hash(rows[::-1])
    assert training.data_hash != data_hash(rows[:-1])
    assert training.command == "lrp4rag train x"
    assert (detector.card.rows, detector.card.hallucinated) == (40, 20)


def test_controls_stand_beside_the_result_and_do_worse(trained):
    evidence = trained[1].card.evidence
    assert set(evidence.controls) == {
        "length only",
        "constant relevance (interpolate)",
        "constant relevance (zeros)",
        "novel words",
        "flag everything",
    }
    assert evidence.metrics["auroc"].value > 0.9
    assert evidence.metrics["auroc"].low <= evidence.metrics["auroc"].value
    assert evidence.controls["constant relevance (interpolate)"]["auroc"].high < 0.9
    assert evidence.controls["flag everything"]["recall"].value == 1
    assert evidence.controls["flag everything"]["accuracy"].value == 0.5
    assert set(evidence.tokens) >= {"auroc", "f1"}


def test_labels_that_mean_nothing_give_chance(tmp_path):
    """The protocol has no leak: with relevance of noise, the detector is not better than chance."""
    rows = examples(80)
    made = extraction(rows, tmp_path / "s")
    noise = np.random.default_rng(3)
    relevances = []
    for row in rows:
        found = made.store.read(row)
        values = noise.normal(size=found.response.shape).astype(np.float32)
        relevances.append(type(found)(found.encoded, "attnlrp", "response", found.reader, values, values))
    evidence = protocol.cross_validate(
        rows, relevances, features=Features(length=20), classifier="svm", resamples=50
    )
    assert evidence.metrics["auroc"].low < 0.5 < evidence.metrics["auroc"].high


def test_no_row_is_scored_by_a_model_that_saw_its_source(monkeypatch, tmp_path):
    rows = [bridge_example(k // 2, id=f"{k}", response=f"r{k} a b c") for k in range(40)]
    labels = np.array([k // 2 % 2 == 0 for k in range(40)])
    groups = protocol.groups_of(rows)
    seen = []

    class Spy:
        def __init__(self, train):
            self.train = set(train)

        def predict(self, vectors):
            seen.append((self.train, {groups[int(row)] for row in vectors[:, 0]}))
            return np.full(len(vectors), 0.5)

    monkeypatch.setattr(protocol, "fit_calibrated", lambda name, x, y, g: Spy(g))
    folds = protocol.grouped_folds(labels, groups, 5, 0)
    protocol._out_of_fold("svm", np.arange(40.0)[:, None], labels, groups, folds)
    assert len(seen) == 5
    assert all(not train & test for train, test in seen)


def test_failed_rows_are_left_out(tmp_path):
    rows = examples()
    made = extraction(rows[:-2], tmp_path / "s", failures={row.id: "no" for row in rows[-2:]})
    detector = train(rows, made, features=Features(length=10), resamples=20)
    assert detector.card.rows == 38
    assert detector.card.training.failures == 2


def test_unlabelled_rows_are_refused_by_id():
    with pytest.raises(InputError, match="example 'bridge-3' has no labels"):
        labelled([*examples(2), bridge_example(3)], "data.jsonl")
