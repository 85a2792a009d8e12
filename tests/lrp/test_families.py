"""Every family: patched logits, the reference in both directions, adjoint, causality and conservation.

Run against the newest transformers that pyproject.toml admits, these tests are the smoke test that an
adapter's names still fit.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.families import FAMILIES, supported_architectures
from tests.lrp import tiny_families
from tests.lrp.checks import (
    BIASED,
    COMPOSITES,
    NAMES,
    assert_close,
    composites,
    families,
    logits_of,
    model_of,
    random_weights,
    reference_of,
    state_of,
)
from tests.tiny import random_tokens


def test_every_supported_architecture_is_tested_and_documented() -> None:
    tested = {tiny_families.FAMILIES[name].model for name in NAMES}
    assert tested == set(supported_architectures())
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    page = (Path(__file__).parents[2] / "docs" / "families.md").read_text()
    assert set(re.findall(r"`(\w+ForCausalLM)`", page)) == tested


@families
@composites
def test_patched_logits_equal_the_models_own(name: str, composite: str) -> None:
    model, ids = model_of(name), random_tokens(30, 1).ids
    expected, before = logits_of(model, ids), state_of(model)
    with relevance_mode(model, composite):
        assert_close(logits_of(model, ids), expected, 1e-6)
    assert state_of(model) == before


@families
@composites
def test_push_and_pull_agree_with_the_reference_and_each_other(name: str, composite: str) -> None:
    tokens, logits, expected = reference_of(name, composite)
    weights, rows = random_weights(3, 21), random_weights(2, 5, seed=1)
    with relevance_mode(model_of(name), composite) as flow:
        pushed = flow.push(tokens, weights)
        assert_close(flow.explained_logits, logits, 1e-10)
        matrix = flow.pull(tokens, all_columns=True)
        pulled = flow.pull(tokens, rows, all_columns=True)
        cached = flow.prefix(tokens.prompt_ids, weights[:, :17])
        assert_close(cached.push(tokens.response_ids, weights[:, 17:]), pushed, 1e-6)
    assert_close(matrix, expected, 1e-10)
    assert_close(pushed, weights @ expected.T, 1e-10)
    assert_close(pulled, rows @ matrix, 1e-10)
    assert_close(pulled @ weights.T, rows @ pushed.T, 1e-10)  # one is the other's adjoint
    for j in range(5):  # no relevance from later tokens
        assert not matrix[j, 17 + j :].any()


@families
def test_composites_differ(name: str) -> None:
    """Or one that changed nothing would pass for another."""
    relevance = [reference_of(name, composite)[2] for composite in COMPOSITES]
    for one, other in itertools.combinations(relevance, 2):
        assert (one - other).abs().max() > 0.05 * other.abs().max()


@families
def test_cp_lrp_conserves_at_every_layer_where_there_are_no_biases(name: str) -> None:
    model, tokens = model_of(name), random_tokens(17, 5)
    with relevance_mode(model, "cp_lrp") as flow:
        for layer in range(len(model.model.layers)):
            total = flow.pull(tokens, all_columns=True, layer=layer).sum(1)
            if name in BIASED:
                assert float((total - flow.explained_logits).abs().max()) > 0.01
            else:
                assert_close(total, flow.explained_logits, 1e-6)
