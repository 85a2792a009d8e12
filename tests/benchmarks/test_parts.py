"""What each part of a detector adds, on a miniature store and on scores of known ranks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.cells import Cells
from benchmarks.kinds.judging import Score
from benchmarks.parts import __main__ as command
from benchmarks.parts import leaving_out
from benchmarks.parts.leaving_out import (
    ALARMS,
    COMPARED,
    IN_ALARMS,
    NOTHING,
    leave_out,
    parts_of,
    without_compared,
    without_entailment,
    without_group,
)
from benchmarks.parts.measures import measure
from lrp4rag.classifiers import ensemble
from lrp4rag.classifiers.card import Interval
from lrp4rag.features.entailment import OF_ALARMS
from lrp4rag.features.plain import PlainTable
from lrp4rag.training import token_folds
from lrp4rag.training.alarms import FaultRows
from lrp4rag.training.folds import ONCE
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import cross_validate_tokens
from lrp4rag.training.tokens import Tokens, key_of_block, tokens_of
from tests.features.records import random_record
from tests.training.labelled import examples, write_jsonl
from tests.training.quick import light_folds
from tests.training.stored import stored

BLOCKS = {"plain": PlainTable(("likelihoods", "alignment"), ("likelihoods",))}


def with_alarms(rows: Rows, tokens: Tokens) -> Tokens:
    """A sentence of each response, of which the comparer alone tells whether it is wrong."""
    draw, count = np.random.default_rng(0), len(rows)
    table = draw.normal(size=(count, 2)).astype(np.float32)
    table[:, 1] += 3.0 * tokens.labels
    sentences = np.array([tokens.sentence[tokens.owner == k].max() for k in range(count)], dtype=np.intp)
    columns = ("a", f"{OF_ALARMS}unsupported")
    kinds = np.where(tokens.labels, "negation", "")
    numbers = np.arange(count)
    faults = FaultRows(columns, table, numbers, sentences, kinds, tokens.labels.astype(float))
    return replace(tokens, faults={"sentences": faults})


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rows]:
    monkeypatch.setattr(ensemble, "EPOCHS", 12)
    monkeypatch.setattr(ensemble, "BATCHES", 16)
    with light_folds():
        yield stored(tmp_path / "store")


def test_a_group_is_left_out_as_a_block_of_the_others_has_it() -> None:
    record = random_record(8, text="It is 30 metres high and red .")
    tokens: Any = Tokens.of([record], [np.zeros(8, bool)], np.zeros(1, bool), np.array(["s"]), BLOCKS)
    for group, less in (("alignment", PlainTable(("likelihoods",), ("likelihoods",))),):
        changed, blocks = without_group("plain", BLOCKS["plain"], group, tokens)
        assert blocks == {"plain": less}
        assert np.array_equal(changed.blocks["plain"], less(record))
    changed, blocks = without_group("plain", BLOCKS["plain"], "likelihoods", tokens)
    assert np.array_equal(changed.blocks["plain"], PlainTable(("alignment",), ())(record))


def test_parts_of_a_detector(rows: Rows) -> None:
    tokens = with_alarms(rows, tokens_of(rows, BLOCKS))
    names = list(parts_of(tokens, BLOCKS))
    assert names[:4] == [NOTHING, "plain: likelihoods", "plain: alignment", COMPARED]
    assert "alarm negation" in names
    assert names[-2:] == [ALARMS, IN_ALARMS]
    assert "alarm value" not in names  # values were not read
    less, blocks = without_entailment(tokens)
    assert (less.faults["sentences"].columns, less.blocks, blocks) == (("a",), {}, {})
    assert not without_compared(tokens).compared.any()


def test_each_part_is_left_out_and_a_killed_run_resumes(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = with_alarms(rows, tokens_of(rows, BLOCKS))
    cache, path = tmp_path / "cache", tmp_path / "cells.json"
    cache.mkdir()
    fitted, fit = [], token_folds.block_scores
    monkeypatch.setattr(token_folds, "block_scores", lambda *a: fitted.append(a[1]) or fit(*a))
    decide, decided = leaving_out.decide_fold, []

    def killed(*arguments: Any) -> Any:
        decided.append(arguments)
        if len(decided) > 7:
            raise KeyboardInterrupt
        return decide(*arguments)

    monkeypatch.setattr(leaving_out, "decide_fold", killed)
    with pytest.raises(KeyboardInterrupt):
        leave_out(tokens, rows, BLOCKS, Cells(path, {}), cache, 1)
    assert NOTHING in Cells(path, {})
    monkeypatch.setattr(leaving_out, "decide_fold", decide)
    fitted.clear()
    cells = Cells(path, {})
    leave_out(tokens, rows, BLOCKS, cells, cache, 1)
    # Of the whole nothing is scored again, and of its first part neither.
    assert fitted.count("plain") == 5
    assert fitted.count("negation") == fitted.count("sentence") == 5
    parts = parts_of(tokens, BLOCKS)
    found = {name: np.array(cells[name]["probabilities"]) for name in parts}
    keys = {name: key_of_block(rows, block) for name, block in BLOCKS.items()}
    whole = cross_validate_tokens(tokens, ONCE, cache=cache, keys=keys).outcome.probabilities[0]
    assert found[NOTHING] == pytest.approx(whole, abs=1e-5)
    assert [cells[name]["learned"] for name in (NOTHING, "plain: alignment", ALARMS, IN_ALARMS)] == [
        False,
        True,
        False,
        True,
    ]
    for name in ("plain: likelihoods", ALARMS, IN_ALARMS):
        assert np.abs(found[name] - whole).max() > 0.01
    # Likelihoods tell nearly all here; so few rows of alarms teach little.
    labels = tokens.labels
    apart = {name: values[labels].mean() - values[~labels].mean() for name, values in found.items()}
    assert apart["plain: likelihoods"] < 0.2
    assert min(apart[NOTHING], apart["plain: alignment"], apart[ALARMS], apart[IN_ALARMS]) > 0.6


def test_what_a_part_adds_by_hand() -> None:
    scores = [
        Score(
            id=f"a{k}.0{'~n' * wrong}",
            set="everyday",
            kind=kind,
            label=wrong,
            probability=0.5,
            source=f"a{k}",
        )
        for k in range(40)
        for wrong, kind in ((0, "faithful"), (1, "number" if k % 2 else "negation"))
    ]
    labels = np.array([score.label == 1 for score in scores])
    numbers = np.array([score.kind == "number" for score in scores])
    found = measure(scores, {NOTHING: np.where(labels, 0.9, 0.1), "alarm": np.where(numbers, 0.9, 0.1)})[
        "parts"
    ]
    assert found[NOTHING]["auroc"]["value"].value == found[NOTHING]["ranked"]["value"].value == 1
    assert found[NOTHING]["auroc"]["adds"].high == 0
    without = found["alarm"]
    assert (without["auroc"]["value"].value, without["auroc"]["adds"].value) == (0.75, 0.25)
    assert (without["ranked"]["value"].value, without["ranked"]["adds"].value) == (0.75, 0.25)
    assert 0 < without["auroc"]["adds"].low < 0.25 < without["auroc"]["adds"].high
    adds = {kind: one["adds"].value for kind, one in without["flagged"].items()}
    assert adds == {"negation": 1, "number": 0, "all": 0.5}


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ((0.02, 0.01, 0.03), "**+0.020 [+0.010, +0.030]**"),
        ((0.02, -0.01, 0.03), "+0.020 [-0.010, +0.030]"),
        ((None, None, None), ""),
    ],
)
def test_differences_without_0_are_bold(interval: tuple[Any, Any, Any], text: str) -> None:
    value, low, high = interval
    assert command.adds(Interval(value=value, low=low, high=high)) == text


def test_a_page_from_a_store(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everyday answers are those of the second generator here; the comparer and pairs are not read."""
    data = write_jsonl(examples(), tmp_path / "ragtruth.jsonl")
    everyday = [replace(one, id=f"{one.id}-e", generator="g2") for one in examples()]
    monkeypatch.setattr(command, "load_set", lambda _: everyday)
    monkeypatch.setattr(command, "MORE_EVERY", 1)
    monkeypatch.setattr(command, "PAIRS_EVERY", 10**9)
    monkeypatch.setattr(command, "blocks_named", lambda _: BLOCKS)
    arguments = [str(data), "--store", str(rows.store.folder), "--out", str(tmp_path / "out"), "--json"]
    arguments += ["--block", "plain", "--cache", str(tmp_path / "cache")]
    result = CliRunner().invoke(command.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found == json.loads((tmp_path / "out" / "results.json").read_text())
    assert (
        found["command"] == "python -m benchmarks.parts ragtruth.jsonl --store store --out out --block plain"
    )
    assert found["learned"] == ["plain: likelihoods", "plain: alignment"]
    assert {name: one["responses"] for name, one in found["sets"].items()} == {"ragtruth": 40, "everyday": 40}
    page = (tmp_path / "out" / "README.md").read_text()
    assert "| plain: likelihoods |" in page
    assert str(tmp_path) not in page
    # Nothing is read from the store where all is there.
    monkeypatch.setattr(command, "leave_out", None)
    again = CliRunner().invoke(command.main, arguments, catch_exceptions=False)
    assert json.loads(again.stdout) == found
    assert not (rows.store.folder / "training").exists()
