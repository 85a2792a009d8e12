"""The documentation: its examples run as they stand, its commands are known, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from lrp4rag.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/baselines").glob("*.md")),
]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub names them in links."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@each_page
def test_what_a_page_links_to_is_there(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def blocks(page: Path, *languages: str) -> list[str]:
    return re.findall(rf"```(?:{'|'.join(languages)})\n(.*?)```", page.read_text(), re.DOTALL)


def require_known(command: str) -> None:
    """A command line names commands and options that there are."""
    found: click.Command = main
    # Commands keep the help option that they are asked for first.
    context = click.Context(main, **main.context_settings)
    for word in shlex.split(command, comments=True)[1:]:
        if word in ("|", ">", "&&"):
            return
        if isinstance(found, click.Group) and not word.startswith("-"):
            inner = found.get_command(context, word)
            assert inner is not None, command
            found = inner
        elif word.startswith("--"):
            options = {name for one in found.get_params(context) for name in (*one.opts, *one.secondary_opts)}
            assert word.partition("=")[0] in options, f"{word} in: {command}"


@each_page
def test_commands_of_a_page_are_known(page: Path) -> None:
    for block in blocks(page, "console", "bash", "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r"(\$ )?lrp4rag\b", line):
                require_known(line.removeprefix("$ "))


@pytest.mark.usefixtures("default_reader")
@pytest.mark.parametrize(
    "page", ["README.md", pytest.param("docs/streaming.md", marks=pytest.mark.slow)], ids=str
)
def test_python_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All blocks, one after the other, as one who pastes them would."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)  # what they write goes here
    code = blocks(ROOT / page, "python")
    assert code
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(code, start=1):
        exec(compile(block, f"{page}, block {number}", "exec"), namespace)
    assert capsys.readouterr().out.strip()
