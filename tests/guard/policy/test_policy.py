"""Policies as files: each fault is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrp4rag.guard.policy import Policy, load_policy
from lrp4rag.guard.policy.policy import filled
from lrp4rag.util.errors import InputError


def test_an_empty_file_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("")
    assert load_policy(path) == load_policy(None) == Policy()
    assert load_policy(path).hash == Policy().hash


def test_every_change_changes_the_hash() -> None:
    hashes = {
        Policy.model_validate(one).hash
        for one in (
            {},
            {"name": "x"},
            {"rules": {"conflict": None}},
            {"claims": {"contradicted": "withhold"}},
            {"texts": {"contact": "Ask HR."}},
            {"checks": {"retrieval": {"minimum": 0.5}}},
        )
    }
    assert len(hashes) == 6


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("rules:\n  fabricated: shrug", 2, "'serve'"),
        ("rules:\n  invented: withhold", 2, "no such field"),
        ("claims:\n  contradicted: serve", 2, "'mark'"),
        ("bands:\n- {action: serve, reason: grounded, faithfulness: 0.8}", 1, "last band"),
        ("bands:\n- {action: serve, reason: grounded, faithfulness: 1.8}\n", 2, "less than or equal"),
        ("bands:\n- action: serve\n  reason: because\n", 3, "'grounded'"),
        ("abstained: serve", 1, "'mark'"),
        ("unavailable: serve", 1, "'mark'"),
        ("sentences:\n  stop_after: 0", 2, "greater than or equal to 1"),
        ("checks:\n  spelling: {}", None, "no check 'spelling'; there are: retrieval"),
        ("checks:\n  retrieval: {minimum: 7}", None, "0 to 1"),
        ("checks:\n  retrieval: {lowest: 7}", None, "no setting 'lowest'; it has: minimum"),
        ("budget: 0", 1, "greater than 0"),
        ("texts:\n  gap: 'see {documents}'", 2, "{documents} is no place"),
        ("name: a\nname: b", 2, "again"),
        ("- a", None, "mapping"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_policy(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert line is None or caught.value.line == line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        ("name: caf\u00e9".encode("latin-1"), "unexpected end of data (at 9); save the file as UTF-8"),
        (b"name: a\0", "special characters are not allowed (at 7); save the file as UTF-8"),
    ],
    ids=["missing", "latin-1", "zero"],
)
def test_a_file_that_is_no_text_is_bad_input(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "p.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_policy(path)
    assert str(caught.value) == f"{path}: {words}"


def test_what_is_filled_in_is_text() -> None:
    assert filled("See {sources}. {contact}", {"sources": "{contact}", "contact": ""}) == "See {contact}."
