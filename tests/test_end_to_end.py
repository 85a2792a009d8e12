"""The main job as a user runs it: the installed command, the real default reader, the bundled detector."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit

from lrp4rag.classifiers import FittedDetector
from lrp4rag.data import load_examples
from lrp4rag.lrp import attribute

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.usefixtures("default_reader")


def lrp4rag(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lrp4rag", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory) -> dict[str, dict]:
    """Both hand-written examples in one run, as one file; and one of them said to be of a known generator."""
    path = tmp_path_factory.mktemp("both") / "both.jsonl"
    rows = [json.loads((EXAMPLES / f"{name}.json").read_text()) for name in ("grounded", "hallucinated")]
    rows.append(rows[1] | {"id": "by 7b", "generator": "llama-2-7b-chat"})
    path.write_text("\n".join(map(json.dumps, rows)))
    lines = lrp4rag("analyse", path, "--json").stdout.splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def test_the_planted_hallucination_is_told_from_the_grounded_response(verdicts):
    assert verdicts["hallucinated"]["hallucinated"]
    assert not verdicts["grounded"]["hallucinated"]


def test_a_known_generator_shifts_the_log_odds_and_nothing_else(verdicts):
    told, untold = verdicts["by 7b"], verdicts["hallucinated"]
    shift = FittedDetector.load().card.input.reading.shifts["llama-2-7b-chat"]
    assert logit(told["probability"]) - logit(untold["probability"]) == pytest.approx(shift, abs=1e-3)
    assert told["spans"] == untold["spans"]
    assert (told["generator_shift"], untold["generator_shift"]) == (pytest.approx(shift), 0)


def test_each_grounded_sentence_rests_on_the_passage_that_says_it(verdicts):
    assert [s["passage"] for s in verdicts["grounded"]["sentences"]] == [1, 2]


def test_the_planted_sentences_have_little_relevance_and_are_suspect(verdicts):
    (label,) = load_examples(EXAMPLES / "hallucinated.json")[0].labels
    true, *planted = verdicts["hallucinated"]["sentences"]
    assert (planted[0]["start"], planted[-1]["end"]) == (label.start, label.end)
    assert all(sentence["relevance"] < true["relevance"] / 2 for sentence in planted)
    assert [true["suspect"], *(sentence["suspect"] for sentence in planted)] == [False, True, True, True]
    spans = verdicts["hallucinated"]["spans"]
    assert all(label.start <= span["start"] < span["end"] <= label.end for span in spans)


def test_the_page_of_a_real_example(tmp_path):
    page = tmp_path / "page.html"
    output = lrp4rag("analyse", EXAMPLES / "hallucinated.json", "--html", page).stdout
    assert "probability 0." in output
    assert "Robert Stevenson" in page.read_text()


def test_a_streamed_response_has_the_relevance_of_its_replay(default_reader):
    lines = lrp4rag(
        "generate", EXAMPLES / "grounded.json", "--stream", "--json", "--max-new-tokens", 40
    ).stdout.splitlines()
    *tokens, last = map(json.loads, lines)
    prompt = default_reader.encode_prompt(load_examples(EXAMPLES / "grounded.json")[0])
    encoded = replace(prompt, response_ids=tuple(token["token"] for token in tokens))
    replayed = attribute(default_reader, encoded, segments=True).by_segment
    streamed = np.array([list(token["relevance"].values()) for token in tokens]).T
    np.testing.assert_allclose(streamed, replayed, rtol=1e-4, atol=1e-4 * np.abs(replayed).max())
    assert "Marlow lighthouse" in last["response"]
    assert last["ending"] == "end"
    assert last["passage"] in (1, 2)
    assert last["from_passages"] > 0.5


GENERATORS = {"llama-2-7b-chat", "llama-2-13b-chat", "llama-2-70b-chat", "mistral-7B-instruct"}


@pytest.mark.parametrize("name", ["default", "fast"])
def test_the_bundled_detectors_have_whole_cards(name):
    card = json.loads(lrp4rag("card", name, "--json").stdout)
    assert card["reader"]["name"] == "smollm2-135m"
    assert set(card["training"]["generators"]) == GENERATORS
    assert sum(card["training"]["generators"].values()) == card["rows"]
    assert card["selections"]
    assert card["domain"]
    for one in card["evidence"]["generators"].values():
        for metric in ("accuracy", "precision", "recall", "f1", "auroc"):
            interval = one["metrics"][metric]
            assert interval["low"] < interval["value"] < interval["high"]
        # What the card claims is better than what the length alone gives.
        auroc = one["metrics"]["auroc"]["value"]
        assert auroc > one["controls"]["length only"]["auroc"]["value"]


def test_the_fast_detector_tells_the_planted_hallucination_too():
    row = json.loads(lrp4rag("analyse", EXAMPLES / "hallucinated.json", "--fast", "--json").stdout)
    assert row["hallucinated"]
    assert row["relevance_of"] == "passages"


def test_precisions_agree_on_the_verdict(tmp_path):
    """The detector learned from bfloat16, which is how stores are made; analyse reads in float32."""
    path = tmp_path / "both.jsonl"
    path.write_text(
        "\n".join(
            json.dumps(json.loads((EXAMPLES / f"{name}.json").read_text()))
            for name in ("grounded", "hallucinated")
        )
    )
    full, half = (
        [
            json.loads(line)
            for line in lrp4rag("analyse", path, "--dtype", dtype, "--json").stdout.splitlines()
        ]
        for dtype in ("float32", "bfloat16")
    )
    assert len(full) == len(half) == 2
    for first, second in zip(full, half, strict=True):
        assert first["probability"] == pytest.approx(second["probability"], abs=0.05)
