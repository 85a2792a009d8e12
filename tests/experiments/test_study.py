"""A study on a small store: every section is there, resumes, and holds out what it says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import study as plan
from experiments.cache import Cache
from experiments.pages import write_results
from experiments.study import study
from experiments.tokens.blocks import blocks_named, parts_of
from experiments.tokens.extraction import records_for
from experiments.tokens.trials import CrossValidation, Trial
from lrp4rag.classifiers import ensemble
from lrp4rag.classifiers.decision import TOPS
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import ALL
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import block_scores, cross_validate_tokens, decide_fold
from lrp4rag.training.tokens import Records, tokens_of, tokens_on_disk
from tests.experiments.tokens.stored import stored
from tests.training.quick import two_candidates


def reading(rows: Rows) -> Records:
    return lambda blocks: records_for(rows, parts_of(blocks))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return stored(tmp_path_factory.mktemp("store"), count=50)


@pytest.fixture(scope="module")
def small(monkeypatch_module: pytest.MonkeyPatch) -> None:
    """Blocks and ways that take seconds; the state separates hallucinated words."""
    monkeypatch_module.setattr(
        plan, "WAYS", {plan.FULL: Trial(("relevance", "state")), plan.FAST: Trial(("relevance",))}
    )
    monkeypatch_module.setattr(plan, "FULL_BLOCKS", ("relevance", "state"))
    monkeypatch_module.setattr(plan, "FAST_BLOCKS", ("relevance",))
    monkeypatch_module.setattr(plan, "SIZES", (24, 32))
    monkeypatch_module.setattr(ensemble, "EPOCHS", 6)
    monkeypatch_module.setattr(ensemble, "BATCHES", 16)


@pytest.fixture(scope="module")
def monkeypatch_module():
    with two_candidates(), pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def found(rows: Rows, small: None, tmp_path_factory: pytest.TempPathFactory):
    cache = Cache(tmp_path_factory.mktemp("cache"))
    return study(rows, cache, resamples=20), cache


def test_every_section_is_there(found) -> None:
    result, _ = found
    assert list(result.ways.lines) == ["g1", "g2", ALL]
    ways = result.ways.responses["g1"]
    assert list(ways)[:2] == [plan.FULL, plan.FAST]
    assert ways[plan.FULL]["auroc"].value > 0.9
    assert {"R_response alone (SVM)", "length only", "six lexical features", "flag everything"} <= set(ways)
    assert result.ways.lines["g1"][plan.FULL].tokens["auroc"].value > 0.9
    assert set(result.learners.lines["all"]) >= {"networks", "logistic regression", "boosted trees"}
    assert result.learners.lines["all"]["boosted trees"].tokens["auroc"].value > 0.7
    assert list(result.curve) == [24, 32, 40]
    assert set(result.transfer.responses["g2"]) >= {"all generators", "another's responses"}
    assert result.reliability["g1"].count.sum() == 50
    assert set(result.poolings["g1"]) == {*(f"highest {top}" for top in TOPS), "all tokens", "noisy-or"}
    assert result.poolings["g1"]["noisy-or"] > 0.8
    assert ways["features of the whole response"]["auroc"].value > 0.8
    assert result.sources == 50


def test_the_page_has_its_figures_from_the_record(found, rows: Rows, tmp_path: Path) -> None:
    result, _ = found
    costs = {"R_response": 2.0, "fast": 3.0, "segments": 4.0, "full": 9.0}
    more = {"protocol": ONCE.words, "resamples": 20, "forwards": costs}
    files = write_results(tmp_path / "out", "study", result, "x", **more)
    page = (tmp_path / "out" / "README.md").read_text()
    record = json.loads((tmp_path / "out" / "results.json").read_text())
    value = record["ways"]["responses"]["g1"][plan.FULL]["auroc"]["value"]
    assert f"| **full** | {value:.3f} [" in page
    for heading in (
        "Accuracy against cost",
        "What judges tokens",
        "How many examples",
        "not learned from",
    ):
        assert heading in page
    assert all(path.is_file() and path.stat().st_size for path in files)
    for name in ("cost.png", "curve.png", "reliability-g1.png"):
        assert (tmp_path / "out" / name) in files
        assert f"({name})" in page
    # A table is no table where a blank line parts it, or columns are missing.
    for block in page.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1
        assert not lines or lines[1].startswith("|---")


def test_what_was_run_is_not_run_again(
    found, rows: Rows, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, cache = found

    def refuse(*_: object) -> None:
        raise AssertionError("a fold was run again")

    for step in ("block_scores", "decide_fold"):
        monkeypatch.setattr(f"experiments.tokens.trials.{step}", refuse)
    monkeypatch.setattr("lrp4rag.training.tokens.sentence_numbers", lambda record: np.zeros(len(record), int))
    again = study(rows, cache, resamples=20)
    assert again.ways.responses["g1"][plan.FULL] == result.ways.responses["g1"][plan.FULL]


def test_features_on_disk_are_the_features(rows: Rows, tmp_path: Path) -> None:
    names = ("relevance", "state")
    blocks = blocks_named(names)
    held, made = tokens_on_disk(rows, tmp_path, blocks, reading(rows)), tokens_of(rows, blocks, reading(rows))
    for name in names:
        np.testing.assert_array_equal(held.blocks[name], made.blocks[name])
    assert len(list(tmp_path.glob("*.npy"))) == len(list(tmp_path.glob("*.sha256"))) == 2
    np.testing.assert_array_equal(
        tokens_on_disk(rows, tmp_path, blocks, reading(rows)).sentence, made.sentence
    )
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "no note", "another note"])
def test_damaged_features_are_made_again(damage: str, rows: Rows, tmp_path: Path) -> None:
    blocks = blocks_named(("relevance",))
    tokens_on_disk(rows, tmp_path, blocks, reading(rows))
    (path,) = tmp_path.glob("*.npy")
    whole, note = path.read_bytes(), path.with_suffix(".sha256")
    if damage == "flipped":
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    elif damage == "cut":
        path.write_bytes(whole[:-8])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "no note":
        note.unlink()
    else:
        note.write_text("0" * 64)
    again = tokens_on_disk(rows, tmp_path, blocks, reading(rows))
    np.testing.assert_array_equal(
        again.blocks["relevance"], tokens_of(rows, blocks, reading(rows)).blocks["relevance"]
    )
    assert path.read_bytes() == whole


def test_a_model_may_know_nothing_of_generators(
    validation: CrossValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble, "EPOCHS", 1)
    seen: list[set[str]] = []

    def noted(tokens, split, scores):
        seen.append(set(tokens.generators))
        return decide_fold(tokens, split, scores)

    monkeypatch.setattr("experiments.tokens.trials.decide_fold", noted)
    validation.run(
        {"told": Trial(("likelihood",)), "not": Trial(("likelihood",), know_generators=False)}, "trials"
    )
    assert seen == [{"g1", "g2"}] * 5 + [{""}] * 5


@pytest.fixture
def validation(rows: Rows, tmp_path: Path) -> CrossValidation:
    return CrossValidation.open(rows, Cache(tmp_path), blocks_named(("relevance", "likelihood")))


def test_cached_scores_give_what_is_learned_at_once(
    rows: Rows, validation: CrossValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble, "EPOCHS", 2)
    made: list[str] = []

    def noted(tokens, name, split, seed, learn):
        made.append(name)
        return block_scores(tokens, name, split, seed, learn)

    monkeypatch.setattr("experiments.tokens.trials.block_scores", noted)
    found = validation.run(
        {"both": Trial(("relevance", "likelihood")), "one": Trial(("likelihood",))}, "trials"
    )
    assert sorted(made) == ["likelihood"] * 5 + ["relevance"] * 5  # once for both trials
    expected = cross_validate_tokens(tokens_of(rows, validation.blocks, reading(rows)), validation.protocol)
    np.testing.assert_allclose(found["both"].alone, expected.alone, rtol=1e-4, atol=1e-4)
    # A regression stops within its tolerance, wherever the last digits lead it.
    np.testing.assert_allclose(found["both"].outcome.probabilities, expected.outcome.probabilities, atol=2e-3)
    assert np.isfinite(found["one"].log_odds).all()


def test_a_left_out_generator_and_its_sources_are_not_learned_from(
    rows: Rows, validation: CrossValidation
) -> None:
    judged: list[int] = []
    for split in validation.folds(Trial(("relevance",), judged="g2")):
        assert set(rows.generators[split.train]) == {"g1"}
        assert set(rows.generators[split.test]) == {"g2"}
        assert not set(rows.groups[split.train]) & set(rows.groups[split.test])
        judged += split.test.tolist()
    assert sorted(judged) == np.flatnonzero(rows.generators == "g2").tolist()


def test_fewer_sources_are_some_of_more(rows: Rows, validation: CrossValidation) -> None:
    learned = [
        [set(rows.groups[split.train]) for split in validation.folds(Trial(("relevance",), sources=size))]
        for size in (15, 25)
    ]
    for few, many in zip(*learned, strict=True):
        assert (len(few), len(many)) == (15, 25)
        assert few < many


def test_scores_are_kept_apart_where_their_settings_differ(
    validation: CrossValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble, "EPOCHS", 1)
    trials = {
        "whole": Trial(("likelihood",)),
        "fewer": Trial(("likelihood",), sources=25),
        "trees": Trial(("likelihood",), learner="boosted trees"),
        "judged": Trial(("likelihood",), judged="g1"),
        "more": Trial(("likelihood", "relevance")),
    }
    validation.run(trials, "trials")
    assert len(list(validation.cache.place.glob("block_scores-*"))) == 25  # those of the first twice
    assert len(list(validation.cache.place.glob("decided-*"))) == 25


def test_one_generator_has_nothing_to_be_left_out(rows: Rows) -> None:
    trials = plan.trials_of(plan.SECTIONS, ["g1", "g1"], 50)
    assert trials["transfer"] == {}
    assert set(plan.trials_of(plan.SECTIONS, ["g2", "g1"], 50)["transfer"]) == {"g1", "g2"}
    assert set(trials["curve"]) == {str(size) for size in plan.SIZES if size < 40}
