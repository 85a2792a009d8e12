"""`python -m experiments ragulator`: a store in, a page out."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.systems import resources
from experiments.systems.ragulator import sentences
from lrp4rag.util.strict_json import read_record
from tests.experiments.paper.stores import LARGE, SMALL, examples, store
from tests.experiments.systems.stand_ins import ScriptedChat, no_training, stand_in


@pytest.fixture
def without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    no_training(monkeypatch)
    made = stand_in(speaker=ScriptedChat(lambda *_: "none"))
    monkeypatch.setattr(resources, "Resources", lambda *_: made)
    for name, values in (
        ("FOREST_TREES", (5,)),
        ("FOREST_DEPTHS", (2,)),
        ("BOOSTED_TREES", (5,)),
        ("BOOSTED_DEPTHS", (2,)),
        ("LEAVES", (4,)),
        ("SUBSAMPLES", (1.0,)),
    ):
        monkeypatch.setattr(sentences, name, values)


def test_a_page_of_one_generator_is_made(run, without_weights, tmp_path: Path) -> None:
    folder = store(tmp_path / "store", examples(60), parts=())
    out = tmp_path / "out"
    options = ["--reader", "tiny", "--bootstrap", 10, "--out", out]
    run("ragulator", "--store", folder, "--generator", SMALL, *options)
    record = read_record(out / "results.json", "results")
    assert record["sources"] == {"learn": 36, "tune": 9, "test": 15}
    assert record["command"].startswith("python -m experiments ragulator --store store --generator ")
    assert LARGE not in (out / "README.md").read_text()


def test_another_s_folder_is_refused_before_anything_is_learned(run, tmp_path: Path) -> None:
    folder = store(tmp_path / "store", examples(4), parts=())
    out = tmp_path / "out"
    out.mkdir()
    (out / "README.md").write_text("mine")
    result = run("ragulator", "--store", folder, "--reader", "tiny", "--out", out, code=2)
    assert "did not write" in result.output
    assert (out / "README.md").read_text() == "mine"
