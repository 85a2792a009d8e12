"""Relevance between units is R* summed over their tokens, whichever way it is computed."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.units import between
from lrp4rag.reader import Reader
from tests.tiny import bridge_example


@pytest.mark.parametrize("response", ["token", "word", "sentence"])
@pytest.mark.parametrize("prompt", ["token", "word", "sentence", "passage"])
def test_units_sum_the_matrix(tiny_reader: Reader, response: str, prompt: str) -> None:
    encoded = tiny_reader.encode(bridge_example(response="It was opened in 1900. A café stands there."))
    n = len(encoded.prompt_ids)
    with relevance_mode(tiny_reader.model) as flow:
        matrix = flow.pull(encoded, all_columns=True).double().numpy()
        logits = flow.explained_logits.double().numpy()
        result = between(flow, encoded, response=response, prompt=prompt)
    assert result.values.shape == (len(result.rows), len(result.columns))
    scale = np.abs(matrix).max()
    for k, row in enumerate(result.rows):
        chosen = list(row.tokens)
        for i, column in enumerate(result.columns):
            expected = matrix[np.ix_(chosen, list(column.tokens))].sum()
            assert abs(result.values[k, i] - expected) < 1e-4 * scale
        assert abs(result.own[k] - matrix[chosen, n:].sum()) < 1e-4 * scale
        assert result.logits[k] == pytest.approx(logits[chosen].sum(), rel=1e-4)


def test_it_costs_a_pass_for_each_unit_of_the_smaller_side(tiny_reader: Reader) -> None:
    """Seen in what is called: one pushed chunk for passages, one pull for sentences by words."""
    encoded = tiny_reader.encode(bridge_example(response="It was opened in 1900."))
    with relevance_mode(tiny_reader.model) as flow:
        calls = []
        push, pull = flow.push, flow.pull
        flow.push = lambda *args, **options: calls.append("push") or push(*args, **options)
        flow.pull = lambda *args, **options: calls.append("pull") or pull(*args, **options)
        between(flow, encoded, response="token", prompt="passage")
        between(flow, encoded, response="sentence", prompt="word")
    assert calls == ["push", "pull"]


def test_layers_and_targets_are_noted(tiny_reader: Reader) -> None:
    encoded = tiny_reader.encode(bridge_example())
    with relevance_mode(tiny_reader.model, "cp_lrp", target="response-mean") as flow:
        result = between(flow, encoded, layer=1)
    assert (result.composite, result.target, result.layer) == ("cp_lrp", "response-mean", 1)
    # cp_lrp conserves at every layer: prompt and earlier tokens together are the explained value.
    np.testing.assert_allclose(result.values.sum(1) + result.own, result.logits, rtol=1e-3, atol=1e-3)
