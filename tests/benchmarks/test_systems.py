"""The cost of a response, as the comparison reads it; what is measured is not judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import systems
from lrp4rag.experiments.compare.costs import read_costs
from tests.experiments.test_localisation import stored


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("store"), count=40).store.folder


@pytest.mark.usefixtures("default_reader")
@pytest.mark.parametrize("name", ["novel-words", "log-probability", "prompt-judge", "lrp4rag --fast"])
def test_a_response_costs_something(name: str, store: Path) -> None:
    found = systems.measure(name, store, 2)
    assert set(found) == {"seconds", "forwards", "peak_bytes"}
    assert all(value > 0 for value in found.values())


def test_every_system_is_measured_in_a_process_of_its_own_and_kept(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def stand_in(name: str, folder: Path, responses: int) -> dict[str, float]:
        asked.append(name)
        return {"seconds": 0.5, "forwards": 2.0, "peak_bytes": 10**9}

    monkeypatch.setattr(systems, "in_a_process", stand_in)
    out = tmp_path / "costs.json"
    for names in (["length"], ["lexical"]):
        options = [word for name in names for word in ("--system", name)]
        result = CliRunner().invoke(systems.main, ["--store", str(store), "--out", str(out), *options])
        assert result.exit_code == 0, result.output
    assert asked == ["length", "lexical"]
    costs = read_costs(out)
    assert set(costs.systems) == {"length", "lexical"}
    assert costs.systems["length"].forwards == 2
    assert "threads" in json.loads(out.read_text())["conditions"]
