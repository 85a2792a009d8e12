"""What relevance adds, on a small store where it tells and nothing else does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import worth
from experiments.cache import Cache
from experiments.pages import write_results
from experiments.tokens.blocks import RELEVANCE_ALONE
from experiments.tokens.extraction import STATES, records
from experiments.tokens.response import POOLINGS
from experiments.worth import Gains, Line, measure, with_parts
from lrp4rag.classifiers import ensemble
from lrp4rag.training import token_folds
from lrp4rag.training.localisation import ALL
from lrp4rag.training.rows import Rows
from tests.experiments.tokens.stored import stored
from tests.training.quick import two_candidates

SEEDS = 2
TEXT, KNOWN = "text and likelihood", "relevance itself"


@pytest.fixture(scope="module")
def patched():
    """Two bases, fewer folds, and networks that take seconds."""
    with two_candidates(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(worth, "ONCE", replace(worth.ONCE, folds=3))
        patch.setattr(worth, "PENALTIES", worth.PENALTIES[:2])
        patch.setattr(ensemble, "EPOCHS", 6)
        patch.setattr(ensemble, "BATCHES", 16)
        patch.setattr(token_folds, "FOLDS", 2)
        patch.setattr(worth, "BASES", {TEXT: worth.BASES[TEXT], KNOWN: ("relevance",)})
        yield


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return stored(tmp_path_factory.mktemp("store"), count=50)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def found(rows: Rows, cache: Cache, patched: None) -> Gains:
    return measure(rows, cache, seeds=SEEDS, resamples=100)


def line(found: Gains, level: str, base: str, added: str, generator: str = ALL) -> Line:
    (chosen,) = (
        one
        for one in found.lines
        if (one.level, one.base, one.added, one.generator) == (level, base, added, generator)
    )
    return chosen


def test_relevance_that_tells_adds_and_another_s_does_not(found: Gains) -> None:
    for level in ("tokens", "responses"):
        told = line(found, level, TEXT, worth.RELEVANCE)
        assert told.gain.low > 0.1
        assert told.after.value > 0.9
    borrowed = line(found, "responses", TEXT, worth.ANOTHERS)
    assert abs(borrowed.gain.value) < 0.2
    assert borrowed.gain.value < line(found, "responses", TEXT, worth.RELEVANCE).gain.value / 2


def test_relevance_adds_nothing_to_itself(found: Gains) -> None:
    for level in ("tokens", "responses"):
        known = line(found, level, KNOWN, worth.RELEVANCE)
        assert known.before.value > 0.9
        assert known.gain.value == pytest.approx(0, abs=0.01)


def test_every_line_is_a_difference_of_as_many_seeds(found: Gains) -> None:
    assert len(found.lines) == (2 + 3) * 2 * 3  # what is added at both levels, bases, generators and all
    for one in found.lines:
        assert one.gain.value == pytest.approx(one.after.value - one.before.value)
        assert len(one.seeds) == SEEDS
        assert np.mean(one.seeds) == pytest.approx(one.gain.value)
    assert found.rows == {"g1": 50, "g2": 50, ALL: 100}
    assert found.sources == 50
    assert found.left_out == 0


def test_intervals_for_several_generators_are_wider(found: Gains) -> None:
    for one in found.lines:
        if one.generator == ALL:
            assert one.together == one.gain
        else:
            assert one.together.value == one.gain.value
            assert one.together.low <= one.gain.low
            assert one.together.high >= one.gain.high
    assert any(one.together.low < one.gain.low for one in found.lines)


def test_what_was_run_is_not_run_again(found: Gains, rows: Rows, cache: Cache) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a fold was run again")

    with pytest.MonkeyPatch.context() as patch:
        for step in ("block_scores", "decide_fold"):
            patch.setattr(f"experiments.tokens.trials.{step}", refuse)
        again = measure(rows, cache, seeds=SEEDS, resamples=100, levels=["tokens"])
    assert again.lines == tuple(one for one in found.lines if one.level == "tokens")


def test_responses_without_states_are_left_out_where_tokens_are_judged(tmp_path: Path) -> None:
    rows = stored(tmp_path, count=14)
    for example in rows.examples[:2]:
        rows.store.path(example, STATES).unlink()
    assert len(with_parts(rows, ["tokens", "responses"])) == 24  # equal answers share a file
    assert len(with_parts(rows, ["responses"])) == 28


def test_features_of_tokens_are_pooled_alike(rows: Rows) -> None:
    tables = worth.feature_groups(rows)
    record = next(records(rows))
    heads = record["lookback"].shape[0] * record["lookback"].shape[1]
    assert tables["relevance"].shape == (100, len(RELEVANCE_ALONE) * len(POOLINGS))
    assert tables["attention"].shape == (100, len(POOLINGS) + heads)
    gains = record["logprob"] - record["logprob_without_passages"]
    assert tables["gain"][0, list(POOLINGS).index("mean")] == pytest.approx(gains.mean())
    np.testing.assert_allclose(tables["state"][0], record["hidden_mean"][4], rtol=1e-6)  # after layer 3
    assert tables["relevance means"].shape == (100, len(RELEVANCE_ALONE))
    np.testing.assert_allclose(
        tables["relevance means"][0, 0], record["by_segment"][2:].sum(0).mean(), rtol=1e-6
    )  # of all passages


def test_both_sides_know_the_generator_and_the_length(rows: Rows) -> None:
    known = worth._common(rows)
    assert known.shape == (100, 3)
    np.testing.assert_array_equal(known[:, 0], rows.generators == "g1")
    np.testing.assert_allclose(known[0, 2], np.log1p(len(rows.encodings[0].response_ids)))


def test_what_anybody_could_do_stands_beside(found: Gains) -> None:
    assert set(found.trivial) == {"length only", "novel words", "flag everything"}
    assert {one.value for one in found.trivial["flag everything"].values()} == {0.5}


def test_the_first_sources_are_those_of_the_data(rows: Rows) -> None:
    some = worth.of_first_sources(rows, 3)
    assert list(dict.fromkeys(some.groups)) == list(dict.fromkeys(rows.groups))[:3]
    assert len(some) == 6
    assert worth.of_first_sources(rows, None) is rows


def test_another_response_is_of_the_same_generator(rows: Rows) -> None:
    order = worth.shuffled_within(rows.by_generator.values(), len(rows))
    assert sorted(order) == list(range(len(rows)))
    assert (rows.generators[order] == rows.generators).all()
    assert (order != np.arange(len(rows))).all()


def test_the_page_has_its_figures_from_the_record(found: Gains, rows: Rows, tmp_path: Path) -> None:
    files = write_results(tmp_path, "worth", found, "x", resamples=100, reader="r")
    page = (tmp_path / "README.md").read_text()
    record = json.loads((tmp_path / "results.json").read_text())
    first = record["lines"][0]
    assert f"| {first['generator']} | {first['before']['value']:.3f} [" in page
    assert all(path.is_file() and path.stat().st_size for path in files)
    for block in page.split("\n\n"):
        lines = [text for text in block.splitlines() if text.startswith("|")]
        assert len({text.count("|") for text in lines}) <= 1
        assert not lines or lines[1].startswith("|---")
    assert "(gains.png)" in page
