"""Evaluation of detectors on examples that they were not trained on."""

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.classifiers import ensemble
from lrp4rag.classifiers.card import Range
from lrp4rag.classifiers.prevalence import at_prevalence, estimated_prevalence
from lrp4rag.example import Example
from lrp4rag.features.plain import PlainTable
from lrp4rag.guard.evaluation.evaluate import evaluate
from lrp4rag.training.extract import Extraction
from lrp4rag.training.token_detector import fit_detector
from lrp4rag.training.tokens import tokens_of
from lrp4rag.training.train import refuse_seen
from lrp4rag.util.errors import InputError
from tests.training.labelled import examples, extraction
from tests.training.stored import stored


def test_metrics_per_generator_and_together(detector, tmp_path):
    rows = [*examples(20, first=100), *examples(10, first=200, generator="g2")]
    made = extraction(rows, tmp_path / "s")
    evaluation = evaluate(detector, rows, made, resamples=50)
    assert evaluation.rows == {"g1": 20, "g2": 10, "all": 30}
    assert evaluation.hallucinated == {"g1": 10, "g2": 5, "all": 15}
    assert evaluation.metrics["all"]["auroc"].value > 0.9
    assert set(evaluation.probabilities) == {row.id for row in rows}
    assert evaluation.seen == 0
    assert set(evaluate(detector, rows[:10], made, resamples=10).metrics) == {
        "g1"
    }  # with one, nothing is "all"
    failed = replace(made, failures={rows[0].id: "too long"})
    with pytest.raises(InputError, match="could be replayed"):
        evaluate(detector, rows[:1], failed)


def test_training_sources_are_refused_and_counted(detector, tmp_path):
    rows = [*examples(2, first=39), *examples(8, first=100)]
    with pytest.raises(InputError, match=r"1 of 10 examples .*'bridge-39'"):
        refuse_seen(detector.card, rows, "data.jsonl")
    refuse_seen(detector.card, rows[1:], "data.jsonl")
    assert evaluate(detector, rows, extraction(rows, tmp_path / "s"), resamples=10).seen == 1
    other = Example(rows[0].question, rows[0].passages, template="Q {question} C {context}", id="o")
    assert other.prompt != rows[0].prompt
    with pytest.raises(InputError, match="'o'"):
        refuse_seen(detector.card, [other], "data.jsonl")


@pytest.mark.usefixtures("few_networks")
def test_a_token_detector_is_judged_where_it_marks_too(tmp_path):
    blocks = {"plain": PlainTable(("likelihoods",), ())}
    learned = stored(tmp_path / "a")
    detector = fit_detector(learned, tokens_of(learned, blocks), blocks)
    rows = stored(tmp_path / "b", count=20)
    extracted = Extraction(rows.store, 0, len(rows), {})
    evaluation = evaluate(detector, rows.examples, extracted, resamples=20)
    assert evaluation.metrics["g1"]["auroc"].value > 0.9
    located = evaluation.localisation
    assert located.lines["g1"]["token classifier"].tokens["auroc"].value > 0.7
    assert "novel words" in located.responses["g2"]
    assert located.responses["all"]["token classifier"]["auroc"] == evaluation.metrics["all"]["auroc"]
    probabilities = detector.predict_proba(list(rows.readings()))
    np.testing.assert_allclose(list(evaluation.probabilities.values())[:5], probabilities[:5])
    assert evaluation.prevalence is None
    assert evaluation.threshold == detector.card.threshold
    few = rows.select(np.arange(6))
    assert evaluate(detector, few.examples, extracted, resamples=10).localisation is None


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A token detector, and what it is to judge."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "EPOCHS", 3)
        blocks = {"plain": PlainTable(("likelihoods",), ())}
        learned = stored(tmp_path_factory.mktemp("a"))
        detector = fit_detector(learned, tokens_of(learned, blocks), blocks)
    rows = stored(tmp_path_factory.mktemp("b"), count=20)
    return detector, rows, Extraction(rows.store, 0, len(rows), {})


def test_rows_without_a_verdict_are_listed_and_left_out_of_other_metrics(judged):
    detector, rows, extracted = judged
    whole = evaluate(detector, rows.examples, extracted, resamples=10)
    assert (whole.abstained, whole.judged) == ({}, {})
    lengths = [len(record) for record in rows.readings()]
    held = detector.card.domain | {"response tokens": Range(low=1, high=float(np.median(lengths)))}
    narrow = replace(detector, card=detector.card.model_copy(update={"domain": held}))
    found = evaluate(narrow, rows.examples, extracted, resamples=10)
    longer = {
        one.id for one, length in zip(rows.examples, lengths, strict=True) if length > np.median(lengths)
    }
    assert longer
    assert set(found.abstained) == longer
    assert {one.facet for why in found.abstained.values() for one in why} == {"response tokens"}
    assert found.metrics == whole.metrics
    rest = [one for one in rows.examples if one.id not in longer]
    alone = evaluate(narrow, rest, extracted, resamples=10)
    assert {name: one["auroc"].value for name, one in found.judged.items()} == {
        name: one["auroc"].value for name, one in alone.metrics.items()
    }


def test_at_an_estimated_prevalence_the_same_rows_are_flagged(judged):
    detector, rows, extracted = judged
    plain = evaluate(detector, rows.examples, extracted, resamples=10)
    shifted = evaluate(detector, rows.examples, extracted, resamples=10, estimate=True)
    values = np.array(list(plain.probabilities.values()))
    assert shifted.prevalence == pytest.approx(estimated_prevalence(values, detector.card.prevalence))
    expected = at_prevalence(values, detector.card.prevalence, shifted.prevalence)
    np.testing.assert_allclose(list(shifted.probabilities.values()), expected)
    for metric in ("auroc", "accuracy", "f1"):
        assert shifted.metrics["all"][metric] == plain.metrics["all"][metric]
    given = evaluate(detector.at_prevalence(shifted.prevalence), rows.examples, extracted, resamples=10)
    np.testing.assert_allclose(list(given.probabilities.values()), expected)
    assert given.threshold == pytest.approx(shifted.threshold)
