"""Claims of others are read, balanced, and changed by rules."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from experiments.comparer.claims import (
    MEASURED,
    MOST,
    ClaimRow,
    balanced,
    exchanged,
    read_claims,
    read_measured,
)
from lrp4rag.reader.comparer import Pair
from lrp4rag.training.labelled_pairs import LabelledPair
from lrp4rag.util.errors import InputError

NAMES = ("Lisbon", "Maria Santos", "Ebro")
PREMISE = "The bridge over the river Tagus was opened in 1966 by Salazar and cost 1,200 pounds."


def supported(claim: str, premise: str = PREMISE) -> LabelledPair:
    return LabelledPair(Pair(premise, "", claim), "e", None, "source", "mnli")


@pytest.mark.parametrize(
    ("claim", "value", "kind", "label"),
    [
        ("It was opened in 1966.", "1966", "number", "c"),
        ("The cost was 1,200 pounds in all.", "1,200", "number", "c"),
        ("It crosses the Tagus there.", "Tagus", "name", "not_e"),
    ],
)
def test_an_exchange_changes_one_side_and_labels_the_claim_s_value(claim, value, kind, label) -> None:
    sides, at = Counter[str](), PREMISE.index(value)
    for seed in range(60):
        made = exchanged(supported(claim), Random(seed), NAMES)
        if made is None:
            continue
        assert (made.label, made.kind, made.source, made.set) == (label, kind, "source", "exchanged")
        ((start, end),) = made.spans
        before, after = claim.split(value)
        assert (made.pair.claim[:start], made.pair.claim[end:]) == (before, after)
        if made.pair.claim == claim:
            sides["evidence"] += 1
            assert made.pair.premise.startswith(PREMISE[:at])
            assert not made.pair.premise.startswith(value, at)
        else:
            sides["claim"] += 1
            assert made.pair.premise == PREMISE
            assert made.pair.claim[start:end] not in (value, "")
    assert min(sides["evidence"], sides["claim"]) > 5


def test_two_names_of_the_evidence_change_places() -> None:
    pair = supported("It was said that Anna likes him.", "Anna likes Bertram, and Bertram Anna.")
    made = [exchanged(pair, Random(seed), ()) for seed in range(40)]
    assert "Bertram likes Anna, and Anna Bertram." in {one.pair.premise for one in made if one}


@pytest.mark.parametrize(
    "claim", ["It was opened in 1970.", "It is long.", "Tagus is a river.", "In 1966 or after 1966."]
)
def test_what_the_evidence_lacks_or_is_said_twice_is_not_exchanged(claim) -> None:
    assert all(exchanged(supported(claim), Random(seed), NAMES) is None for seed in range(20))


def row(claim: str, label: str, **more: str) -> dict[str, str]:
    return {"premise": "Evidence  of it.", "hypothesis": claim, "label": label, **more}


def test_cues_of_fever_tell_nothing() -> None:
    counts = {("It is not so.", "c"): 80, ("It is not so.", "e"): 10, ("It is so.", "c"): 20}
    counts[("It is so.", "e")] = 300
    rows = [ClaimRow(**row(*key)) for key, count in counts.items() for _ in range(count)]
    kept = Counter((one.hypothesis, one.label) for one in balanced(rows, Random(0)))
    assert kept == counts | {("It is not so.", "c"): 10, ("It is so.", "e"): 22}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [row(f"Claim {number}.", "e", group=str(number // 2), extra="") for number in range(6)]
    rows += [row("Of the test.", "e", split="test"), row("long " * 51, "c")]
    for name in (*MOST, MEASURED):
        text = "".join(json.dumps(one) + "\n" for one in rows if not name.startswith("fever"))
        claim = "It is measured." if name == MEASURED else "It is so."
        text += "".join(json.dumps(row(claim, label)) + "\n" for label in "eecc")
        text += json.dumps(row("It is measured.", "e")) + "\n"
        (tmp_path / f"{name}.jsonl").write_text(text)
    return tmp_path


def test_claims_of_all_files_are_read_up_to_a_number(folder, monkeypatch) -> None:
    monkeypatch.setitem(MOST, "mnli", 3)
    found = read_claims(folder)
    assert found == read_claims(folder) != read_claims(folder, seed=1)
    counts = Counter(one.set for one in found)
    assert counts.keys() == MOST.keys()
    assert not any(one.pair.claim == "It is measured." for one in found)
    assert counts["snli"] == 10
    assert counts["mnli"] in (3, 4)  # those of one group stay together
    assert all(one.spans is None and one.pair.premise == "Evidence of it." for one in found)
    assert not any("test" in one.pair.claim or len(one.pair.claim) > 100 for one in found)
    assert [one.pair.claim for one in read_measured(folder, 2)] == ["It is measured."] * 2


def test_a_file_that_is_missing_or_something_else_is_named(folder) -> None:
    (folder / "med.jsonl").write_text('{"premise": "a", "hypothesis": "b", "label": "x"}\n')
    with pytest.raises(InputError, match=r"med.jsonl, line 1, field 'label'"):
        read_claims(folder)
    (folder / "snli.jsonl").unlink()
    with pytest.raises(InputError, match=r"snli.jsonl: no such file"):
        read_claims(folder)
