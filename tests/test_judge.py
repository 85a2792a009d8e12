"""Three lines from strings to a verdict."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lrp4rag import Detector, Example, InputError, attribute, judge
from lrp4rag.classifiers import Features, wording
from lrp4rag.classifiers.card import Range
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.folder import BUNDLED
from lrp4rag.classifiers.prevalence import FEWEST, at_prevalence, estimated_prevalence
from lrp4rag.features import replay
from lrp4rag.judge import ExplainedVerdict
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import WindowError
from lrp4rag.report.html import html_page
from lrp4rag.report.record import record
from lrp4rag.report.words import reasons_of
from lrp4rag.training.vector_detector import fit_vector_detector
from tests.cli.plain_detector import TRAINED, plain_detector
from tests.lrp.tiny_families import build
from tests.tiny import CHATML, bridge_example, tiny_tokenizer
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
def bundled(default_reader: Reader) -> Detector:
    return Detector.load(reader=default_reader)


@pytest.fixture(scope="module")
def texts() -> Detector:
    return Detector.load(reader=None)


@pytest.fixture(scope="module")
def beside(tiny_reader: Reader) -> Detector:
    """Beside a reader that no detector knows."""
    return Detector.load(reader=tiny_reader)


@pytest.fixture(scope="module")
def plain(tiny_reader: Reader) -> Detector:
    return Detector(plain_detector(tiny_reader), tiny_reader)


def test_of_the_bundled_detector_parts_carry_their_text_and_the_evidence_changes_nothing(
    bundled: Detector,
) -> None:
    verdict = bundled.judge(QUESTION, PASSAGES, RESPONSE)
    assert 0 < verdict.probability < 1
    assert verdict.spans
    for part in (*verdict.spans, *verdict.sentences):
        assert part.text == RESPONSE[part.start : part.end]
    assert "Stevenson" in repr(verdict)
    alone = bundled.judge(QUESTION, PASSAGES, RESPONSE, evidence=False)
    assert alone.probability == pytest.approx(verdict.probability, abs=1e-6)
    assert [span.text for span in alone.spans] == [span.text for span in verdict.spans]
    assert any(one.by_passage for one in verdict.sentences)
    assert not any(one.by_passage for one in alone.sentences)


def test_a_prompt_that_responses_share_is_read_once(plain: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
    responses = (RESPONSE, "I do not know.", "It is 31 metres tall.")
    one, *others = [Example(QUESTION, PASSAGES, response) for response in responses]
    between = replace(one, prompt="", spans=(), question="How tall?")
    alone = [plain.judge(each).probability for each in (one, between, *others)]
    read = []
    reading = replay.PromptReading
    monkeypatch.setattr(replay, "PromptReading", lambda *given: read.append(1) or reading(*given))
    together = plain.judge_many([one, between, *others])
    assert [verdict.probability for verdict in together] == pytest.approx(alone, abs=1e-6)
    assert len(read) == 2


@pytest.mark.parametrize("count", [1, 4])
def test_what_is_made_of_a_prompt_is_made_once_for_all_answers(
    plain: Detector, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """By counts of work, which are the same on any machine: each answer costs its own tokens only."""
    responses = ["Fish is good.", "Dish is good.", "Wish is good.", "Bish is good."][:count]
    answers = [Example(QUESTION, PASSAGES, one, id=one) for one in responses]
    encoded = [plain.reader.encode(one) for one in answers]
    made = Counter[str]()

    def counted(where: Any, name: str) -> None:
        make = getattr(where, name)
        monkeypatch.setattr(where, name, lambda *given, **more: made.update([name]) or make(*given, **more))

    for where, name in ((Reader, "whole_prompt"), (wording, "premise_of"), (replay, "context_of")):
        counted(where, name)
    read = list[int]()
    embeddings = plain.reader.model.get_input_embeddings()
    hook = embeddings.register_forward_pre_hook(lambda _, given: read.append(given[0].numel()))
    try:
        verdicts = plain.judge_many(answers, evidence=False)
    finally:
        hook.remove()
    assert [one.example for one in verdicts] == answers
    assert made == {"whole_prompt": 1, "premise_of": 1, "context_of": 1}
    assert read == [len(encoded[0].prompt_ids) - 1, *(1 + len(one.response_ids) for one in encoded)]
    assert len({id(one.encoded.prompt_ids) for one in verdicts}) == 1, "answers hold copies of their prompt"


def test_only_examples_of_one_prompt_share_it(plain: Detector) -> None:
    """An empty passage is not in the prompt, and counts among the passages all the same."""
    one = Example(QUESTION, PASSAGES, RESPONSE)
    others = [
        replace(one, passages=[*PASSAGES, ""], sources=()),
        replace(one, generator="other"),
        replace(one, question="", spans=one.spans[1:], prompt=one.prompt),
    ]
    for example, verdict in zip([one, *others], plain.judge_many([one, *others]), strict=True):
        assert verdict.example is example
        assert len(verdict.encoded.segment_names) == 2 + len(example.passages)
        assert verdict.probability == pytest.approx(plain.judge(example).probability, abs=1e-6)


def test_each_is_judged_in_order_and_an_error_stands_in_its_place(plain: Detector) -> None:
    examples = [bridge_example(k) for k in (7, 3, 7)]
    examples.insert(1, bridge_example(1, response="long " * 5000))
    found = list(plain.judge_each(examples))
    assert [isinstance(one, Exception) for one in found] == [False, True, False, False]
    for number in (0, 2, 3):
        assert found[number].example is examples[number]
        assert found[number].probability == pytest.approx(plain.judge(examples[number]).probability, abs=1e-6)


@pytest.mark.parametrize(
    ("prompts", "worked"),
    [
        ("AABB", [1, 2, 3, 4]),  # nothing waits
        ("ABAB", [1, 3, 3, 4]),
        ("ABBA", [1, 3, 4, 4]),
        ("ABCA", [1, 3, 4, 4]),
    ],
)
def test_a_verdict_waits_for_those_before_it_and_no_longer(
    plain: Detector, monkeypatch: pytest.MonkeyPatch, prompts: str, worked: list[int]
) -> None:
    """`worked` is how many are done when each is yielded."""
    done, examine = [], Detector._examine
    monkeypatch.setattr(Detector, "_examine", lambda *given, **_: done.append(1) or examine(*given))
    examples = [bridge_example(ord(prompt), id=str(k)) for k, prompt in enumerate(prompts)]
    assert [(one.example.id, len(done)) for one in plain.judge_each(examples)] == [
        (str(k), count) for k, count in enumerate(worked)
    ]


def responses_to_judge(count: int) -> list[Example]:
    return [
        bridge_example(k % 3, response=f"It was opened {'long ' * (k % 5)}ago {k}.") for k in range(count)
    ]


def test_a_prevalence_is_given_or_estimated(plain: Detector) -> None:
    examples = responses_to_judge(FEWEST)
    as_trained = plain.judge_many(examples, evidence=False)
    before = np.array([one.probability for one in as_trained])
    assert as_trained[0].prevalence is as_trained[0].to_dict()["prevalence"] is None
    estimate = estimated_prevalence(before, TRAINED)
    for wanted, used in ((0.1, 0.1), ("estimate", estimate)):
        found = plain.judge_many(examples, prevalence=wanted, evidence=False)
        expected = at_prevalence(before, TRAINED, used)
        np.testing.assert_allclose([one.probability for one in found], expected, rtol=1e-6)
        assert [one.hallucinated for one in found] == [one.hallucinated for one in as_trained]
        for one in found:
            assert one.prevalence == one.to_dict()["prevalence"] == pytest.approx(used)
            assert one.to_dict()["probability"] == one.probability
    # The same as by a detector for that prevalence; and from there, estimates are the same.
    there = plain.at_prevalence(0.1)
    (shifted,) = there.judge_many(examples[:1])
    (directly,) = plain.judge_many(examples[:1], prevalence=0.1)
    assert shifted.prevalence == 0.1
    assert shifted.threshold == pytest.approx(directly.threshold)
    again = there.judge_many(examples, prevalence="estimate", evidence=False)
    np.testing.assert_allclose(
        [one.probability for one in again], at_prevalence(before, TRAINED, estimate), rtol=1e-3
    )


@pytest.mark.parametrize(
    ("prevalence", "message"),
    [
        (1.0, "a prevalence is from 0.001 to 0.999, got 1"),
        ("estimate", f"from {FEWEST} responses or more, and there are 2"),
        ("guess", "give a number or 'estimate', not 'guess'"),
    ],
)
def test_a_prevalence_that_cannot_be_is_refused_before_anything_is_read(
    plain: Detector, monkeypatch: pytest.MonkeyPatch, prevalence: object, message: str
) -> None:
    monkeypatch.setattr(replay, "PromptReading", None)
    with pytest.raises(InputError, match=message) as caught:
        plain.judge_many(responses_to_judge(2), prevalence=prevalence)
    assert caught.value.field == "prevalence"


def test_a_detector_without_a_prevalence_shifts_to_none(detector: Detector) -> None:
    with pytest.raises(InputError, match="this detector's card has no prevalence"):
        detector.judge_many(responses_to_judge(2), prevalence=0.1)


SETTINGS = ("OMP_WAIT_POLICY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")


@pytest.mark.parametrize(
    ("before", "given", "expected"),
    [
        ("", {}, "PASSIVE 128"),
        ("", dict(zip(SETTINGS, ("ACTIVE", "512"), strict=True)), "ACTIVE 512"),
        ("import sys; sys.modules['torch'] = sys; ", {}, "None "),  # too late to be read
    ],
)
def test_threads_that_wait_do_not_spin_and_products_of_few_shapes_are_kept(
    before: str, given: dict[str, str], expected: str
) -> None:
    code = f"{before}import os, lrp4rag; print(*(os.environ.get(name) for name in {SETTINGS!r}))"
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS} | given
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith(expected)


def test_it_is_written_as_the_command_writes_it(detector: Detector) -> None:
    verdict = detector.judge(QUESTION, PASSAGES, RESPONSE)
    assert verdict.to_dict() == record(verdict)
    json.dumps(verdict.to_dict(), allow_nan=False)
    page = verdict.to_html()
    assert page.startswith("<!doctype html>")
    assert verdict.sentence_rows is None  # pulled for the page only


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


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (["a"], r"field 'examples\[0\]': an Example is needed, not str"),
        ([Example(QUESTION, PASSAGES, RESPONSE), None], r"field 'examples\[1\]': an Example is needed"),
        ("abc", "field 'examples': give a list"),
        (Example(QUESTION, PASSAGES, RESPONSE), "field 'examples': give a list"),
        (7, "field 'examples': give a list"),
    ],
)
def test_what_is_no_example_is_named(detector: Detector, examples: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        detector.judge_many(examples)


@pytest.mark.parametrize("name", [BUNDLED, Path(BUNDLED)])
def test_beside_a_reader_that_no_detector_knows_texts_are_compared(
    name: str | Path, tiny_reader: Reader, texts: Detector
) -> None:
    detector = Detector.load(name, reader=tiny_reader)
    wrong = "The Marlow lighthouse is 58 metres tall. Fish is not sold nearby."
    verdict = detector.judge("How tall is it?", PASSAGES, wrong)
    alone = texts.judge("How tall is it?", PASSAGES, wrong)
    assert verdict.probability == pytest.approx(alone.probability)
    assert verdict.contradictions[0].instead == alone.contradictions[0].instead == "31 metres"
    assert (verdict.calibrated, alone.calibrated) == (False, True)
    row = verdict.to_dict()
    assert row["calibrated"] is False
    assert row["reader"]["name"] == tiny_reader.identity.name
    assert detector.versions["reader"] == tiny_reader.identity.digest
    # The reader shows what a suspect sentence rests on.
    assert verdict.hallucinated
    assert len(verdict.sentences[0].by_passage) == 2
    assert alone.sentences[0].by_passage == ()
    assert "not calibrated" in verdict.to_html()
    with detector:
        reading = detector.reading("How tall is it?", PASSAGES)
        assert [*reading.feed(wrong + " "), *reading.end()][0].probability > verdict.threshold


def same_verdict(one: ExplainedVerdict, other: ExplainedVerdict) -> None:
    """All but what a reader shows."""
    for name in ("probability", "threshold", "hallucinated", "unlike", "differences", "computed", "read"):
        assert getattr(one, name) == getattr(other, name)
    assert reasons_of(one) == reasons_of(other)
    spans = [
        [(span.start, span.end, span.text, span.probability) for span in verdict.spans]
        for verdict in (one, other)
    ]
    assert spans[0] == spans[1]
    sentences = [
        [(sentence.status, sentence.probability, sentence.nearest) for sentence in verdict.sentences]
        for verdict in (one, other)
    ]
    assert sentences[0] == sentences[1]
    places = [
        [replace(contradiction, relevance=None) for contradiction in verdict.contradictions]
        for verdict in (one, other)
    ]
    assert places[0] == places[1]


FAR = [f"The pool of town {k} is {k + 2} metres deep." for k in range(60)]
ANSWERS = {
    "a wrong value": "The Marlow lighthouse is 58 metres tall. Fish is not sold nearby.",
    "of many passages": " ".join(f"The pool of town {k} is {k + 3} metres deep." for k in range(0, 60, 15)),
    "beyond the window": "The Marlow lighthouse is 58 metres tall. " + "Fish is sold nearby. " * 60,
    "invented": "The king of Denmark signed it in Paris. It has a blue cover.",
    "right": "The Marlow lighthouse is 31 metres tall.",
}


@pytest.mark.parametrize(
    ("answer", "further"),
    [
        ("a wrong value", []),
        ("beyond the window", []),
        ("right", []),
        ("of many passages", FAR),
        ("invented", FAR * 4),
    ],
)
def test_a_reader_beside_texts_changes_no_verdict(
    beside: Detector, texts: Detector, answer: str, further: list[str]
) -> None:
    """Whatever its window holds: texts are compared whole."""
    passages = [*further, *PASSAGES]
    verdicts = [one.judge(QUESTION, passages, ANSWERS[answer]) for one in (beside, texts)]
    same_verdict(*verdicts)
    verdict = verdicts[0]
    assert verdict.excerpt is None or len(verdict.encoded.prompt_ids) <= beside.reader.window
    shown = beside.with_rows(verdict)
    same_verdict(shown, verdicts[1])
    assert html_page(shown)
    if answer == "invented":
        assert verdict.hallucinated
        assert len(verdict.sentences[0].by_passage) == len(passages)
        assert shown.sentence_rows.shape[0] == len(verdict.sentences)


def test_texts_that_no_window_holds_are_read_in_excerpts(tiny_reader: Reader) -> None:
    tiny_reader.encode(Example(QUESTION, PASSAGES, ANSWERS["right"]))
    further = [f"The pool of town {k} is {k + 2} metres deep." for k in range(4000)]
    with pytest.raises(InputError, match="characters, more than the reader's window"):
        tiny_reader.encode(Example(QUESTION, [*PASSAGES, *further], ANSWERS["right"]))
    verdict = Detector(plain_detector(tiny_reader), tiny_reader).judge(
        QUESTION, [*PASSAGES, *further], ANSWERS["right"], evidence=False
    )
    assert verdict.probability is not None
    assert verdict.read is not None
    assert set(range(len(PASSAGES))) & set(verdict.read)


def test_a_stream_beside_a_reader_is_judged_as_without(beside: Detector, texts: Detector) -> None:
    pieces = []
    for one in (beside, texts):
        with one as detector:
            reading = detector.reading("How tall is it?", [*FAR, *PASSAGES])
            reading.prepare()
            pieces.append([*reading.feed(ANSWERS["of many passages"]), *reading.end()])
    assert pieces[0] == pieces[1]
    assert len(pieces[0]) == 4


def test_the_weights_of_training_in_another_framing_are_refused(default_reader: Reader) -> None:
    """Nobody chose to do without what the reader tells."""
    raw = replace(default_reader.identity, chat_template=False, template="")
    with pytest.raises(InputError, match="trained with reader"):
        Detector.load(reader=replace(default_reader, identity=raw))


def test_a_base_model_without_a_chat_template_reads_the_raw_prompt(
    reader_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(reader_folder, tmp_path / "base")
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    detector = Detector.load(reader=folder, device="cpu")
    assert not detector.reader.identity.chat_template
    verdict = detector.judge("How tall is it?", PASSAGES, "It is 58 metres tall.")
    assert (verdict.contradictions[0].instead, verdict.calibrated) == ("31 metres", False)


@pytest.mark.parametrize("family", ["llama", "phi3", "gemma2", "mixtral"])
def test_a_tiny_random_reader_of_any_family_shows_what_texts_rest_on(family: str, tmp_path: Path) -> None:
    """From a folder, with and without a chat template; windows slide over less than a passage."""
    tokenizer = tiny_tokenizer(None if len(family) % 2 else CHATML)
    shape = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id}
    build(family, torch.float32, **shape).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    detector = Detector.load(reader=tmp_path, device="cpu")
    verdict = detector.judge(QUESTION, PASSAGES, ANSWERS["invented"])
    assert verdict.hallucinated
    assert np.isfinite([sentence.by_passage for sentence in verdict.sentences]).all()
    assert np.isfinite(detector.with_rows(verdict).sentence_rows).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("truncation", value) for value in ("yes", None, True, "Passages")),
        *(("max_memory", value) for value in (-1, 0, True, 2.5, "4GB")),
        *(("prompt_bytes", value) for value in (-1, False, None)),
    ],
)
def test_an_argument_that_is_none_is_named(detector: Detector, name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"field '{name}'"):
        Detector(detector.model, detector.reader, **{name: value})


def test_other_ways_in_check_their_arguments_too(tiny_reader: Reader) -> None:
    example = Example(QUESTION, PASSAGES, RESPONSE)
    with pytest.raises(InputError, match="field 'truncation'"):
        tiny_reader.encode(example, truncation="yes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="field 'max_new_tokens'"):
        tiny_reader.generate(example, max_new_tokens=0)
    with pytest.raises(InputError, match="field 'max_memory'"):
        attribute(tiny_reader, tiny_reader.encode(example), max_memory=-1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, "yes")
            for name in ("segments", "matrix", "own", "keep", "mode", "flow", "layer", "resampled")
        ),
        *(("layer", value) for value in (True, -1)),
        *(("resampled", value) for value in (True, (1,), (0, 4), (2.5, 4))),
        ("prompt", -1),
    ],
)
def test_attribute_names_an_argument_that_is_none(tiny_reader: Reader, name: str, value: Any) -> None:
    encoded = tiny_reader.encode(Example(QUESTION, PASSAGES, RESPONSE))
    with pytest.raises(InputError, match=f"field '{name}'"):
        attribute(tiny_reader, encoded, **{name: value})


def test_what_is_no_reader_example_or_detector_is_named(tiny_reader: Reader) -> None:
    encoded = tiny_reader.encode(Example(QUESTION, PASSAGES, RESPONSE))
    for call, field in (
        (lambda: attribute("reader", encoded), "reader"),  # type: ignore[arg-type]
        (lambda: attribute(tiny_reader, "a"), "encoded"),  # type: ignore[arg-type]
        (lambda: tiny_reader.encode("a"), "example"),  # type: ignore[arg-type]
        (lambda: Detector.load(5), "detector"),  # type: ignore[arg-type]
        (lambda: Detector.load(reader=5), "reader"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=f"field '{field}'"):
            call()


def test_no_evidence_is_computed_without_a_verdict(plain: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes minutes on a long prompt, and none is shown."""
    asked: list[bool] = []
    monkeypatch.setattr(judge, "pull_evidence", lambda *_: asked.append(True) or ({}, {}))
    assert plain.judge(QUESTION, PASSAGES, RESPONSE).hallucinated is not None
    assert asked == [True]
    strange = Unlike("prompt tokens", "longer than any", decides=True)
    monkeypatch.setattr("lrp4rag.classifiers.model.unlike", lambda *_: ((strange,),))
    verdict = plain.judge(QUESTION, PASSAGES, RESPONSE)
    assert verdict.hallucinated is None
    assert verdict.probability is not None
    assert asked == [True]


