"""Every family: patched logits, agreement with the reference, adjoint, causality, cache and conservation.

Run against the newest transformers that pyproject.toml admits, these tests are the smoke test that an
adapter's names still fit.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from torch import Tensor

from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.families import FAMILIES, supported_architectures
from tests.lrp import tiny_families
from tests.lrp.checks import assert_close, composites, logits_of, random_weights, state_of
from tests.lrp.detached import reference_rows
from tests.tiny import Tokens, random_tokens

NAMES = tuple(tiny_families.FAMILIES)
families = pytest.mark.parametrize("name", NAMES)

# Where `cp_lrp` does not sum to the logit: a bias is a source of its own.
BIASED = {"qwen2"}


@cache
def model_of(name: str):
    return tiny_families.build(name)


@cache
def reference_of(name: str, composite: str) -> tuple[Tokens, Tensor, Tensor]:
    tokens = random_tokens(17, 5)
    logits, rows = reference_rows(model_of(name), tokens.prompt_ids, tokens.response_ids, composite)
    return tokens, logits, rows


def test_every_supported_architecture_is_tested() -> None:
    tested = {tiny_families.FAMILIES[name].model for name in NAMES}
    assert tested == set(supported_architectures())
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_the_page_of_supported_models_names_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "families.md").read_text()
    assert all(f"`{name}`" in page for name in supported_architectures())
    named = set(re.findall(r"`(\w+ForCausalLM)`", page))
    assert named == set(supported_architectures())


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
def test_push_agrees_with_the_reference(name: str, composite: str) -> None:
    tokens, logits, expected = reference_of(name, composite)
    weights = random_weights(3, expected.shape[1])
    with relevance_mode(model_of(name), composite) as flow:
        assert_close(flow.push(tokens, weights), weights @ expected.T, 1e-10)
        assert_close(flow.explained_logits, logits, 1e-10)


@families
@composites
def test_pull_agrees_with_the_reference(name: str, composite: str) -> None:
    tokens, _, expected = reference_of(name, composite)
    with relevance_mode(model_of(name), composite) as flow:
        assert_close(flow.pull(tokens, all_columns=True), expected, 1e-10)


@families
@composites
def test_pull_is_the_transpose_of_push(name: str, composite: str) -> None:
    """Both take the model as it runs, its float32 norms included, so they agree to the last digits."""
    tokens = random_tokens(17, 5)
    with relevance_mode(model_of(name), composite) as flow:
        matrix = flow.pull(tokens, all_columns=True)
        weights, rows = random_weights(3, 21), random_weights(2, 5, seed=1)
        assert_close(flow.push(tokens, weights), weights @ matrix.T, 1e-10)
        assert_close(flow.pull(tokens, rows, all_columns=True), rows @ matrix, 1e-10)


@families
@composites
def test_no_relevance_from_later_tokens(name: str, composite: str) -> None:
    tokens = random_tokens(9, 4)
    with relevance_mode(model_of(name), composite) as flow:
        matrix = flow.pull(tokens, all_columns=True)
    for j in range(4):
        assert (matrix[j, 9 + j :] == 0).all()


@families
def test_cp_lrp_conserves_where_there_are_no_biases(name: str) -> None:
    tokens = random_tokens(17, 5)
    with relevance_mode(model_of(name), "cp_lrp") as flow:
        total = flow.pull(tokens, all_columns=True).sum(1)
        logits = flow.explained_logits
    if name in BIASED:
        assert float((total - logits).abs().max()) > 0.01
    else:
        assert_close(total, logits, 1e-6)
