"""The comparison on a small store: all systems, all rows and the sample, the page, and going on."""

from __future__ import annotations

import json
import lzma
import re
import zlib
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.cache import Cache
from experiments.pages import write_results
from experiments.records import to_json
from experiments.systems import comparison as module
from experiments.systems import folds
from experiments.systems.baseline import BestClassifier, Measured, Measurement
from experiments.systems.comparison import Cost, Costs, comparison, metrics_table, read_costs, run_systems
from experiments.systems.facts import Facts
from experiments.systems.finetuned import TRAINING
from experiments.systems.folds import DETECTOR, FAST, OF_SAMPLE, sample_of
from experiments.systems.resources import ModelChoice, Resources
from experiments.systems.scores import ENDING, SystemScores, read_scores
from experiments.systems.scoring import PartScores
from experiments.systems.simple import LENGTH
from experiments.tokens.trials import Trial
from lrp4rag.classifiers import ensemble
from lrp4rag.training import token_folds
from lrp4rag.training.controls import one_number
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import ALL
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from tests.experiments.tokens.stored import stored
from tests.training.quick import two_candidates

SOURCES = 30


def coin_flips(rows, _):
    """As good as chance, and silent for every fifth response."""
    noise = [zlib.crc32(one.id.encode()) % 7 for one in rows.examples]
    return one_number([np.nan if k % 5 == 4 else value for k, value in enumerate(noise)], "coin")


def _first_word(rows, _):
    """A long response is suspect, and of each the first word."""
    found = []
    for length in (len(one.response) for one in rows.examples):
        parts = PartScores(np.array([[0, 5], [5, length]]), np.array([1.0, 0.0]))
        found.append(Measurement(np.array([float(length)]), parts))
    return found


def facts_named(title, **others):
    return Facts(title, "", "text", "labels", "none", **others)


def knowing(name):
    """A system that is given the labels."""
    return BestClassifier(facts_named(name), lambda rows, _: one_number(rows.labels, name))


BASELINES = {
    "length": LENGTH,
    "first-word": Measured(facts_named("First word"), _first_word, ("l",), marks=True),
    "coin": BestClassifier(facts_named("Coin", slow=True), coin_flips),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("store"), count=50)


@pytest.fixture(scope="module", autouse=True)
def small():
    with two_candidates(), pytest.MonkeyPatch.context() as patch:
        trials = {DETECTOR: Trial(("relevance", "state")), FAST: Trial(("relevance",))}
        patch.setattr(folds, "TRIALS", trials)
        patch.setattr(ensemble, "EPOCHS", 2)
        patch.setattr(token_folds, "FOLDS", 3)
        yield


def compared(rows, folder, baselines=BASELINES):
    resources = Resources(Cache(folder / "cache"))
    sample = sample_of(rows, SOURCES, ("g1",))
    scores = run_systems(rows, baselines, sample, resources, folder / "out" / "scores")
    return comparison(rows, baselines, sample, scores, resources.choice, 20)


@pytest.fixture(scope="module")
def work(rows, tmp_path_factory):
    """The comparison, and the folder that it was made in."""
    folder = tmp_path_factory.mktemp("work")
    return SimpleNamespace(result=compared(rows, folder), folder=folder)


@pytest.fixture
def result(work):
    return work.result


def test_fast_systems_judge_all_rows_and_all_the_sample(result, rows):
    assert list(result.every) == ["g1", "g2", ALL]
    assert list(result.sample) == ["g1", ALL]
    assert set(result.every["g2"].systems) == {DETECTOR, FAST, "length", "first-word"}
    assert set(result.sample["g1"].systems) == {DETECTOR, FAST, OF_SAMPLE, *BASELINES}
    assert result.sample["g1"].rows == len(sample_of(rows, SOURCES, ("g1",))) == SOURCES
    assert (result.sources, result.sample_sources) == (50, SOURCES)
    # Four of five rows are learned from: of all, and of the sample.
    assert result.learned["length"] == result.learned[DETECTOR] == 80
    assert result.learned["coin"] == result.learned[OF_SAMPLE] == 24


def test_differences_are_ours_less_theirs(result):
    systems = result.every["g1"].systems
    best, length = systems[DETECTOR], systems["length"]
    assert best.metrics["auroc"].value > 0.9
    assert best.behind["auroc"].value == 0
    expected = best.metrics["auroc"].value - length.metrics["auroc"].value
    assert length.behind["auroc"].value == pytest.approx(expected)
    assert length.behind["auroc"].low > 0
    assert length.behind_sample is None  # ours of the sample did not judge these
    systems = result.sample["g1"].systems
    few = systems[OF_SAMPLE].metrics["auroc"].value - systems["coin"].metrics["auroc"].value
    assert systems["coin"].behind_sample["auroc"].value == pytest.approx(few)