def test_a_page_escapes_what_calls_itself_markup(plain: Detector) -> None:
    markup = pytest.importorskip("markupsafe").Markup
    live = "<img src=x onerror=alert(1)>"
    example = Example(QUESTION, [markup(f"P {live}")], markup(f"It was 1874. {live}"), id=markup(live))
    verdict = plain.judge(example)
    for page in (verdict.to_html(), verdict._repr_html_()):
        assert live not in page
        assert "&lt;img src=x" in page


def test_a_detector_is_refused_another_reader(detector: Detector, bundled: Detector) -> None:
    with pytest.raises(InputError, match="reader"):
        Detector(bundled.model, detector.reader)
    assert bundled.at("high-precision").card.threshold > bundled.at("high-recall").card.threshold


def test_the_reader_answers_and_is_judged_as_it_writes(plain: Detector) -> None:
    example = Example(QUESTION, PASSAGES, "This is ignored.")
    pieces = []
    answer = plain.answer(example, pieces.append, max_new_tokens=24)
    assert (
        answer.strip() == plain.reader.generate(replace(example, response=None), max_new_tokens=24).response
    )
    assert "".join(piece.text for piece in pieces) == answer
    for piece in (one for one in pieces if one.probability is not None):
        cut = plain.judge(QUESTION, PASSAGES, answer[: piece.end].rstrip())
        assert piece.so_far == pytest.approx(cut.probability, abs=1e-4)


