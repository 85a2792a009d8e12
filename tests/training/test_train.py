"""Training: the card says what was learned from, and its evidence is that of a loop over folds."""

import numpy as np
import pytest

from lrp4rag.classifiers import Features
from lrp4rag.classifiers.calibration import candidates_on, fit_best, grouped_folds, probability_of
from lrp4rag.features.plain import PlainTable
from lrp4rag.features.units import smoothed
from lrp4rag.training import token_folds
from lrp4rag.training.corpus import Corpus
from lrp4rag.training.extract import Extraction
from lrp4rag.training.metrics import weighted_metrics, weighted_token_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.train import CACHE, TokenRecipe, VectorRecipe, data_hash, labelled, train
from lrp4rag.training.vector_detector import token_threshold
from lrp4rag.util.errors import InputError
from tests.tiny import bridge_example
from tests.training.labelled import examples, extraction
from tests.training.quick import two_candidates
from tests.training.stored import stored


def test_the_card_says_what_it_was_trained_on(detector):
    rows, training = examples(), detector.card.training
    assert training.generators == {"g1": 40}
    assert training.sources == sorted({row.content_hash for row in rows})
    assert training.data_hash == data_hash(rows[::-1])
    assert training.data_hash != data_hash(rows[:-1])
    assert training.command == "lrp4rag train x"
    assert (detector.card.rows, detector.card.hallucinated) == (40, 20)


def test_controls_stand_beside_the_result_and_do_worse(detector):
    evidence = detector.card.evidence
    assert set(evidence.controls) == {
        "length only",
        "constant relevance (interpolate)",
        "constant relevance (zeros)",
        "novel words",
        "flag everything",
    }
    assert evidence.metrics["auroc"].value > 0.9
    assert evidence.controls["constant relevance (interpolate)"]["auroc"].high < 0.9
    assert evidence.controls["flag everything"]["recall"].value == 1
    assert evidence.controls["flag everything"]["accuracy"].value == 0.5


def test_the_evidence_is_that_of_a_loop_over_folds(detector, tmp_path):
    rows = examples()
    data = Rows(extraction(rows, tmp_path / "s").store, tuple(rows))
    inputs = Features(length=20)(data.relevances)
    scores = np.full(len(rows), np.nan)
    suspect = [np.zeros(0, dtype=bool)] * len(rows)
    with two_candidates():
        candidates = candidates_on("svm", inputs)
    for learned, judged in grouped_folds(data.labels, data.groups, 5, 0):
        _, model = fit_best(candidates, data.labels, data.groups, learned)
        scores[judged] = probability_of(model, inputs[judged])
        picked = data.select(learned)
        threshold = token_threshold(picked.relevances, picked.token_flags)
        for k in judged:
            suspect[k] = smoothed(data.relevances[k].total) < threshold
    evidence = detector.card.evidence
    expected = weighted_metrics(data.labels, scores, scores >= 0.5, np.ones((1, len(rows))))
    flags = np.concatenate(data.token_flags)
    tokens = weighted_token_metrics(
        flags,
        np.concatenate([-smoothed(row.total) for row in data.relevances]),
        np.concatenate(suspect),
        np.ones((1, len(flags))),
    )
    for found, wanted in ((evidence.metrics, expected), (evidence.tokens, tokens)):
        values = {name: float(value) for name, (value,) in wanted.items()}
        assert {name: row.value for name, row in found.items()} == pytest.approx(values)
    assert evidence.protocol == (
        "5-fold cross-validation stratified by label and grouped by source, seed 0; "
        "95 % bootstrap intervals over sources, 50 resamples"
    )


def test_failed_rows_are_left_out(detector, tmp_path, monkeypatch):
    monkeypatch.setattr("lrp4rag.training.train.vector_evidence", lambda *_, **__: detector.card.evidence)
    rows = examples()
    extracted = extraction(rows[:-2], tmp_path / "s", failures={row.id: "no" for row in rows[-2:]})
    card = train(Corpus.of(rows), extracted, VectorRecipe(Features(length=10))).card
    assert (card.rows, card.training.failures) == (38, 2)


def test_unlabelled_rows_are_refused_by_id():
    with pytest.raises(InputError, match="example 'bridge-3' has no labels"):
        labelled([*examples(2), bridge_example(3)], "data.jsonl")


def token_training(rows, **options):
    blocks = {"plain": PlainTable(("likelihoods",), ())}
    extracted = Extraction(rows.store, 0, len(rows), {})
    return train(Corpus.of(rows.examples), extracted, TokenRecipe(blocks), resamples=20, **options)


@pytest.mark.usefixtures("few_networks")
def test_a_token_detector_has_evidence_of_each_generator_and_resumes_after_finished_folds(
    tmp_path, monkeypatch
):
    """Whatever processes there are, and with a score that is damaged computed again."""
    fitted, fit = [], token_folds.block_scores
    monkeypatch.setattr(token_folds, "block_scores", lambda *a: fitted.append(a[1]) or fit(*a))
    rows = stored(tmp_path / "s", 30)
    card = token_training(rows, jobs=1).card
    evidence = card.evidence
    assert set(evidence.generators) == {"g1", "g2"}
    assert evidence.metrics["auroc"].value > 0.9
    one = evidence.generators["g1"]
    assert (one.rows, one.hallucinated) == (30, 15)
    assert set(one.controls) == {"length only", "novel words", "flag everything"}
    assert one.located["token classifier"].tokens["auroc"].value > 0.9
    assert set(one.located["position"].spans) == {"precision", "recall", "f1"}
    assert card.training.generators == {"g1": 30, "g2": 30}
    assert fitted == ["plain"] * 3
    first, second = sorted((rows.store.folder / CACHE).glob("*.safetensors"))[:2]
    first.write_bytes(first.read_bytes()[:-1])
    second.unlink()
    again = token_training(rows, jobs=1).card
    assert again == card
    assert len(fitted) == 5
