"""The comparison on a small store: all systems, all rows and the sample, the page, and going on."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.cache import Cache
from experiments.records import to_json
from experiments.systems.baseline import BestClassifier, Measured, Measurement
from experiments.systems.comparison import compare, ours, page
from experiments.systems.comparison.compare import (
    Cost,
    Costs,
    Plan,
    comparison,
    read_costs,
    run_systems,
)
from experiments.systems.comparison.folds import FoldRunner, sample_of
from experiments.systems.comparison.page import metrics_table, write_page
from experiments.systems.comparison.scores import SystemScores
from experiments.systems.facts import Facts
from experiments.systems.finetuned import TRAINING
from experiments.systems.resources import Choices, Resources
from experiments.systems.scoring import PartScores
from experiments.systems.simple import LENGTH
from experiments.tokens.candidates import one_number
from experiments.tokens.extraction import STATES
from experiments.tokens.trials import Trial
from lrp4rag.classifiers import ensemble
from lrp4rag.classifiers.card import Interval
from lrp4rag.report.numbers import difference
from lrp4rag.training.localisation import ALL
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import tokens_of
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from tests.experiments.tokens.stored import stored

SOURCES = 30
VERSIONS = {"length": {"torch": "1"}}


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
    with pytest.MonkeyPatch.context() as patch:
        trials = {ours.DETECTOR: Trial(("relevance", "state")), ours.FAST: Trial(("relevance",))}
        patch.setattr(ours, "TRIALS", trials)
        patch.setattr(ensemble, "EPOCHS", 2)
        yield


PLAN = Plan(BASELINES, SOURCES, ("g1",), Choices(), jobs=1, resamples=20)


def compared(rows, folder, plan, scores="scores"):
    found = run_systems(rows, folder / "baselines", folder / "study", folder / scores, plan)
    return comparison(rows, {name: one.scores for name, one in found.items()}, plan)


@pytest.fixture(scope="module")
def work(rows, tmp_path_factory):
    """The comparison, and the folder that it was made in."""
    folder = tmp_path_factory.mktemp("work")
    return SimpleNamespace(result=compared(rows, folder, PLAN), folder=folder)


@pytest.fixture
def result(work):
    return work.result


def test_fast_systems_judge_all_rows_and_all_the_sample(result, rows):
    assert list(result.every) == ["g1", "g2", ALL]
    assert list(result.sample) == ["g1", ALL]
    assert set(result.every["g2"].systems) == {ours.DETECTOR, ours.FAST, "length", "first-word"}
    assert set(result.sample["g1"].systems) == {ours.DETECTOR, ours.FAST, ours.OF_SAMPLE, *BASELINES}
    assert result.sample["g1"].rows == len(sample_of(rows, SOURCES, ("g1",))) == SOURCES
    assert (result.sources, result.sample_sources) == (50, SOURCES)
    # Four of five rows are learned from: of all, and of the sample.
    assert result.learned["length"] == result.learned[ours.DETECTOR] == 80
    assert result.learned["coin"] == result.learned[ours.OF_SAMPLE] == 24


def test_differences_are_ours_less_theirs(result):
    systems = result.every["g1"].systems
    best, length = systems[ours.DETECTOR], systems["length"]
    assert best.metrics["auroc"].value > 0.9
    assert best.behind["auroc"].value == 0
    expected = best.metrics["auroc"].value - length.metrics["auroc"].value
    assert length.behind["auroc"].value == pytest.approx(expected)
    assert length.behind["auroc"].low > 0
    assert length.behind_sample is None  # ours of the sample did not judge these
    systems = result.sample["g1"].systems
    few = systems[ours.OF_SAMPLE].metrics["auroc"].value - systems["coin"].metrics["auroc"].value
    assert systems["coin"].behind_sample["auroc"].value == pytest.approx(few)


def test_parts_and_answers(result, rows):
    systems = result.every[ALL].systems
    assert (systems["length"].line, systems["length"].by_marks) == (None, None)
    everything = systems["first-word"].by_marks  # of each response the first word is marked
    assert everything["recall"].value == 1
    assert everything["precision"].value == pytest.approx(rows.labels.mean())
    assert systems["first-word"].line.tokens["auroc"].value > 0.5
    assert systems[ours.DETECTOR].line.tokens["auroc"].value > 0.9
    assert result.sample["g1"].systems["coin"].answered < 1 == systems["length"].answered


def test_spans_of_a_fixed_threshold_stand_beside_those_of_a_chosen_one(work, rows, written):
    fixed = BASELINES | {"first-word": replace(BASELINES["first-word"], mark_from=0.5)}
    result = compared(rows, work.folder, replace(PLAN, baselines=fixed, stack=False))
    tuned = result.tuned["first-word"]
    assert (tuned.fixed, set(tuned.spans)) == (0.5, {"g1", "g2", ALL})
    # The words that are wrong are not the first ones, which score 1: a lower threshold is chosen.
    assert tuned.spans[ALL]["f1"].value > result.every[ALL].systems["first-word"].line.spans["f1"].value
    assert work.result.tuned == {}
    text = " ".join(written(result).split())
    assert "first-word marks tokens from a fixed probability of 0.5" in text


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


def test_the_stack_is_there(work, rows):
    result, stack = work.result, work.result.stack
    assert set(stack.both) == {"g1", "g2", ALL}
    assert set(stack.chosen) <= {"length", "first-word"}  # the coin is slow
    alone = result.every["g1"].systems[ours.DETECTOR].metrics["auroc"].value
    added = stack.adds_to_ours["g1"]["auroc"].value
    assert stack.both["g1"]["auroc"].value - added == pytest.approx(alone)
    assert set(stack.each) == {"length", "first-word"}
    assert stack.each["length"]["g1"]["auroc"].value < 0.1
    assert compared(rows, work.folder, replace(PLAN, stack=False)).stack is None


@dataclass(frozen=True)
class Refusing:
    facts: Facts

    def fit(self, *_):
        raise AssertionError("a fold was run again")


@pytest.mark.parametrize("scores", ["scores", "none"])
def test_what_was_run_is_not_run_again(work, rows, scores):
    """Neither where the scores are there, nor where the folds are."""
    baselines = {name: Refusing(one.facts) for name, one in BASELINES.items()}
    again = compared(rows, work.folder, replace(PLAN, baselines=baselines), scores)
    assert to_json(again) == to_json(work.result)


def test_what_is_to_be_run_anew_is(work, rows, tmp_path):
    folder = shutil.copytree(work.folder, tmp_path / "work")
    other = replace(knowing("other"), facts=LENGTH.facts)
    changed = replace(PLAN, baselines=BASELINES | {"length": other})
    known, before = compared(rows, folder, changed).every["g1"].systems, work.result.every["g1"].systems
    assert known["length"] == before["length"]
    for anew in (frozenset({"length"}), frozenset()):  # once is enough
        again = compared(rows, folder, replace(changed, anew=anew)).every["g1"].systems
        assert again["length"].metrics["auroc"].value == 1
        assert to_json(again["first-word"]) == to_json(before["first-word"])


def test_scores_depend_on_what_may_change_them(rows, tmp_path):
    """Keys differ where scores may, of systems that judge all rows and of those that judge a sample."""

    def keys(rows=rows, sources=SOURCES, **choices):
        sample = sample_of(rows, sources, ("g1",))
        resources, cache = Resources(tmp_path, Choices(**choices)), Cache.open(tmp_path / "folds")
        runner = FoldRunner(rows, tokens_of(rows, {}), sample, resources, cache, compare.PROTOCOL)
        systems = ours.our_systems(rows, sample, tmp_path, 1)
        systems |= {name: runner.system(name, one) for name, one in BASELINES.items()}
        return {name: one.key for name, one in systems.items()}

    def changed(**others):
        return {name for name, key in keys(**others).items() if key != usual[name]}

    usual = keys()
    relabelled = tuple(replace(one, labels=()) for one in rows.examples)
    # Rows of another generator leave the sample as it is, and shift the places of its rows.
    one_generator = rows.select(np.flatnonzero(rows.generators == "g1"))
    reversed_rows, other_labels = (Rows(rows.store, own) for own in (rows.examples[::-1], relabelled))
    for other in (rows.select(np.arange(99)), reversed_rows, other_labels, one_generator):
        assert changed(rows=other) == set(usual)
    assert changed(sources=20) == {ours.OF_SAMPLE, "coin"}
    assert changed(reader="another") == set(BASELINES)
    for nothing in ({}, {"device": "cuda"}, {"judge": "m"}, {"entailment": "hhem"}):
        assert changed(**nothing) == set()


def test_with_scores_neither_folds_nor_parts_of_the_store_are_needed(work, rows, tmp_path):
    """As for somebody who sets a system of their own beside those of a page."""
    shutil.copytree(work.folder / "scores", tmp_path / "scores")
    shutil.copytree(rows.store.folder, tmp_path / "store", ignore=shutil.ignore_patterns("states", "signals"))
    few = Rows.open(tmp_path / "store")
    assert not few.has(STATES)
    plan = replace(PLAN, baselines=BASELINES | {"own": knowing("own")})
    beside = compared(few, tmp_path, plan).every["g1"].systems
    assert beside["own"].metrics["auroc"].value == 1
    for name, one in work.result.every["g1"].systems.items():
        assert to_json(beside[name]) == to_json(one)
    assert (tmp_path / "scores" / "own.json.xz").is_file()


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
        compared(rows, work.folder, replace(PLAN, baselines={"needy": needy}))


@pytest.fixture
def written(rows, tmp_path):
    """Writes the page of a result, and returns its text."""

    def write(result, costs=None):
        files = write_page(result, rows, tmp_path, "python -m experiments compare", PLAN, costs, VERSIONS)
        assert all(path.is_file() and path.stat().st_size for path in files)
        assert any(path.suffix == ".png" for path in files) == (costs is not None)
        return (tmp_path / "README.md").read_text()

    return write


def test_the_page_has_its_figures_from_the_record(result, written, tmp_path):
    costs = Costs({name: Cost(0.5, k + 0.5, 10**9) for k, name in enumerate(result.facts)}, "two threads")
    text = written(result, costs)
    record = json.loads((tmp_path / "results.json").read_text())
    value = record["every"]["g1"]["systems"][ours.DETECTOR]["metrics"]["auroc"]["value"]
    assert f"| **{ours.DETECTOR}** | {value:.3f}" in text
    lines = [line for line in text.split("## How")[0].splitlines() if "GB |" in line]
    glance = {line.split(" | ")[0][2:]: line for line in lines}
    assert list(glance)[-2:] == [f"**{ours.OF_SAMPLE}**", "coin"]  # judged the sample only
    assert f" | {value:.3f} [" in glance[f"**{ours.DETECTOR}**"]
    assert glance["coin"].startswith("| coin | text | labels |  | 0.")
    assert " | 0.50 | 5.5 | 1.00 GB |" in glance["coin"]
    few = costs.systems[ours.DETECTOR]
    assert f" | {few.seconds:.2f} | {few.forwards:.1f} | " in glance[f"**{ours.OF_SAMPLE}**"]  # as it judges
    assert record["scores"] == VERSIONS
    assert re.search(r"usable reply: coin, \d+\.\d % of the responses", text)  # it asked no questions
    for words in ("![AUROC against plain forwards of the reader](cost.png)", "Published figures"):
        assert words in text
    assert "| length | yes, +" in text
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1
        assert not lines or lines[1].startswith("|---")


def test_the_page_says_what_is_not_beaten_and_by_how_much(result, rows, written, monkeypatch):
    beaten = page._beaten
    changed = lambda found, name, where: name != "length" and beaten(found, name, where)  # noqa: E731
    monkeypatch.setattr(page, "_beaten", changed)
    text = written(result)
    (line,) = [one for one in text.splitlines() if one.startswith("* **length** on g1: +")]
    behind = difference(result.every[ALL].systems["length"].behind["auroc"])
    assert f"and {behind} on all {len(rows)} responses that it judged: one generator's are" in line
    assert f"it adds {difference(result.stack.each['length']['g1']['auroc'])}: it " in line
    assert "| length | no, +" in text
    assert "peak memory" not in text  # without costs


@pytest.mark.parametrize(
    ("low", "words"),
    [
        (-0.1, "is not shown to be ahead of coin on g1 (+0.200 [-0.100, +0.400])."),
        (0.1, "is ahead of each of them on g1, by intervals"),
    ],
)
def test_the_page_says_what_ours_of_as_few_responses_is_not_ahead_of(result, written, low, words):
    part = result.sample["g1"]
    behind = {"auroc": Interval(value=0.2, low=low, high=0.4)}
    coin = replace(part.systems["coin"], behind_sample=behind)
    part = replace(part, systems=part.systems | {"coin": coin})
    text = written(replace(result, sample=result.sample | {"g1": part}))
    assert f"learned from as few {words}" in " ".join(text.split())


def test_a_system_that_says_nothing_of_most_responses_gets_no_verdict(result, written):
    part = result.sample["g1"]
    silent = replace(part.systems["coin"], answered=0.2)
    part = replace(part, systems=part.systems | {"coin": silent})
    text = " ".join(written(replace(result, sample=result.sample | {"g1": part})).split())
    assert "| coin | no verdict, 80.0 % unanswered, " in text
    assert "Not counted: coin, with no usable reply for more than 50.0 % of the responses" in text


def test_without_slow_systems_the_page_claims_nothing_of_them(result, written):
    fast = {name: one for name, one in result.facts.items() if name != "coin"}
    parts = {
        where: replace(part, systems={name: part.systems[name] for name in fast})
        for where, part in result.sample.items()
    }
    assert "Ours that learned from as few" not in written(replace(result, facts=fast, sample=parts))


def test_costs_of_other_systems_are_refused(result, written):
    with pytest.raises(InputError, match="the costs are of none of these systems"):
        written(result, Costs({"another": Cost(1, 1, 1)}, ""))


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


def test_the_protocol_is_grouped():
    assert compare.PROTOCOL.grouped
    assert compare.PROTOCOL.leaks == "refused"