@pytest.mark.parametrize("after", [0, 1])
def test_it_judges_as_before_when_it_was_interrupted(detector: Detector, after: int) -> None:
    given, left = (QUESTION, PASSAGES, RESPONSE), after

    class EndedError(Exception):
        pass

    def check() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise EndedError

    expected = [detector.judge(one, *given[1:]).probability for one in (QUESTION, "How wide is it?")]
    with detector:
        detector.judge(*given)
        with pytest.raises(EndedError), detector.interruptible(check):
            detector.judge("How wide is it?", *given[1:])
        again = [detector.judge(one, *given[1:]).probability for one in (QUESTION, "How wide is it?")]
    assert again == pytest.approx(expected, abs=1e-6)


LONG = [f"The market of hall {k} sells {k + 200} kinds of cheese. Rain fell all day." for k in range(40)]


@pytest.fixture(scope="module")
def short_sighted(plain: Detector) -> Detector:
    """It learned from prompts of at most 300 tokens in seven passages."""
    domain = {"prompt tokens": Range(low=1, high=300), "passages": Range(low=1, high=7.5)}
    card = plain.card.model_copy(update={"domain": domain})
    return Detector(replace(plain.model, card=card), plain.reader)


@pytest.mark.parametrize("place", [0, 17, 40])
def test_of_a_long_prompt_sentences_are_read_and_all_leads_back(short_sighted: Detector, place: int) -> None:
    """The prompt is longer than the reader's window too."""
    passages = [*LONG[:place], *PASSAGES, *LONG[place:]]
    verdict = short_sighted.judge(QUESTION, passages, RESPONSE.replace("31", "35"))
    assert not verdict.abstained
    assert place in verdict.read
    assert len(verdict.read) <= 7
    assert len(verdict.encoded.prompt_ids) <= 300
    assert f"passage {place + 1}:" in verdict.encoded.text
    assert verdict.to_dict()["read"] == [passage + 1 for passage in verdict.read]
    nearest = verdict.sentences[0].nearest
    assert passages[nearest.passage][nearest.start : nearest.end] == PASSAGES[0]
    (contradiction,) = verdict.judgement.assessment.contradictions
    assert contradiction.passage == place
    where = slice(contradiction.passage_start, contradiction.passage_end)
    assert passages[place][where] == contradiction.instead == "31 metres"
    assert verdict.to_html()


