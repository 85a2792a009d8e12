"""Scores beside a page: what is read is what was shown, of the same rows and settings only."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace

import numpy as np
import pytest

from experiments.records import to_json
from experiments.systems.comparison import scores
from experiments.systems.comparison.scores import ScoreFolder, StoredScores, SystemScores
from lrp4rag.training.localisation import Marking
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError

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
def shelf(tmp_path):
    return ScoreFolder(tmp_path, ("a", "b"), 3)


def test_what_is_read_is_what_was_written(shelf):
    assert shelf.read("some system", KEY) is None
    written = shelf.write("some system", KEY, JUDGED)
    read = shelf.read("some system", dict(reversed(KEY.items())))
    assert to_json(read) == to_json(written)
    again = read.scores
    assert again.outcome.probabilities[0] == pytest.approx([0.12346, np.nan], abs=0, nan_ok=True)
    assert again.marking.scores.tolist()[:2] == [0.988, 1e-7]
    assert again.outcome.chosen == JUDGED.outcome.chosen
    assert again.outside[0][2].tolist() == [0.33333]
    assert again.unreadable(np.array([0, 1])) == pytest.approx(1 / 3)
    assert again.marks(np.array([0, 1]))
    assert not again.marks(np.array([2]))
    record = json.loads(lzma.decompress(shelf.path("some system").read_bytes()))
    assert (record["ids"], record["system"]) == (["a", "b"], "some system")
    assert "torch" in record["versions"]
    assert record["versions"] == read.versions
    for name, key in (("some system", KEY | {"seed": 1}), ("c", KEY)):
        assert shelf.read(name, key) is None


def test_what_was_read_elsewhere_is_kept_as_it_is(shelf, tmp_path):
    made = StoredScores(shelf.write("b", KEY, JUDGED).scores, {"torch": "1.0"})
    other = replace(shelf, folder=tmp_path / "other")
    other.keep("b", KEY, made)
    assert to_json(other.read("b", KEY)) == to_json(made)


def test_scores_that_are_no_probabilities_keep_more_digits(shelf):
    marking = replace(JUDGED.marking, scores=np.array([-121.64, -121.56, np.nan]))
    written = shelf.write("b", KEY, replace(JUDGED, marking=marking))
    assert written.scores.marking.scores.tolist()[:2] == [-121.64, -121.56]


def test_a_system_without_parts_has_no_marking(shelf):
    shelf.write("b", KEY, replace(JUDGED, marking=None))
    assert shelf.read("b", KEY).scores.marking is None


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("lrp4rag with one tangent", "lrp4rag-with-one-tangent"),
        ("lrp4rag, learned from the sample", "lrp4rag-learned-from-the-sample"),
        ("../up", "-up"),
        ("saplma-linear", "saplma-linear"),
    ],
)
def test_names_are_file_names(shelf, name, file):
    assert shelf.path(name) == shelf.folder / f"{file}.json.xz"


def packed(change, value=None):
    record = {"format": 1, "key": scores._whole(KEY), "versions": {}, "ids": ["a", "b"]}
    made = record | {"scores": to_json(JUDGED) | (value or {})} | change
    return lzma.compress(json.dumps(made).encode())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        lzma.compress(b"{}"),
        packed({})[:-20],
        packed({"scores": {}}),
        packed({}, {"answered": [True]}),
        packed({}, {"asked": [1]}),
        packed({}, {"asked": [10**30, 1]}),
        packed({}, {"outside": [[[0], [77], [0.5]]]}),
        packed({}, {"outside": [[[0], [1], []]]}),
        packed({}, {"outcome": {"probabilities": [[0.1]], "flagged": [[True]]}}),
        packed({}, {"marking": {"scores": [1.0], "marked": [True], "sentences": [True]}}),
    ],
)
def test_a_file_that_holds_something_else_is_named(shelf, content):
    shelf.path("b").write_bytes(content)
    with pytest.raises(InputError, match="not the scores of a system; delete it") as caught:
        shelf.read("b", KEY)
    assert caught.value.path == shelf.path("b")


def test_a_file_that_unpacks_to_too_much_is_refused(shelf, monkeypatch):
    monkeypatch.setattr(scores, "LARGEST", 1 << 24)
    shelf.path("b").write_bytes(lzma.compress(b" " * (1 << 25)))
    assert shelf.path("b").stat().st_size < 1 << 16
    with pytest.raises(InputError, match="too large"):
        shelf.read("b", KEY)


@pytest.mark.parametrize("change", [{"format": 0}, {"ids": ["a", "c"]}, {"key": KEY}])
def test_other_formats_responses_and_versions_are_run_anew(shelf, change):
    shelf.path("b").write_bytes(packed(change))
    assert shelf.read("b", KEY) is None
