"""What systems share: measurements are cached one by one, and read when they are there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.systems.baseline import Measurement
from experiments.systems.chat import LocalChat, RemoteChat
from experiments.systems.facts import Facts
from experiments.systems.resources import Choices, Resources
from experiments.systems.scoring import PartScores
from lrp4rag.example import Example, Label
from lrp4rag.training.store import key_of
from lrp4rag.util.errors import InputError
from tests.tiny import bridge_example
from tests.util.test_files import leftover

ROWS = [bridge_example(1), bridge_example(2), bridge_example(1, response="Nobody knows."), bridge_example(3)]
EXPECTED = [float(len(row.response)) for row in ROWS]


@dataclass
class Meter:
    """Measures a response's length; `broken` is a source it fails on."""

    broken: str = ""
    factor: float = 1.0
    groups: list[list[Example]] = field(default_factory=list)

    def __call__(self, group):
        if group[0].source == self.broken:
            raise RuntimeError("out of order")
        self.groups.append(group)
        return [self.of(len(example.response)) for example in group]

    def of(self, length):
        suspicion = PartScores(np.array([[0, length]]), np.array([self.factor / 3]))
        return Measurement(np.array([length * self.factor, np.nan]), suspicion, asked=2, unanswered=1)


def lengths(found):
    return [float(one.numbers[0]) for one in found]


def measure(resources, meter, rows=ROWS, **settings):
    return resources.measured("length", settings, rows, Measurement, meter)


@pytest.mark.parametrize("keeps", [True, False])
def test_responses_to_one_source_are_measured_together(tmp_path, keeps):
    meter = Meter()
    assert lengths(measure(Resources(tmp_path if keeps else None), meter)) == EXPECTED
    assert meter.groups == [[ROWS[0], ROWS[2]], [ROWS[1]], [ROWS[3]]]


def test_equal_responses_are_measured_once(tmp_path):
    meter = Meter()
    twin = replace(ROWS[0], id="twin", labels=(Label(0, 2),))
    assert lengths(measure(Resources(tmp_path), meter, [ROWS[0], twin])) == [EXPECTED[0]] * 2
    assert meter.groups == [[ROWS[0]]]


def test_passages_that_differ_in_white_space_are_measured_apart(tmp_path):
    meter = Meter()
    other = replace(ROWS[0], passages=tuple(one.replace(" ", "\n", 1) for one in ROWS[0].passages))
    assert other.content_hash == ROWS[0].content_hash
    measure(Resources(tmp_path), meter, [ROWS[0], replace(other, response="Another one.")])
    assert [len(group) for group in meter.groups] == [1, 1]


def test_what_was_measured_is_cached(tmp_path):
    first = measure(Resources(tmp_path), Meter())
    for resources in (Resources(tmp_path), Resources(tmp_path, Choices(dtype="float32"), seed=3)):
        meter = Meter()
        again = measure(resources, meter, ROWS[::-1])
        assert meter.groups == []
        for one, other in zip(first, again[::-1], strict=True):
            # To the last digit: what is read is what was used at first.
            assert np.array_equal(one.numbers, other.numbers, equal_nan=True)
            assert np.array_equal(one.suspicion.scores, other.suspicion.scores)
            assert np.array_equal(one.suspicion.spans, other.suspicion.spans)
            assert (one.asked, one.unanswered) == (other.asked, other.unanswered) == (2, 1)


def test_after_a_failure_it_goes_on_where_it_was(tmp_path):
    with pytest.raises(RuntimeError, match="out of order"):
        measure(Resources(tmp_path), Meter(broken=ROWS[1].source))
    meter = Meter()
    assert lengths(measure(Resources(tmp_path), meter)) == EXPECTED
    assert meter.groups == [[ROWS[1]], [ROWS[3]]]


def test_other_settings_are_another_folder(tmp_path):
    resources, meter = Resources(tmp_path), Meter()
    measure(resources, meter, ROWS[:1], model="a")
    assert lengths(measure(resources, Meter(factor=2.0), ROWS[:1], model="b")) == [2 * EXPECTED[0]]
    assert lengths(measure(resources, meter, ROWS[:1], model="a")) == EXPECTED[:1]
    assert len(meter.groups) == 1
    settings = [json.loads(file.read_text()) for file in tmp_path.glob("measured/length-*/settings.json")]
    assert sorted(one["model"] for one in settings) == ["a", "b"]


def test_without_a_folder_measurements_last_as_long_as_the_resources():
    resources, meter = Resources(), Meter()
    for given, count in ((resources, 1), (resources, 1), (Resources(), 2)):
        assert lengths(measure(given, meter, ROWS[:1])) == EXPECTED[:1]
        assert len(meter.groups) == count


