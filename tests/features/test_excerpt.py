"""Of a long prompt, what a response is compared with is read; everything leads back to the passages."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrp4rag.claims.arithmetic import Computed
from lrp4rag.example import Example
from lrp4rag.features.excerpt import Excerpt, LongPrompt
from lrp4rag.reader.encoding import encode_prompt
from tests.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
QUESTION = "How tall is the lighthouse?"
OWN = [
    "The Marlow lighthouse is 31 metres tall. It stands on a cliff. Its lamp was lit in 1873.",
    "Tickets cost four pounds.\nChildren under six are free. Dogs must stay outside.",
]
WORDS = ("river", "bridge", "market", "garden", "museum", "harbour", "castle", "forest", "valley", "orchard")


def distractors(count: int, sentences: int = 4) -> list[str]:
    rng = random.Random(count)
    return [
        " ".join(
            f"The {rng.choice(WORDS)} of {rng.choice(WORDS)} {k} has {rng.randint(200, 900)} trees."
            for _ in range(sentences)
        )
        for k in range(count)
    ]


def among(count: int) -> list[str]:
    others = distractors(count)
    return [*others[: count // 2], OWN[0], *others[count // 2 :], OWN[1]]


def long_prompt(passages: list[str], **fields: str) -> LongPrompt:
    example = Example(QUESTION, passages, **fields)
    return LongPrompt(example, encode_prompt(example, TOKENIZER))


def excerpt(long: LongPrompt, response: str, tokens: int = 600, most: int = 900) -> Excerpt:
    found = long.excerpt(response, tokens=tokens, passages=7.5, most=most)
    assert found.example.question == QUESTION
    texts = found.example.passages
    assert len(texts) == len(long.passages)
    assert found.read == tuple(k for k, text in enumerate(texts) if text)
    for k in found.read:
        for start, end in found.pieces[k]:
            assert long.passages[k][start:end] in texts[k]
    for span in found.example.spans:
        part = texts[span.index] if span.kind == "passage" else QUESTION
        assert found.example.prompt[span.start : span.end] == part
    return found


@pytest.mark.parametrize("count", [0, 8, 200])
def test_the_sentences_that_a_response_states_are_read_among_any_number(count: int) -> None:
    passages = among(count)
    found = excerpt(long_prompt(passages), "It is 31 metres tall. Dogs must stay outside.")
    texts = found.example.passages
    assert "31 metres" in texts[passages.index(OWN[0])]
    assert "Dogs must stay outside." in texts[passages.index(OWN[1])]
    assert len(found.read) <= 7
    assert len(encode_prompt(found.example, TOKENIZER).prompt_ids) <= 620


def test_headings_keep_their_numbers_and_those_of_others_go() -> None:
    passages = among(40)
    number = passages.index(OWN[0]) + 1
    prompt = excerpt(long_prompt(passages), "It is 31 metres tall.").example.prompt
    assert f"passage {number}:" in prompt
    assert "passage 1:" not in prompt
    start, _ = Example(QUESTION, passages).prompt.split("passage 1:")
    assert prompt.startswith(start)


@pytest.mark.parametrize(
    ("template", "kept"),
    [
        ("{question}\n\n[1] A b.\n[2] It is tall.\n[3] C d.\nOK:", "{question}\n\n[2] It is tall.\nOK:"),
        ("A b.\n\nIt is tall.\n\nC d.\n\n{question}", "It is tall.\n\n{question}"),
        ("<p>A b.</p><p>It is tall.</p><p>C d.</p>{question}", "</p><p>It is tall.</p>{question}"),
        ("From A b. It is tall. C d. tell: {question}", "From It is tall. tell: {question}"),
    ],
)  # fmt: skip
def test_a_prompt_that_was_given_is_cut_as_it_is_written(template: str, kept: str) -> None:
    prompt = template.format(question=QUESTION)
    long = long_prompt(["A b.", "It is tall.", "C d."], prompt=prompt)
    found = excerpt(long, "It is tall.", tokens=0, most=0)
    assert found.read == (1,)
    assert found.example.prompt == kept.format(question=QUESTION)


def test_all_that_fits_is_the_prompt_itself() -> None:
    long = long_prompt(OWN)
    found = excerpt(long, " ".join(OWN), tokens=10_000)
    assert found.example.prompt == long.example.prompt
    assert found.example.spans == long.example.spans


@pytest.fixture(scope="module")
def long() -> LongPrompt:
    return long_prompt(distractors(3, sentences=4))


@settings(max_examples=40)
@given(chosen=st.lists(st.integers(0, 11), min_size=1, unique=True))
def test_places_lead_back_and_there(long: LongPrompt, chosen: list[int]) -> None:
    found = long._cut(frozenset(chosen))
    for number in chosen:
        place = long.index.places[number]
        start, end = found.within(place.passage, place.start, place.end)
        assert found.example.passages[place.passage][start:end] == place.text
        assert found.original(place.passage, start, end) == (place.start, place.end)
    for number in set(range(12)) - set(chosen):
        place = long.index.places[number]
        with pytest.raises(ValueError, match="not read"):
            found.within(place.passage, place.start, place.end)


def test_values_that_follow_from_others_lead_back() -> None:
    text = "A tree fell. The hall has 24 seats. It rained all day. A dog ran off. There are 18 stools."
    long = long_prompt([text])
    found = long._cut(frozenset((1, 4)))
    (read,) = [one for one in found.example.passages if one]
    parts = tuple((read.index(part), read.index(part) + len(part)) for part in ("24 seats", "18 stools"))
    (moved,) = found.computed([Computed(0, 2, "42", "24 + 18", 0, parts)])
    assert [text[start:end] for start, end in moved.parts] == ["24 seats", "18 stools"]


def test_a_value_is_found_wherever_it_stands() -> None:
    """In a sentence that shares no other word."""
    passages = [*distractors(60), "Nothing else matters here: 7,431 pieces went missing."]
    found = excerpt(long_prompt(passages), "The lighthouse is tall and has 7,431 steps.")
    assert "7,431" in found.example.passages[60]


def test_a_passage_that_is_named_is_read() -> None:
    passages = among(40)
    found = excerpt(long_prompt(passages), "According to passage 9, it is 31 metres tall.")
    assert {8, passages.index(OWN[0])} <= set(found.read)


@pytest.mark.parametrize("response", ["", "?", "Zyx qwv."])
def test_something_is_read_whatever_the_response(response: str) -> None:
    passages = among(10)
    assert passages.index(OWN[0]) in excerpt(long_prompt(passages), response).read
    assert excerpt(long_prompt(distractors(10)), response).read


def test_empty_and_huge_passages() -> None:
    passages = ["", *among(3), " \n", "word " * 10_000]
    found = excerpt(long_prompt(passages), "It is 31 metres tall.")
    assert passages.index(OWN[0]) in found.read
    assert not {0, len(passages) - 2} & set(found.read)
    assert len(encode_prompt(found.example, TOKENIZER).prompt_ids) <= 620


def test_the_rest_of_the_passages_that_are_read_fills_a_short_excerpt() -> None:
    """And no other passages."""
    passages = among(40)
    found = excerpt(long_prompt(passages), "Its lamp was lit in 1873.", tokens=900)
    assert found.read == (passages.index(OWN[0]),)
    assert found.example.passages[found.read[0]] == OWN[0]


def test_the_rest_of_what_was_asked_for_is_read_too() -> None:
    """A detector learned from prompts whose passages are all about the question."""
    related = "Which lighthouse is tall? Only one here has a lamp that turns. It may be climbed in May."
    long = long_prompt([*distractors(20), OWN[0], related])
    found = excerpt(long, "It is 31 metres tall.", tokens=900)
    assert found.example.passages[21] == related
    assert sum(map(bool, found.example.passages[:20])) <= 2


@pytest.mark.parametrize(("most", "fewest"), [(330, 3), (5000, len(WORDS))])
def test_what_a_long_response_needs_is_read_as_far_as_there_is_room(most: int, fewest: int) -> None:
    """Of more passages than are else read, each sentence in its turn."""
    stated = [f"The {word} is {k + 20} metres tall." for k, word in enumerate(WORDS)]
    passages = [*(f"{text} It was built in {1800 + k}." for k, text in enumerate(stated)), *distractors(30)]
    found = excerpt(long_prompt(passages), " ".join(stated), tokens=300, most=most)
    read = [k for k in found.read if "metres tall" in found.example.passages[k]]
    assert fewest <= len(read) <= len(WORDS)
    assert len(encode_prompt(found.example, TOKENIZER).prompt_ids) <= most * 1.05


def test_an_excerpt_suffices_while_the_next_sentences_are_in_it() -> None:
    long = long_prompt(among(60))
    found = excerpt(long, "It is 31 metres tall.")
    assert long.suffices(found, "It is 31 metres tall. The lighthouse stands on a cliff.")
    assert not long.suffices(found, "It is 31 metres tall. Dogs must stay outside.")
