"""The data that comes with the package: it loads, labels stand where they should, pairs are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrp4rag.training.sets import EVERYDAY, SETS, load_set, set_path
from lrp4rag.util.errors import InputError


def test_sets_are_found_by_name_unless_a_file_has_it(tmp_path, monkeypatch) -> None:
    assert SETS == ("everyday", "everyday-evidence")
    assert set_path(Path("everyday")) == set_path("everyday") == EVERYDAY
    assert EVERYDAY.is_file()
    assert set_path(tmp_path / "everyday") == tmp_path / "everyday"
    monkeypatch.chdir(tmp_path)
    Path("everyday").write_text("")
    assert set_path(Path("everyday")) == Path("everyday")


def test_what_is_no_set_is_read_as_it_was_given() -> None:
    assert set_path("-") == "-"
    assert set_path("s3://bucket/everyday") == "s3://bucket/everyday"
    with pytest.raises(InputError, match="no such file"):
        load_set("yesterday")


def test_every_fault_was_made_of_a_faithful_answer_of_its_question(everyday) -> None:
    faithful = {one.id: one.source for one in everyday if one.labels == ()}
    for fault in (one for one in everyday if one.labels):
        assert faithful[fault.id.rpartition("~")[0]] == fault.source


def test_labels_are_words_of_the_answer(everyday) -> None:
    for one in everyday:
        for label in one.labels:
            wrong = one.response[label.start : label.end]
            assert wrong.strip(), one.id
            assert one.response.count(wrong) == 1, one.id
