"""The invariants on the real default reader, in float32: 30 layers and trained weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.attribution import prompt_mean
from lrp4rag.reader import DEFAULT_READER, Encoded, Reader, load_reader
from tests.lrp.checks import assert_close, random_weights
from tests.tiny import bridge_example


@pytest.fixture
def encoded(default_reader: Reader) -> Encoded:
    passages = ["The old stone bridge 5 was opened in 1905.", "A café stands near it."]
    example = bridge_example(5, template="{context}\n{question}", passages=passages, response="In 1905.")
    return default_reader.encode(example)


@pytest.mark.parametrize("composite", ["attnlrp", "cp_lrp"])
def test_the_adjoint_and_conservation(composite: str, default_reader: Reader, encoded: Encoded) -> None:
    """That patched logits are the model's own is checked on entry."""
    t = len(encoded.response_ids)
    columns, rows = len(encoded.prompt_ids) + t - 1, random_weights(1, t)
    weights = torch.cat([torch.ones(1, columns), random_weights(1, columns, seed=1)])
    with relevance_mode(default_reader.model, composite) as flow:
        pushed = flow.push(encoded, weights, keep=True).double()
        pulled = flow.pull(encoded, rows, all_columns=True).double()
        logits = flow.explained_logits.double()
    assert_close(pulled @ weights.T, rows @ pushed.T, 1e-3)
    if composite == "cp_lrp":
        np.testing.assert_allclose(pushed[0], logits, rtol=1e-3)


def test_half_precision_on_the_real_reader(default_reader: Reader, encoded: Encoded) -> None:
    """bfloat16 passes the check of the patched logits, and its relevance is close to float32's."""
    totals = []
    for reader in (default_reader, load_reader(DEFAULT_READER, device="cpu", dtype="bfloat16")):
        with relevance_mode(reader.model) as flow:
            totals.append(flow.push(encoded, prompt_mean(encoded))[0].float())
    assert np.corrcoef(*totals)[0, 1] > 0.99