def test_a_clock_measures_what_a_folder_holds_once(tmp_path):
    """A score asks for numbers, parts and replies, which must not be paid for three times."""
    resources = Resources(tmp_path)
    measure(resources, Meter())
    (folder,) = (tmp_path / "measured").iterdir()
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    meter = Meter()
    for expected in (3, 6):  # of one response, and of the next
        clock = resources.uncached
        for _ in range(3):
            assert lengths(measure(clock, meter)) == EXPECTED
        assert len(meter.groups) == expected
    assert clock.once("model", lambda: 1) == resources.once("model", lambda: 2)  # models are shared
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == before


def test_half_written_files_of_killed_runs_are_removed(tmp_path):
    measure(Resources(tmp_path), Meter(), ROWS[:1])
    (folder,) = (tmp_path / "measured").iterdir()
    (folder / leftover(10**10 - 1)).write_text("{")
    measure(Resources(tmp_path), Meter(), ROWS[:1])
    assert {file.name for file in folder.iterdir()} == {f"{key_of(ROWS[0])}.json", "settings.json"}


def test_the_reader_judges_unless_another_model_is_chosen(reader_folder):
    choices = Choices(str(reader_folder), device="cpu", dtype="float32", chat_template=False)
    resources = Resources(choices=choices)
    assert resources.reader is resources.reader  # loaded once
    assert not resources.reader.identity.chat_template
    assert resources.chat == LocalChat(resources.reader)
    assert Resources(choices=Choices(judge="m", judge_url="u")).chat == RemoteChat("m", "u")
    with pytest.raises(InputError, match="name it with --judge"):
        _ = Resources(choices=Choices(judge_url="u")).chat


def test_of_models_of_several_folds_the_last_is_held():
    resources, loads = Resources(), []

    def load(fold):
        loads.append(fold)
        return fold.upper()

    found = [resources.once("trained", lambda fold=fold: load(fold), of=fold) for fold in "aabba"]
    assert found == list("AABBA")
    assert loads == list("aba")
    of_another_fold = replace(resources, seed=1)  # they share it
    assert of_another_fold.once("trained", lambda: load("x"), of="a") == "A"


def settings(**choices):
    return Resources(choices=Choices(**choices)).settings


@pytest.mark.parametrize(
    ("read", "chosen", "matters"),
    [
        ((), {"judge": "m", "judge_url": "u"}, False),
        ((), {"entailment": "hhem", "device": "cuda"}, False),
        (("judge",), {"entailment": "hhem", "device": "cuda"}, False),
        (("entailment",), {"judge": "m", "judge_url": "u"}, False),
        ((), {"chat_template": True}, False),
        (("judge",), {"judge": "m", "judge_url": "u"}, True),
        (("entailment",), {"entailment": "hhem"}, True),
        ((), {"reader": "r"}, True),
        ((), {"chat_template": False}, True),
    ],
)
def test_settings_of_a_system_are_those_it_depends_on(read, chosen, matters):
    facts = Facts("", "", "text", "", "", choices=read)
    found = Resources(choices=Choices(**chosen)).settings_of(facts)
    assert (found != Resources().settings_of(facts)) == matters


def test_of_a_folder_its_weights_count_and_its_place_is_not_shown(tmp_path):
    folders = [tmp_path / place / "model" for place in ("one", "two")]
    for k, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(bytes([k]))
    (tmp_path / "model.gguf").write_bytes(b"weights")
    shown = [settings(reader=str(place))["reader"] for place in (*folders, tmp_path / "model.gguf")]
    assert len(set(shown)) == 3
    assert not any(str(tmp_path) in one for one in shown)


def test_an_endpoint_is_named_by_the_address_that_is_asked(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    plain = Resources(choices=Choices(judge="m"))
    assert plain.settings["judge_url"] == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere/v1")
    assert plain.settings["judge_url"] == plain.chat.url == "http://elsewhere/v1"


def beside(reader=None, stored="smollm2-135m", template=False, **chosen):
    read = SimpleNamespace(reader={"name": stored, "chat_template": template})
    return Choices.beside(SimpleNamespace(folder=Path("store"), configuration=read), reader, **chosen)


def test_the_stores_reader_and_its_prompt_are_taken_unless_another_is_named():
    assert beside(template=True, judge="m") == Choices(judge="m", chat_template=True)
    assert beside() == Choices(chat_template=False)
    assert beside("hub/other") == Choices("hub/other")
    assert beside("hub/other", stored="other") == Choices("hub/other", chat_template=False)
    assert beside(chat_template=True).chat_template
    with pytest.raises(InputError, match=r"store: the store was read by other: name its folder or hub id"):
        beside(stored="other")


def test_facts_name_the_weights_that_were_chosen():
    own = Facts("A", "", "text", "annotated spans", "small ones", choices=("entailment", "judge"))
    assert Choices(token_classifier="t").facts_of(own) == own
    found = Choices(entailment="hub/nli").facts_of(own)
    assert found.weights == "hub/nli (by default: small ones)"
    assert found.training == "annotated spans, where trained here"
    assert Choices(judge="m").facts_of(own).training == "annotated spans"
