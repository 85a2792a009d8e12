from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.classifiers import Features
from lrp4rag.classifiers.vectors import VECTORS
from lrp4rag.features.parts import MATRIX_SHAPE
from lrp4rag.lrp import resample
from lrp4rag.util.errors import InputError
from tests.classifiers.samples import relevance_of


@pytest.fixture
def whole():
    """Relevance of which everything was asked: 4 prompt tokens, 3 response tokens."""
    by_segment = np.array([[1, 2, 3], [4, 5, 6], [10, 20, 30], [1, 1, 1]], dtype=np.float32)
    matrix = np.arange(64 * 16, dtype=np.float32).reshape(MATRIX_SHAPE)
    prompt = np.array([1, 3, 5, 7], dtype=np.float32)
    return replace(relevance_of([16.0, 28.0, 40.0], by_segment=by_segment), prompt=prompt, resampled=matrix)


def test_rows_are_resampled_to_one_length(whole):
    rows = [relevance_of([1.0, 2.0, 3.0, 4.0]), relevance_of([5.0, 6.0])]
    assert Features(length=2)(rows).tolist() == [[1.5, 3.5], [5.0, 6.0]]
    assert np.array_equal(Features(length=7)(rows)[1], resample([5.0, 6.0], 7))
    assert Features("response", 2)([relevance_of([8.0, 4.0])]).tolist() == [[2.0, 1.0]]  # the mean
    assert Features("prompt", 2)([whole]).tolist() == [[2.0, 6.0]]


def test_segments_are_three_rows_along_the_response(whole):
    """Passages summed, question, template."""
    features = Features("segments", 3)([whole])
    assert features.tolist() == [[[11, 4, 1], [21, 5, 2], [31, 6, 3]]]
    assert Features("segments", 1)([whole, whole]).tolist() == [[[21, 5, 2]]] * 2


def test_the_matrix_is_read_along_the_response_or_along_the_prompt(whole):
    assert np.array_equal(Features("matrix", 64)([whole])[0], whole.resampled)
    assert np.array_equal(Features("matrix_t", 16)([whole])[0], whole.resampled.T)
    halves = Features("matrix", 32)([whole])[0]
    assert np.array_equal(halves, whole.resampled.reshape(32, 2, 16).mean(1))


@pytest.mark.parametrize(
    ("vector", "shape", "needs"),
    [
        ("total", (220,), ("relevance",)),
        ("response", (220,), ("relevance",)),
        ("prompt", (220,), ("relevance", "prompt")),
        ("segments", (220, 3), ("relevance", "segments")),
        ("matrix", (64, 16), ("relevance", "matrix-64x16")),
        ("matrix_t", (16, 64), ("relevance", "matrix-64x16")),
    ],
)
def test_what_each_vector_is_made_of(whole, vector, shape, needs):
    features = Features(vector, VECTORS[vector].length)
    assert features([whole, whole]).shape == (2, *shape) == (2, *features.shape)
    assert features.needs == needs


@pytest.mark.parametrize(
    ("vector", "lacking"),
    [("prompt", "R_prompt"), ("segments", "by segment"), ("matrix", "resampled"), ("matrix_t", "resampled")],
)
def test_a_vector_is_refused_where_it_was_not_computed(whole, vector, lacking):
    for given in (
        relevance_of([1.0, 2.0]),
        replace(whole, prompt=None, by_segment=None, resampled=np.eye(8)),
    ):
        with pytest.raises(InputError, match=lacking):
            Features(vector, 8)([given])


@pytest.mark.parametrize(
    "wrong", [{"vector": "x"}, {"mode": "nearest"}, {"length": 0}, {"vector": "matrix", "length": 65}]
)
def test_unknown_choices_are_refused(wrong):
    with pytest.raises(InputError):
        Features(**wrong)
