"""What is told of each value of a response, one row a value."""

from __future__ import annotations

from math import log1p

import numpy as np
import pytest

from lrp4rag.features.claims import claim_features
from lrp4rag.features.replay import PlainReplay
from lrp4rag.features.rows import FEATURES, comparison_rows, table, value_rows, values_of
from lrp4rag.reader import Reader
from tests.features.test_contrast import encoded

NAMES = [one.name for one in FEATURES]
PASSAGES = ("Leave lasts 16 weeks. Rest lasts 30 weeks.", "Ask Ada Berg. You may not smoke.")
RESPONSE = "Leave lasts 18 weeks. You may smoke. Ask two of them, or Ada Berg."


def rows_of(tiny_reader: Reader, response: str = RESPONSE) -> tuple[list[str], dict[str, list[float]]]:
    record = PlainReplay(tiny_reader)(encoded(response, PASSAGES))
    rows = value_rows(record)
    numbers = table(rows, NAMES)
    assert np.isfinite(numbers).all()
    columns = dict(zip(NAMES, numbers.T.tolist(), strict=True))
    return [record.encoded.response[row.start : row.end] for row in rows], columns


def test_each_value_but_words_of_polarity_has_a_row(tiny_reader: Reader) -> None:
    texts, columns = rows_of(tiny_reader)
    assert texts == ["18 weeks", "two", "Ada Berg"]
    assert columns["quantity"] == [1, 1, 0]
    assert columns["name"] == [0, 0, 1]
    assert columns["unsupported"] == [1, 1, 0]
    assert columns["in words"] == [0, 1, 1]
    assert columns["small count"] == [0, 1, 0]
    assert columns["amount"][1:] == [pytest.approx(log1p(2)), -1]
    assert columns["places that agree"] == [0, 0, 1]
    assert columns["places"][0] == 2
    assert columns["sentence's number"] == pytest.approx([0, log1p(2), log1p(2)])


def test_likelihoods_are_those_of_the_values_own_tokens(tiny_reader: Reader) -> None:
    record = PlainReplay(tiny_reader)(encoded(RESPONSE, PASSAGES))
    claim = values_of(record)[0].claim
    own = record["logprob"][claim.first : claim.last]
    row = value_rows(record)[0].features
    assert row["logprob, sum"] == pytest.approx(own.sum())
    assert row["logprob, min"] == pytest.approx(own.min())
    assert row["logprob, first"] == pytest.approx(own[0])
    # Beside them, what a token of the value has.
    token = claim_features(record)[1:, claim.first]
    np.testing.assert_allclose(list(row.values())[: len(token)], token)


def test_what_follows_a_sentence_changes_nothing_of_its_values(tiny_reader: Reader) -> None:
    _, before = rows_of(tiny_reader, "Leave lasts 18 weeks.")
    _, after = rows_of(tiny_reader, RESPONSE)
    assert {name: values[0] for name, values in after.items()} == pytest.approx(
        {name: values[0] for name, values in before.items()}, abs=1e-4
    )


def test_a_response_without_values_has_no_rows(tiny_reader: Reader) -> None:
    texts, columns = rows_of(tiny_reader, "You may smoke.")
    assert texts == []
    assert set(map(len, columns.values())) == {0}


def test_a_value_has_what_its_comparison_tells(tiny_reader: Reader) -> None:
    record = PlainReplay(tiny_reader)(encoded(RESPONSE, PASSAGES))
    weeks, _, name = value_rows(record)
    assert weeks.features["slot: quantity"] == name.features["slot: name"] == 1
    assert weeks.features["slot: known"] == 0
    assert name.features["slot: known"] == 1
    assert [row.start for row in comparison_rows(record.compared)] == [
        row.start for row in value_rows(record)
    ]
