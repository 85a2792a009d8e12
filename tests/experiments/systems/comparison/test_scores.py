"""Scores beside a page: what is read is what was shown, of the same rows and settings only."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.comparison import scores
from lrp4rag.experiments.systems.comparison.scores import ScoreFolder, StoredScores, SystemScores
from lrp4rag.training.localisation import Marking
from lrp4rag.training.records import to_json
from lrp4rag.training.validation import Outcome

KEY = {"baseline": "b", "seed": 0, "resources": {"judge": None}}
JUDGED = SystemScores(
    Outcome(np.array([[0.123456789, np.nan]]), np.array([[True, False]]), ("layer 3", "layer 4")),
    Marking(np.array([0.98765, 1e-7, np.nan]), np.array([True, False, False]), np.array([True, True, False])),
    np.array([True, False]),
    ((np.array([0]), np.array([1]), np.array([1 / 3])),),
    np.array([3, 0]),
    np.array([1, 0]),
)


@pytest.fixture
def shelf(tmp_path: Path) -> ScoreFolder:
    return ScoreFolder(tmp_path / "scores", ("a", "b"), 3)


def test_what_is_read_is_what_was_written(shelf: ScoreFolder) -> None:
    kept = shelf.write("some system", KEY, JUDGED)
    read = shelf.read("some system", dict(reversed(KEY.items())))
    assert read is not None
    assert to_json(read) == to_json(kept)
    again = read.scores
    assert again.outcome.probabilities.tolist()[0][0] == 0.12346
    assert np.isnan(again.outcome.probabilities[0, 1])
    assert again.marking.scores.tolist()[:2] == [0.988, 1e-7]
    assert again.outcome.chosen == JUDGED.outcome.chosen
    assert again.outside[0][2].tolist() == [0.33333]
    assert again.unreadable(np.array([0, 1])) == pytest.approx(1 / 3)
    assert again.marks(np.array([0, 1]))
    assert not again.marks(np.array([2]))
    record = json.loads(lzma.decompress(shelf.path("some system").read_bytes()))
    assert record["ids"] == ["a", "b"]
    assert record["system"] == "some system"
    assert "torch" in record["versions"]
    assert record["versions"] == read.versions


def test_what_was_read_elsewhere_is_kept_as_it_is(shelf: ScoreFolder, tmp_path: Path) -> None:
    made = StoredScores(shelf.write("b", KEY, JUDGED).scores, {"torch": "1.0"})
    other = replace(shelf, folder=tmp_path / "other")
    other.keep("b", KEY, made)
    assert to_json(other.read("b", KEY)) == to_json(made)


def test_scores_that_are_no_probabilities_keep_more_digits(shelf: ScoreFolder) -> None:
    marking = replace(JUDGED.marking, scores=np.array([-121.64, -121.56, np.nan]))
    kept = shelf.write("b", KEY, replace(JUDGED, marking=marking))
    assert kept.scores.marking.scores.tolist()[:2] == [-121.64, -121.56]


def test_a_system_without_parts_has_no_marking(shelf: ScoreFolder) -> None:
    assert shelf.write("b", KEY, replace(JUDGED, marking=None)).scores.marking is None
    assert shelf.read("b", KEY).scores.marking is None


def test_other_settings_are_not_read(shelf: ScoreFolder) -> None:
    assert shelf.read("b", KEY) is None
    shelf.write("b", KEY, JUDGED)
    assert shelf.read("b", KEY | {"seed": 1}) is None
    assert shelf.read("c", KEY) is None


def test_names_are_file_names(shelf: ScoreFolder) -> None:
    names = ["lrp4rag", "lrp4rag --fast", "lrp4rag, learned from the sample", "../up", "saplma-linear"]
    paths = [shelf.path(name) for name in names]
    assert [path.parent for path in paths] == [shelf.folder] * 5
    assert [path.name.removesuffix(".json.xz") for path in paths] == [
        "lrp4rag",
        "lrp4rag-fast",
        "lrp4rag-learned-from-the-sample",
        "-up",
        "saplma-linear",
    ]


def _packed(change: dict[str, object], value: dict[str, object] | None = None) -> bytes:
    record = {
        "format": 1,
        "key": scores._whole(KEY),
        "versions": {},
        "ids": ["a", "b"],
        "scores": to_json(JUDGED) | (value or {}),
    }
    return lzma.compress(json.dumps(record | change).encode())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        lzma.compress(b"{"),
        lzma.compress(b"[]"),
        lzma.compress(b"{}"),
        _packed({})[:-20],
        _packed({"scores": {}}),
        _packed({}, {"answered": [True]}),
        _packed({}, {"asked": [1]}),
        _packed({}, {"asked": [10**30, 1]}),
        _packed({}, {"outside": [[[0], [77], [0.5]]]}),
        _packed({}, {"outside": [[[0], [1], []]]}),
        _packed({}, {"outcome": {"probabilities": [[0.1]], "flagged": [[True]]}}),
        _packed({}, {"marking": {"scores": [1.0], "marked": [True], "sentences": [True]}}),
    ],
)
def test_a_file_that_holds_something_else_is_named(shelf: ScoreFolder, content: bytes) -> None:
    shelf.folder.mkdir()
    shelf.path("b").write_bytes(content)
    with pytest.raises(InputError, match="not the scores of a system; delete it") as caught:
        shelf.read("b", KEY)
    assert caught.value.path == shelf.path("b")


def test_a_file_that_unpacks_to_too_much_is_refused(shelf: ScoreFolder, monkeypatch) -> None:
    monkeypatch.setattr(scores, "LARGEST", 1 << 24)
    shelf.folder.mkdir()
    shelf.path("b").write_bytes(lzma.compress(b" " * (1 << 25)))
    assert shelf.path("b").stat().st_size < 1 << 16
    with pytest.raises(InputError, match="too large"):
        shelf.read("b", KEY)


@pytest.mark.parametrize("change", [{"format": 0}, {"ids": ["a", "c"]}, {"key": KEY}])
def test_other_formats_responses_and_versions_are_run_anew(
    shelf: ScoreFolder, change: dict[str, object]
) -> None:
    shelf.folder.mkdir()
    shelf.path("b").write_bytes(_packed(change))
    assert shelf.read("b", KEY) is None
