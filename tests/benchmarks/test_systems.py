"""The cost of a response, as the comparison reads it; what is measured is not judged here."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import systems
from experiments.systems.baseline import NOTHING, Reading
from experiments.systems.comparison import read_costs
from experiments.systems.resources import Resources
from experiments.systems.simple import LENGTH, NOVEL_WORDS
from lrp4rag.training.rows import Rows
from tests.experiments.tokens.stored import stored


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("store"), count=40).store.folder


@pytest.mark.usefixtures("default_reader")
@pytest.mark.parametrize("name", ["log-probability", "lrp4rag"])
def test_a_response_costs_something(name: str, store: Path) -> None:
    found = systems.measure(name, store, 2)
    assert set(found) == {"seconds", "forwards", "peak_bytes"}
    assert all(value > 0 for value in found.values())


def test_a_system_that_learned_nothing_has_no_cost(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(rows: Rows, resources: Resources) -> Reading:
        return Reading(np.full(len(rows), np.nan))

    fitted = SimpleNamespace(chosen=NOTHING, read=read)
    silent: Any = SimpleNamespace(facts=LENGTH.facts, fit=lambda rows, resources: fitted)
    monkeypatch.setattr(systems, "BASELINES", {"length": silent})
    monkeypatch.setattr(systems, "apart", lambda function, *arguments: function(*arguments))
    result = CliRunner().invoke(systems.main, ["--store", str(store), "--system", "length"])
    assert "length                   learned nothing" in result.output


def test_every_system_is_measured_in_a_process_of_its_own_and_kept(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def stand_in(_: Any, name: str, folder: Path, responses: int) -> dict[str, float]:
        asked.append(name)
        return {"seconds": 0.5, "forwards": 2.0, "peak_bytes": 10**9}

    monkeypatch.setattr(systems, "apart", stand_in)
    out = tmp_path / "costs.json"

    def run(*options: str) -> Any:
        return CliRunner().invoke(systems.main, ["--store", str(store), "--out", str(out), *options])

    assert run("--system", "length").exit_code == run("--system", "lexical").exit_code == 0
    assert asked == ["length", "lexical"]
    monkeypatch.setattr(systems, "BASELINES", {"length": LENGTH, "novel-words": NOVEL_WORDS})
    monkeypatch.setattr(systems, "BUNDLED", {})
    run()
    assert asked[2:] == ["novel-words"]  # what is there already is not measured again
    costs = read_costs(out)
    assert set(costs.systems) == {"length", "lexical", "novel-words"}
    assert costs.systems["length"].forwards == 2
    assert re.match(r"smollm2-135m in b?float\d+, \d+ threads", costs.conditions)
    result = run("--responses", "2")
    assert result.exit_code == 2
    assert "name another file" in result.output
