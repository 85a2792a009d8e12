"""The figures that the check of citations must reach."""

from __future__ import annotations

import pytest

from benchmarks.checks.__main__ import citation_figures
from benchmarks.checks.citation_cases import FORMATS, Case, generated, written


@pytest.mark.parametrize(
    "cases", [generated(), generated(seed=1), written()], ids=["grammar", "other", "hand"]
)
def test_citations_are_told_apart(cases: list[Case]) -> None:
    result = citation_figures(cases)
    assert result["right"] >= 0.98, result["wrong"]
    assert result["fabricated_called_verified"] == 0


def test_the_grammar_makes_as_many_true_as_false_in_twelve_formats() -> None:
    cases = generated()
    kinds = [kind for case in cases for _, kind in case.expected]
    assert (len(FORMATS), len(kinds), kinds.count("verified")) == (12, 600, 300)
