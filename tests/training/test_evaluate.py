"""Evaluation of detectors on examples that they were not trained on."""

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.features.table import TokenTable
from lrp4rag.training.evaluate import evaluate, refuse_seen
from lrp4rag.training.extract import Extraction
from lrp4rag.training.token_detector import fit_detector
from lrp4rag.training.tokens import tokens_of
from tests.training.labelled import examples, extraction
from tests.training.test_localisation import stored


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
    with pytest.raises(InputError, match="no example could be replayed"):
        evaluate(detector, rows[:1], failed)


def test_training_sources_are_refused_and_counted(detector, tmp_path):
    rows = [*examples(2, first=39), *examples(8, first=100)]
    with pytest.raises(InputError, match=r"1 of 10 examples .*first: 'bridge-39'.*allow seen sources"):
        refuse_seen(detector.card, rows, "data.jsonl")
    refuse_seen(detector.card, rows[1:], "data.jsonl")
    assert evaluate(detector, rows, extraction(rows, tmp_path / "s"), resamples=10).seen == 1
    other = Example(rows[0].question, rows[0].passages, template="Q {question} C {context}", id="o")
    assert other.prompt != rows[0].prompt
    with pytest.raises(InputError, match="'o'"):
        refuse_seen(detector.card, [other], "data.jsonl")


@pytest.mark.usefixtures("few_networks")
def test_a_token_detector_is_judged_where_it_marks_too(tmp_path):
    blocks = {"relevance": TokenTable(("passages", "question"), (), (1,))}
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
    probabilities = detector.predict_proba(list(rows.records()))
    np.testing.assert_allclose(list(evaluation.probabilities.values())[:5], probabilities[:5])
    few = rows.select(np.arange(6))
    assert evaluate(detector, few.examples, extracted, resamples=10).localisation is None
