"""`lrp4rag generate`: what it prints, and that it is what a replay gives."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lrp4rag.data import load_examples
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.attribution import segment_weights
from lrp4rag.reader import Reader
from tests.scripted import make_it_say
from tests.tiny import Tokens
from tests.training.labelled import examples, write_jsonl


@pytest.fixture
def generate(run, reader_folder, example_file):
    """Runs the command on the example with the tiny reader."""

    def invoke(*arguments: object, data: object = None, tokens: int = 8, **options):
        common = ["--reader", reader_folder, "--max-new-tokens", tokens]
        return run("generate", example_file if data is None else data, *common, *arguments, **options)

    return invoke


@pytest.fixture
def speak(monkeypatch, tiny_reader: Reader):
    """Makes any reader say a text; the relevance of its tokens is that of their replay."""

    return lambda text: make_it_say(monkeypatch, tiny_reader.tokenizer(text)["input_ids"])


def rows(result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("composite", ["attnlrp", "cp_lrp"])
def test_json_equals_the_replay_of_the_same_tokens(generate, tiny_reader, example_file, composite):
    (row,) = rows(generate("--json", "--composite", composite))
    encoded = tiny_reader.encode_prompt(load_examples(example_file)[0])
    ids = tuple(token["token"] for token in row["tokens"])
    tokens = Tokens(encoded.prompt_ids, ids)
    with relevance_mode(tiny_reader.model, composite) as flow:
        replayed = flow.push(tokens, segment_weights(encoded)).numpy()
    streamed = np.array([list(token["relevance"].values()) for token in row["tokens"]]).T
    np.testing.assert_allclose(streamed, replayed, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(list(row["relevance"].values()), replayed.sum(1), rtol=1e-4, atol=1e-4)
    assert row["total"] == pytest.approx(replayed.sum(), abs=1e-4)
    assert list(row["relevance"]) == ["template", "question", "passage 1", "passage 2"]
    assert (row["composite"], row["target"]) == (composite, "response")


def test_the_same_text_analysed_has_the_same_relevance(generate, speak, run, reader_folder, example_file):
    """What `analyse` says of the response's only sentence is the mean over the tokens of `generate`."""
    text = "It was opened in 1874 or so."
    speak(text)
    (row,) = rows(generate("--json"))
    assert row["response"] == text
    example = {**json.loads(example_file.read_text()), "response": text}
    example_file.write_text(json.dumps(example))
    result = run("analyse", example_file, "--reader", reader_folder, "--detector", "none", "--json")
    (sentence,) = json.loads(result.stdout)["sentences"]
    count = row["response_tokens"]
    assert sentence["relevance"] == pytest.approx(row["total"] / count, rel=1e-4)
    sums = [row["relevance"][f"passage {k}"] / count for k in (1, 2)]
    assert sentence["by_passage"] == pytest.approx(sums, rel=1e-4)


def test_streamed_json_is_a_line_per_token_and_then_all(generate):
    (whole,) = rows(generate("--json"))
    *lines, last = rows(generate("--json", "--stream"))
    assert [{"id": "bridge", **token} for token in whole["tokens"]] == lines
    assert {**last, "seconds": None} == {**whole, "seconds": None}
    assert set(last["seconds"]) == {"load", "first token", "further tokens"}


@pytest.mark.parametrize("options", [[], ["--stream"]])
def test_text_on_a_pipe_is_plain(generate, speak, options):
    speak(" It opened in 1874.\nSo it did.")
    output = generate(*options).stdout
    assert output.startswith("It opened in 1874.\nSo it did.\n\nsegment ")
    assert "\x1b" not in output
    for words in ("passage 1", "question", "template", "whole prompt", "from the passages", "first token"):
        assert words in output


def test_control_codes_do_not_reach_the_terminal(generate, speak):
    speak("\x1b[2J gone \x1b]0;x\x07")
    for options in ([], ["--stream"]):
        assert not {"\x1b", "\x07"} & set(generate(*options).stdout)


def test_draws_are_seeded(generate):
    def drawn(*options: object) -> str:
        (row,) = rows(generate("--json", *options))
        return row["response"]

    warm = ("--temperature", 1.5, "--seed")
    assert drawn(*warm, 1) == drawn(*warm, 1) != drawn(*warm, 2)


def test_it_stops_where_relevance_is_low(generate):
    (row,) = rows(generate("--json", "--stop-below", 1e9, tokens=20))
    assert (row["ending"], row["response_tokens"]) == ("stop", 17)
    (row,) = rows(generate("--json", "--stop-below", -1e9))
    assert (row["ending"], row["response_tokens"]) == ("length", 8)
    assert "stopped: below 1000000000.0" in generate("--stop-below", 1e9, tokens=20).stdout


def test_many_examples_and_one_that_fails(generate, tmp_path):
    path = write_jsonl(examples(3), tmp_path / "many.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["passages"] = ["word " * 600]  # the tiny reader's window is 512
    path.write_text("\n".join(map(json.dumps, lines)))
    result = generate("--json", data=path, code=2)
    assert [row["id"] for row in rows(result)] == ["bridge-0", "bridge-2"]
    assert "example 'bridge-1': prompt of" in result.stderr
    titles = generate("--stream", data=path, code=2).stdout.splitlines()
    assert "bridge-0" in titles
    assert "bridge-2" in titles


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", 1], "--seed is for sampling"),
        (["--max-new-tokens", 0], "--max-new-tokens"),
        (["--composite", "none"], "--composite"),
        (["--question", "Q"], "not both"),
    ],
)
def test_bad_options(generate, options, message):
    """Numbers that are none: tests/cli/test_options.py."""
    result = generate(*options, code=2)
    assert result.stdout == ""
    assert message in result.stderr


def test_an_empty_response_is_a_failure(generate, monkeypatch):
    monkeypatch.setattr("lrp4rag.generation.stream", lambda *_, **__: iter(()))
    result = generate("--json", code=1)
    assert result.stdout == ""
    assert "gave an empty response" in result.stderr
