"""Every table of measured figures has a file in the tree and the command that writes it, beside it.

A figure is a cell that is one number with decimals, a percent or a unit, with or without an interval. A table
is of results where two of its cells are. Beside it is: in its section (of `##`), or before the page's first.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from experiments.cli import main as research
from lrp4rag.cli import main

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

DEFINITIONS = {
    ("docs/omissions.md", "| | default | |"): "settings of a check, which were chosen",
}
"""Tables with numbers that nobody measured, by page and first line, and why."""

WRITTEN_FROM = {"docs/model-card.md": "lrp4rag/classifiers/bundled/default/card.json"}
"""Pages that a command writes as a whole, from a file that is not among the results."""

COPIED = {
    "docs/quantised.md": ("quantised.json",),
    "docs/precision.md": ("precision.json",),
    "docs/memory.md": ("memory.json",),
    "docs/streaming.md": ("speed/stream.json",),
    "docs/detector.md": ("paper/table2.csv", "paper/ablations.csv"),
}
"""Pages whose tables were copied by hand, and the files that must have each figure."""

SCALES = (1, 100, 1e-6, 1e-9)
"""As it is, as percent, in MB and in GB."""

UNIT = r"(?: ?(?:%|s|ms|µs|MB|GB|kB|points|a second))?"
NUMBER = r"[-+\u2212]?(?:\d[\d ,]*)(?:\.\d+)?(?:e[-+]?\d+)?"
INTERVAL = rf"(?: \[{NUMBER}, {NUMBER}\]| \({NUMBER}{UNIT}\))?"
FIGURE = re.compile(rf"(?:≈|~|under|over)? ?{NUMBER}{UNIT}{INTERVAL}")


@dataclass(frozen=True)
class Table:
    """Its lines, and what stands beside it."""

    lines: tuple[str, ...]
    beside: str


def figures(table: Table) -> list[str]:
    """Of the rows below the head. Whole numbers without a unit may count anything, so they are none."""
    cells = [cell.strip(" *") for line in table.lines[2:] for cell in line.strip("| ").split("|")]
    found = [cell for cell in cells if FIGURE.fullmatch(cell)]
    return [cell for cell in found if re.search(r"\.\d|[%a-zµ]|e[-+]\d", cell)]


def tables(text: str) -> Iterator[Table]:
    """Of a page, but for those in blocks of code."""
    text = re.sub(r"(?ms)^```.*?^```", lambda block: block[0].replace("|", " "), text)
    opening, *sections = re.split(r"(?m)^(?=## )", text)
    for section in (opening, *sections):
        beside = section if section == opening else f"{opening}\n{section}"
        for block in re.findall(r"(?m)(?:^[ ]*\|.*\n?)+", section):
            lines = tuple(line.strip() for line in block.strip().splitlines())
            if len(lines) > 2:
                yield Table(lines, beside)


def files_beside(page: Path, beside: str) -> list[Path]:
    """Files with results that the text links to or names."""
    links = [page.parent / link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", beside)]
    named = [ROOT / name for name in re.findall(r"docs/results/[\w./-]*\w", beside)]
    return [path for path in (*links, *named) if path.exists() and RESULTS in path.resolve().parents]


def is_known(command: str) -> bool:
    """Whether the words start with a command of ours that there is."""
    words = command.removeprefix("$ ").split()
    if words[:1] == ["make"] and len(words) > 1:
        return re.search(rf"(?m)^{re.escape(words[1])}:", (ROOT / "Makefile").read_text()) is not None
    if words[:3] == ["python", "-m", "experiments"]:
        return known(research, words[3:])
    if words[:2] == ["git", "show"] and len(words) > 2:  # a command of an earlier commit
        return re.fullmatch(r"[0-9a-f]{7,40}:benchmarks/[\w/]+\.py", words[2]) is not None
    if words[:2] == ["python", "-m"] and len(words) > 2 and words[2].startswith("benchmarks."):
        return importlib.util.find_spec(words[2]) is not None
    if words[:1] != ["lrp4rag"]:
        return False
    # The pages of results that are older say `lrp4rag study` for `python -m experiments study`.
    return known(main, words[1:]) or known(research, words[1:])


def known(group: click.Command, words: list[str]) -> bool:
    if not isinstance(group, click.Group):
        return True
    inner = group.get_command(click.Context(group), words[0]) if words else None
    return inner is not None and known(inner, words[1:])


def commands_beside(beside: str) -> list[str]:
    code = re.findall(r"`([^`\n]+)`", beside) + re.findall(r"(?m)^(?:    |\$ )(.+)$", beside)
    return [one for one in code if is_known(one)]


def faults(page: Path, text: str) -> list[str]:
    """What is wrong with the tables of a page, in words."""
    found = []
    for table in tables(text):
        name = str(page.relative_to(ROOT)), table.lines[0]
        if len(figures(table)) < 2 or name in DEFINITIONS:
            continue
        if not files_beside(page, table.beside) and name[0] not in WRITTEN_FROM:
            found.append(f"{name}: no file under docs/results beside it")
        if not commands_beside(table.beside):
            found.append(f"{name}: no command beside it")
    return found


def numbers(value: Any) -> Iterator[float]:
    """Of JSON, or of the rows of a table."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif not isinstance(value, bool):
        with suppress(TypeError, ValueError):
            yield float(value)


