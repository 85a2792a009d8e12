"""What is pulled back: a row for each sentence, and R_prompt as their mean."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lrp4rag.lrp import attribute, relevance_mode
from lrp4rag.reader import Encoded, Reader
from lrp4rag.training.extractor import Sentences, pull_sentences
from tests.tiny import bridge_example

ANSWERS = {
    "one sentence": "It was opened in 1900.",
    "three": "It was opened in 1900. The river runs under it.  Nobody knows more!",
    "one token": "no",
    "around white space": "  It was opened. \n\n Or was it?  ",
}

answers = pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())


def pull(reader: Reader, answer: str, composite: str = "attnlrp") -> tuple[Encoded, Sentences, np.ndarray]:
    """What was pulled, and the full R* (t, n)."""
    encoded = reader.encode(bridge_example(response=answer))
    with relevance_mode(reader.model, composite) as flow:
        found = pull_sentences(flow, encoded)
        matrix = flow.pull(encoded)
    return encoded, found, matrix.double().numpy()


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@answers
@pytest.mark.parametrize("composite", ["paper", "attnlrp", "cp_lrp"])
def test_the_prompts_relevance(answer: str, composite: str, tiny_reader: Reader) -> None:
    encoded, found, _ = pull(tiny_reader, answer, composite)
    expected = attribute(tiny_reader, encoded, composite=composite, prompt=True)
    close(found.prompt, expected.prompt)


@answers
def test_sentences_by_hand(answer: str, tiny_reader: Reader) -> None:
    encoded, found, matrix = pull(tiny_reader, answer)
    assert len(found.spans) == len(found.sentences) == len(found.tokens)
    assert found.tokens.sum() == len(encoded.response_ids)
    first = 0
    for row, count in zip(found.sentences, found.tokens, strict=True):
        close(row, matrix[first : first + count].mean(0))
        first += count
    close(found.prompt, matrix.mean(0))


def test_spans_are_the_sentences_characters(tiny_reader: Reader) -> None:
    answer = ANSWERS["three"]
    _, found, _ = pull(tiny_reader, answer)
    texts = [answer[start:end].strip() for start, end in found.spans]
    assert texts == ["It was opened in 1900.", "The river runs under it.", "Nobody knows more!"]


def test_the_flow_forgets_the_replay(tiny_reader: Reader) -> None:
    encoded = tiny_reader.encode(bridge_example())
    with relevance_mode(tiny_reader.model) as flow:
        pull_sentences(flow, encoded)
        assert flow._tape is None


def test_arrays_are_all_fields(tiny_reader: Reader) -> None:
    encoded, found, _ = pull(tiny_reader, ANSWERS["three"])
    n = len(encoded.prompt_ids)
    assert {name: array.shape for name, array in found.arrays().items()} == {
        "sentences": (3, n),
        "spans": (3, 2),
        "tokens": (3,),
    }
    assert torch.from_numpy(found.spans).dtype == torch.int64
