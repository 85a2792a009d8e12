import numpy as np
import pytest

from lrp4rag.training.lexical import FEATURES, lexical, lexical_features, novel_words
from lrp4rag.training.rows import Rows
from tests.tiny import bridge_example


def features(response, **changes):
    return dict(zip(FEATURES, lexical_features(bridge_example(1, response=response, **changes)), strict=True))


def test_novel_words_are_those_that_no_passage_has():
    row = features("The BRIDGE was opened by Queen Zoë, Queen of Gondor.")
    assert row["distinct words that no passage has"] == 5  # by, queen, zoë, of, gondor
    assert row["words of the response"] == 10
    assert row["their share of the response's distinct words"] == pytest.approx(5 / 9)


def test_numbers_count_only_where_no_passage_has_them():
    assert features("Opened in 1901, not in 1902 or 3rd of 44.")["distinct numbers that no passage has"] == 3


def test_copied_pairs_and_runs_end_where_a_passage_ends():
    passages = ["a b c d", "e f g"]
    row = features("x b c d e f g y", passages=passages)
    # Of x-b, b-c, c-d, d-e, e-f, f-g, g-y a passage has four: d-e runs over the end of one.
    assert row["share of the response's pairs of neighbouring words that a passage has"] == 4 / 7
    assert row["longest run of words copied from one passage"] == 3


def test_a_response_without_words_has_features_too():
    assert list(features("...").values()) == [0, 0, 0, 0, 0, 0]


def test_rows_become_contenders_of_six_columns():
    examples = tuple(bridge_example(k, response=f"The bridge number {'x ' * k} is old") for k in range(4))
    rows = Rows(None, examples)
    for contender in lexical(rows):
        assert contender.inputs.shape == (4, len(FEATURES)) == (4, 6)
        assert contender.inputs[:, 0].tolist() == [5, 6, 7, 8]
    counts = novel_words(rows)[0].inputs
    assert np.array_equal(counts[:, 0], lexical(rows)[0].inputs[:, 1])
