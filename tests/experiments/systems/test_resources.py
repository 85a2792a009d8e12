"""What systems share: measurements are cached one by one, and read when they are there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.cache import Cache
from experiments.systems.baseline import Measurement
from experiments.systems.chat import LocalChat
from experiments.systems.resources import ModelChoice, Resources
from experiments.systems.scoring import PartScores
from lrp4rag.example import Example, Label
from lrp4rag.util.errors import InputError
from tests.tiny import bridge_example

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
    assert lengths(measure(Resources(Cache(tmp_path if keeps else None)), meter)) == EXPECTED
    assert meter.groups == [[ROWS[0], ROWS[2]], [ROWS[1]], [ROWS[3]]]


def test_equal_responses_are_measured_once(tmp_path):
    meter = Meter()
    twin = replace(ROWS[0], id="twin", labels=(Label(0, 2),))
    assert lengths(measure(Resources(Cache(tmp_path)), meter, [ROWS[0], twin])) == [EXPECTED[0]] * 2
    assert meter.groups == [[ROWS[0]]]


def test_passages_that_differ_in_white_space_are_measured_apart(tmp_path):
    meter = Meter()
    other = replace(ROWS[0], passages=tuple(one.replace(" ", "\n", 1) for one in ROWS[0].passages))
    assert other.content_hash == ROWS[0].content_hash
    measure(Resources(Cache(tmp_path)), meter, [ROWS[0], replace(other, response="Another one.")])
    assert [len(group) for group in meter.groups] == [1, 1]


def test_what_was_measured_is_cached(tmp_path):
    first = measure(Resources(Cache(tmp_path)), Meter())
    for resources in (Resources(Cache(tmp_path)), Resources(Cache(tmp_path), seed=3)):
        meter = Meter()
        again = measure(resources, meter)
        assert meter.groups == []
        for one, other in zip(first, again, strict=True):
            assert np.array_equal(one.numbers, other.numbers, equal_nan=True)
            assert np.array_equal(one.suspicion.scores, other.suspicion.scores)
            assert (one.asked, one.unanswered) == (other.asked, other.unanswered) == (2, 1)
    meter = Meter(factor=2.0)
    found = measure(Resources(Cache(tmp_path)), meter, ROWS[:1], model="b")
    assert lengths(found) == [2 * EXPECTED[0]]


def test_after_a_failure_it_goes_on_where_it_was(tmp_path):
    with pytest.raises(RuntimeError, match="out of order"):
        measure(Resources(Cache(tmp_path)), Meter(broken=ROWS[1].source))
    meter = Meter()
    assert lengths(measure(Resources(Cache(tmp_path)), meter)) == EXPECTED
    assert meter.groups == [[ROWS[1]], [ROWS[3]]]


def test_a_damaged_measurement_is_measured_again(tmp_path):
    measure(Resources(Cache(tmp_path)), Meter())
    for path in tmp_path.glob("*.json"):
        path.write_bytes(b"damaged")
    meter = Meter()
    assert lengths(measure(Resources(Cache(tmp_path)), meter)) == EXPECTED
    assert len(meter.groups) == 3


def test_a_clock_measures_anew(tmp_path):
    resources = Resources(Cache(tmp_path))
    measure(resources, Meter())
    meter = Meter()
    assert lengths(measure(resources.uncached, meter)) == EXPECTED
    assert len(meter.groups) == 3
    assert resources.uncached.once("model", lambda: 1) == resources.once("model", lambda: 2)  # shared


def test_the_reader_judges(reader_folder):
    choice = ModelChoice(str(reader_folder), device="cpu", dtype="float32", chat_template=False)
    resources = Resources(choice=choice)
    assert resources.reader is resources.reader  # loaded once
    assert not resources.reader.identity.chat_template
    assert resources.chat == LocalChat(resources.reader)


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


def test_settings_are_what_results_depend_on():
    usual = Resources().settings
    assert Resources(choice=ModelChoice(device="cuda", chat_template=True)).settings == usual
    for changed in (ModelChoice("r"), ModelChoice(dtype="float32"), ModelChoice(chat_template=False)):
        assert Resources(choice=changed).settings != usual


def beside(reader=None, stored="smollm2-135m", template=False, **options):
    read = SimpleNamespace(reader={"name": stored, "chat_template": template})
    return ModelChoice.beside(SimpleNamespace(folder=Path("store"), configuration=read), reader, **options)


def test_the_stores_reader_and_its_prompt_are_taken_unless_another_is_named():
    assert beside(template=True, device="cpu") == ModelChoice(device="cpu", chat_template=True)
    assert beside() == ModelChoice(chat_template=False)
    assert beside("hub/other") == ModelChoice("hub/other")
    assert beside("hub/other", stored="other") == ModelChoice("hub/other", chat_template=False)
    assert beside(chat_template=True).chat_template
    with pytest.raises(InputError, match=r"store: the store was read by other: name its folder or hub id"):
        beside(stored="other")
