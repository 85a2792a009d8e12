"""Values that follow from others: what a passage has more exactly."""

from __future__ import annotations

import pytest

from lrp4rag.claims.arithmetic import rounded
from lrp4rag.claims.index import Index
from lrp4rag.claims.quantities import find_quantities
from lrp4rag.claims.words import content_words


@pytest.mark.parametrize(
    ("claim", "passage", "source"),
    [
        ("The tower is about 61 metres tall.", "The tower is 61.4 metres tall.", "61.4 metres"),
        ("The town has nearly 5,000 inhabitants.", "The town has 4,983 inhabitants.", "4,983"),
        ("The tower is 61 metres tall.", "The tower, of 61 metres, was 61.4 metres tall.", None),
        ("The tower is 61.4 metres tall.", "The tower is about 61 metres tall.", None),
        ("The tower is 45 metres tall.", "The tower is 61.4 metres tall.", None),
    ],
)
def test_what_is_rounded_leads_to_what_a_passage_has(claim: str, passage: str, source: str | None) -> None:
    index = Index([passage])
    (value,) = find_quantities(claim)
    found = rounded(value, index.occurrences(value, index.similarities(content_words(claim))))
    assert (found and found.words) == source
    if found:
        assert [passage[start:end] for start, end in found.parts] == [source]
        assert (found.kind, found.passage) == ("rounded", 0)
