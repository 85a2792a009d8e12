"""The simulation of drift plants what it says, and its results hold what the page promises."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import drift

ROOT = Path(__file__).parents[2]
SCORES = np.random.default_rng(0).beta(0.8, 1.1, 3000)


def mean_of(scenario: drift.Scenario, *, after: bool) -> tuple[float, float, float]:
    """Of probabilities, of those that outcomes follow, and of the topic that may be broken."""
    scores, behind, topics = drift.drawn(np.random.default_rng(1), 50_000, scenario, SCORES, after=after)
    return float(scores.mean()), float(behind.mean()), float(scores[topics == drift.BROKEN].mean())


@pytest.mark.parametrize("scenario", drift.SCENARIOS, ids=lambda one: one.name)
def test_what_is_planted(scenario: drift.Scenario) -> None:
    before, after = (mean_of(scenario, after=late) for late in (False, True))
    assert after[0] - before[0] == pytest.approx(scenario.mean, abs=0.008)
    assert after[1] - before[1] == pytest.approx(scenario.mean if scenario.outcomes else 0, abs=0.008)
    topic = scenario.mean / drift.TOPICS[drift.BROKEN] if scenario.broken else scenario.mean
    assert after[2] - before[2] == pytest.approx(topic, abs=0.015)


def test_a_run(tmp_path: Path) -> None:
    out = tmp_path / "drift.json"
    words = ["--simulations", "1", "--answers", "500", "--json", "--out", str(out)]
    result = CliRunner().invoke(drift.main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert json.loads(out.read_text()) == found
    assert set(found["scenarios"]) == {one.name for one in drift.SCENARIOS}
    assert all(one["any"]["of"] == 1 for one in found["scenarios"].values())


def test_the_page_has_the_figures_of_the_results_and_they_hold() -> None:
    found = json.loads((ROOT / "docs/results/drift.json").read_text())["scenarios"]
    page = (ROOT / "docs/drift.md").read_text()
    for name, one in found.items():
        cells = " | ".join(drift.cell(one[what]) for what in ("any", "probability"))
        assert f"| {name} | {cells} |" in page
    assert found["nothing"]["any"]["value"] <= 0.05
    assert found["nothing, scores resampled"]["any"]["value"] <= 0.05
    assert found["the probability alone"]["probability"]["low"] >= 0.8