def numbers_in(path: Path) -> set[float]:
    if path.suffix == ".json":
        return set(numbers(json.loads(path.read_text())))
    with path.open() as file:
        return set(numbers(list(csv.DictReader(file))))


def is_among(figure: str, known: set[float]) -> bool:
    """Whether it is a number of these, rounded to as many digits."""
    value, digits = float(figure), len(figure.partition("e")[0].partition(".")[2])
    if "e" in figure:
        return any(f"{one:.{digits}e}" == f"{value:.{digits}e}" for one in known)
    return any(f"{one * scale:.{digits}f}" == f"{value:.{digits}f}" for one in known for scale in SCALES)


def missing(page: Path, text: str, known: set[float]) -> list[str]:
    """Figures of a page's tables that are in no file."""
    found = [figure for table in tables(text) for figure in figures(table)]
    parts = [part for figure in found for part in re.findall(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?", figure)]
    return [part for part in parts if not is_among(part, known)]


def is_part(page: Path) -> bool:
    """Whether a file of results is a table that the page beside it has, word for word."""
    home = page.parent / "README.md"
    return RESULTS in page.parents and page != home and home.exists() and page.read_text() in home.read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_measured_tables_have_a_file_and_a_command(page: Path) -> None:
    if not is_part(page):
        assert faults(page, page.read_text()) == []


def test_exceptions_are_there_and_have_figures() -> None:
    for name, first in DEFINITIONS:
        found = [table for table in tables((ROOT / name).read_text()) if table.lines[0] == first]
        assert any(len(figures(table)) >= 2 for table in found), name
    assert all((ROOT / name).exists() and (ROOT / made).exists() for name, made in WRITTEN_FROM.items())


@pytest.mark.parametrize("name", COPIED)
def test_figures_that_were_copied_are_in_their_files(name: str) -> None:
    known = set().union(*(numbers_in(RESULTS / one) for one in COPIED[name]))
    assert missing(ROOT / name, (ROOT / name).read_text(), known) == []


TABLE = "| | seconds |\n|---|---|\n| ours | 1.25 s |\n| theirs | 0.700 [0.61, 0.80] |\n"
FILE, COMMAND = "[file](results/speed/table.json)", "`python -m benchmarks.verdict`"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (f"# A page\n\n{FILE} by {COMMAND}\n\n{TABLE}", []),
        (f"# A page\n\n{FILE}\n\n## A section\n\n{COMMAND}\n\n{TABLE}", []),
        (f"# A page\n\n{TABLE}", ["file", "command"]),
        (f"# A page\n\n{FILE}\n\n{TABLE}", ["command"]),
        (f"# A page\n\n{COMMAND}\n\n{TABLE}", ["file"]),
        (f"# A page\n\n[file](results/none.json) by {COMMAND}\n\n{TABLE}", ["file"]),
        (f"# A page\n\n{FILE} by `python -m benchmarks.nothing`\n\n{TABLE}", ["command"]),
        (f"# A page\n\n{FILE} by `python -m experiments nothing` or `make nothing`\n\n{TABLE}", ["command"]),
        (f"# A page\n\n## One\n\n{FILE} by {COMMAND}\n\n## Another\n\n{TABLE}", ["file", "command"]),
        (f"# A page\n\n```text\n{TABLE}```\n", []),
        ("# A page\n\n| | default |\n|---|---|\n| folds | 5 |\n| size | 64 |\n", []),
    ],
)
def test_a_table_without_a_file_or_a_command_is_found(text: str, wrong: list[str]) -> None:
    found = faults(ROOT / "docs" / "planted.md", text)
    assert [re.findall("no (file|command)", fault)[0] for fault in found] == wrong


@pytest.mark.parametrize(
    ("figure", "fits"), [("0.70", True), ("70.4", True), ("0.71", False), ("3e-06", True)]
)
def test_a_figure_that_no_file_has_is_found(figure: str, fits: bool) -> None:
    assert is_among(figure, {0.7041, 2.7e-6}) is fits