def test_a_long_question_is_not_cut(short_sighted: Detector) -> None:
    """It is unlike the training data instead."""
    question = "Rain fell all day. " * 10 + QUESTION
    verdict = short_sighted.judge(question, [*LONG, *PASSAGES], RESPONSE)
    assert question in verdict.encoded.text
    assert verdict.abstained
    assert "prompt tokens" in {one.facet for one in verdict.unlike}


def test_what_no_passage_has_is_missing_in_all_of_them(short_sighted: Detector) -> None:
    verdict = short_sighted.judge(QUESTION, [*LONG, *PASSAGES], "Zebras swim. It is 31 metres tall.")
    assert verdict.sentences[0].nearest is None
    assert verdict.sentences[1].nearest.passage == len(LONG)


def test_a_short_prompt_is_read_whole(plain: Detector, short_sighted: Detector) -> None:
    """As by a detector that knows no longest prompt."""
    verdict, other = (one.judge(QUESTION, PASSAGES, RESPONSE) for one in (short_sighted, plain))
    assert verdict.read is None
    assert verdict.encoded == other.encoded
    assert verdict.probability == other.probability
    assert verdict.to_dict()["read"] is None


def test_responses_to_a_long_prompt_are_judged_as_if_alone(
    short_sighted: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its passages are indexed once."""
    responses = ("It is 31 metres tall.", "Hall 9 sells 209 kinds of cheese.", "Fish is sold nearby.")
    examples = [Example(QUESTION, [*LONG, *PASSAGES], response) for response in responses]
    alone = [short_sighted.judge(one) for one in examples]
    indexed, long = [], judge.LongPrompt
    monkeypatch.setattr(judge, "LongPrompt", lambda *given: indexed.append(1) or long(*given))
    together = short_sighted.judge_many(examples)
    assert len(indexed) == 1
    assert [one.read for one in together] == [one.read for one in alone]
    assert 9 in together[1].read
    probabilities = [[one.probability for one in some] for some in (together, alone)]
    assert probabilities[0] == pytest.approx(probabilities[1], abs=1e-6)


def test_an_excerpt_leaves_room_for_the_response(plain: Detector) -> None:
    """Of a detector that knows no longest prompt, what the window leaves is read."""
    verdict = plain.judge(QUESTION, [*LONG, *PASSAGES], RESPONSE * 2)
    assert len(LONG) in verdict.read
    assert len(verdict.encoded.prompt_ids) + len(verdict.encoded.response_ids) <= plain.reader.window


def test_a_response_that_no_prompt_leaves_room_for_is_refused_before_it_is_compared(
    plain: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "LongPrompt", lambda *_: pytest.fail("its sentences were looked at"))
    with pytest.raises(WindowError, match="exceed the reader's window"):
        plain.judge(QUESTION, PASSAGES, "It is red. " * plain.reader.window)
