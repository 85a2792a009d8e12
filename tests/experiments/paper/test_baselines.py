"""Table 2's baselines beside relevance: which rows they have, and what they are compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.cli import main
from experiments.paper import baselines, table2
from experiments.published import published
from experiments.systems.folds import sample_of
from experiments.systems.registry import BASELINES
from experiments.systems.simple import NOVEL_WORDS
from lrp4rag.util.errors import InputError
from tests.experiments.paper.stores import LARGE, SMALL

NAMES = {"length": 30, "prompt-judge": 20}


@pytest.fixture(scope="module")
def full(full_store, context):
    """Two baselines without models; one stands for a prompt, and is judged on a sample as slow ones are."""
    slow = replace(NOVEL_WORDS, facts=replace(NOVEL_WORDS.facts, slow=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BASELINES, "prompt-judge", slow)
        yield context(full_store, baselines=NAMES)


@pytest.fixture(scope="module")
def found(full):
    return baselines.measure(full)


def drawn_sources(subset) -> set[str]:
    return set(subset.groups[sample_of(subset.rows, 20, [subset.generator])])


def test_every_baseline_has_both_protocols_and_slow_ones_a_sample(found) -> None:
    for name in (SMALL, LARGE):
        length, prompt = found.generators[name]
        assert (length.name, length.rows, prompt.name, prompt.rows) == ("length", 30, "prompt-judge", 20)
        assert list(length.metrics) == list(prompt.metrics) == ["honest", "paper"]
        assert length.majority == 0.5
    assert [note.remedy for note in found.left_out] == [
        "python -m experiments reproduce --baseline selfcheck-ngram --baseline selfcheck-prompt "
        "--baseline fine-tuned-llm"
    ]


def test_relevance_is_ahead_by_its_best_in_the_same_folds(full, found) -> None:
    whole = full.subsets[LARGE]
    sample = np.flatnonzero(np.isin(whole.groups, sorted(drawn_sources(whole))))
    for row, subset in zip(found.generators[LARGE], (whole, whole.select(sample)), strict=True):
        (best,) = full.outcomes([table2.best_of(subset, full.settings.by_accuracy)], "test")
        accuracy = (best.flagged[0] == subset.labels).mean()
        assert row.rows == len(subset)
        assert row.ahead.value == pytest.approx(accuracy - row.metrics["honest"]["accuracy"].value)


def test_training_says_its_steps_and_what_it_learned_from(full, found, monkeypatch) -> None:
    monkeypatch.setattr(baselines, "FINE_TUNED", "prompt-judge")
    length, stand_in = baselines.measure(full).generators[SMALL]
    assert (length.learned, length.steps) == ({}, {})
    # The stand-in has no weights, so that all it is calibrated on is fresh to it.
    assert stand_in.learned == {"honest": 0, "paper": 0}
    row = replace(
        found.generators[SMALL][1],
        learned=dict.fromkeys(("honest", "paper"), 75),
        steps=dict.fromkeys(("honest", "paper"), 20),
    )
    exhibit = baselines.show(baselines.Baselines({SMALL: (row,)}, ()))
    numbers = exhibit.tables["baselines"].query("protocol == 'honest'").set_index("metric")["value"]
    assert numbers[baselines.STEPS] == row.steps["honest"]
    assert numbers[baselines.LEARNED] == row.learned["honest"]
    assert numbers[baselines.FREQUENT] == row.majority
    words = f", {row.steps['honest']} steps on {row.learned['honest']} responses a fold"
    assert exhibit.shown[f"baselines-{SMALL}"][""].iloc[0].endswith(words)


def test_the_tables_have_published_rows_of_the_same_kind(found) -> None:
    exhibit = baselines.show(found)
    table = exhibit.shown[f"baselines-{SMALL}"]
    assert table[""].tolist()[-2:] == ["prompt llama-2-7b, published", "prompt gpt-3.5, published"]
    assert table["accuracy"].tolist()[-1] == f"{published('prompt gpt-3.5', SMALL).accuracy:.3f}"
    numbers = exhibit.tables["baselines"]
    assert set(numbers["name"]) == set(NAMES)
    assert np.isfinite(numbers.query("metric == 'accuracy'")["value"]).all()


def test_what_a_store_lacks_is_said_before_any_is_run(bare_store, context, tmp_path) -> None:
    lacking = context(bare_store, tmp_path, baselines={"length": 30, "lookback-lens": 30})
    with pytest.raises(InputError, match="lookback-lens reads signals"):
        baselines.measure(lacking)


def test_none_is_run_unless_it_is_named(full_store, context) -> None:
    found = baselines.measure(context(full_store))
    assert found.generators == {}
    assert "prompt-judge" in found.left_out[0].what
    assert baselines.show(found).tables == {}


def test_an_unknown_one_is_refused_before_anything_is_computed(full_store, tmp_path) -> None:
    arguments = ["reproduce", "--store", full_store, "--out", tmp_path / "out"]
    result = CliRunner().invoke(main, [*map(str, arguments), "--baseline", "oracle"])
    assert result.exit_code != 0
    assert "unknown baseline 'oracle'; choose from" in result.output
    assert not (tmp_path / "out").exists()


def test_a_single_one_is_cross_validated(full_store, cache) -> None:
    arguments = ["baseline", "length", "--store", full_store, "--reader", "tiny", "--bootstrap", "20"]
    result = CliRunner().invoke(main, [*map(str, arguments), "--cache", str(cache), "--sources", "10"])
    assert result.exit_code == 0, result.output
    assert SMALL in result.output
