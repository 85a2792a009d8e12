"""A command-line runner in this process, a tiny reader, and a detector trained on it by the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lrp4rag.cli import main
from lrp4rag.reader import load_reader
from tests.training.labelled import examples, write_jsonl

Run = Callable[..., Result]


@pytest.fixture(scope="session", autouse=True)
def _cache(hash_cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRP4RAG_CACHE", str(hash_cache))
        yield


@pytest.fixture(scope="session")
def run() -> Run:
    def invoke(*arguments: object, code: int = 0, stdin: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
        assert result.exit_code == code, result.output
        # An error is a message, not a traceback.
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


@pytest.fixture(scope="session")
def labelled_file(tmp_path_factory) -> Path:
    return write_jsonl(examples(24), tmp_path_factory.mktemp("data") / "train.jsonl")


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("store") / "s"


@pytest.fixture(scope="session")
def detector(run, labelled_file, store, reader_folder, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("detectors") / "tiny"
    result = run(
        "train",
        labelled_file,
        "--store",
        store,
        "--out",
        folder,
        "--reader",
        reader_folder,
        "--length",
        16,
        "--resamples",
        20,
    )
    assert "svm (this)" in result.stdout
    return folder


@pytest.fixture
def example_file(tmp_path) -> Path:
    path = tmp_path / "example.json"
    path.write_text(
        json.dumps(
            {
                "id": "bridge",
                "question": "When was it opened?",
                "passages": ["The bridge was opened in 1874.", "Fish is sold nearby."],
                "response": "It was opened in 1874. Aliens built it.",
            }
        )
    )
    return path


@pytest.fixture(scope="session")
def other_reader(tmp_path_factory) -> Path:
    from tests.tiny import save_tiny_reader

    folder = save_tiny_reader(tmp_path_factory.mktemp("readers") / "other", seed=7)
    load_reader(str(folder), device="cpu")
    return folder
