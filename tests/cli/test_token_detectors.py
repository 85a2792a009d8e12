"""A token detector from labelled data to a verdict, by the commands that its user has."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lrp4rag.example import Example
from tests.tiny import save_tiny_reader
from tests.training.labelled import examples, write_jsonl
from tests.training.quick import few_steps


@pytest.fixture(scope="module", autouse=True)
def _few_steps():
    with few_steps():
        yield


@pytest.fixture(scope="module")
def deep(tmp_path_factory) -> Path:
    """Deep enough for a stored layer."""
    return save_tiny_reader(tmp_path_factory.mktemp("readers") / "deep", num_hidden_layers=4)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    others = [replace(row, id=f"{row.id}-g2") for row in examples(6, generator="g2")]
    long = [  # of which minimal pairs are made
        Example(
            "How long is the bridge?",
            [f"The bridge of Holm is {k}12 metres long, has {k} lanes and was opened in 19{k}1."],
            f"The bridge of Holm is {k}12 metres long, and it was opened in 19{k}1.",
            labels=(),
            id=f"holm-{k}",
            source=f"holm-{k}",
            generator="g1",
        )
        for k in range(3, 6)
    ]
    return write_jsonl([*examples(20), *others, *long], tmp_path_factory.mktemp("data") / "train.jsonl")


@pytest.fixture(scope="module")
def further(tmp_path_factory) -> Path:
    """Pairs: eleven questions with a right and a wrong answer each."""
    rows = [
        {
            "id": f"q{k}",
            "question": "How long is the bridge?",
            "passages": [f"The bridge of Holm {k} is {k + 20} metres long and was built in 1931."],
            "responses": [
                {"id": f"q{k}", "response": f"It is {k + 20} metres long.", "labels": []},
                {
                    "id": f"q{k}~number",
                    "response": f"It is {k + 40} metres long.",
                    "labels": [{"start": 6, "end": 15, "kind": "number"}],
                },
            ],
        }
        for k in range(11)
    ]
    path = tmp_path_factory.mktemp("data") / "further.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def places(tmp_path_factory, deep) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("made")
    return {"store": folder / "s", "detector": folder / "d", "reader": deep}


@pytest.fixture(scope="module")
def trained(run, data, further, places) -> str:
    options = ["--store", places["store"], "--reader", places["reader"], "--bootstrap", 20, "--workers", 1]
    options += ["--more", further]
    return run("train", data, "--out", places["detector"], *options).stdout


@pytest.fixture
def one(places, trained):
    return ["--reader", places["reader"], "--detector", places["detector"]]


def test_training_by_default_judges_tokens(trained, places) -> None:
    assert "\ntokens " in trained
    assert "(this)" in trained
    card = json.loads((places["detector"] / "card.json").read_text())
    assert list(card["input"]["blocks"]) == ["plain", "around", "entailment"]
    assert set(card["evidence"]["generators"]) == {"g1", "g2"}
    assert card["rows"] == 29, "what is made of them does not count"
    assert set(card["evidence"]["sets"]) == {"further"}
    assert card["threshold"] == card["operating_points"]["one-in-ten"]["threshold"]
    assert card["selections"]
    assert card["domain"]


def test_evaluation_and_analysis_give_one_probability(run, data, tmp_path, one) -> None:
    some = tmp_path / "some.jsonl"
    some.write_text("".join(data.read_text().splitlines(keepends=True)[1:9:7]))
    options = [some, *one, "--allow-seen", "--bootstrap", 10]
    evaluated = json.loads(run("evaluate", *options, "--json").stdout)
    for name in ("bridge-1", "bridge-8"):
        analysed = json.loads(run("analyse", some, "--id", name, *one, "--json").stdout)
        assert analysed["probability"] == pytest.approx(evaluated["probabilities"][name], abs=1e-6)
        assert {"status", "probability", "passage"} <= set(analysed["sentences"][0])
        stating = [one for one in analysed["sentences"] if one["status"] != "states nothing"]
        assert analysed["probability"] == max(one["probability"] for one in stating)
        assert all(
            one["suspect"] == (one["probability"] >= analysed["threshold"])
            for one in stating
            if one["status"] != "not judged"
        )
    table = run("evaluate", *options).stdout
    assert "unlike the training data" in table or not evaluated["abstained"]


def test_operating_points_move_the_threshold(run, data, one, places) -> None:
    def threshold(*options: object) -> float:
        result = run("analyse", data, "--id", "bridge-1", *one, "--json", *options)
        return json.loads(result.stdout)["threshold"]

    points = json.loads((places["detector"] / "card.json").read_text())["operating_points"]
    for name in ("high-recall", "high-precision"):
        assert threshold("--operating-point", name) == points[name]["threshold"]
    assert threshold() == points["one-in-ten"]["threshold"]
    assert threshold("--false-positive-rate", 0.01) >= threshold("--false-positive-rate", 0.5)
    stderr = run("analyse", data, "--id", "bridge-1", *one, "--operating-point", "loud", code=2).stderr
    assert "operating point 'loud'; choose" in stderr


def test_what_is_unlike_the_training_data_has_no_verdict(run, one, tmp_path) -> None:
    path = tmp_path / "short.json"
    path.write_text(json.dumps({"question": "Open?", "passages": ["Yes."], "response": "Yes"}))
    row = json.loads(run("analyse", path, *one, "--json", "--fail-on-hallucination").stdout)
    assert row["abstained"]
    assert row["hallucinated"] is None
    assert 0 <= row["probability"] <= 1
    assert "No verdict" in run("analyse", path, *one).stdout


def test_a_file_of_options_can_have_a_part_of_the_sources_be_learned_from(
    run, data, places, trained, tmp_path
) -> None:
    folder, config = tmp_path / "d", tmp_path / "train.yaml"
    config.write_text("limit: 20\nblock: [plain]\nno_pairs: true\nbootstrap: 10\n")
    options = ["--store", places["store"], "--reader", places["reader"], "--workers", 1]
    run("train", data, "--out", folder, *options, "--config", config)
    card = json.loads((folder / "card.json").read_text())
    assert (card["rows"], list(card["input"]["blocks"])) == (26, ["plain"])
    assert len(card["training"]["sources"]) == 20
    assert "/" not in card["training"]["command"]
