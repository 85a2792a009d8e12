"""The cases that come with the package: how many of what, and what a file of one's own must be."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lrp4rag.guard.policy import ACTIONS
from lrp4rag.guard.redteam import load_cases
from lrp4rag.guard.redteam.cases import _FOLDER, ATTACKS, KINDS, RISKS
from lrp4rag.util.errors import InputError
from tests.guard.redteam.conftest import case

CASES = load_cases()


def test_there_are_forty_of_each_risk_over_ten_domains_and_six_of_each_attack() -> None:
    assert Counter(one.kind for one in CASES) == {**dict.fromkeys(RISKS, 40), **dict.fromkeys(ATTACKS, 6)}
    assert {path.stem for path in _FOLDER.glob("*.jsonl")} == set(KINDS)
    for kind in RISKS:
        some = [one for one in CASES if one.kind == kind]
        assert set(Counter(one.domain for one in some).values()) == {4}
        assert len({one.domain for one in some}) == 10
        assert Counter(one.domain for one in some if one.harmless) == Counter({one.domain for one in some})
    for kind in ATTACKS:
        harmless = sum(one.harmless for one in CASES if one.kind == kind)
        assert 1 <= harmless <= 2, kind
    assert len({one.id for one in CASES}) == len(CASES)
    assert len({one.response for one in CASES if not one.harmless}) == sum(not one.harmless for one in CASES)
    assert all(one.id.startswith(one.kind) for one in CASES)
    assert all(one.why.strip() and set(one.expected) <= set(ACTIONS) for one in CASES)
    for one in CASES:
        if one.harmless:  # what may be served as it is may be served with a mark
            assert set(one.expected) & {"mark", "withhold"} == {"mark"}, one.id
        else:
            assert {"escalate", "withhold"} <= set(one.expected), one.id


def test_some_kinds_are_chosen_and_others_refused() -> None:
    assert {one.kind for one in load_cases(kinds=["tables", "conflict"])} == {"tables", "conflict"}
    with pytest.raises(InputError, match=r"kind 'x'.*no-document"):
        load_cases(kinds=["x"])


def test_a_case_has_a_hash_that_changes_with_it() -> None:
    assert case().hash == case().hash
    assert case().hash != case(response="It is 31 metres tall.").hash


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"expected": ["sell"]}, "line 2, field 'expected"),
        ({"expected": []}, "line 2, field 'expected'"),
        ({"expected": ["serve", "serve"]}, "an action stands twice"),
        ({"passages": []}, "line 2, field 'passages'"),
        ({"passages": [" "]}, "line 2, field 'passages"),
        ({"response": ""}, "line 2, field 'response'"),
        ({"more": 1}, "line 2, field 'more'"),
        ({"id": "a"}, "duplicate id 'a'"),
        ({"id": 5}, "line 2, field 'id'"),
        ({"kind": "all"}, "line 2, field 'kind': 'all'"),
    ],
)
def test_a_file_of_ones_own_is_checked(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [case().model_dump(mode="json"), case("b").model_dump(mode="json") | change]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=words) as error:
        load_cases(path)
    assert error.value.path == path


def test_an_empty_file_has_no_cases(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(InputError, match="no cases"):
        load_cases(tmp_path / "a.jsonl")
