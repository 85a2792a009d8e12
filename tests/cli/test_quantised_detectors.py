"""A detector of a quantised reader, from labelled data to a verdict, by the commands that its user has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lrp4rag.reader import load_reader
from tests.cli.plain_detector import plain_detector
from tests.reader.test_quantised_reader import config_of
from tests.tiny import save_tiny_reader
from tests.training.labelled import examples, write_jsonl
from tests.training.quick import few_steps

WORDS = {"torchao": "torchao Int8WeightOnly", "bitsandbytes": "bitsandbytes NF4"}


@pytest.fixture(scope="module", autouse=True)
def _few_steps():
    with few_steps():
        yield


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("readers") / "plain"
    return save_tiny_reader(folder, hidden_size=64, intermediate_size=128, num_attention_heads=4)


@pytest.fixture(scope="module", params=WORDS)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def quantised(kind, plain, tmp_path_factory) -> Path:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp(kind) / "reader"
    AutoModelForCausalLM.from_pretrained(plain, quantization_config=config_of(kind)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(plain).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_jsonl(examples(20), tmp_path_factory.mktemp("data") / "train.jsonl")


@pytest.fixture(scope="module")
def detector(run, quantised, data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    options = ["--store", folder / "s", "--out", folder / "d", "--bootstrap", 10, "--workers", 1]
    run("train", data, "--reader", quantised, "--device", "cpu", "--no-pairs", *options)
    return folder / "d"


def test_its_card_says_what_quantised_the_reader(run, kind, detector) -> None:
    card = json.loads(run("card", detector, "--json").stdout)
    assert card["reader"]["quantised"] == WORDS[kind]
    printed = " ".join(run("card", detector).stdout.split())
    assert f"quantised: {WORDS[kind]}; relevance is pushed, not pulled" in printed
    page = run("card", detector, "--markdown").stdout
    assert f"| weights | quantised: {WORDS[kind]}." in page


def test_it_judges_by_that_reader_and_refuses_the_plain_one(
    run, kind, quantised, plain, data, detector
) -> None:
    command = ["analyse", data, "--id", "bridge-1", "--detector", detector, "--json"]
    found = json.loads(run(*command, "--reader", quantised, "--device", "cpu").stdout)
    assert 0 <= found["probability"] <= 1
    assert found["reader"]["quantised"] == WORDS[kind]
    result = run(*command, "--reader", plain, "--device", "cpu", code=2)
    said = " ".join(result.stderr.split())
    assert f"quantised: {WORDS[kind]}" in said
    assert "this is reader plain" in said
    assert "detector for this one" in said


def test_a_detector_of_the_plain_reader_refuses_it(run, quantised, data, plain, tmp_path) -> None:
    folder = plain_detector(load_reader(str(plain), device="cpu")).save(tmp_path / "d")
    assert "quantised" not in run("card", folder, "--markdown").stdout
    command = ["analyse", data, "--id", "bridge-1", "--detector", folder, "--reader", quantised]
    assert "quantised: " in " ".join(run(*command, "--device", "cpu", code=2).stderr.split())


def test_it_has_no_r_prompt_but_a_matrix(run, quantised, data, tmp_path) -> None:
    """R_prompt is pulled; R* in bins is pushed, so that an LSTM can be had."""
    places = ["--store", tmp_path / "s", "--out", tmp_path / "d", "--reader", quantised, "--device", "cpu"]
    stderr = run("train", data, *places, "--vector", "prompt", code=2).stderr
    assert "pulled, and this reader's" in stderr
    assert not (tmp_path / "s").exists()
    choice = ["--vector", "matrix", "--classifier", "lstm", "--limit", 8, "--bootstrap", 10, "--workers", 1]
    assert "lstm (this)" in run("train", data, *places, *choice).stdout
