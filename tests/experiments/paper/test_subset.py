import numpy as np
import pytest

from experiments.paper.data import Subset, in_common
from lrp4rag.lrp.resampling import resample
from lrp4rag.training.rows import Rows
from tests.experiments.paper.stores import SMALL, examples, store


@pytest.fixture
def subset(full_store):
    return Subset.of(Rows.open(full_store), SMALL)


def test_a_subset_has_the_rows_of_one_generator(subset):
    assert len(subset) == 30
    assert set(subset.rows.generators) == {SMALL}
    assert subset.prevalence == 0.5
    assert subset.enough
    assert not subset.select(np.arange(18)).enough  # nine sources of each class


def test_vectors_are_those_of_the_features_and_those_that_signals_have(subset):
    response = subset.vectors("response")
    assert subset.vectors("response") is response
    for name, factor in (("largest logit", 2.0), ("cp_lrp", 1.0)):
        for found, row in zip(subset.vectors(name), response, strict=True):
            assert np.allclose(found, factor * row, atol=0.01)
    assert [row.shape for row in subset.vectors("matrix")] == [(16, 64)] * 30
    inputs = subset.inputs("response", 7, "zeros")
    assert np.array_equal(inputs[3], resample(response[3], 7, "zeros"))
    assert subset.inputs("segments", 7).shape == (30, 7, 3)


def test_what_a_store_lacks_is_not_admitted(subset, bare_store):
    bare = Subset.of(Rows.open(bare_store), SMALL)
    vectors = ("response", "total", "prompt", "segments", "matrix", "matrix_t", "largest logit")
    assert all(subset.admits(vector) for vector in vectors)
    assert [bare.admits(vector) for vector in vectors] == [True, True, False, False, False, False, False]


def test_rows_in_common_are_matched_by_what_they_are(subset, tmp_path):
    kept = [example for example in examples() if example.generator == SMALL][::-1][:25]
    other = Subset.of(Rows.open(store(tmp_path / "s", kept, parts=())), SMALL)
    first, second = in_common(subset, other)
    assert [row.id for row in first.rows.examples] == [row.id for row in second.rows.examples]
    assert len(first) == 25
    assert in_common(subset, subset)[0] is subset
