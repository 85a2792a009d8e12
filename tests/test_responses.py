"""The labelled examples in examples/responses.jsonl: complete, and labelled where they should be."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.util.sentences import sentences_in

EXAMPLES = load_examples(Path(__file__).parent.parent / "examples" / "responses.jsonl")
HALLUCINATED = [example for example in EXAMPLES if example.hallucinated]


def words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text)


def known_words(example: Example) -> set[str]:
    return set(words(" ".join((example.question, *example.passages)).lower()))


def spans(example: Example) -> list[str]:
    assert example.response is not None
    return [example.response[label.start : label.end] for label in example.labels or ()]


def unlabelled(example: Example) -> str:
    text = example.response or ""
    for label in sorted(example.labels or (), key=lambda label: -label.start):
        text = text[: label.start] + "|" + text[label.end :]
    return text


def test_each_question_has_a_faithful_and_a_hallucinated_response() -> None:
    by_source = defaultdict(list)
    for example in EXAMPLES:
        by_source[example.source].append(example)
    assert len(by_source) == 40
    for pair in by_source.values():
        assert sorted(bool(example.hallucinated) for example in pair) == [False, True]
        assert len({(example.question, example.passages) for example in pair}) == 1
        assert len(pair[0].passages) in (2, 3)
    assert {example.generator for example in EXAMPLES} == {"hand-written"}


def test_responses_differ_in_length() -> None:
    counts = [len(sentences_in(example.response or "")) for example in EXAMPLES]
    assert set(counts) == {2, 3, 4, 5}


@pytest.mark.parametrize("example", HALLUCINATED, ids=lambda example: example.id)
def test_labels_cover_whole_words_in_order_and_name_their_kind(example: Example) -> None:
    response, end = example.response or "", 0
    for label, span in zip(example.labels or (), spans(example), strict=True):
        assert label.start >= end
        assert span == span.strip()
        for cut in (label.start, label.end):
            assert not re.match(r"\w\w", response[cut - 1 : cut + 1]) or cut == 0
        assert label.kind in ("contradiction", "baseless")
        end = label.end


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_every_number_and_name_outside_the_labels_is_in_the_passages(example: Example) -> None:
    known = known_words(example)
    text = unlabelled(example)
    numbers = [word for word in words(text) if word[0].isdigit()]
    # A capital after the start of a sentence: a name.
    names = [match[1] for match in re.finditer(r"(?<=[\w,;:] )([A-Z][\w'-]*)", text)]
    missing = [word for word in numbers + names if word.lower().removesuffix("'s") not in known]
    assert missing == []


@pytest.mark.parametrize("example", HALLUCINATED, ids=lambda example: example.id)
def test_baseless_additions_hold_words_that_no_passage_has(example: Example) -> None:
    for label, span in zip(example.labels or (), spans(example), strict=True):
        new = [word for word in words(span.lower()) if word not in known_words(example)]
        assert label.kind == "contradiction" or len(new) >= 2


def test_neither_length_nor_new_words_gives_the_label_away() -> None:
    """As in data that was not made up: a detector must beat these two, and can."""
    from sklearn.metrics import roc_auc_score

    labels = np.array([bool(example.hallucinated) for example in EXAMPLES])
    lengths = [len(words(example.response or "")) for example in EXAMPLES]
    novel = [len(set(words((example.response or "").lower())) - known_words(example)) for example in EXAMPLES]
    assert 0.45 < roc_auc_score(labels, lengths) < 0.65
    assert 0.55 < roc_auc_score(labels, novel) < 0.75
