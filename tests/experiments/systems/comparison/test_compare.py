"""The comparison on a small store: all systems, all rows and the sample, the page, and going on."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.classifiers import ensemble
from lrp4rag.classifiers.card import Interval
from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.baseline import BestClassifier, Measured, Measurement
from lrp4rag.experiments.systems.comparison import compare, ours, page
from lrp4rag.experiments.systems.comparison.compare import (
    Comparison,
    Cost,
    Costs,
    Plan,
    comparison,
    read_costs,
    run_systems,
)
from lrp4rag.experiments.systems.comparison.folds import FoldRunner, sample_of
from lrp4rag.experiments.systems.comparison.page import metrics_table, write_page
from lrp4rag.experiments.systems.facts import Facts
from lrp4rag.experiments.systems.resources import Choices, Resources
from lrp4rag.experiments.systems.scoring import PartScores
from lrp4rag.experiments.systems.simple import LENGTH
from lrp4rag.features.parts import STATES
from lrp4rag.report.numbers import difference
from lrp4rag.training.cache import Cache
from lrp4rag.training.candidates import one_number
from lrp4rag.training.localisation import ALL
from lrp4rag.training.records import to_json
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import tokens_of
from lrp4rag.training.trials import Trial
from tests.training.test_localisation import stored

SOURCES = 30
VERSIONS = {"length": {"torch": "1"}}


def coin_flips(rows: Rows, resources: object) -> tuple:
    """As good as chance, and silent for every fifth response."""
    noise = [zlib.crc32(one.id.encode()) % 7 for one in rows.examples]
    values = [np.nan if k % 5 == 4 else value for k, value in enumerate(noise)]
    return one_number(values, "coin")


def _first_word(rows: Rows, resources: object) -> list[Measurement]:
    """A long response is suspect, and of each the first word."""
    return [
        Measurement(
            np.array([float(len(one.response))]),
            PartScores(np.array([[0, 5], [5, len(one.response)]]), np.array([1.0, 0.0])),
        )
        for one in rows.examples
    ]


FIRST_WORD = Facts("First word", "", "text", "labels", "none")
BASELINES = {
    "length": LENGTH,
    "first-word": Measured(FIRST_WORD, _first_word, ("l",), marks=True),
    "coin": BestClassifier(Facts("Coin", "a paper", "text", "labels", "none", slow=True), coin_flips),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return stored(tmp_path_factory.mktemp("store"), count=50)


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ours, "FULL_BLOCKS", ("relevance", "state"))
        patch.setattr(ours, "FAST_BLOCKS", ("relevance",))
        trials = {ours.DETECTOR: Trial(("relevance", "state")), ours.FAST: Trial(("relevance",))}
        patch.setattr(ours, "TRIALS", trials)
        patch.setattr(ensemble, "EPOCHS", 2)
        yield patch


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(BASELINES, SOURCES, ("g1",), Choices(), jobs=1, resamples=20)


@pytest.fixture(scope="module")
def found(rows: Rows, small: object, plan: Plan, tmp_path_factory) -> tuple[Comparison, Path]:
    folder = tmp_path_factory.mktemp("work")
    return compared(rows, folder, plan, "scores"), folder


def compared(rows: Rows, folder: Path, plan: Plan, scores: str) -> Comparison:
    found = run_systems(rows, folder / "baselines", folder / "study", folder / scores, plan)
    return comparison(rows, {name: one.scores for name, one in found.items()}, plan)


def test_fast_systems_judge_all_rows_and_all_the_sample(found, rows: Rows, plan: Plan) -> None:
    result, _ = found
    assert list(result.every) == ["g1", "g2", ALL]
    assert list(result.sample) == ["g1", ALL]
    assert set(result.every["g2"].systems) == {ours.DETECTOR, ours.FAST, "length", "first-word"}
    assert set(result.sample["g1"].systems) == {ours.DETECTOR, ours.FAST, ours.OF_SAMPLE, *BASELINES}
    assert result.sample["g1"].rows == len(sample_of(rows, SOURCES, ("g1",))) == SOURCES
    assert result.sources == 50
    assert result.sample_sources == SOURCES
    # Four of five rows are learned from: of all, and of the sample.
    assert result.learned["length"] == result.learned[ours.DETECTOR] == 80
    assert result.learned["coin"] == result.learned[ours.OF_SAMPLE] == 24


def test_differences_are_ours_less_theirs(found) -> None:
    result, _ = found
    systems = result.every["g1"].systems
    assert systems[ours.DETECTOR].metrics["auroc"].value > 0.9
    assert systems[ours.DETECTOR].behind["auroc"].value == 0
    ahead = systems["length"].behind["auroc"]
    expected = systems[ours.DETECTOR].metrics["auroc"].value - systems["length"].metrics["auroc"].value
    assert ahead.value == pytest.approx(expected)
    assert ahead.low > 0
    assert systems["length"].behind_sample is None  # it did not judge these
    coin = result.sample["g1"].systems["coin"]
    few = result.sample["g1"].systems[ours.OF_SAMPLE].metrics["auroc"].value
    assert coin.behind_sample["auroc"].value == pytest.approx(few - coin.metrics["auroc"].value)


def test_parts_and_answers(found, rows: Rows) -> None:
    result, _ = found
    systems = result.every[ALL].systems
    assert systems["length"].line is None
    assert systems["length"].by_marks is None
    everything = systems["first-word"].by_marks  # of each response the first word is marked
    assert everything["recall"].value == 1
    assert everything["precision"].value == pytest.approx(rows.labels.mean())
    assert systems["first-word"].line.tokens["auroc"].value > 0.5
    assert systems[ours.DETECTOR].line.tokens["auroc"].value > 0.9
    assert result.sample["g1"].systems["coin"].answered < 1
    assert systems["length"].answered == 1


def test_the_stack_is_there(found, rows: Rows, plan: Plan) -> None:
    result, folder = found
    assert set(result.stack.both) == {"g1", "g2", ALL}
    assert set(result.stack.chosen) <= {"length", "first-word"}  # the coin is slow
    both, added = result.stack.both["g1"]["auroc"], result.stack.adds_to_ours["g1"]["auroc"]
    alone = result.every["g1"].systems[ours.DETECTOR].metrics["auroc"]
    assert both.value - added.value == pytest.approx(alone.value)
    assert set(result.stack.each) == {"length", "first-word"}
    assert result.stack.each["length"]["g1"]["auroc"].value < 0.1
    bare = compared(rows, folder, replace(plan, stack=False), "scores")
    assert bare.stack is None


@pytest.mark.parametrize("scores", ["scores", "none"])
def test_what_was_run_is_not_run_again(found, rows: Rows, plan: Plan, scores: str) -> None:
    """Neither where the scores are there, nor where the folds are."""
    result, folder = found

    @dataclass(frozen=True)
    class Refusing:
        facts: Facts

        def fit(self, *_: object) -> None:
            raise AssertionError("a fold was run again")

    baselines = {name: Refusing(one.facts) for name, one in BASELINES.items()}
    again = compared(rows, folder, replace(plan, baselines=baselines), scores)
    assert to_json(again) == to_json(result)


def test_what_is_to_be_run_anew_is(found, rows: Rows, plan: Plan, tmp_path: Path) -> None:
    result, folder = found
    shutil.copytree(folder, tmp_path / "work")
    other = BestClassifier(
        BASELINES["length"].facts, lambda rows, resources: one_number(rows.labels, "other")
    )
    changed = replace(plan, baselines=BASELINES | {"length": other})
    kept = compared(rows, tmp_path / "work", changed, "scores")
    assert kept.every["g1"].systems["length"] == result.every["g1"].systems["length"]
    for anew in (frozenset({"length"}), frozenset()):  # once is enough
        again = compared(rows, tmp_path / "work", replace(changed, anew=anew), "scores")
        assert again.every["g1"].systems["length"].metrics["auroc"].value == 1
        assert to_json(again.every["g1"].systems["first-word"]) == to_json(
            kept.every["g1"].systems["first-word"]
        )


def test_scores_depend_on_what_may_change_them(rows: Rows, small: object, tmp_path: Path) -> None:
    """Keys differ where scores may, of systems that judge all rows and of those that judge a sample."""

    def keys(rows: Rows = rows, sources: int = SOURCES, **choices: str) -> dict[str, object]:
        sample = sample_of(rows, sources, ("g1",))
        resources = Resources(tmp_path, Choices(**choices))
        cache = Cache.open(tmp_path / "folds")
        bench = FoldRunner(rows, tokens_of(rows, {}), sample, resources, cache, compare.PROTOCOL)
        systems = ours.our_systems(rows, sample, tmp_path, 1)
        systems |= {name: bench.system(name, one) for name, one in BASELINES.items()}
        return {name: one.key for name, one in systems.items()}

    def changed(**others: object) -> set[str]:
        return {name for name, key in keys(**others).items() if key != usual[name]}

    usual = keys()
    everything = set(usual)
    relabelled = tuple(replace(one, labels=()) for one in rows.examples)
    assert changed() == set()
    assert changed(rows=rows.select(np.arange(99))) == everything
    assert changed(rows=Rows(rows.store, rows.examples[::-1])) == everything
    assert changed(rows=Rows(rows.store, relabelled)) == everything
    # Rows of another generator leave the sample as it is, and shift the places of its rows.
    more = rows.select(np.flatnonzero(rows.generators == "g1"))
    assert changed(rows=more) == everything
    assert changed(sources=20) == {ours.OF_SAMPLE, "coin"}
    assert changed(reader="another") == set(BASELINES)
    assert changed(device="cuda") == changed(judge="m") == changed(entailment="hhem") == set()


def test_with_scores_neither_folds_nor_parts_of_the_store_are_needed(
    found, rows: Rows, plan: Plan, tmp_path: Path
) -> None:
    """As for somebody who sets a system of their own beside those of a page."""
    result, folder = found
    shutil.copytree(folder / "scores", tmp_path / "scores")
    shutil.copytree(rows.store.folder, tmp_path / "store", ignore=shutil.ignore_patterns("states", "signals"))
    own = BestClassifier(
        Facts("Own", "", "text", "labels", "none"), lambda rows, resources: one_number(rows.labels, "own")
    )
    few = Rows.open(tmp_path / "store")
    assert not few.has(STATES)
    beside = compared(few, tmp_path, replace(plan, baselines=BASELINES | {"own": own}), "scores")
    assert beside.every["g1"].systems["own"].metrics["auroc"].value == 1
    for name, one in result.every["g1"].systems.items():
        assert to_json(beside.every["g1"].systems[name]) == to_json(one)
    assert (tmp_path / "scores" / "own.json.xz").is_file()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"needs": ("sentences",)}, "needy reads sentences, which the store has not of every row"),
        (
            {"modules": ("no_such_package",)},
            "needy needs no_such_package, which is not installed: pip install",
        ),
    ],
)
def test_what_is_missing_is_named_before_anything_runs(
    rows: Rows, found, plan: Plan, facts: dict[str, object], words: str
) -> None:
    needy = BestClassifier(Facts("Needy", "", "text", "labels", "none", **facts), coin_flips)
    with pytest.raises(InputError, match=words):
        compared(rows, found[1], replace(plan, baselines={"needy": needy}), "scores")


def test_the_page_has_its_figures_from_the_record(found, rows: Rows, plan: Plan, tmp_path: Path) -> None:
    result, _ = found
    costs = Costs({name: Cost(0.5, k + 0.5, 10**9) for k, name in enumerate(result.facts)}, "two threads")
    files = write_page(result, rows, tmp_path / "out", "lrp4rag experiments compare", plan, costs, VERSIONS)
    page = (tmp_path / "out" / "README.md").read_text()
    record = json.loads((tmp_path / "out" / "results.json").read_text())
    value = record["every"]["g1"]["systems"][ours.DETECTOR]["metrics"]["auroc"]["value"]
    assert f"| **{ours.DETECTOR}** | {value:.3f}" in page
    glance = {
        line.split(" | ")[0][2:]: line for line in page.split("## How")[0].splitlines() if "GB |" in line
    }
    assert list(glance)[-2:] == [f"**{ours.OF_SAMPLE}**", "coin"]  # judged the sample only
    assert f" | {value:.3f} [" in glance[f"**{ours.DETECTOR}**"]
    assert glance["coin"].startswith("| coin | text | labels |  | 0.")
    assert " | 0.50 | 5.5 | 1.00 GB |" in glance["coin"]
    few = costs.systems[ours.DETECTOR]
    assert f" | {few.seconds:.2f} | {few.forwards:.1f} | " in glance[f"**{ours.OF_SAMPLE}**"]  # as it judges
    assert record["scores"] == VERSIONS
    assert re.search(r"usable reply: coin, \d+\.\d % of the responses", page)  # it asked no questions
    assert "![AUROC against plain forwards of the reader](cost.png)" in page
    assert "Published figures" in page
    assert "| length | yes, +" in page
    assert all(path.is_file() and path.stat().st_size for path in files)
    assert tmp_path / "out" / "cost.png" in files
    for block in page.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1
        assert not lines or lines[1].startswith("|---")
    bare = write_page(result, rows, tmp_path / "bare", "lrp4rag experiments compare", plan, None, VERSIONS)
    assert "peak memory" not in (tmp_path / "bare" / "README.md").read_text()
    assert not any(path.suffix == ".png" for path in bare)


def test_the_page_says_what_is_not_beaten_and_by_how_much(
    found, rows: Rows, plan: Plan, tmp_path, monkeypatch
) -> None:
    result, _ = found
    beaten = page._beaten
    monkeypatch.setattr(
        page, "_beaten", lambda found, name, where: name != "length" and beaten(found, name, where)
    )
    write_page(result, rows, tmp_path, "lrp4rag experiments compare", plan, None, VERSIONS)
    text = (tmp_path / "README.md").read_text()
    (line,) = [one for one in text.splitlines() if one.startswith("* **length** on g1: +")]
    behind = result.every[ALL].systems["length"].behind["auroc"]
    assert (
        f"and {difference(behind)} on all {len(rows)} responses that it judged: one generator's are" in line
    )
    assert f"it adds {difference(result.stack.each['length']['g1']['auroc'])}: it " in line
    assert "| length | no, +" in text


def test_the_page_says_what_ours_of_as_few_responses_is_not_ahead_of(
    found, rows: Rows, plan: Plan, tmp_path: Path
) -> None:
    result, _ = found
    systems = result.sample["g1"].systems

    def page_text(low: float) -> str:
        behind = {"auroc": Interval(value=0.2, low=low, high=0.4)}
        coin = replace(systems["coin"], behind_sample=behind)
        part = replace(result.sample["g1"], systems=systems | {"coin": coin})
        changed = replace(result, sample=result.sample | {"g1": part})
        write_page(changed, rows, tmp_path, "lrp4rag experiments compare", plan, None, VERSIONS)
        return " ".join((tmp_path / "README.md").read_text().split())

    behind = page_text(-0.1)
    assert "learned from as few is not shown to be ahead of coin on g1 (+0.200 [-0.100, +0.400])." in behind
    assert "learned from as few is ahead of each of them on g1, by intervals" in page_text(0.1)


def test_without_slow_systems_the_page_claims_nothing_of_them(
    found, rows: Rows, plan: Plan, tmp_path: Path
) -> None:
    result, _ = found
    fast = {name: one for name, one in result.facts.items() if name != "coin"}
    parts = {
        where: replace(part, systems={name: part.systems[name] for name in fast})
        for where, part in result.sample.items()
    }
    few = replace(result, facts=fast, sample=parts)
    write_page(few, rows, tmp_path, "lrp4rag experiments compare", plan, None, VERSIONS)
    assert "Ours that learned from as few" not in (tmp_path / "README.md").read_text()


def test_costs_of_other_systems_are_refused(found, rows: Rows, plan: Plan, tmp_path: Path) -> None:
    costs = Costs({"another": Cost(1, 1, 1)}, "")
    with pytest.raises(InputError, match="the costs are of none of these systems"):
        write_page(found[0], rows, tmp_path / "out", "lrp4rag experiments compare", plan, costs, VERSIONS)


def test_the_table_has_every_metric(found) -> None:
    table = metrics_table(found[0])
    one = table[(table.rows == "all") & (table.generator == "g1") & (table.system == "first-word")]
    few = table[(table.generator == "g1") & (table.system == "coin")]
    assert "behind, of the sample: auroc" in set(few.metric)
    assert {"auroc", "ece", "behind: auroc", "token auroc", "span f1", "sentence f1"} <= set(one.metric)
    kinds = table["rows"]
    assert set(kinds) == {"all", "sample"}


def test_costs_are_read_and_others_refused(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(
        json.dumps({"systems": {"a": {"seconds": 1, "forwards": 2, "peak_bytes": 3}}, "conditions": "c"})
    )
    assert read_costs(path) == Costs({"a": Cost(1, 2, 3)}, "c")
    for content in ("[]", "{}", "no", '{"systems": {"a": {}}, "conditions": ""}'):
        path.write_text(content)
        with pytest.raises(InputError, match=r"not what python -m benchmarks\.systems wrote"):
            read_costs(path)


def test_the_protocol_is_grouped() -> None:
    assert compare.PROTOCOL.grouped
    assert compare.PROTOCOL.leaks == "refused"
