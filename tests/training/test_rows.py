"""Rows: what a store holds of labelled examples, read when asked for, and once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.example import Example, Label
from lrp4rag.features.parts import PROMPT, RELEVANCE
from lrp4rag.training.rows import Rows, TextRows
from lrp4rag.training.store import Store
from lrp4rag.util.errors import InputError
from tests.training.labelled import examples
from tests.training.stored import SENTENCES, SIGNALS, fill, store_of

PARTS = (SIGNALS, PROMPT, SENTENCES, "matrix-3x2")
ROWS = [*examples(4), *examples(2, first=4, generator="g2"), replace(examples(1, first=6)[0], generator=None)]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of(tmp_path_factory.mktemp("rows") / "s", ROWS, PARTS).folder


@pytest.fixture
def rows(stored: Path) -> Rows:
    return Rows.open(stored)


def test_what_rows_hold(rows: Rows) -> None:
    assert len(rows) == 7
    assert rows.examples == tuple(ROWS)
    assert rows.labels.tolist() == [False, True, False, True, False, True, False]
    assert rows.labels.dtype == bool
    assert rows.groups.tolist() == [row.source for row in ROWS]
    assert rows.generators.tolist() == ["g1"] * 4 + ["g2"] * 2 + ["unknown"]
    assert [row.total[0] for row in rows.relevances] == list(range(1, 8))
    assert [row.by_segment.shape[0] for row in rows.relevances] == [4] * 7
    assert all(row.prompt.shape == (4,) and row.resampled.shape == (3, 2) for row in rows.relevances)
    assert [array[0] for array in rows.arrays("logprob", SIGNALS)] == list(range(1, 8))
    assert rows.arrays("sentences", SENTENCES)[1].tolist() == [[0.5] * 4]
    assert rows.matrices.shape == (7, 3, 2)
    assert rows.matrices[:, 0, 0].tolist() == list(range(1, 8))
    assert rows.arrays("logprob", SIGNALS)[0].dtype == np.float32


def test_token_flags_are_the_labelled_tokens(rows: Rows) -> None:
    # Characters 0 to 9 are the first word and the start of the second.
    for row, flags in zip(ROWS, rows.token_flags, strict=True):
        count = len(row.response.split(" "))
        assert flags.tolist() == [bool(row.labels) and k < 2 for k in range(count)]


def test_only_labelled_and_extracted_rows(tmp_path: Path) -> None:
    store = store_of(tmp_path, ROWS[:3])
    store.path(ROWS[1]).unlink()
    unlabelled = replace(ROWS[3], labels=None)
    store.add_examples([unlabelled])
    fill(store, unlabelled, ())
    assert Rows.open(tmp_path).examples == (ROWS[0], ROWS[2])


def test_no_rows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no labelled response; extract labelled data"):
        Rows.open(store_of(tmp_path, []).folder)


def test_selections(rows: Rows) -> None:
    assert rows.select([2, 0]).examples == (ROWS[2], ROWS[0])
    assert rows.select(np.array([5])).examples == (ROWS[5],)
    assert rows.select(rows.labels).labels.all()
    assert rows.select(rows.generators == "g2").select([1]).examples == (ROWS[5],)
    assert rows.select_generators(["unknown", "g2"]).examples == tuple(ROWS[4:])
    assert rows.select_generators(()) is rows
    assert len(rows.select(np.zeros(7, dtype=bool))) == 0
    with pytest.raises(InputError, match="no responses of 'g3'; there are: g1, g2, unknown"):
        rows.select_generators(["g1", "g3"])
    with pytest.raises(IndexError):
        rows.select([7])
    with pytest.raises(IndexError):
        rows.select(np.ones(6, dtype=bool))


def test_files_are_read_once_and_selections_share_them(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, arrays = list[str](), Store.arrays

    def noted(self: Store, example: Example, *rest: object) -> object:
        reads.append(example.id)
        return arrays(self, example, *rest)

    monkeypatch.setattr(Store, "arrays", noted)
    part = rows.select([0, 1])
    assert reads == []
    part.arrays("entropy", SIGNALS)
    assert reads == ["bridge-0", "bridge-1"]
    assert rows.arrays("entropy", SIGNALS)[0] is part.arrays("entropy", SIGNALS)[0]
    assert len(reads) == 7
    assert part.relevances[0] is part.relevances[0]


def test_what_is_not_stored(tmp_path: Path) -> None:
    rows = Rows.open(store_of(tmp_path, ROWS, PARTS).folder)
    assert all(rows.has(part) for part in ("relevance", *PARTS))
    assert not rows.has("matrix-64x16")
    assert rows.arrays("prompt", PROMPT)[0].tolist() == [0.25] * 4
    with pytest.raises(InputError, match=r"\.safetensors: no array 'prompt'"):  # of the signals
        rows.arrays("prompt", SIGNALS)
    rows.store.path(ROWS[2], SIGNALS).unlink()
    rows.store.path(ROWS[2], "matrix-3x2").unlink()
    assert not rows.has(SIGNALS)
    assert rows.select([0, 1]).has(SIGNALS)
    with pytest.raises(InputError, match="cannot read"):
        rows.arrays("logprob", SIGNALS)
    with pytest.raises(InputError, match=r"no R\* here; extract it"):
        _ = rows.matrices
    assert rows.select([0, 1]).matrices.shape == (2, 3, 2)


def test_the_digest_changes_with_rows_labels_and_configuration(rows: Rows, tmp_path: Path) -> None:
    digest = rows.digest
    assert Rows.open(rows.store.folder).digest == digest
    seen = {digest, rows.select([0, 1]).digest, rows.select([1, 0]).digest}
    changes = ({"labels": (Label(0, 8),)}, {"source": "other"}, {"generator": "g9"})
    for k, change in enumerate(changes):
        changed = [ROWS[0], replace(ROWS[1], **change), *ROWS[2:]]
        seen.add(Rows.open(store_of(tmp_path / str(k), changed).folder).digest)
    seen.add(Rows.open(store_of(tmp_path / "composite", ROWS, composite="paper").folder).digest)
    assert len(seen) == 3 + len(changes) + 1
    same = store_of(tmp_path / "same", [replace(row, id=f"other-{row.id}") for row in ROWS], PARTS)
    assert Rows.open(same.folder).digest == digest


def test_rows_of_words_are_in_no_store(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where training runs in a store's folder."""
    monkeypatch.chdir(rows.store.folder)
    assert rows.has(RELEVANCE)
    assert not TextRows.of(ROWS).has(RELEVANCE)
