"""What is printed shows text of users and obeys none of it."""

from __future__ import annotations

from typing import Any

import pytest

from lrp4rag.util.errors import LONGEST, InputError, LRP4RAGError, first_line
from lrp4rag.util.terminal import open_console, say, say_json, tell
from tests.hostile.strings import MARKUP, TEXTS, obeyed


@pytest.mark.parametrize("text", TEXTS)
def test_every_way_to_print_shows_text_and_obeys_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(text)
    tell("Error", text)
    say_json({text: text})
    console = open_console()
    console.print(text)
    console.print("before", text, style="bold")
    from rich.table import Table

    table = Table(title=text)
    table.add_column(text)
    table.add_row(text)
    console.print(table)
    shown = capsys.readouterr()
    assert not obeyed(shown.out + shown.err)
    if text in MARKUP:
        assert shown.out.count(text) >= 5
        assert text in shown.err


@pytest.mark.parametrize("text", ["a\nError: b", "\nwrote /etc/passwd", "x\n\n\nWarning: y"])
def test_no_line_of_a_message_poses_as_another(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    tell("Error", text)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Error: ")
    assert all(line.startswith("  ") for line in lines[1:])


def test_messages_are_short(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (LRP4RAGError("x" * 10**7), InputError("x" * 10**7, path="p" * 10**6, field="f" * 10**6)):
        assert len(str(error)) < LONGEST + 1000
    tell("Error", "x" * 10**7)
    assert len(capsys.readouterr().err) < LONGEST + 1000


@pytest.mark.parametrize("record", [float("nan"), {"a": [float("inf")]}, [{"b": -float("inf")}]])
def test_json_has_no_nan(record: Any, capsys: pytest.CaptureFixture[str]) -> None:
    say_json(record)
    assert "null" in capsys.readouterr().out


@pytest.mark.parametrize("columns", ["0", "1", "7"])
def test_no_width_hides_what_is_printed(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    console = open_console()
    with console.capture() as capture:
        console.print("hallucinated")
    assert capture.get() == "hallucinated\n"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("Class validation error for validator 'x':\n    ValueError: 3 layers", "Class validation error for "
         "validator 'x': ValueError: 3 layers"),
        ("Several:\n\n  deep:\n  and wide\nadvice", "Several: deep: and wide"),
        ("nothing after:", "nothing after:"),
        ("what\nadvice", "what"),
        ("\n", "OSError"),
    ],
)  # fmt: skip
def test_a_message_does_not_end_where_it_begins(message: str, line: str) -> None:
    assert first_line(OSError(message)) == line
