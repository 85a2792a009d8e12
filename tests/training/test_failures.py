"""Why responses failed, in a table that a person reads, however many failed."""

from __future__ import annotations

from lrp4rag.report.failures import MOST, reasons_table
from lrp4rag.training.inventory import Reason, reasons_of


def test_reasons_that_differ_in_numbers_are_one_and_the_most_frequent_comes_first() -> None:
    failures = {
        "a": "out of memory",
        "b": "prompt of 1,200 and response of 7 tokens exceed 512",
        "c": "other",
        "d": "prompt of 900 and response of 88 tokens exceed 512",
        "e": "other",
        "f": "prompt of 2.5 and response of 0 tokens exceed 512",
    }
    assert reasons_of(failures) == [
        Reason("prompt of 1,200 and response of 7 tokens exceed 512", 3, "b"),
        Reason("other", 2, "c"),
        Reason("out of memory", 1, "a"),
    ]
    assert reasons_of({}) == []


def test_thousands_of_failures_are_a_short_table() -> None:
    failures = {f"row-{k}": f"reason {chr(97 + k % 26)}{chr(97 + k // 26 % 26)}" for k in range(5000)}
    lines = reasons_table(reasons_of(failures)).splitlines()
    assert len(lines) == 1 + MOST + 1
    assert lines[0].split() == ["count", "first", "reason"]
    counts = [int(line.split()[0]) for line in lines[1:]]
    assert sum(counts) == 5000
    assert lines[-1].endswith(f"for {26 * 26 - MOST} other reasons; failures.jsonl has all")


def test_a_reason_is_one_line_that_a_terminal_does_not_obey() -> None:
    table = reasons_table(reasons_of({"id\x1b[31m\n" + "x" * 999: "a\nWarning: b\r" + "y" * 9999}))
    (_, line) = table.split("\n")
    assert len(line) < 350
    assert "␛[31m" in line
    assert "a Warning: b y" in line