def test_parts_and_answers(result, rows):
    systems = result.every[ALL].systems
    assert (systems["length"].line, systems["length"].by_marks) == (None, None)
    everything = systems["first-word"].by_marks  # of each response the first word is marked
    assert everything["recall"].value == 1
    assert everything["precision"].value == pytest.approx(rows.labels.mean())
    assert systems["first-word"].line.tokens["auroc"].value > 0.5
    assert systems[DETECTOR].line.tokens["auroc"].value > 0.9
    assert result.sample["g1"].systems["coin"].answered < 1 == systems["length"].answered


def test_spans_of_a_fixed_threshold_stand_beside_those_of_a_chosen_one(work, rows, written):
    fixed = BASELINES | {"fixed": replace(BASELINES["first-word"], mark_from=0.5)}
    result = compared(rows, work.folder, fixed)
    tuned = result.tuned["fixed"]
    assert (tuned.fixed, set(tuned.spans)) == (0.5, {"g1", "g2", ALL})
    # The words that are wrong are not the first ones, which score 1: a lower threshold is chosen.
    assert tuned.spans[ALL]["f1"].value >= result.every[ALL].systems["fixed"].line.spans["f1"].value
    assert work.result.tuned == {}
    assert "fixed marks tokens from a fixed probability of 0.5" in " ".join(written(result).split())


def test_steps_are_those_of_the_responses_that_weights_learned_from():
    test, fresh = np.arange(20), np.arange(20, 36)
    one = Outcome(np.full((1, 100), 0.5), np.zeros((1, 100), dtype=bool), ("",))
    found = SystemScores(one, None, np.ones(100, dtype=bool), ((test, fresh, np.full(16, 0.5)),))
    assert TRAINING.steps(found.trained_on) == 16  # 64 in batches of 8, twice


def test_one_system_under_two_names_counts_once(result, written):
    def named_twice(parts):
        return {
            where: replace(part, systems=part.systems | {"a-length": part.systems["length"]})
            for where, part in parts.items()
        }

    found = replace(
        result,
        facts=result.facts | {"a-length": result.facts["length"]},
        learned=result.learned | {"a-length": result.learned["length"]},
        every=named_twice(result.every),
        sample=named_twice(result.sample),
        stack=None,
    )
    text = written(found)
    assert "a-length and length are one system under two names" in text
    assert "3 systems stand beside ours, 1 of them slow" in text
    assert "| length (here as a-length) | " in text
    assert "| length | yes" not in text


def test_the_stack_is_there(result):
    stack = result.stack
    assert set(stack.both) == {"g1", "g2", ALL}
    assert set(stack.chosen) <= {"length", "first-word"}  # the coin is slow
    alone = result.every["g1"].systems[DETECTOR].metrics["auroc"].value
    added = stack.adds_to_ours["g1"]["auroc"].value
    assert stack.both["g1"]["auroc"].value - added == pytest.approx(alone, abs=1e-5)
    assert set(stack.each) == {"length", "first-word"}
    assert stack.each["length"]["g1"]["auroc"].value < 0.1


@dataclass(frozen=True)
class Refusing:
    facts: Facts

    def fit(self, *_):
        raise AssertionError("a fold was run again")


@pytest.fixture
def without_ours(monkeypatch):
    """From where it is called on, our detectors, which take most of the time, are not run."""
    return lambda: monkeypatch.setattr(module, "our_scores", lambda *_: {})


def test_folds_that_were_run_are_not_run_again_unless_something_changed(work, rows, without_ours):
    refusing = {name: Refusing(one.facts) for name, one in BASELINES.items()}
    assert to_json(compared(rows, work.folder, refusing)) == to_json(work.result)
    without_ours()
    with pytest.raises(AssertionError, match="run again"):
        compared(rows.select(np.arange(90)), work.folder, refusing)


def test_scores_of_every_system_are_written_and_read_again(work, rows):
    folder = work.folder / "out" / "scores"
    names = {path.name.removesuffix(ENDING) for path in folder.glob(f"*{ENDING}")}
    assert {"length", "first-word", "coin", "lrp4rag"} <= names
    stored = read_scores(folder / f"first-word{ENDING}")
    assert stored.system == "first-word"
    assert stored.ids == tuple(example.id for example in rows.examples)
    assert stored.scores.outcome.probabilities.shape == (1, len(rows))
    assert stored.scores.marking is not None


