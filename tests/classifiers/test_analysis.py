"""Evidence and rows of an analysis say the same of a contradicted span."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.classifiers.verdict import Evidence, Judgement, Verdict
from lrp4rag.example import Example
from lrp4rag.features.contrast import context_of
from lrp4rag.reader.encoding import FIRST_PASSAGE, encode
from tests.report.samples import analysis_of, contradicted
from tests.tiny import tiny_tokenizer

TRIMMING = "{% for message in messages %}<|user|>{{ message['content'] | trim }}\n{% endfor %}<|assistant|>"


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


@pytest.mark.parametrize("before", ["", "\n\n  ", "Once.\n"])
@pytest.mark.parametrize("trims", [True, False])
def test_places_where_a_chat_template_trims_the_prompt(before: str, trims: bool) -> None:
    tokenizer = tiny_tokenizer()
    if trims:
        tokenizer.chat_template = TRIMMING
    analysis = contradicted()
    passage = before + analysis.example.passages[1]
    example = Example("", [passage], analysis.example.response, prompt=f"{passage}\n")
    encoded = encode(example, tokenizer)
    (read,) = context_of(encoded).passages
    assert read.lstrip() == passage.strip()
    assert len(read) == len(passage)
    start = encoded.spans[FIRST_PASSAGE][0] + passage.index("2 weeks")
    assert encoded.text[start : start + 7] == "2 weeks"
