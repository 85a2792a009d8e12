"""What a response is compared with: the texts of a prompt, and their words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lrp4rag.example import Example
from lrp4rag.features.contrast import Context, context_of
from lrp4rag.reader.encoding import Encoded, encode
from tests.tiny import tiny_tokenizer

QUESTION = "When was the bridge opened?"
PASSAGES = ("The old bridge opened in 1874. It is made of stone.", "Fish is sold nearby.")


def worded(question: str, passages: tuple[str, ...], response: str) -> Encoded:
    """A prompt of these parts, a line each; a token is a word with the signs beside it."""
    text, places, segments = "\n".join((question, *passages)), [], []
    at = 0
    for number, part in enumerate((question, *passages), 1):
        words = [(at + match.start(), at + match.end()) for match in re.finditer(r"\S+", part)]
        places += words
        segments += [number] * len(words)
        at += len(part) + 1
    offsets = tuple(match.span() for match in re.finditer(r"\S+", response))
    return Encoded(
        prompt_ids=tuple(range(len(places))),
        response_ids=tuple(range(len(offsets))),
        text=text,
        response=response,
        prompt_offsets=tuple(places),
        response_offsets=offsets,
        segments=tuple(segments),
        segment_names=("template", "question", *(f"passage {k + 1}" for k in range(len(passages)))),
    )


@pytest.fixture
def context() -> Context:
    return context_of(worded(QUESTION, PASSAGES, "In 1874."))


def test_grams_are_stems_and_their_pairs_and_threes(context: Context) -> None:
    assert {"bridg", "the", "1874", ("old", "bridg"), ("old", "bridg", "open")} <= context.grams


@pytest.mark.parametrize("gram", ["when", ("old", "open"), ("ston", "fish"), ("bridg", "old")])
def test_no_gram_skips_a_word_or_spans_two_passages(context: Context, gram: object) -> None:
    assert gram not in context.grams


def test_words_are_those_of_the_question_of_each_passage_and_of_its_sentences(context: Context) -> None:
    assert (context.passages, context.question_words) == (PASSAGES, {"bridg", "open"})
    assert context_of(worded("Who?", PASSAGES, "In 1874.")).question_words == set()
    assert context.words[1] == {"fish", "is", "sold", "nearb"}
    assert context.stems == (
        {"the", "old", "bridg", "open", "in", "1874"},
        {"it", "is", "made", "of", "ston"},
        context.words[1],
    )
    assert [place.passage for place in context.index.places] == [0, 0, 1]


def test_the_template_is_no_part_of_it() -> None:
    example = Example(QUESTION, PASSAGES, "In 1874.")
    found = context_of(encode(example, tiny_tokenizer()))
    assert (found.passages, found.question_words) == (PASSAGES, {"bridg", "open"})


def cut(tokens: int) -> Context:
    """With the last tokens of the passages dropped."""
    example = Example(QUESTION, PASSAGES, "In 1874.", template="{question}\n{context}\n")
    whole = encode(example, tiny_tokenizer(), chat_template=False)
    window = len(whole.prompt_ids) + len(whole.response_ids) - tokens
    one = encode(example, tiny_tokenizer(), chat_template=False, window=window, truncation="passages")
    assert one.dropped == tokens
    return context_of(one)


def test_a_passage_that_truncation_cut_is_as_the_reader_has_it() -> None:
    first, second = cut(4).passages
    assert first == PASSAGES[0]
    assert 0 < len(second) < len(PASSAGES[1])
    assert PASSAGES[1].startswith(second)


def test_a_passage_that_truncation_dropped_is_empty() -> None:
    example = Example(QUESTION, PASSAGES, "In 1874.", template="{question}\n{context}\n")
    whole = encode(example, tiny_tokenizer(), chat_template=False)
    found = cut(whole.segments.count(3))
    assert found.passages == (PASSAGES[0], "")
    assert (found.words[1], len(found.stems)) == (set(), 2)


def test_without_passages_there_are_no_places() -> None:
    one = worded(QUESTION, PASSAGES, "In 1874.")
    found = context_of(replace(one, segments=(1,) * len(one.segments), spans=()))
    assert (found.passages, found.grams, found.stems) == (("", ""), set(), ())
