"""Evidence and rows of an analysis say the same of a contradicted span."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.classifiers.analysis import Analyser, Analysis, with_relevance
from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.example import Example
from lrp4rag.features.context import context_of
from lrp4rag.lrp import ATTNLRP
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import FIRST_PASSAGE, encode
from lrp4rag.report.record import record
from tests.report.samples import analysis_of, contradicted
from tests.tiny import tiny_tokenizer

TRIMMING = "{% for message in messages %}<|user|>{{ message['content'] | trim }}\n{% endfor %}<|assistant|>"


def pushed(passage: int, verdict: Verdict) -> Verdict:
    """The verdict with relevance of nothing but that passage."""
    example = contradicted().example
    encoded = analysis_of(example).encoded
    matrix = np.tile(np.array(encoded.segments) == 2 + passage, (len(encoded.response_ids), 1))
    return with_relevance(verdict, analysis_of(example, matrix=matrix.astype(float)).relevance)


@pytest.mark.parametrize("leading", [0, 1])
def test_a_contradicted_span_keeps_its_passage_once_rows_are_pushed(leading: int) -> None:
    before = contradicted(pushed=False).verdict
    (span,) = pushed(leading, before).spans
    assert (span.kind, span.passage) == ("contradicted", 1)
    assert span.relevance is not None
    assert span.contradictions == before.spans[0].contradictions


@pytest.mark.parametrize("leading", [0, 1])
def test_an_unsupported_span_has_the_leading_passage(leading: int) -> None:
    before = contradicted(pushed=False).verdict
    (span,) = before.spans
    after = pushed(leading, replace(before, spans=(replace(span, contradictions=()),)))
    assert (after.spans[0].kind, after.spans[0].passage) == ("unsupported", leading)


def read(reader: Reader) -> Analysis:
    """The contradicted example as that reader reads it."""
    given = contradicted(relevance=None, pushed=False)
    encoded = reader.encode(given.example)
    marks = replace(
        given.verdict.marks, probabilities=np.full(len(encoded.response_ids), 0.9, dtype=np.float32)
    )
    (span,) = given.verdict.spans
    whole = replace(span, start=0, end=len(encoded.response), text=encoded.response)
    return replace(given, encoded=encoded, verdict=replace(given.verdict, marks=marks, spans=(whole,)))


def test_json_says_the_same_of_contradictions_with_a_page_and_without(tiny_reader: Reader) -> None:
    analyser = Analyser(tiny_reader, None, ATTNLRP)
    plain = analyser.with_evidence(read(tiny_reader))
    paged = analyser.with_rows(plain)
    analyser.close()
    one, other = record(plain)["spans"], record(paged)["spans"]
    assert one[0]["passage"] == other[0]["passage"] == 2
    assert one[0]["contradictions"][0]["relevance"] is not None
    assert one[0]["contradictions"] == other[0]["contradictions"]


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
