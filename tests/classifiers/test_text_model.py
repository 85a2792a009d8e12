"""A detector without a reader: learned from texts, saved, and asked by `Detector`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.classifiers import Model, TextModel, ensemble
from lrp4rag.classifiers.alarms import TEXT_FAULTS
from lrp4rag.example import Example, Label
from lrp4rag.judge import Detector
from lrp4rag.report.words import main_reasons
from lrp4rag.training import alarms
from lrp4rag.training import train as training
from lrp4rag.training.corpus import Corpus
from lrp4rag.training.train import TextRecipe
from lrp4rag.util.errors import InputError
from tests.training.quick import light_folds

THINGS = ("pass", "permit", "ticket", "licence", "badge", "voucher", "card", "token", "form", "key")


def example(number: int, fault: str = "") -> Example:
    thing, cost = THINGS[number % len(THINGS)], 20 + number
    passage = (
        f"The {thing} of zone {number} costs {cost} euros and is valid for {number + 3} days. "
        "Lost ones are replaced at the main desk. Children travel free."
    )
    response = f"The {thing} of zone {number} costs {cost} euros. Children travel free."
    labels: tuple[Label, ...] = ()
    if fault == "number":
        response = response.replace(f"{cost} euros", f"{cost + 7} euros")
        start = response.index(str(cost + 7))
        labels = (Label(start, start + 2, "number"),)
    if fault == "negation":
        response = response.replace("Children travel free", "Children do not travel free")
        start = response.index("Children")
        labels = (Label(start, len(response), "negation"),)
    question = f"What does the {thing} of zone {number} cost?"
    return Example(question, (passage,), response, id=f"{number}{fault}", source=str(number), labels=labels)


@pytest.fixture(scope="module")
def model() -> TextModel:
    rows = [example(number, fault) for number in range(14) for fault in ("", "number", "negation")]
    with light_folds(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "ONCE", replace(training.ONCE, folds=2))
        patch.setattr(alarms, "FOLDS", 2)
        patch.setattr(alarms, "FEWEST_SOURCES", 5)
        patch.setattr(ensemble, "EPOCHS", 5)
        found = training.train(Corpus.of(rows), None, TextRecipe(), resamples=20)
    assert isinstance(found, TextModel)
    return found


@pytest.fixture(scope="module")
def detector(model: TextModel, tmp_path_factory: pytest.TempPathFactory) -> Detector:
    return Detector.load(model.save(tmp_path_factory.mktemp("saved") / "detector"))


def test_it_learns_what_is_wrong_from_texts_alone(model: TextModel, tmp_path: Path) -> None:
    assert set(model.alarms) <= set(TEXT_FAULTS)
    assert {"text sentence", "text value", "text negation"} <= set(model.alarms)
    loaded = Model.load(model.save(tmp_path / "detector"))
    detector = Detector.load(tmp_path / "detector")
    assert not detector.reader.has_model
    right, wrong = (detector.judge(example(50, fault)) for fault in ("", "number"))
    assert right.probability < wrong.probability
    assert wrong.hallucinated
    assert loaded.card.evidence.metrics["auroc"].value > 0.8


def test_a_wrong_value_is_named_with_the_passages(detector: Detector) -> None:
    verdict = detector.judge(example(50, "number"))
    assert [(one.text, one.instead, one.margin) for one in verdict.contradictions] == [
        ("77 euros", "70 euros", None)
    ]
    assert verdict.sentences[0].status == "contradicted"
    assert verdict.sentences[1].status == "supported"
    assert "70 euros" in verdict.to_html()
    assert verdict.to_dict()["spans"][0]["contradictions"][0]["margin"] is None


def test_no_flag_is_without_a_reason(detector: Detector) -> None:
    invented = "The king of Denmark signed it in Paris. It has a blue cover."
    verdict = detector.judge(example(50).question, example(50).passages, invented)
    assert verdict.hallucinated
    told = {reason.sentence for reason in verdict.reasons if reason.words}
    assert told == {k for k, sentence in enumerate(verdict.sentences) if sentence.suspect}
    lines = main_reasons(verdict, None)
    assert {line.count("sentence 1: ") + line.count("sentence 2: ") for line in lines} == {1}


def test_responses_are_judged_while_they_are_written(detector: Detector) -> None:
    given = example(50, "number")
    with detector:
        reading = detector.reading(given.question, given.passages)
        pieces = [*reading.feed(given.response), *reading.end()]
        whole = detector.judge(given)
    assert [piece.probability for piece in pieces] == pytest.approx(
        [sentence.probability for sentence in whole.sentences]
    )


def test_other_languages_are_abstained_from(detector: Detector) -> None:
    passage = "Der Fahrschein kostet zwanzig Euro und gilt drei Tage lang in der ganzen Stadt."
    verdict = detector.judge("Was kostet der Fahrschein?", [passage], passage.replace("zwanzig", "dreissig"))
    assert verdict.abstained


def test_the_page_is_without_shades(detector: Detector) -> None:
    verdict = detector.analyse(example(50, "number"), rows=True)
    assert verdict.sentence_rows is None
    assert "no relevance" in verdict.to_html()


def test_nothing_can_be_generated_without_a_reader(detector: Detector) -> None:
    with pytest.raises(InputError, match="no reader"):
        detector.analyse(Example("Who?", ("Ada.",)))


@pytest.mark.parametrize(
    ("response", "passages"),
    [
        *((text, ("Ada wrote it.",)) for text in ("!!", "\N{PARTY POPPER}", "x" * 5000, "a. " * 100)),
        *((text, ("| a | b |\n|---|---|\n| 1 | 2 |",)) for text in ("12", "1. One\n\n- two")),
        ("12", ("...",)),
    ],
)
def test_odd_texts_are_judged(detector: Detector, response: str, passages) -> None:
    verdict = detector.judge("Who wrote it?", passages, response)
    assert verdict.probability is None or 0 <= verdict.probability <= 1
    assert verdict.to_dict()["response"] == response


def test_forged_alarms_are_refused(model: TextModel, tmp_path: Path) -> None:
    arrays = dict(model.arrays())
    with pytest.raises(ValueError, match="alarms are not those"):
        TextModel.of(model.card, {**arrays, "alarms/other/0/mean": np.zeros(1, dtype=np.float32)})
    name = next(iter(model.alarms))
    fewer = model.card.input.model_copy(update={"alarms": {**model.input.alarms, name: ("a",)}})
    with pytest.raises(ValueError, match="other columns"):
        TextModel.of(model.card.model_copy(update={"input": fewer}), arrays)
