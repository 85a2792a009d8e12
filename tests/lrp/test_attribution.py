"""From an encoded example to relevance: every way of asking gives parts of the same R*."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.lrp import Relevance, attribute, relevance_mode, resample
from lrp4rag.lrp.attribution import span_weights
from lrp4rag.lrp.resampling import MODES
from lrp4rag.reader import Encoded, Reader
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.lrp.checks import composites
from tests.tiny import bridge_example

# float32 models and arrays; relevance is some tens of logits.
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


@pytest.fixture(scope="module")
def encoded(tiny_reader: Reader) -> Encoded:
    return tiny_reader.encode(bridge_example())


@pytest.fixture(scope="module")
def full(tiny_reader: Reader, encoded: Encoded) -> Relevance:
    return attribute(tiny_reader, encoded, matrix=True)


def test_only_what_was_asked_for_is_there(tiny_reader: Reader, encoded: Encoded) -> None:
    before = [set(module.__dict__) for module in tiny_reader.model.modules()]
    relevance = attribute(tiny_reader, encoded)
    assert relevance.response.shape == relevance.logits.shape == (len(encoded.response_ids),)
    assert relevance.by_segment is relevance.prompt is relevance.matrix is relevance.resampled is None
    assert (relevance.composite, relevance.target) == ("attnlrp", "response")
    assert relevance.reader == tiny_reader.identity.as_dict()
    assert relevance.encoded is encoded
    with pytest.raises(LRP4RAGError):
        attribute(tiny_reader, encoded, composite="unknown")
    assert [set(module.__dict__) for module in tiny_reader.model.modules()] == before


@composites
def test_every_part_is_that_of_the_matrix(composite: str, tiny_reader: Reader, encoded: Encoded) -> None:
    """Means over prompt and response tokens and sums over segments, with the matrix and without, float32."""
    asked = {"composite": composite, "prompt": True, "resampled": (2, 3)}
    relevance = attribute(tiny_reader, encoded, matrix=True, segments=True, **asked)
    segments = np.array(encoded.segments)
    assert relevance.matrix.shape == (len(encoded.response_ids), len(encoded.prompt_ids))
    assert relevance.by_segment.shape == (2 + len(encoded.passages), len(encoded.response_ids))
    for k, row in enumerate(relevance.by_segment):
        np.testing.assert_allclose(row, relevance.matrix[:, segments == k].sum(1), **CLOSE)
    for one in (relevance, attribute(tiny_reader, encoded, **asked)):
        assert one.composite == composite
        np.testing.assert_allclose(one.response, relevance.matrix.mean(1), **CLOSE)
        np.testing.assert_allclose(one.prompt, relevance.matrix.mean(0), **CLOSE)
        np.testing.assert_allclose(one.logits, relevance.logits, **CLOSE)
    for name in ("response", "logits", "by_segment", "prompt", "matrix", "resampled"):
        assert getattr(relevance, name).dtype == np.float32


@pytest.mark.parametrize(
    ("mode", "with_matrix"), [*((mode, False) for mode in MODES), (MODES[0], True)], ids=str
)
@pytest.mark.parametrize("shape", [(3, 20), (200, 30)])
def test_resampled_is_the_matrix_resampled(
    mode: str,
    shape: tuple[int, int],
    with_matrix: bool,
    tiny_reader: Reader,
    encoded: Encoded,
    full: Relevance,
) -> None:
    """By cotangents where there are fewer response bins, else by tangents; lengths grow and shrink."""
    relevance = attribute(tiny_reader, encoded, resampled=shape, mode=mode, matrix=with_matrix)
    assert relevance.resampled.shape == shape
    np.testing.assert_allclose(relevance.resampled, resample(full.matrix, shape, mode), **CLOSE)


@pytest.mark.parametrize(("composite", "target"), [("cp_lrp", "response"), ("attnlrp", "largest")])
def test_an_open_flow_is_used(composite: str, target: str, tiny_reader: Reader, encoded: Encoded) -> None:
    """Its composite and target hold, and it stays open for the next example."""
    asked = {"segments": True, "prompt": True}
    expected = attribute(tiny_reader, encoded, composite=composite, target=target, **asked)
    other = tiny_reader.encode(bridge_example(7))
    with relevance_mode(tiny_reader.model, composite, target=target) as flow:
        attribute(tiny_reader, other, flow=flow, **asked)
        actual = attribute(tiny_reader, encoded, flow=flow, **asked)
    assert (actual.composite, actual.target) == (composite, target)
    for name in ("response", "by_segment", "prompt", "logits"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))


@pytest.mark.parametrize("keep", [False, True])
def test_a_kept_replay_is_not_repeated(
    keep: bool, tiny_reader: Reader, encoded: Encoded, full: Relevance
) -> None:
    replays: list[int] = []
    with relevance_mode(tiny_reader.model) as flow:
        handle = tiny_reader.model.model.layers[0].register_forward_hook(lambda *_: replays.append(1))
        attribute(tiny_reader, encoded, flow=flow, keep=keep)
        pulled = flow.pull(encoded)
        handle.remove()
    np.testing.assert_allclose(pulled.numpy(), full.matrix, **CLOSE)
    assert len(replays) == (1 if keep else 2)


def test_a_response_without_tokens_is_an_error(tiny_reader: Reader, encoded: Encoded) -> None:
    with pytest.raises(InputError, match="response has no tokens"):
        attribute(tiny_reader, replace(encoded, response_ids=(), response_offsets=()))


def test_span_weights_are_means_over_the_tokens_of_a_span(encoded: Encoded) -> None:
    text = encoded.response
    year = (text.index("1900"), text.index("1900") + 4)
    weights = span_weights(encoded, [(0, len(text)), year, (0, 1), (0, 0)]).numpy()
    assert span_weights(encoded, []).shape == (0, len(encoded.response_ids))
    assert weights.shape == (4, len(encoded.response_ids))
    np.testing.assert_allclose(weights.sum(1), [1, 1, 1, 0])
    np.testing.assert_allclose(weights[0], 1 / len(encoded.response_ids))
    for weight, (start, end) in zip(weights[1], encoded.response_offsets, strict=True):
        assert (weight > 0) == (start < year[1] and end > year[0])
    assert weights[2, 0] == 1
