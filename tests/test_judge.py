"""Three lines from strings to a verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lrp4rag import Detector, Example, InputError, attribute
from lrp4rag.classifiers import Features
from lrp4rag.features import replay
from lrp4rag.reader import Reader
from lrp4rag.report.record import record
from lrp4rag.training.vector_detector import fit_vector_detector
from tests.training.labelled import examples

QUESTION = "How tall is the lighthouse?"
PASSAGES = ["The Marlow lighthouse is 31 metres tall.", "Fish is sold <b>nearby</b>."]
RESPONSE = "It is 31 metres tall. Robert <script>Stevenson</script> won a gold medal for it in Paris."


@pytest.fixture(scope="module")
def detector(tiny_reader: Reader) -> Detector:
    rows = examples(12)
    relevances = [attribute(tiny_reader, tiny_reader.encode(one)) for one in rows]
    labels = np.array([bool(one.hallucinated) for one in rows])
    flags = [
        np.arange(len(one.response)) % 2 == int(label) for one, label in zip(relevances, labels, strict=True)
    ]
    fitted = fit_vector_detector(relevances, labels, token_flags=flags, features=Features(length=8))
    return Detector(fitted, tiny_reader, name="tiny")


@pytest.fixture(scope="module")
def fast(default_reader: Reader) -> Detector:
    return Detector.load("fast", reader=default_reader)


def test_spans_and_sentences_carry_their_text(fast: Detector) -> None:
    verdict = fast.judge(QUESTION, PASSAGES, RESPONSE)
    assert 0 < verdict.probability < 1
    assert verdict.spans
    for part in (*verdict.spans, *verdict.sentences):
        assert part.text == RESPONSE[part.start : part.end]
    assert "Robert" in repr(verdict)


def test_a_prompt_that_responses_share_is_read_once(fast: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
    responses = (RESPONSE, "I do not know.", "It is 31 metres tall.")
    one, *others = [Example(QUESTION, PASSAGES, response) for response in responses]
    between = replace(one, prompt="", spans=(), question="How tall?")
    alone = [fast.judge(each).probability for each in (one, between, *others)]
    read = []
    signals = replay.PromptSignals
    monkeypatch.setattr(
        replay, "PromptSignals", lambda *given, **more: read.append(1) or signals(*given, **more)
    )
    together = fast.judge_many([one, between, *others])
    assert [verdict.probability for verdict in together] == pytest.approx(alone, abs=1e-6)
    assert len(read) == 2


def test_it_is_written_as_the_command_writes_it(detector: Detector) -> None:
    verdict = detector.judge(QUESTION, PASSAGES, RESPONSE)
    assert verdict.to_dict() == record(verdict.analysis)
    json.dumps(verdict.to_dict(), allow_nan=False)
    page = verdict.to_html(tokens=True)
    assert page.startswith("<!doctype html>")
    assert verdict.analysis.sentence_rows is None  # pulled for the page only


def test_a_notebook_shows_it_with_everything_escaped(detector: Detector) -> None:
    shown = detector.judge(QUESTION, PASSAGES, RESPONSE)._repr_html_()
    assert "probability" in shown
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown


def test_it_holds_its_reader_in_relevance_mode_and_lets_it_go(detector: Detector) -> None:
    expected = detector.judge(QUESTION, PASSAGES, RESPONSE).probability
    model = detector.reader.model
    before = type(model.model.layers[0].input_layernorm).forward, dict(vars(model.model.layers[0]))
    with detector as held:
        again = [held.judge(QUESTION, PASSAGES, RESPONSE).probability for _ in range(2)]
        assert held.judge_many([Example(QUESTION, PASSAGES, RESPONSE)])[0].to_html()
    assert again == pytest.approx([expected] * 2, abs=1e-6)
    assert (type(model.model.layers[0].input_layernorm).forward, dict(vars(model.model.layers[0]))) == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((QUESTION,), "field 'passages': at least one passage is needed"),
        ((QUESTION, [], RESPONSE), "field 'passages': at least one passage is needed"),
        ((QUESTION, "one text", RESPONSE), "field 'passages': give a list of texts"),
        ((QUESTION, ["P", None], RESPONSE), r"field 'passages\[1\]': a text is needed, not NoneType"),
        ((3, ["P"], RESPONSE), "field 'question': a text is needed, not int"),
        ((QUESTION, ["P"]), r"field 'examples\[0\].response': there is no response to judge"),
        ((QUESTION, ["P"], " "), "field 'response': the response is empty"),
        (
            (Example(QUESTION, PASSAGES, RESPONSE), PASSAGES),
            "give an Example or question, passages and response",
        ),
    ],
)
def test_what_cannot_be_judged_is_named(detector: Detector, given: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        detector.judge(*given)


def test_a_detector_is_refused_another_reader(detector: Detector, fast: Detector) -> None:
    with pytest.raises(InputError, match="reader"):
        Detector(fast.fitted, detector.reader)
    assert fast.at("high-precision").card.threshold > fast.at("high-recall").card.threshold
