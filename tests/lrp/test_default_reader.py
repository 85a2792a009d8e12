"""The invariants on the real default reader, in float32: 30 layers and trained weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lrp4rag.lrp import attribute, relevance_mode
from lrp4rag.reader import DEFAULT_READER, Encoded, Reader, load_reader
from tests.lrp.checks import assert_close, composites, logits_of
from tests.tiny import bridge_example


@pytest.fixture
def encoded(default_reader: Reader) -> Encoded:
    return default_reader.encode(bridge_example(5, template="{context}\n{question}", response="In 1905."))


def all_ids(encoded: Encoded) -> torch.Tensor:
    return torch.tensor([[*encoded.prompt_ids, *encoded.response_ids[:-1]]])


@composites
def test_patched_logits(composite: str, default_reader: Reader, encoded: Encoded) -> None:
    ids = all_ids(encoded)
    expected = logits_of(default_reader.model, ids)
    with relevance_mode(default_reader.model, composite):
        assert_close(logits_of(default_reader.model, ids), expected, 1e-5)
    assert torch.equal(logits_of(default_reader.model, ids), expected)


def test_cp_lrp_conserves(default_reader: Reader, encoded: Encoded) -> None:
    columns = all_ids(encoded).shape[1]
    with relevance_mode(default_reader.model, "cp_lrp") as flow:
        total = flow.push(encoded, torch.ones(1, columns))[0]
        np.testing.assert_allclose(total.numpy(), flow.explained_logits.numpy(), rtol=1e-3)


@composites
def test_push_equals_pull(composite: str, default_reader: Reader, encoded: Encoded) -> None:
    relevance = attribute(
        default_reader, encoded, composite=composite, segments=True, prompt=True, matrix=True
    )
    scale = np.abs(relevance.matrix.mean(1)).max()
    np.testing.assert_allclose(relevance.response, relevance.matrix.mean(1), atol=1e-3 * scale)
    segments = np.array(encoded.segments)
    sums = np.stack([relevance.matrix[:, segments == k].sum(1) for k in range(len(encoded.segment_names))])
    np.testing.assert_allclose(relevance.by_segment, sums, atol=1e-3 * np.abs(sums).max())


def test_adjoint(default_reader: Reader, encoded: Encoded) -> None:
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(1, len(encoded.prompt_ids), generator=generator)
    v = torch.randn(1, len(encoded.response_ids), generator=generator)
    with relevance_mode(default_reader.model) as flow:
        pushed, pulled = flow.push(encoded, u, keep=True), flow.pull(encoded, v)
    scale = float((v * pushed).abs().sum())
    assert abs(float((v * pushed).sum() - (pulled * u).sum())) <= 1e-4 * scale


def test_half_precision_on_the_real_reader() -> None:
    """bfloat16 passes the check of the patched logits, and its relevance is close to float32's."""
    example = bridge_example()
    totals = []
    for dtype in ("float32", "bfloat16"):
        reader = load_reader(DEFAULT_READER, device="cpu", dtype=dtype)
        totals.append(attribute(reader, reader.encode(example)).total)
    assert np.corrcoef(*totals)[0, 1] > 0.99
