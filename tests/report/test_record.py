from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.errors import RelevanceError
from lrp4rag.report.record import record
from tests.report.samples import READER, RESPONSE, analysis_of, grounded_then_not


def test_the_record_is_json_with_everything_a_machine_needs():
    analysis = grounded_then_not(token_threshold=-0.001)
    row = json.loads(json.dumps(record(analysis), allow_nan=False))
    assert set(row) == {
        "id", "probability", "threshold", "hallucinated", "spans", "sentences", "reader", "composite",
        "target", "prompt_tokens", "response_tokens", "dropped", "generated", "response", "seconds",
        "abstained", "unlike", "reasons", "relevance_of", "generator_shift",
    }  # fmt: skip
    assert (row["id"], row["probability"], row["threshold"], row["hallucinated"]) == (
        "bridge-1",
        0.78,
        0.5,
        True,
    )
    assert row["reader"] == READER
    assert row["response"] == RESPONSE
    assert (row["response_tokens"], row["dropped"], row["generated"]) == (9, 0, False)
    assert row["prompt_tokens"] == len(analysis.relevance.encoded.prompt_ids)
    assert row["seconds"] == {"push": 1.25, "classify": 0.5}


def test_sentences_and_spans_carry_their_text():
    row = record(grounded_then_not(token_threshold=0.4))
    first, second = row["sentences"]
    assert first["text"] == "It opened in 1874."
    assert (first["passage"], second["passage"]) == (1, None)
    assert first["by_passage"] == [2.0, 0.0]
    assert second["by_passage"] == [0.0, -1.0]
    assert row["spans"]
    for part in (*row["spans"], *row["sentences"]):
        assert part["text"] == RESPONSE[part["start"] : part["end"]]


def test_without_a_detector_the_verdict_is_null():
    row = record(analysis_of(probability=None))
    assert row["probability"] is row["threshold"] is row["hallucinated"] is None


def test_no_nan_and_no_numpy():
    with pytest.raises(RelevanceError, match="no verdict: the probability is nan"):
        analysis_of(probability=float("nan"))
    analysis = replace(analysis_of(), seconds={"push": np.float64(1.0), "pull": float("inf")})
    row = json.loads(json.dumps(record(analysis), allow_nan=False))
    assert row["seconds"] == {"push": 1.0, "pull": None}
