"""The guardrail's benchmarks: that they run, say what they promise, and notice what they are there for.

Each command starts a server with the tiny reader; how fast anything is, is not judged here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.service import (
    canaries,
    capacity,
    faults,
    fuzz,
    kill,
    metrics,
    overload,
    page,
    soak,
    streams,
    tamper,
    vanishing,
)
from benchmarks.service.client import Seen

ROOT = Path(__file__).parents[2]
SMALL = {
    "streams": (streams, "--answers 4 --clients 2"),
    "capacity": (capacity, "--answers 2 --dtypes float32"),
    "overload": (overload, ""),
    "soak": (soak, "--minutes 0.05 --warm-up 0.02"),
    "kill": (kill, "--kills 1"),
    "tamper": (tamper, "--tamperings 10"),
    "faults": (faults, ""),
    "fuzz": (fuzz, "--requests 55"),
    "vanishing": (vanishing, "--rounds 1"),
    "canaries": (canaries, ""),
    "metrics": (metrics, ""),
}
MUST_BE_NONE = (
    "unjudged_characters",
    "lost_characters",
    "crossed_characters",
    "failed",
    "audit_problems",
    "server_errors",
    "decisions_missing",
    "unexpected",
)


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the results of all commands come together."""
    found = tmp_path_factory.mktemp("docs")
    (found / page.RESULTS).mkdir(parents=True)
    return found


@pytest.mark.parametrize("name", SMALL)
def test_what_must_hold_holds_on_a_small_run(name: str, docs: Path) -> None:
    module, arguments = SMALL[name]
    out = docs / page.RESULTS / f"{name}.json"
    given = ["--quick", *arguments.split(), "--json", "--out", str(out)]
    result = CliRunner().invoke(module.main, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(out.read_text())
    assert found["quick"]
    assert found["reader"] == "tiny"
    # Under overload, what misses its deadline is told as an error: on a busy machine some does.
    none = [key for key in MUST_BE_NONE if key in found and (name, key) != ("overload", "server_errors")]
    assert {key: found[key] for key in none if found[key] != 0} == {}
    if name == "faults":
        assert set(found["outcomes"]) == set(faults.KINDS)
        assert found["recovered"] == found["faults"]
        assert sum(n for one in found["outcomes"].values() for what, n in one.items() if what != "answered")
    elif name == "tamper":
        assert (found["found"], found["untouched_is_whole"]) == (found["tamperings"], True)
    elif name == "kill":
        assert found["started_again"] == found["kills"]
        assert found["decisions_told"] > 0
    elif name == "canaries":
        assert found["found"] == 0
        assert found["canaries"] > 100
    elif name == "metrics":
        assert found["response_updates"] >= 6
        assert found["streamed_updates"] > found["response_updates"]
    elif name == "overload":
        assert sum(found["statuses"].values()) == found["offered"]
    elif name == "vanishing":
        assert found["in_the_middle"] > 0
    elif name == "streams":
        assert found["sentences"] >= found["answers"]


def test_the_page_has_the_figures_of_the_files(docs: Path) -> None:
    """Runs after the commands; without them there is nothing to tell."""
    result = CliRunner().invoke(page.main, ["--docs", str(docs)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    text = (docs / "guarding.md").read_text()
    for line in page.LINES:
        path = docs / page.RESULTS / f"{line.name}.json"
        (row,) = (one for one in text.splitlines() if one.startswith(f"| {line.promise} |"))
        assert ("not measured" in row) == (not path.exists())
        assert (f"]({page.RESULTS.as_posix()}/{line.name}.json)" in row) == path.exists()
        assert ("(tiny reader, quick)" in row) == path.exists()
    assert (docs / page.RESULTS / "soak.svg").exists() == (docs / page.RESULTS / "soak.json").exists()


def test_the_page_of_the_docs_is_that_of_its_files() -> None:
    assert (ROOT / "docs/guarding.md").read_text() == page.page(ROOT / "docs")
    assert len(page.page(ROOT / "docs").splitlines()) < 90


def test_a_promise_that_is_broken_is_told(tmp_path: Path) -> None:
    (tmp_path / page.RESULTS).mkdir(parents=True)
    found = {"found": 1, "canaries": 9, "requests": 3, "reader": "default"}
    (tmp_path / page.RESULTS / "canaries.json").write_text(json.dumps(found))
    (line,) = (one for one in page.LINES if one.name == "canaries")
    assert page.row(line, tmp_path)[1:3] == ("9 canaries in 3 requests: 1 found (default reader)", "**no**")


def test_arrivals_have_their_rate_and_wait_for_nothing() -> None:
    moments = overload.arrivals(20, 100)
    assert 1700 < len(moments) < 2300
    assert moments == sorted(moments)
    assert 0 < moments[0] < moments[-1] < 100
    assert np.std(np.diff(moments)) == pytest.approx(1 / 20, rel=0.1)  # a Poisson process's


def test_the_slope_is_that_of_memory_an_hour() -> None:
    noise = np.random.default_rng(0).normal(0, 2e6, 600)
    samples = [[k / 10, 1e9 + 1e6 * k / 10 / 60 * 30 + noise[k]] for k in range(600)]  # 30 MB an hour
    middle, low, high = soak.slope(samples)
    assert low < 30 < high
    assert high - low < 10
    assert low < middle < high


def test_a_canary_that_got_out_is_found() -> None:
    canary = canaries.c()
    assert canaries.found_in({canary, canaries.c()}, f"… {canary} …".encode()) == 1
    assert canaries.found_in({canary}, canaries.c()) == 0


def test_every_route_is_asked_with_canaries() -> None:
    paths = {path.split("canary")[0] for _, path, _ in canaries.requests()}
    assert {"/v1/judge", "/v1/judge/batch", "/v1/chat/completions", "/v1/decisions/", "/v1/models"} < paths


ANSWER = "It is tall. It is old."
RECORDS: dict[str, Any] = {
    "a": {"kind": "sentence", "action": "serve", "start": 0, "end": 12, "probability": 0.1},
    "b": {"kind": "sentence", "action": "withhold", "start": 12, "end": 22, "probability": None},
    "r": {"kind": "response", "action": "serve", "probability": None},
}


def whole(text: str, action: str = "withhold") -> httpx.Response:
    told = [{"id": "a", "action": "serve"}, {"id": "b", "action": action}]
    body = {"choices": [{"message": {"content": text}}], "lrp4rag": {"sentences": told}}
    return httpx.Response(200, json=body)


@pytest.mark.parametrize(
    ("judged", "text", "expected"),
    [
        (httpx.Response(503), "It is tall. <unavailable_notice>", 0),
        (httpx.Response(503), "It is tall. It is old.", len("Itisold.")),
        (httpx.Response(200, json={"decision": {"id": "r", "action": "serve"}}), "It is tall.", len(ANSWER)),
        (httpx.Response(200, json={"decision": {"id": "no", "action": "serve"}}), "It is tall.", len(ANSWER)),
    ],
)
def test_what_is_served_without_a_verdict_is_noticed(judged: Any, text: str, expected: int) -> None:
    assert faults.unjudged((judged, Seen(0), whole(text)), ANSWER, RECORDS) == expected


def test_a_failure_that_is_not_told_as_one_is_noticed() -> None:
    cut = Seen(0, failed="data: {}", status=200)
    found = list(faults.outcomes((httpx.Response(500), cut, httpx.Response(502))))
    assert found == ["status 500", "answered", "failed", "ended without reason"]
