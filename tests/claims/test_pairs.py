"""Four hundred pairs of a claim and a passage that agree and four hundred that do not, as people write them.

They were written by hand from everyday texts, without a look at the code that compares them. Kinds that
values alone cannot tell (which of two things a value is said of, who did what to whom) count too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lrp4rag.claims import agree, find_values
from lrp4rag.claims.arithmetic import computed, may_be_total
from lrp4rag.claims.index import Index, rivals, support
from lrp4rag.claims.polarity import opposed
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.value import Value
from lrp4rag.claims.words import content_words

PAIRS = [json.loads(line) for line in (Path(__file__).parent / "pairs.jsonl").read_text().splitlines()]


def differing(claim: str, passage: str) -> list[Value]:
    """Values of a claim that the passage has otherwise, and nowhere as the claim has them."""
    index = Index([passage])
    return [
        value for value in find_values(claim, Surroundings(passage)) if _differs(value, claim, passage, index)
    ]


def _differs(value: Value, claim: str, passage: str, index: Index) -> bool:
    if value.kind in ("absence", "reference"):
        return False
    similarities = index.similarities(content_words(claim))
    occurrences = index.occurrences(value, similarities)
    if value.kind == "polarity":
        others = [one.value for one in occurrences]
        return any(opposed(value, one) for one in others) and not any(agree(value, one) for one in others)
    others = [
        one for one in rivals(value, occurrences) if not may_be_total(value, claim, one, [passage], index)
    ]
    if support(value, occurrences) or not others:
        return False
    return computed(value, claim, [passage], index, similarities) is None


def share(pairs: list[dict[str, Any]]) -> int:
    return sum((not differing(one["claim"], one["passage"])) == one["agree"] for one in pairs)


@pytest.mark.parametrize(("agrees", "least"), [(True, 380), (False, 300)])
def test_most_pairs_are_told_apart(agrees: bool, least: int) -> None:
    pairs = [one for one in PAIRS if one["agree"] is agrees]
    assert len(pairs) == 400
    assert share(pairs) >= least
