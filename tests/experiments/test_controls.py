import numpy as np

from lrp4rag.classifiers import Features
from lrp4rag.experiments import controls
from tests.classifiers.samples import relevance_of
from tests.tiny import bridge_example


def test_length_is_the_number_of_response_tokens():
    assert controls.length([], [relevance_of([1.0] * 5), relevance_of([1.0])], Features()).tolist() == [
        [5],
        [1],
    ]


def test_constant_relevance_hides_the_length_only_when_interpolated():
    rows = [relevance_of([3.0] * 10), relevance_of([7.0] * 50)]
    hidden = controls.constant("interpolate")([], rows, Features())
    assert controls.constant("interpolate")([], rows, Features(length=9)).shape == (2, 9)
    shown = controls.constant("zeros")([], rows, Features())
    assert np.allclose(hidden, 1)
    assert (shown[0] != 0).sum() == 10
    assert (shown[1] != 0).sum() == 50


def test_novel_words_are_those_that_no_passage_has():
    example = bridge_example(1, response="The BRIDGE was opened by Queen Zoë, Queen of Gondor.")
    assert controls.novel_words([example], [], Features()).tolist() == [[5]]  # by, queen, zoë, of, gondor
