import numpy as np
import pytest

from lrp4rag.classifiers import Features
from lrp4rag.errors import InputError
from lrp4rag.lrp import resample
from tests.classifiers.samples import relevance_of


def test_rows_are_resampled_to_one_length():
    rows = [relevance_of([1.0, 2.0, 3.0, 4.0]), relevance_of([5.0, 6.0])]
    vectors = Features(length=2)(rows)
    assert vectors.tolist() == [[1.5, 3.5], [5.0, 6.0]]
    assert np.array_equal(Features(length=7)(rows)[1], resample([5.0, 6.0], 7))


def test_the_mean_over_prompt_tokens_is_another_vector():
    assert Features("response", 2)([relevance_of([8.0, 4.0])]).tolist() == [[2.0, 1.0]]


def test_prompt_vector_is_refused_where_it_was_not_computed():
    with pytest.raises(InputError, match="R_prompt"):
        Features(vector="prompt")([relevance_of([1.0, 2.0])])


@pytest.mark.parametrize("wrong", [{"vector": "x"}, {"mode": "nearest"}, {"length": 0}])
def test_unknown_choices_are_refused(wrong):
    with pytest.raises(InputError):
        Features(**wrong)
