"""Samples of the reader's answers: drawn once for all responses to a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lrp4rag.errors import InputError
from lrp4rag.example import Label
from lrp4rag.experiments.systems import samples
from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.experiments.systems.samples import Samples, samples_of
from lrp4rag.reader import Reader
from lrp4rag.reader.prompted import Prompted
from tests.tiny import bridge_example


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MAX_NEW_TOKENS", 6)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the prompts that were read."""
    lengths = []

    def watched(self: Prompted, reader: Reader, ids: list[int], init: Any = Prompted.__init__) -> None:
        lengths.append(len(ids))
        init(self, reader, ids)

    monkeypatch.setattr(Prompted, "__init__", watched)
    return lengths


def kit_of(reader: Reader, folder: Path | None = None, seed: int = 0) -> Kit:
    kit = Kit(folder, seed=seed)
    kit.once("reader", lambda: reader)
    return kit


def test_responses_to_a_prompt_share_their_samples(
    tiny_reader: Reader, tmp_path: Path, read: list[int]
) -> None:
    rows = [
        bridge_example(1),
        bridge_example(1, response="Nobody knows.", labels=(Label(0, 6),)),
        bridge_example(2),
    ]
    first, again, other = samples_of(rows, kit_of(tiny_reader, tmp_path))
    assert first == again
    assert not set(first.texts) & set(other.texts)
    assert len(set(first.texts)) == samples.COUNT
    prompts = [tiny_reader.encode_prompt(rows[k], max_new_tokens=6).prompt_ids for k in (0, 2)]
    assert read == [len(ids) for ids in prompts]
    # Another process reads them.
    assert samples_of(rows, kit_of(tiny_reader, tmp_path)) == [first, again, other]
    assert len(read) == 2


def test_samples_are_those_of_the_prompt_and_the_seed(tiny_reader: Reader) -> None:
    rows = [bridge_example(1), bridge_example(2)]
    one = samples_of(rows, kit_of(tiny_reader))
    assert samples_of(rows[::-1], kit_of(tiny_reader)) == one[::-1]
    assert samples_of(rows, kit_of(tiny_reader, seed=1)) != one


def test_other_settings_are_drawn_anew(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = samples_of([bridge_example()], kit_of(tiny_reader, tmp_path))
    monkeypatch.setattr(samples, "COUNT", 2)
    (fewer,) = samples_of([bridge_example()], kit_of(tiny_reader, tmp_path))
    assert (len(first.texts), len(fewer.texts)) == (5, 2)


def test_empty_samples_are_dropped(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prompted, "sample", lambda *_, **__: ["", "It was.", "", "Was it?", ""])
    assert samples_of([bridge_example()], kit_of(tiny_reader)) == [Samples(("It was.", "Was it?"))]
    monkeypatch.setattr(Prompted, "sample", lambda *_, **__: [""] * 5)
    assert samples_of([bridge_example()], kit_of(tiny_reader)) == [Samples(())]


def test_a_prompt_that_leaves_no_room_is_refused(tiny_reader: Reader) -> None:
    long = bridge_example(passages=["The old stone bridge. " * 200])
    with pytest.raises(InputError, match="fills the reader's window of 512"):
        samples_of([long], kit_of(tiny_reader))
