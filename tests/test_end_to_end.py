"""The main job as a user runs it: commands on the real default reader and the bundled detector."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.special import logit

from lrp4rag import Detector, ExplainedVerdict
from lrp4rag.classifiers import Model
from lrp4rag.cli import main
from lrp4rag.data import load_examples
from lrp4rag.lrp import attribute
from lrp4rag.reader import Reader

EXAMPLES = Path(__file__).parent.parent / "examples"

pytestmark = pytest.mark.usefixtures("default_reader")


def lrp4rag(*arguments: object, code: int = 0) -> Result:
    """The command in this process, where the default reader is loaded already."""
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page") / "page.html"


@pytest.fixture(scope="module")
def verdicts(default_reader: Reader, page: Path) -> dict[str, Any]:
    """Of both hand-written examples; the page of one has the relevance of every sentence."""
    options: dict[str, list[object]] = {"grounded": [], "hallucinated": ["--html", page]}
    return {
        name: json.loads(
            lrp4rag("analyse", EXAMPLES / f"{name}.json", "--json", *more).stdout.splitlines()[0]
        )
        for name, more in options.items()
    }


@pytest.fixture(scope="module")
def two(default_reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One response, of a generator that is not known and of one that is."""
    path = tmp_path_factory.mktemp("two") / "two.jsonl"
    row = {
        "id": "unknown",
        "question": "How tall is the tower?",
        "passages": ["The tower is 31 metres tall and built of grey granite."],
        "response": "The tower is 45 metres tall.",
    }
    rows = [row, row | {"id": "by 7b", "generator": "llama-2-7b-chat"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture(scope="module")
def quick(two: Path) -> dict[str, Any]:
    """What the detector says, in a process of its own."""
    command = [sys.executable, "-m", "lrp4rag", "analyse", str(two), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert len(done.stderr.splitlines()) == 1  # the summary: nothing of other libraries
    return {row["id"]: row for row in map(json.loads, done.stdout.splitlines())}


def test_the_planted_hallucination_is_told_from_the_grounded_response(verdicts: dict[str, Any]) -> None:
    assert verdicts["hallucinated"]["hallucinated"]
    assert not verdicts["grounded"]["hallucinated"]


def test_a_known_generator_shifts_what_its_words_say_and_nothing_else(quick: dict[str, Any]) -> None:
    """Its values are as they are, whoever wrote them."""
    known, unknown = quick["by 7b"], quick["unknown"]
    shift = Model.load().card.input.reading.shift("llama-2-7b-chat")
    moved = logit(known["probability"]) - logit(unknown["probability"])
    assert moved == pytest.approx(shift, rel=1e-3)
    assert known["spans"] == unknown["spans"]
    assert (known["generator_shift"], unknown["generator_shift"]) == (pytest.approx(shift), 0)


def test_each_grounded_sentence_is_nearest_to_the_passage_that_says_it(verdicts: dict[str, Any]) -> None:
    assert [one["nearest"]["passage"] for one in verdicts["grounded"]["sentences"]] == [1, 2]


def test_the_planted_sentences_have_little_relevance_and_are_suspect(verdicts: dict[str, Any]) -> None:
    (label,) = load_examples(EXAMPLES / "hallucinated.json")[0].labels or ()
    true, *planted = verdicts["hallucinated"]["sentences"]
    assert true["passage"] in (1, 2)
    assert (planted[0]["start"], planted[-1]["end"]) == (label.start, label.end)
    assert all(sentence["relevance"] < true["relevance"] / 2 for sentence in planted)
    assert [true["suspect"], *(sentence["suspect"] for sentence in planted)] == [False, True, True, True]
    spans = verdicts["hallucinated"]["spans"]
    assert all(label.start <= span["start"] < span["end"] <= label.end for span in spans)


def test_the_page_of_a_real_example(verdicts: dict[str, Any], page: Path) -> None:
    assert "Robert Stevenson" in page.read_text()


def test_a_streamed_response_has_the_relevance_of_its_replay(default_reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "asked.json"
    passages = ["The Marlow tower is 31 metres tall and built of grey granite.", "Fish is sold nearby."]
    path.write_text(json.dumps({"question": "How tall is the tower?", "passages": passages}))
    lines = lrp4rag("generate", path, "--stream", "--json", "--max-new-tokens", 10).stdout.splitlines()
    *tokens, last = map(json.loads, lines)
    prompt = default_reader.encode_prompt(load_examples(path)[0])
    encoded = replace(prompt, response_ids=tuple(token["token"] for token in tokens))
    replayed = attribute(default_reader, encoded, segments=True).by_segment
    streamed = np.array([list(token["relevance"].values()) for token in tokens]).T
    np.testing.assert_allclose(streamed, replayed, rtol=1e-4, atol=1e-4 * np.abs(replayed).max())
    assert "Marlow tower is 31" in last["response"]
    assert last["passage"] == 1
    assert last["from_passages"] > 0.5


GENERATORS = {"llama-2-7b-chat", "llama-2-13b-chat", "llama-2-70b-chat", "mistral-7B-instruct"}


def test_the_bundled_detector_has_a_whole_card() -> None:
    card = json.loads(lrp4rag("card", "--json").stdout)
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


@pytest.mark.slow  # minutes on a processor without bfloat16
def test_precisions_agree_on_the_verdict(two: Path, quick: dict[str, Any]) -> None:
    """The detector learned from bfloat16, in which `analyse` reads where the processor computes it."""
    for line in lrp4rag("analyse", two, "--dtype", "bfloat16", "--json").stdout.splitlines():
        row = json.loads(line)
        assert row["probability"] == pytest.approx(quick[row["id"]]["probability"], abs=0.05)


PASSAGES_HAVE = {
    "parental-leave": ("4 weeks", "2 weeks"),
    "blood-thinner": (
        "Corvexin may be taken together with ibuprofen",
        "Corvexin must not be taken together with ibuprofen or other anti-inflammatory painkillers",
    ),
    "baggage": ("60 euros", "85 euros"),
    "director": ("Tomas Ekdahl", "Dr Amina Castell"),
    "deposit": ("before", "after"),
}
"""What examples of `contradictions.jsonl` say, one of each kind, and what their passages say instead."""


@pytest.fixture(scope="module")
def contradictions(default_reader: Reader) -> dict[str, ExplainedVerdict]:
    examples = [one for one in load_examples(EXAMPLES / "contradictions.jsonl") if one.id in PASSAGES_HAVE]
    verdicts = Detector.load(reader=default_reader).judge_many(examples, evidence=False)
    return {example.id: verdict for example, verdict in zip(examples, verdicts, strict=True)}


MISSED = {"baggage"}
"""Those that are under the default threshold."""


@pytest.mark.parametrize("name", sorted(PASSAGES_HAVE))
def test_a_contradicted_value_is_named_with_that_of_the_passage(
    name: str, contradictions: dict[str, ExplainedVerdict]
) -> None:
    """A detector that finds one of those that are missed makes this fail: move it to the others then."""
    verdict = contradictions[name]
    assert verdict.hallucinated == (name not in MISSED)
    if name not in MISSED:
        assert PASSAGES_HAVE[name] in [(one.text, one.instead) for one in verdict.contradictions]
