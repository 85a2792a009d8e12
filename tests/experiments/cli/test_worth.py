"""`python -m experiments worth`: refusals; tests/experiments/worth measures."""

from __future__ import annotations

from pathlib import Path

from tests.experiments.paper.stores import examples, store


def test_a_store_without_signals_is_told_what_to_run(run, tmp_path: Path) -> None:
    folder = store(tmp_path / "store", examples(4), parts=())
    result = run("worth", "--store", folder, "--out", tmp_path / "out", code=2)
    assert "run lrp4rag extract DATA --parts relevance,signals,states" in " ".join(result.output.split())


def test_another_s_folder_is_refused(run, tmp_path: Path) -> None:
    folder = store(tmp_path / "store", examples(4), parts=())
    (tmp_path / "README.md").write_text("mine")
    result = run("worth", "--store", folder, "--out", tmp_path, code=2)
    assert "did not write" in result.output
    assert (tmp_path / "README.md").read_text() == "mine"
