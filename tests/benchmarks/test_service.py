"""The guardrail's benchmarks: that they run, say what they promise, and notice what they are there for.

Each command starts a server with the tiny reader; how fast anything is, is not judged here.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.service import faults, hostile, load, page
from benchmarks.service.__main__ import MODULES, main
from benchmarks.service.client import Seen
from benchmarks.service.streams import crossed, held, leaked
from benchmarks.service.upstream import Writer

ARGUMENTS = {
    "streams": "--answers 4 --clients 2",
    "capacity": "--answers 2 --dtypes float32",
    "overload": "",
    "soak": "--minutes 0.05 --warm-up 0.02",
    "kill": "--kills 1",
    "faults": "",
    "fuzz": "--requests 55",
    "vanishing": "--rounds 1",
    "canaries": "",
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
MUST_BE: dict[str, Any] = {
    "streams": lambda found: found["sentences"] >= found["answers"],
    "capacity": lambda found: found["float32_answers_per_minute"] > 0,
    "overload": lambda found: sum(found["statuses"].values()) == found["offered"],
    "soak": lambda found: found["samples"] and sum(found["requests"].values()),
    "kill": lambda found: found["started_again"] == found["kills"] and found["decisions_told"] > 0,
    "faults": lambda found: (
        set(found["outcomes"]) == set(faults.KINDS)
        and found["recovered"] == found["faults"]
        and any(what != "answered" for one in found["outcomes"].values() for what in one)
    ),
    "fuzz": lambda found: sum(found["statuses"].values()) >= found["requests"],
    "vanishing": lambda found: found["in_the_middle"] > 0,
    "canaries": lambda found: found["found"] == 0 and found["canaries"] > 100,
}


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the results of all commands come together."""
    found = tmp_path_factory.mktemp("docs")
    (found / page.RESULTS).mkdir(parents=True)
    return found


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_small_run_holds_what_is_promised(name: str, docs: Path) -> None:
    out = docs / page.RESULTS / f"{name}.json"
    given = [name, "--quick", *ARGUMENTS[name].split(), "--json", "--out", str(out)]
    result = CliRunner().invoke(main, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(out.read_text())
    assert (found["quick"], found["reader"]) == (True, "tiny")
    # Under overload, what misses its deadline is told as an error: on a busy machine some does.
    none = [key for key in MUST_BE_NONE if key in found and (name, key) != ("overload", "server_errors")]
    assert {key: found[key] for key in none if found[key] != 0} == {}
    assert MUST_BE[name](found), found


def test_the_page_has_a_line_for_each_promise(docs: Path) -> None:
    """Runs after the commands; without them there is nothing to tell."""
    result = CliRunner().invoke(main, ["page", "--docs", str(docs)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    lines = (docs / page.RESULTS / "README.md").read_text().splitlines()
    for promise in page.PROMISES["promise"]:
        (row,) = (one for one in lines if one.startswith(f"| {promise['promise']} |"))
        there = (docs / page.RESULTS / f"{promise['file']}.json").exists()
        assert ("not measured" in row, "(tiny reader, quick)" in row) == (not there, there)
        assert (f"({promise['file']}.json)" in row) == there
        assert promise["command"].split()[0] in (*MODULES, "git")
    assert (docs / page.RESULTS / "soak.svg").exists() == (docs / page.RESULTS / "soak.json").exists()


def test_a_promise_that_is_broken_is_told(tmp_path: Path) -> None:
    (tmp_path / page.RESULTS).mkdir(parents=True)
    found = {"found": 1, "canaries": 9, "requests": 3, "reader": "default"}
    (tmp_path / page.RESULTS / "canaries.json").write_text(json.dumps(found))
    (promise,) = (one for one in page.PROMISES["promise"] if one["file"] == "canaries")
    assert page.row(promise, tmp_path)[2] == "**no**"


# Arithmetic


def test_arrivals_have_their_rate_and_wait_for_nothing() -> None:
    moments = load.arrivals(20, 100)
    assert 1700 < len(moments) < 2300
    assert moments == sorted(moments)
    assert 0 < moments[0] < moments[-1] < 100
    assert np.std(np.diff(moments)) == pytest.approx(1 / 20, rel=0.1)  # a Poisson process's


def test_the_slope_is_that_of_memory_an_hour() -> None:
    noise = np.random.default_rng(0).normal(0, 2e6, 600)
    samples = [[k / 10, 1e9 + 1e6 * k / 10 / 60 * 30 + noise[k]] for k in range(600)]  # 30 MB an hour
    middle, low, high = load.slope(samples)
    assert low < 30 < high
    assert high - low < 10
    assert low < middle < high


def test_a_canary_that_got_out_is_found() -> None:
    canary = hostile.c()
    assert hostile.found_in({canary, hostile.c()}, f"… {canary} …".encode()) == 1
    assert hostile.found_in({canary}, hostile.c()) == 0


def test_every_route_is_asked_with_canaries() -> None:
    paths = {path.split("canary")[0] for _, path, _ in hostile.requests()}
    assert {"/v1/judge", "/v1/judge/batch", "/v1/chat/completions", "/v1/decisions/", "/v1/models"} < paths


# Characters of answers

ANSWER = "It is tall. It is old. "
RECORDS: dict[str, Any] = {
    "a": {"kind": "sentence", "action": "serve", "start": 0, "end": 12, "probability": 0.1},
    "b": {"kind": "sentence", "action": "withhold", "start": 12, "end": 23, "probability": None},
    "r": {"kind": "response", "action": "serve", "probability": None},
}
TABLE = "|---|\n| It is old |\n"
MARKED = {"a": {"kind": "sentence", "action": "mark", "start": 6, "end": len(TABLE)}}


def seen(*chunks: tuple[str, str]) -> Seen:
    return Seen(0, [(text, 5.0 + k, {"id": id} if id else {}) for k, (text, id) in enumerate(chunks)])


@pytest.mark.parametrize(
    ("chunks", "answer", "records", "expected"),
    [
        ([("It is tall. ", "a"), ("<notice> ", "b")], ANSWER, RECORDS, (0, 0)),
        (
            [("It is tall.<mark> ", "a"), ("- <notice> ", "b"), ("\n\n<uncertain>", "")],
            ANSWER,
            RECORDS,
            (0, 0),
        ),
        ([("|---|\n", ""), ("| It is old<mark> |\n", "a")], TABLE, MARKED, (0, 0)),
        ([("It is tall. ", "a"), ("It is old. ", "b")], ANSWER, RECORDS, (len("Itisold."), 0)),  # withheld
        ([("It is tall. ", "")], ANSWER, RECORDS, (len("Itistall."), 11)),  # no decision
        ([("It is tall. It", "a")], ANSWER, RECORDS, (len("Itistall.It"), 11)),  # more than was judged
        ([("Of another. ", "a")], ANSWER, RECORDS, (len("Ofanother."), 11)),  # another client's
        ([("|---|\nIt", "")], TABLE, {}, (7, len(TABLE) - 8)),
        ([("It is tall. ", "a")], ANSWER, RECORDS, (0, 11)),  # lost
    ],
)
def test_what_leaves_unjudged_and_what_is_lost(
    chunks: list[tuple[str, str]], answer: str, records: dict, expected: tuple[int, int]
) -> None:
    assert leaked(seen(*chunks), answer, records) == expected


def test_a_sentence_is_held_from_the_first_word_after_it() -> None:
    times = [float(k) / 10 for k in range(len(ANSWER))]
    found = held(seen(("It is tall. ", "a"), ("", "b")), ANSWER, times, RECORDS)
    # "It" ends at character 14, which was written at 1.3; the answer at 2.2.
    assert found == pytest.approx([3.7, 3.8])


def test_text_of_another_client_is_noticed() -> None:
    answers = [ANSWER, "The harbour was dug in 1911. It is old. "]
    assert crossed(seen(("It is tall. ", "a"), ("It is old. ", "b")), answers) == 0
    assert crossed(seen(("The harbour was dug in 1911. ", "a")), answers) == len("Theharbourwasdugin1911.")
    assert crossed(seen(("<notice> ", "a")), answers) == 0


def test_an_answer_is_written_whole() -> None:
    writer = Writer(["Größe: 3 m. 塔 🗼🏽 ist hoch!"], 0.0)

    async def collect() -> bytes:
        return b"".join([piece async for piece in writer.pieces(0)])

    events = [line for line in asyncio.run(collect()).decode().split("\n\n") if line]
    parts = [json.loads(one.removeprefix("data: ")) for one in events[:-1]]
    assert "".join(one["choices"][0]["delta"].get("content", "") for one in parts) == writer.answers[0]
    assert events[-1] == "data: [DONE]"
    assert len(writer.sent[0]) == len(writer.answers[0])


def whole(text: str) -> httpx.Response:
    told = [{"id": "a", "action": "serve"}, {"id": "b", "action": "withhold"}]
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
