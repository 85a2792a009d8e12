"""A command-line runner in this process, a tiny reader, and a detector trained on it by the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from lrp4rag import reader as readers
from lrp4rag.cli import main
from lrp4rag.reader import load_reader
from tests.tiny import save_tiny_reader
from tests.training.labelled import examples, write_jsonl

Run = Callable[..., Result]

load_once = lru_cache(maxsize=8)(load_reader)
"""Of the readers that commands load here, each is loaded once."""


def runner(program: click.Group) -> Run:
    """Invokes a command; an error must be a message and the exit code `code`, not a traceback."""

    def invoke(*arguments: object, code: int = 0, stdin: str | bytes | None = None) -> Result:
        with pytest.MonkeyPatch.context() as patch:
            if readers.load_reader is load_reader:  # no test has put something else there
                patch.setattr(readers, "load_reader", load_once)
            result = CliRunner().invoke(program, list(map(str, arguments)), input=stdin)
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


@pytest.fixture(scope="session")
def run() -> Run:
    return runner(main)


@pytest.fixture(scope="session")
def labelled_file(tmp_path_factory) -> Path:
    return write_jsonl(examples(14), tmp_path_factory.mktemp("data") / "train.jsonl")


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("store") / "s"


@pytest.fixture(scope="session")
def detector(run, labelled_file, store, reader_folder, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("detectors") / "tiny"
    places = ["--store", store, "--out", folder, "--reader", reader_folder]
    result = run("train", labelled_file, *places, "--length", 16, "--bootstrap", 20, "--workers", 1)
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
    return save_tiny_reader(tmp_path_factory.mktemp("readers") / "other", seed=7)