def test_stored_scores_of_the_same_rows_and_settings_are_read(work, rows, tmp_path, without_ours):
    other = work.folder / "out" / "scores"
    refusing = {name: Refusing(one.facts) for name, one in BASELINES.items()}
    sample = sample_of(rows, SOURCES, ("g1",))
    again = run_systems(
        rows, refusing, sample, Resources(Cache(tmp_path)), tmp_path / "out" / "scores", other
    )
    result = comparison(rows, BASELINES, sample, again, ModelChoice(), 20)
    assert result.every["g1"].systems["length"] == work.result.every["g1"].systems["length"]
    assert len(list((tmp_path / "out" / "scores").glob(f"*{ENDING}"))) == 6
    (tmp_path / "out").rename(tmp_path / "former")
    without_ours()
    for resources, few in (
        (Resources(Cache(tmp_path), ModelChoice(dtype="float32")), rows),
        (Resources(Cache(tmp_path)), rows.select(np.arange(90))),
    ):
        sample, folder = sample_of(few, SOURCES, ("g1",)), tmp_path / "new" / "scores"
        with pytest.raises(AssertionError, match="run again"):
            run_systems(few, refusing, sample, resources, folder, other)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record | {"format": 2},
        lambda record: record | {"ids": record["ids"][1:]},
        lambda record: {name: one for name, one in record.items() if name != "scores"},
        lambda record: record["scores"]["outcome"]["probabilities"][0].__setitem__(0, 2.0) or record,
        lambda record: (record["scores"]["marking"]["marked"].pop() and record) or record,
    ],
)
def test_a_file_of_something_else_is_refused(work, tmp_path, change):
    content = lzma.decompress((work.folder / "out" / "scores" / f"first-word{ENDING}").read_bytes())
    path = tmp_path / f"x{ENDING}"
    path.write_bytes(lzma.compress(json.dumps(change(json.loads(content))).encode()))
    with pytest.raises(InputError, match="not the scores of a system") as caught:
        read_scores(path)
    assert caught.value.path == path
    for damaged in (b"", b"nothing", path.read_bytes()[:-9], lzma.compress(b"[]")):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="not the scores of a system"):
            read_scores(path)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"needs": ("sentences",)}, "needy reads sentences, which the store has not of every row"),
        ({"modules": ("no_such_package",)}, "needy needs no_such_package, which is not installed: pip"),
    ],
)
def test_what_is_missing_is_named_before_anything_runs(work, rows, facts, words):
    needy = BestClassifier(facts_named("Needy", **facts), coin_flips)
    with pytest.raises(InputError, match=words):
        compared(rows, work.folder, {"needy": needy})


@pytest.fixture
def written(tmp_path):
    """Writes the page of a result, and returns its text."""

    def write(result, costs=None):
        files = write_results(
            tmp_path / "out",
            "compare",
            result,
            "python -m experiments compare",
            protocol=ONCE.words,
            resamples=20,
            sample_seed=0,
            reader="r",
            asks_another=False,
            choices=Resources().settings,
            costs=costs,
        )
        assert all(path.is_file() and path.stat().st_size for path in files)
        assert any(path.suffix == ".png" for path in files) == (costs is not None)
        return files[0].read_text()

    return write


def test_the_page_has_its_figures_from_the_record(result, written, tmp_path):
    costs = Costs({name: Cost(0.5, k + 0.5, 10**9) for k, name in enumerate(result.facts)}, "two threads")
    text = written(result, costs)
    record = json.loads((tmp_path / "out" / "results.json").read_text())
    value = record["every"]["g1"]["systems"][DETECTOR]["metrics"]["auroc"]["value"]
    assert f"| **{DETECTOR}** | {value:.3f}" in text
    lines = [line for line in text.split("## How")[0].splitlines() if "GB |" in line]
    glance = {line.split(" | ")[0][2:]: line for line in lines}
    assert list(glance)[-2:] == [f"**{OF_SAMPLE}**", "coin"]  # judged the sample only
    assert f" | {value:.3f} [" in glance[f"**{DETECTOR}**"]
    assert re.search(r"usable reply: coin, \d+\.\d % of the responses", text)  # it asked no questions
    assert "| length | yes, +" in text
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1
        assert not lines or lines[1].startswith("|---")


def test_a_system_that_says_nothing_of_most_responses_gets_no_verdict(result, written):
    part = result.sample["g1"]
    silent = replace(part.systems["coin"], answered=0.2)
    part = replace(part, systems=part.systems | {"coin": silent})
    text = " ".join(written(replace(result, sample=result.sample | {"g1": part})).split())
    assert "| coin | no verdict, 80.0 % unanswered, " in text


def test_the_table_has_every_metric(result):
    table = metrics_table(result)
    one = table[(table.rows == "all") & (table.generator == "g1") & (table.system == "first-word")]
    few = table[(table.generator == "g1") & (table.system == "coin")]
    assert "behind, of the sample: auroc" in set(few.metric)
    assert {"auroc", "ece", "behind: auroc", "token auroc", "span f1", "sentence f1"} <= set(one.metric)
    assert set(table["rows"]) == {"all", "sample"}


def test_costs_are_read(tmp_path):
    path = tmp_path / "costs.json"
    systems = {"a": {"seconds": 1, "forwards": 2, "peak_bytes": 3}}
    path.write_text(json.dumps({"systems": systems, "conditions": "c"}))
    assert read_costs(path) == Costs({"a": Cost(1, 2, 3)}, "c")
