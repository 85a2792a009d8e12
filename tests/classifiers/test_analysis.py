"""Evidence and rows of an analysis say the same of a contradicted span."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.classifiers.verdict import Evidence, Judgement, Verdict
from tests.report.samples import analysis_of, contradicted


def pushed(passage: int, judgement: Judgement) -> Verdict:
    """With relevance of nothing but that passage."""
    example = contradicted().example
    encoded = analysis_of(example).encoded
    matrix = np.tile(np.array(encoded.segments) == 2 + passage, (len(encoded.response_ids), 1))
    relevance = analysis_of(example, matrix=matrix.astype(float)).relevance
    return replace(judgement, relevance=relevance).verdict(Evidence(), Verdict)


@pytest.mark.parametrize("leading", [0, 1])
def test_a_contradicted_span_keeps_its_passage_once_rows_are_pushed(leading: int) -> None:
    before = contradicted(pushed=False)
    (span,) = pushed(leading, before.judgement).spans
    assert (span.kind, span.passage) == ("contradicted", 1)
    assert span.relevance is not None
    assert span.contradictions == before.spans[0].contradictions


@pytest.mark.parametrize("leading", [0, 1])
def test_an_unsupported_span_has_the_leading_passage(leading: int) -> None:
    judgement = contradicted(pushed=False).judgement
    judgement = replace(judgement, assessment=replace(judgement.assessment, contradictions=()))
    (span,) = pushed(leading, judgement).spans
    assert (span.kind, span.passage) == ("unsupported", leading)
