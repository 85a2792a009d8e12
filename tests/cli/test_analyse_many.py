"""`lrp4rag analyse` with a file of many responses: prompts are read once, and prevalence shifts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.classifiers.prevalence import at_prevalence, estimated_prevalence
from lrp4rag.features import replay
from tests.cli.plain_detector import THRESHOLD, TRAINED, plain_detector
from tests.tiny import bridge_example
from tests.training.labelled import write_jsonl

PROMPTS, RESPONSES = 6, 4
IDS = [f"bridge-{k}-{j}" for j in range(RESPONSES) for k in range(PROMPTS)]
WORDS = tuple("abcdefghijklmnop")


@pytest.fixture(scope="module")
def rows():
    """Each prompt once, then each prompt again, and so on."""
    return [
        bridge_example(k, id=f"bridge-{k}-{j}", response=" ".join(WORDS[j + k : 3 * j + k + 3]), labels=())
        for j in range(RESPONSES)
        for k in range(PROMPTS)
    ]


@pytest.fixture(scope="module")
def data(rows, tmp_path_factory) -> Path:
    return write_jsonl(rows, tmp_path_factory.mktemp("data") / "many.jsonl")


@pytest.fixture(scope="module")
def common(reader_folder, tiny_reader, tmp_path_factory):
    folder = plain_detector(tiny_reader).save(tmp_path_factory.mktemp("detectors") / "plain")
    return ["--reader", reader_folder, "--detector", folder]


@pytest.fixture(scope="module")
def told(run, data, common):
    """The rows at the prevalence of training."""
    return parsed(run("analyse", data, *common, "--json"))


@pytest.fixture
def prompts_read(monkeypatch):
    """A list that has an entry for each prompt that is read."""
    read, reading = [], replay.PromptReading

    def counted(*given):
        read.append(1)
        return reading(*given)

    monkeypatch.setattr(replay, "PromptReading", counted)
    return read


def parsed(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def column(rows, name):
    return [row[name] for row in rows]


# The order.


def test_each_prompt_is_read_once_and_rows_keep_their_order(run, data, common, prompts_read):
    lines = run("analyse", data, *common).stdout.splitlines()
    assert len(prompts_read) == PROMPTS
    assert [line.split()[0] for line in lines[:-1]] == IDS
    assert lines[-1].startswith(f"{len(IDS)} examples")


def test_a_row_says_what_it_says_alone(run, data, common, told):
    for k in (3, len(IDS) - 1):
        (alone,) = parsed(run("analyse", data, "--id", IDS[k], *common, "--json"))
        assert told[k]["probability"] == pytest.approx(alone["probability"], abs=1e-6)
        assert told[k]["response"] == alone["response"]


def test_a_row_that_fails_is_reported_at_its_place(run, rows, common, tmp_path, prompts_read):
    path = write_jsonl(rows[: 2 * PROMPTS], tmp_path / "many.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[PROMPTS]["response"] = "word " * 600  # beyond the window; it is tried after the first row
    path.write_text("\n".join(map(json.dumps, lines)))
    result = run("analyse", path, *common, "--json", code=2)
    assert len(prompts_read) == PROMPTS
    shown = result.output.splitlines()  # of both streams, as they were written
    assert [json.loads(line)["id"] for line in shown[:PROMPTS]] == IDS[:PROMPTS]
    assert shown[PROMPTS].startswith(f"Error: example '{IDS[PROMPTS]}'")
    assert [row["id"] for row in parsed(result)] == [*IDS[:PROMPTS], *IDS[PROMPTS + 1 : 2 * PROMPTS]]


# The prevalence.


def test_without_a_prevalence_it_is_null(told):
    assert column(told, "id") == IDS
    assert set(column(told, "prevalence")) == {None}
    assert 0 < sum(column(told, "hallucinated")) < len(told)  # there is something to keep


def test_a_given_prevalence_shifts_probabilities_and_flags_the_same(run, data, common, told):
    result = run("analyse", data, *common, "--json", "--prevalence", 0.1)
    shifted = parsed(result)
    assert set(column(shifted, "prevalence")) == {0.1}
    expected = at_prevalence(column(told, "probability"), TRAINED, 0.1)
    np.testing.assert_allclose(column(shifted, "probability"), expected, rtol=1e-5)
    assert column(shifted, "threshold") == pytest.approx([at_prevalence(THRESHOLD, TRAINED, 0.1)] * len(told))
    assert column(shifted, "hallucinated") == column(told, "hallucinated")
    assert "a prevalence of 0.1" in result.stderr


def test_an_estimated_prevalence_is_that_of_the_file(run, data, common, told, prompts_read):
    result = run("analyse", data, *common, "--json", "--prevalence", "estimate")
    shifted = parsed(result)
    assert len(prompts_read) == PROMPTS
    assert column(shifted, "id") == IDS
    estimate = estimated_prevalence(column(told, "probability"), TRAINED)
    assert column(shifted, "prevalence") == pytest.approx([estimate] * len(told), rel=1e-5)
    expected = at_prevalence(column(told, "probability"), TRAINED, estimate)
    np.testing.assert_allclose(column(shifted, "probability"), expected, rtol=1e-4)
    assert column(shifted, "hallucinated") == column(told, "hallucinated")
    lines = run("analyse", data, *common, "--prevalence", "estimate").stdout.splitlines()
    assert lines[-1] == f"probabilities are for a prevalence of {estimate:.3g}"


def test_one_response_at_a_prevalence(run, data, common):
    one = ["analyse", data, "--id", IDS[0], *common]
    assert parsed(run(*one, "--json", "--prevalence", 0.1))[0]["prevalence"] == 0.1
    assert "a prevalence of 0.1" in run(*one, "--prevalence", 0.1).stdout
    assert "prevalence" not in run(*one).stdout


def test_what_cannot_be_shifted_is_refused_before_anything_is_read(
    run, data, rows, common, tiny_reader, prompts_read, tmp_path
):
    few = write_jsonl(rows[:5], tmp_path / "few.jsonl")
    refused = run("analyse", few, *common, "--prevalence", "estimate", code=2).stderr
    assert "20 responses or more," in refused
    detector = plain_detector(tiny_reader)
    without = replace(detector, card=detector.card.model_copy(update={"prevalence": 0.0}))
    folder = without.save(tmp_path / "d")
    for wanted in ("estimate", 0.1):
        refused = run("analyse", data, *common[:3], folder, "--prevalence", wanted, code=2).stderr
        assert "this detector's card has" in refused
    assert not prompts_read
