"""Tables on a terminal: no figure is cut, and long texts on a terminal only."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.table import Table

from lrp4rag.classifiers.verdict import Difference
from lrp4rag.cli.analyse import _Printer
from lrp4rag.report.terminal import render_line
from lrp4rag.util.terminal import open_console
from tests.report.samples import grounded_then_not, printed_at

LONG = "It was opened in 1874, and Aliens built it a long time ago, as everybody in town will tell you."
WIDTHS = [40, 80, 200]


def sentences() -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("sentence", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in ("relevance", "main source", "P(hallucinated)", ""):
        table.add_column(name, no_wrap=True)
    table.add_row("1", LONG, "+12.34", "passage 3 (72 %)", "0.97", "contradicted")
    return table


@pytest.mark.parametrize("width", WIDTHS)
def test_only_long_texts_are_cut_and_only_on_a_terminal(width: int) -> None:
    piped, shown = (printed_at(sentences(), width, terminal=terminal) for terminal in (False, True))
    for figure in ("+12.34", "passage 3 (72 %)", "0.97", "contradicted"):
        assert figure in piped
        assert figure in shown
    assert set(LONG.split()) <= set(piped.split())
    assert ("…" in shown) == (width < 200)


def test_a_line_says_what_a_grounded_answer_leaves_out() -> None:
    left_out = Difference("left out", 0, 4, 1, 0, 16, "only for members")
    analysis = replace(grounded_then_not(), spans=(), differences=(left_out,))
    assert 'leaves out "only for members" (passage 2)' in render_line(analysis).plain


@pytest.mark.parametrize("terminal", [False, True])
def test_a_line_of_many_is_cut_on_a_terminal_only(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis: Any = SimpleNamespace(
        example=SimpleNamespace(id="one"),
        probability=0.5,
        spans=(),
        differences=(),
        sentences=(SimpleNamespace(text=LONG, status="supported", probability=0.5, relevance=1.0),),
        hallucinated=False,
        abstained=False,
    )
    console = open_console(width=80, force_terminal=terminal, color_system=None)
    monkeypatch.setattr(sys.modules[_Printer.__module__], "open_console", lambda **_: console)
    with console.capture() as capture:
        _Printer(False).show({}, render_line(analysis))
    assert (LONG in capture.get()) != terminal
    assert capture.get().count("\n") == 1
