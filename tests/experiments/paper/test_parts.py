import numpy as np
import pytest

from lrp4rag.experiments.paper.parts import Part, in_common
from lrp4rag.lrp.resample import resample
from lrp4rag.training.rows import Rows
from tests.experiments.paper.stores import LARGE, SMALL, examples, store


@pytest.fixture
def part(full_store):
    return Part.of(Rows.open(full_store), SMALL)


def test_a_part_has_the_rows_of_one_generator(part):
    assert len(part) == 30
    assert set(part.rows.generators) == {SMALL}
    assert part.prevalence == 0.5
    assert part.enough
    assert not part.select(np.arange(18)).enough  # nine sources of each class


def test_vectors_are_those_of_the_features_and_those_that_signals_have(part):
    response = part.vectors("response")
    assert part.vectors("response") is response
    for name, factor in (("largest logit", 2.0), ("cp_lrp", 1.0)):
        assert all(
            np.allclose(found, factor * row, atol=0.01)
            for found, row in zip(part.vectors(name), response, strict=True)
        )
    assert [row.shape for row in part.vectors("matrix")] == [(16, 64)] * 30
    inputs = part.inputs("response", 7, "zeros")
    assert np.array_equal(inputs[3], resample(response[3], 7, "zeros"))
    assert part.inputs("segments", 7).shape == (30, 7, 3)


def test_what_a_store_lacks_is_not_admitted(part, bare_store):
    bare = Part.of(Rows.open(bare_store), SMALL)
    vectors = ("response", "total", "prompt", "segments", "matrix", "matrix_t", "largest logit")
    assert all(part.admits(vector) for vector in vectors)
    assert [bare.admits(vector) for vector in vectors] == [True, True, False, False, False, False, False]


def test_the_digest_follows_rows_and_labels(part, bare_store):
    assert part.digest == Part.of(part.rows, SMALL).digest
    changed = {
        part.relabelled(~part.labels).digest,
        part.select(np.arange(20)).digest,
        Part.of(part.rows.__class__.open(part.rows.store.folder), LARGE).digest,
    }
    assert len(changed | {part.digest}) == 4


def test_rows_in_common_are_matched_by_what_they_are(part, tmp_path):
    kept = [example for example in examples() if example.generator == SMALL][::-1][:25]
    other = Part.of(Rows.open(store(tmp_path / "s", kept, parts=())), SMALL)
    first, second = in_common(part, other)
    assert [row.id for row in first.rows.examples] == [row.id for row in second.rows.examples]
    assert len(first) == 25
    assert in_common(part, part)[0] is part
