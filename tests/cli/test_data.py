"""`data fetch`, and a fetched set as DATA."""

import hashlib
import json

import pytest

from lrp4rag.training import fetch
from lrp4rag.training.fetch import PublicFile, PublicSet
from lrp4rag.training.sets import load_set


@pytest.fixture
def ragtruth(monkeypatch, tmp_path):
    """A small RAGTruth that is in the cache already: of both splits and two tasks."""
    sources = [
        {"source_id": "s1", "task_type": "QA", "prompt": "What?\npassage 1:It is red.\n",
         "source_info": {"question": "What?", "passages": "passage 1:It is red.\n"}},
        {"source_id": "s2", "task_type": "Summary", "prompt": "Sum up: It is red.",
         "source_info": "It is red."},
    ]  # fmt: skip
    responses = [
        {"id": f"r{source[1]}-{split}", "source_id": source, "model": "m", "labels": [], "split": split,
         "response": "It is red."}
        for source in ("s1", "s2")
        for split in ("train", "test")
    ]  # fmt: skip
    monkeypatch.setenv("LRP4RAG_CACHE", str(tmp_path / "cache"))
    folder, files = fetch.set_folder("ragtruth"), []
    folder.mkdir(parents=True)
    for name, rows in (("source_info.jsonl", sources), ("response.jsonl", responses)):
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        (folder / name).write_bytes(content)
        files.append(PublicFile(name, len(content), hashlib.sha256(content).hexdigest()))
    monkeypatch.setattr(fetch, "PUBLIC", {"ragtruth": PublicSet("http://127.0.0.1:9", "MIT", tuple(files))})
    return folder


def test_a_fetched_set_has_the_questions_of_its_train_split(run, ragtruth, monkeypatch, tmp_path):
    assert str(ragtruth) in run("data", "fetch", "ragtruth").stdout
    assert [example.id for example in load_set("ragtruth")] == ["r1-train"]
    assert len(load_set(ragtruth)) == 4
    result = run("train", "ragtruth", "--out", tmp_path / "d", code=2)
    assert "sources with annotated tokens" in result.stderr


def test_a_set_that_was_not_fetched(run, tmp_path, monkeypatch):
    monkeypatch.setenv("LRP4RAG_CACHE", str(tmp_path))
    assert "lrp4rag data fetch ragtruth" in run("train", "ragtruth", "--out", tmp_path / "d", code=2).stderr


def test_exit_codes(run, ragtruth, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "PAUSE", 0)
    assert "ragtruth" in run("data", "fetch", "cats", code=2).stderr
    assert "127.0.0.1:9" in run("data", "fetch", "ragtruth", "--out", tmp_path / "new", code=1).stderr
    assert run("data", "fetch", "ragtruth", "--mirror", "ftp://x", "--out", tmp_path / "new", code=2).stderr
