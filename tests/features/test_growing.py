"""What is computed of a response while it is written: once of each sentence, and as of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lrp4rag.claims import answer
from lrp4rag.classifiers.contradiction import Statements
from lrp4rag.features import contrast
from lrp4rag.features.growing import Growing
from lrp4rag.features.plain import PlainTable
from lrp4rag.features.record import Record
from lrp4rag.features.replay import PlainReplay
from lrp4rag.features.rows import sentence_rows, value_rows
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import Encoded
from tests.features.test_contrast import encoded

PASSAGES = (
    "Leave lasts 16 weeks. Rest lasts 30 weeks. Entry costs 8 euros.",
    "Ask Ada Berg. You may not smoke.",
)
SENTENCES = (
    "Leave lasts 18 weeks.",
    "It is 30 weeks for Ada Berg.",
    "You may smoke where entry costs 8 euros.",
    "Ask Eva Lund by 5 May.",
    "Rest does not last 30 weeks.",
)


def grown(texts: Sequence[str], replay: PlainReplay, growing: Growing) -> list[Record]:
    return [replay(encoded(text, PASSAGES), growing=growing) for text in texts]


def assert_same(one: Record, other: Record) -> None:
    np.testing.assert_allclose(PlainTable()(one), PlainTable()(other), atol=1e-4)
    for mine, theirs in zip(one.compared, other.compared, strict=True):
        assert mine.features == pytest.approx(theirs.features, abs=1e-4)
        assert mine.values == theirs.values
    for rows in (value_rows, sentence_rows):
        for row, expected in zip(rows(one), rows(other), strict=True):
            assert (row.start, row.end, row.sentence) == (expected.start, expected.end, expected.sentence)
            assert row.features == pytest.approx(expected.features, abs=1e-4)
    np.testing.assert_allclose(Statements.of(one).compared, Statements.of(other).compared, atol=1e-4)


def test_a_growing_response_has_the_features_of_the_whole(tiny_reader: Reader) -> None:
    """It grows, is taken back, and goes on otherwise."""
    texts = [" ".join(SENTENCES[:count]) for count in (1, 3, 5, 2)]
    texts += [f"{SENTENCES[0]} {SENTENCES[3]} {SENTENCES[1]}", f"{SENTENCES[1]}\n\n{SENTENCES[0]}"]
    replay, growing = PlainReplay(tiny_reader), Growing()
    for text, record in zip(texts, grown(texts, replay, growing), strict=True):
        assert_same(record, PlainReplay(tiny_reader)(encoded(text, PASSAGES)))


def test_what_came_of_a_sentence_is_kept(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Encoded | str] = []
    for module, name in ((answer, "compare_signs"), (contrast, "_values")):
        known = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, known=known, name=name: (looked.append(name), known(*given))[1]
        )
    replay, growing = PlainReplay(tiny_reader), Growing()
    for count in range(1, len(SENTENCES) + 1):
        (record,) = grown([" ".join(SENTENCES[:count])], replay, growing)
        assert len(record.compared) == count
        assert sorted(looked) == sorted(["compare_signs", "_values"] * count)
    (record,) = grown(["Leave is short."], replay, growing)
    assert len(record.compared) == 1
    assert len(looked) == 2 * len(SENTENCES) + 2


def test_another_context_makes_all_anew(tiny_reader: Reader) -> None:
    growing, text = Growing(), " ".join(SENTENCES)
    for passages in (PASSAGES, PASSAGES[::-1], PASSAGES):
        one = encoded(text, passages)
        expected = PlainReplay(tiny_reader)(one).compared
        found = PlainReplay(tiny_reader)(one, growing=growing).compared
        assert [each.features for each in found] == [each.features for each in expected]
