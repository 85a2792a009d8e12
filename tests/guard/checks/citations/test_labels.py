"""The parts of passages are found in time that grows with the passage, whatever its labels are."""

from __future__ import annotations

import pytest

from lrp4rag.guard.checks.check import OverBudget
from lrp4rag.guard.checks.citations import labels
from lrp4rag.guard.checks.citations.labels import parts_of


class Text(str):
    """A text that counts the characters that are copied out of it."""

    copied = 0

    def __getitem__(self, key: object) -> str:
        part = super().__getitem__(key)
        type(self).copied += len(part)
        return part


@pytest.mark.parametrize(
    "line", ["Section 4.2 says this.\n", "4.2 Leave\n", "Leave is in 4.2 and section 4.2.\n"]
)
def test_work_grows_with_the_passage(monkeypatch, line: str) -> None:
    compared = []
    monkeypatch.setattr(
        labels, "within", lambda *numbers: compared.append(numbers) or numbers[0] == numbers[1]
    )
    monkeypatch.setattr(labels, "sentences_in", lambda text: [(0, len(text))])
    monkeypatch.setattr(Text, "copied", 0)
    count = 1000
    assert len(parts_of(Text(line * count), lambda: None)) >= count
    assert len(compared) <= count
    assert Text.copied <= 10 * count


def test_a_heading_that_comes_again_is_open_until_another_part_begins() -> None:
    text = "4.2 Leave\nTen days.\n## 4.2 Leave\nMore.\n4.2.1 Sick leave\nFive.\n4.3 Travel\nBy train."
    parts = [
        (text[label.start : label.end], text[start:end]) for label, start, end in parts_of(text, lambda: None)
    ]
    end = text.index("4.3")
    assert parts == [
        ("4.2", text[:end]),
        ("4.2", text[text.index("4.2 Leave\nMore") : end]),
        ("4.2.1", text[text.index("4.2.1") : end]),
        ("4.3", text[end:]),
    ]


def test_the_deadline_ends_the_search() -> None:
    def tick() -> None:
        raise OverBudget

    with pytest.raises(OverBudget):
        parts_of("Section 4.2 says this.", tick)
    assert parts_of("No part has a number.", tick) == []
