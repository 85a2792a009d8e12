"""Evaluation of detectors on examples that they were not trained on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrp4rag.classifiers.prevalence import FEWEST, estimated_prevalence
from lrp4rag.example import Example, Label
from lrp4rag.guard.evaluation.evaluate import Evaluation, evaluate
from lrp4rag.guard.evaluation.unfinished import Unfinished
from lrp4rag.judge import Detector
from lrp4rag.training.sets import EVERYDAY, load_set
from lrp4rag.training.train import refuse_seen
from lrp4rag.util.errors import InputError


def towers(count: int, *, first: int = 0, generator: str | None = "g1") -> list[Example]:
    """Every second answer has another number than its passage."""
    rows = []
    for k in range(first, first + count):
        wrong = k % 2 == 1
        response = f"Tower {k} is {20 + k + 7 * wrong} metres tall."
        labels = (Label(0, len(response)),) if wrong else ()
        passage = f"Tower {k} is {20 + k} metres tall, of grey granite, and has {k + 2} floors."
        question = f"How tall is tower {k}?"
        rows.append(Example(question, [passage], response, labels=labels, id=f"t{k}", generator=generator))
    return rows


ROWS = [*towers(FEWEST - 4), *towers(4, first=100, generator="g2")]


@pytest.fixture(scope="module")
def text() -> Detector:
    return Detector.load(reader=None)


@pytest.fixture(scope="module")
def plain(text: Detector) -> Evaluation:
    """Of all rows."""
    return evaluated(text, ROWS)


def evaluated(detector: Detector, rows: list[Example], **options: Any) -> Evaluation:
    model = detector._fitted

    def load(*, worker: int = 0) -> Detector:
        return Detector(model, detector.reader)

    return evaluate(model, rows, load, resamples=10, **options)


def test_metrics_per_generator_and_together(text: Detector, plain: Evaluation) -> None:
    assert plain.rows == {"g1": 16, "g2": 4, "all": 20}
    assert plain.hallucinated == {"g1": 8, "g2": 2, "all": 10}
    assert plain.metrics["all"]["auroc"].value == 1
    assert plain.controls["novel words"].value == 1  # the wrong numbers are nowhere
    assert plain.controls["number of words"].value == 0.5
    assert (plain.seen, plain.prevalence) == (0, None)
    assert plain.threshold == text.card.threshold
    assert set(evaluated(text, ROWS[:2]).metrics) == {"g1"}  # with one, nothing is "all"
    assert set(evaluated(text, towers(2, generator=None)).metrics) == {"all"}  # none is known


def test_it_decides_as_a_judgement_does(text: Detector) -> None:
    """Also on what is read a second time, or compared by more than stored features."""
    dogs = ["Dogs are not allowed in the cabin. They travel in the hold, in a box of their own."]
    rows = [
        *towers(3),
        Example("May my dog fly with me?", dogs, "Dogs are allowed in the cabin.", labels=(Label(0, 5),)),
    ]
    verdicts = text.judge_many(rows)
    assert [one.probability for one in evaluated(text, rows).results] == [one.probability for one in verdicts]
    assert verdicts[-1].spans[0].kind == "contradicted"


def test_training_sources_are_refused_and_counted(text: Detector, tmp_path: Path) -> None:
    first = tmp_path / "first.jsonl"
    first.write_text(EVERYDAY.read_text().partition("\n")[0])
    rows = [*load_set(first)[:1], *towers(3)]
    with pytest.raises(InputError, match=r"1 of 4 examples "):
        refuse_seen(text.card, rows, "data.jsonl")
    refuse_seen(text.card, rows[1:], "data.jsonl")
    assert evaluated(text, rows).seen == 1


def test_rows_without_a_verdict_are_listed_and_left_out_of_other_metrics(text: Detector) -> None:
    rows = towers(4)
    whole = evaluated(text, rows)
    assert (whole.abstained, whole.judged) == ({}, {})
    german = "Der Turm misst zwanzig Meter bis zur Spitze und besitzt zwei Stockwerke aus grauem Granit."
    found = evaluated(text, [*rows, replace(rows[0], id="odd", response=german)])
    assert set(found.abstained) == {"odd"}
    assert {one.facet for one in found.abstained["odd"]} == {"function words"}
    assert found.results[-1].outcome == "abstained"
    assert found.judged["g1"] == whole.metrics["g1"]


def test_at_an_estimated_prevalence_the_same_rows_are_flagged(text: Detector, plain: Evaluation) -> None:
    shifted = evaluated(text, ROWS, estimate=True)
    values = np.array(list(plain.probabilities.values()))
    assert shifted.prevalence == pytest.approx(estimated_prevalence(values, text.card.prevalence))
    assert shifted.threshold != plain.threshold
    assert shifted.metrics["g1"]["f1"] == plain.metrics["g1"]["f1"]


def test_an_example_that_fails_is_without_a_verdict(text: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
    examine = Detector._examine

    def failing(self: Detector, prompt: Any, *given: Any, **options: Any) -> Any:
        if prompt.example.id == "t1":
            raise InputError("too long")
        return examine(self, prompt, *given, **options)

    monkeypatch.setattr(Detector, "_examine", failing)
    rows = towers(4)
    evaluation = evaluated(text, rows)
    assert evaluation.failures == {"t1": "too long"}
    assert (evaluation.rows, len(evaluation.results)) == ({"g1": 3}, 4)
    assert (evaluation.results[1].outcome, evaluation.results[1].why) == ("failed", "too long")
    with pytest.raises(InputError, match="too long"):
        evaluated(text, rows[1:2])


def test_a_run_that_was_killed_judges_only_what_is_missing(
    text: Detector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examine, judged = Detector._examine, list[str]()

    def noted(self: Detector, prompt: Any, *given: Any, **options: Any) -> Any:
        if len(judged) == 2:
            raise KeyboardInterrupt
        judged.append(prompt.example.id)
        return examine(self, prompt, *given, **options)

    monkeypatch.setattr(Detector, "_examine", noted)
    rows, out = towers(4), tmp_path / "now.json"
    with pytest.raises(KeyboardInterrupt):
        evaluated(text, rows, unfinished=Unfinished(out, ["a"]))
    assert judged == ["t0", "t1"]
    unfinished = Unfinished(out, ["a"])
    with unfinished.path.open("a") as file:
        file.write('\n{"run": "cut')
    assert Unfinished(out, ["another detector"]).judged(rows) == {}
    assert list(unfinished.judged([replace(rows[0], response="It is tall."), rows[1]])) == ["t1"]
    assert list(unfinished.judged([replace(rows[1], labels=())])) == []
    judged.clear()
    resumed = evaluated(text, rows, unfinished=unfinished)
    assert set(judged) == {"t2", "t3"}
    monkeypatch.setattr(Detector, "_examine", examine)
    assert resumed.results == evaluated(text, rows).results
    unfinished.done()
    assert not unfinished.path.exists()
