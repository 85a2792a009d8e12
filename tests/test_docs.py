"""The documentation runs: its Python as it stands, and its commands have the options that they name."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.reader import Reader
from tests.training.labelled import examples, write_jsonl

ROOT = Path(__file__).parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *(
        page
        for folder in ("baselines", "guides", "reference")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path, *languages: str) -> list[str]:
    return re.findall(rf"```(?:{'|'.join(languages)})\n(.*?)```", page.read_text(), re.DOTALL)


def require_options(line: str) -> None:
    """Assert that the commands and options of a command line exist."""
    command: click.Command = main
    # Commands keep the help option that they are asked for first.
    context = click.Context(main, **main.context_settings)
    for word in shlex.split(line, comments=True)[1:]:
        if word in ("|", ">", "&&"):
            return
        if isinstance(command, click.Group) and not word.startswith("-"):
            member = command.get_command(context, word)
            assert member is not None, line
            command = member
        elif word.startswith("--"):
            options = {
                name
                for option in command.get_params(context)
                for name in (*option.opts, *option.secondary_opts)
            }
            assert word.partition("=")[0] in options, f"{word} in: {line}"


@each_page
def test_commands_of_a_page_are_known(page: Path) -> None:
    for block in blocks(page, "console", "bash", "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r"(\$ )?lrp4rag\b", line):
                require_options(line.removeprefix("$ "))


@dataclass(frozen=True)
class Snippet:
    """Python of a page, and what the page says that it prints."""

    code: str
    printed: str | None
    runs: bool


def snippets(page: Path) -> list[Snippet]:
    """A block of `text` behind one of Python is what that prints; `python skip` needs what no test has."""
    found = re.finditer(r"```python( skip)?\n(.*?)```\n(?:\n```text\n(.*?)```)?", page.read_text(), re.DOTALL)
    return [Snippet(one[2], one[3], runs=one[1] is None) for one in found]


ELSEWHERE = {"docs/baselines/README.md"}
"""Another test runs it: tests/experiments/systems/test_registry.py."""
SLOW = {"docs/streaming.md"}
TINY = {"docs/memory.md", "docs/reference/relevance.md"}
"""Relevance is the same with any reader: a small one reads, where no detector brings its own."""


def with_python() -> Iterator[Any]:
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        if name not in ELSEWHERE and any(one.runs for one in snippets(page)):
            yield pytest.param(page, id=name, marks=[pytest.mark.slow] * (name in SLOW))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, reader_folder: Path) -> Path:
    """What the pages read: the examples, and a STORE with its table."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "examples").symlink_to(ROOT / "examples")
    data, store = write_jsonl(examples(4), folder / "data.jsonl"), folder / "STORE"
    arguments = ["extract", data, "--store", store, "--reader", reader_folder, "--device", "cpu"]
    for line in (
        [*arguments, "--parts", "reading,relevance,segments"],
        ["store", "export", store, "--out", folder / "table.parquet"],
    ):
        done = CliRunner().invoke(main, [str(word) for word in line])
        assert done.exit_code == 0, done.output
    return folder


@pytest.mark.usefixtures("default_reader")
@pytest.mark.parametrize("page", [*with_python()])
def test_python_of_a_page_runs_and_prints_what_it_says(
    page: Path,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tiny_reader: Reader,
) -> None:
    """All blocks, one after the other, as one who pastes them would."""
    if str(page.relative_to(ROOT)) in TINY:
        monkeypatch.setattr("lrp4rag.reader.load_reader", lambda: tiny_reader)
    for path in files.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)  # what they write goes here
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(one for one in snippets(page) if one.runs):
        exec(compile(block.code, f"{page.name}, block {number}", "exec"), namespace)
        printed = capsys.readouterr().out
        assert block.printed is None or printed == block.printed


@each_page
def test_python_that_needs_more_than_a_test_has_is_python_and_imports_what_there_is(page: Path) -> None:
    for block in (one for one in snippets(page) if not one.runs):
        for node in ast.walk(ast.parse(block.code)):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module or "")
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []
