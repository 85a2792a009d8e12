"""Entailments of many responses: by networks that did not learn from them, and kept on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from lrp4rag.example import Example
from lrp4rag.reader.comparer import Entailment, Pair
from lrp4rag.training import comparing
from lrp4rag.training.comparing import entailments_of

EXAMPLES = [
    Example("Who?", ["Ada did. Bo did not."], f"Ada did {k}. Bo did not.", id=str(k), source=f"s{k}")
    for k in range(5)
]


class Counting:
    """Says of a pair how long its claim is; remembers the sources that it was asked about."""

    digest = "of this one"

    def __init__(self) -> None:
        self.sources: list[str | None] = []

    def __call__(self, pairs: Sequence[Pair], source: str | None = None) -> list[Entailment]:
        self.sources.append(source)
        return [
            Entailment(
                np.array([-len(pair.claim), -1, -2], dtype=np.float32),
                np.array([[0, 1]] * len(pair.claim.split()), dtype=np.intp),
                np.arange(len(pair.claim.split()), dtype=np.float32),
            )
            for pair in pairs
        ]


@pytest.fixture
def comparer(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    monkeypatch.setattr(comparing, "CHUNK", 2)
    monkeypatch.setattr(comparing, "bundled_comparer", lambda *_: counting)
    return counting


def test_each_response_is_compared_once_by_what_did_not_learn_from_it(comparer: Counting, tmp_path: Path):
    found = entailments_of(EXAMPLES, tmp_path)
    assert comparer.sources == ["s0", "s1", "s2", "s3", "s4"]
    again = entailments_of(EXAMPLES, tmp_path)
    assert len(comparer.sources) == 5
    for first, second, example in zip(found, again, EXAMPLES, strict=True):
        assert [one.classes[0] for one in second] == [-len("Ada did 0."), -len("Bo did not.")]
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one.words, other.words)
            np.testing.assert_array_equal(one.spans, other.spans)
        assert example.response is not None


def test_a_run_that_was_stopped_goes_on_and_a_damaged_file_is_made_again(comparer: Counting, tmp_path: Path):
    entailments_of(EXAMPLES[:2], tmp_path)
    entailments_of(EXAMPLES, tmp_path)
    assert comparer.sources == ["s0", "s1", "s2", "s3", "s4"]
    path = sorted(tmp_path.iterdir())[0]
    path.write_bytes(path.read_bytes()[:-3])
    assert len(entailments_of(EXAMPLES, tmp_path)) == 5
    assert len(comparer.sources) in (6, 7)  # of that file only


def test_another_comparer_makes_its_own(comparer: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entailments_of(EXAMPLES, tmp_path)
    monkeypatch.setattr(comparer, "digest", "of another")
    entailments_of(EXAMPLES, tmp_path)
    assert len(comparer.sources) == 10


@pytest.mark.parametrize(("able", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_it_compares_in_the_precision_that_the_processor_is_fast_in(
    comparer: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, able: bool, dtype: torch.dtype
):
    """Emulated, bfloat16 takes five times as long as float32."""
    asked: list[tuple[torch.dtype, ...]] = []
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": able}, raising=False)
    monkeypatch.setattr(comparing, "bundled_comparer", lambda *given: asked.append(given) or comparer)
    entailments_of(EXAMPLES[:1], tmp_path)
    assert asked == [(), (dtype,)]  # the first asks for its digest alone
