"""An example: its parts are checked, and found in the prompt."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from itertools import pairwise

import pytest

from lrp4rag.errors import InputError
from lrp4rag.example import DEFAULT_TEMPLATE, Example, Label, Span, content_hash, locate, render

QUESTION = "When was it opened?"
PASSAGES = ["The bridge was opened in 1901.", "The river runs under it."]


def create(**changes: object) -> Example:
    return Example(**({"question": QUESTION, "passages": PASSAGES, "response": "In 1901."} | changes))


def texts(prompt: str, spans: tuple[Span, ...]) -> dict[tuple[str, int], str]:
    return {(span.kind, span.index): prompt[span.start : span.end] for span in spans}


# Rendering.


def test_the_default_prompt() -> None:
    assert create().prompt == (
        "Briefly answer the following question:\nWhen was it opened?\n"
        "Bear in mind that your response should be strictly based on the following passages:\n"
        "passage 1:The bridge was opened in 1901.\n\npassage 2:The river runs under it.\n\n"
        "In case the passages do not contain the necessary information to answer the question, please reply "
        'with: "Unable to answer based on given passages."\noutput:'
    )


@pytest.mark.parametrize(
    "template",
    [
        DEFAULT_TEMPLATE,
        "{context}{question}",
        "{question} {context}",
        "{question}{context}",
        "Q {question} C {context} é",
    ],
)
@pytest.mark.parametrize(
    ("question", "passages"),
    [
        (QUESTION, PASSAGES),
        ("Wo ist 東京 🗼?", ["🗼🗼 ist dort.", "Ä"]),
        ("the", ["the", "the the", "the"]),
        ("", ["one"]),
        ("a {question} {context} b", ["{context}", "{question} {0} {} }{", "{{context}}"]),
    ],
    ids=["plain", "non-ascii", "repeated", "no question", "braces"],
)
def test_rendered_spans_hold_their_parts(template: str, question: str, passages: list[str]) -> None:
    prompt, spans = render(template, question, passages)
    expected = {("question", 0): question} | {("passage", k): text for k, text in enumerate(passages)}
    assert texts(prompt, spans) == expected
    assert len(spans) == len(expected)
    ordered = sorted(spans, key=lambda span: (span.start, span.end))
    assert all(one.end <= next_.start for one, next_ in pairwise(ordered))


def test_a_prompt_rendered_is_found_again() -> None:
    """Unless parts repeat each other, locating gives what rendering gave."""
    example = create()
    assert set(locate(example.prompt, QUESTION, PASSAGES)) == set(example.spans)


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("no placeholders", "context"),
        ("{question} only", "context"),
        ("{context} only", "question"),
        ("{context} {context} {question}", "context"),
        ("{question} {context} {question}", "question"),
        ("{ question } {context}", "question"),
    ],
)
def test_a_template_without_its_placeholders(template: str, name: str) -> None:
    with pytest.raises(InputError, match=rf"field 'template': .*\{{{name}\}} exactly once"):
        create(template=template)


def test_a_given_prompt_wins_over_a_template() -> None:
    prompt = f"{PASSAGES[0]} {PASSAGES[1]} {QUESTION}"
    assert create(prompt=prompt, template="broken").prompt == prompt


# Locating in a given prompt.


def test_parts_are_located_in_a_given_prompt() -> None:
    prompt = f"Ctx: {PASSAGES[0]} | {PASSAGES[1]}\nQ: {QUESTION}\nA:"
    example = create(prompt=prompt)
    assert example.prompt == prompt
    assert texts(prompt, example.spans) == {
        ("question", 0): QUESTION,
        ("passage", 0): PASSAGES[0],
        ("passage", 1): PASSAGES[1],
    }


def test_equal_passages_are_located_one_after_the_other() -> None:
    example = create(question="", passages=["same", "same"], prompt="same same same")
    assert [(span.start, span.end) for span in example.spans] == [(0, 4), (5, 9)]


def test_a_passage_inside_another_is_located_after_it() -> None:
    example = create(question="", passages=["the bridge", "bridge"], prompt="the bridge bridge")
    assert [(span.start, span.end) for span in example.spans] == [(0, 10), (11, 17)]


@pytest.mark.parametrize("prompt", ["opened? It opened. opened?", "It opened. opened?"])
def test_a_question_is_located_outside_the_passages(prompt: str) -> None:
    example = create(question="opened", passages=["It opened."], prompt=prompt)
    question = next(span for span in example.spans if span.kind == "question")
    assert question.start == prompt.replace("It opened.", "##########").index("opened")


def test_a_question_that_overlaps_a_passage_only() -> None:
    with pytest.raises(InputError, match=r"field 'question': .*outside the passages"):
        create(question="opened", passages=["It opened."], prompt="It opened.")
    with pytest.raises(InputError, match="field 'question'"):
        create(question="opened. Really", passages=["It opened."], prompt="It opened. Really")


def test_a_question_that_is_not_in_the_prompt() -> None:
    with pytest.raises(InputError, match=r"field 'question': .*does not occur"):
        create(prompt=" ".join(PASSAGES))


def test_a_passage_that_is_not_in_the_prompt() -> None:
    with pytest.raises(InputError, match=r"field 'passages\[1\]': passage 2 does not occur") as caught:
        create(prompt=f"{QUESTION} {PASSAGES[0]}")
    assert "after the passage before it" not in str(caught.value)


def test_passages_in_another_order_than_in_the_prompt() -> None:
    with pytest.raises(InputError, match=r"field 'passages\[1\]': .*after the passage before it"):
        create(prompt=f"{QUESTION} {PASSAGES[1]} {PASSAGES[0]}")


# Checks.


def test_no_passages() -> None:
    with pytest.raises(InputError, match="field 'passages': at least one"):
        create(passages=[])


@pytest.mark.parametrize("empty", ["", " ", "\n\t "])
def test_an_empty_passage(empty: str) -> None:
    with pytest.raises(InputError, match=r"field 'passages\[1\]': .*empty"):
        create(passages=["one", empty])


@pytest.mark.parametrize("empty", ["", " ", "\n\t "])
def test_an_empty_response(empty: str) -> None:
    with pytest.raises(InputError, match=r"field 'response': .*empty"):
        create(response=empty)
    with pytest.raises(InputError, match=r"field 'response': .*empty"):
        create().with_response(empty)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("question", {"question": "half \ud83d"}),
        ("response", {"response": "half \ud83d"}),
        ("passages[1]", {"passages": ["whole 🗼", "half \ud83d"]}),
        ("prompt", {"prompt": "half \ud83d"}),
        ("template", {"template": "half \ud83d"}),
    ],
)
def test_half_a_surrogate_pair(field: str, change: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        create(**change)
    assert caught.value.field == field
    assert "surrogate at character 5" in str(caught.value)


def test_half_a_surrogate_pair_in_another_response() -> None:
    with pytest.raises(InputError, match=r"field 'response': .*surrogate"):
        create().with_response("half \ud83d")


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (0, 9), (8, 9), (3, 3), (4, 3)])
def test_a_label_outside_the_response(start: int, end: int) -> None:
    with pytest.raises(InputError, match=rf"field 'labels\[1\]': span {start}\.\.{end} .*8 characters"):
        create(labels=(Label(0, 8), Label(start, end)))


def test_labels_without_a_response() -> None:
    for labels in ((), (Label(0, 1),)):
        with pytest.raises(InputError, match=r"field 'labels': .*need a response"):
            create(response=None, labels=labels)


def test_labels() -> None:
    assert create().hallucinated is None
    assert create(labels=()).hallucinated is False
    assert create(labels=(Label(0, 8),)).hallucinated is True


# Identity.


def test_defaults() -> None:
    example = create()
    assert example.id == "example"
    assert example.generator is None
    assert example.source == example.content_hash
    assert example.passages == tuple(PASSAGES)
    assert create(source="s").source == "s"
    with pytest.raises(FrozenInstanceError):
        example.id = "other"


def test_the_content_hash_knows_question_and_passages_only() -> None:
    reference = create().content_hash
    prompt = f"{PASSAGES[0]} {PASSAGES[1]} {QUESTION}"
    same = [
        create(id="x", source="s", response="Other.", generator="g"),
        create(prompt=prompt),
        create(template="{context} {question}"),
        create(question=f" {QUESTION}\n", passages=[text.replace(" ", "\n  ") for text in PASSAGES]),
    ]
    assert {example.content_hash for example in same} == {reference}
    others = [
        create(question="Who?"),
        create(passages=PASSAGES[:1]),
        create(passages=PASSAGES[::-1]),
        create(passages=[" ".join(PASSAGES)]),
        create(question="", passages=[QUESTION, *PASSAGES], prompt=f"{QUESTION} {' '.join(PASSAGES)}"),
    ]
    assert len({reference, *(example.content_hash for example in others)}) == 6
    assert content_hash("a", ["b c"]) != content_hash("a b", ["c"])


def test_with_response() -> None:
    example = create(labels=(Label(0, 1),))
    other = example.with_response("Later.")
    assert other.response == "Later."
    assert other.labels is None
    assert (other.prompt, other.spans, other.id) == (example.prompt, example.spans, example.id)
    assert example.response == "In 1901."


def test_a_passage_that_the_question_holds_too() -> None:
    prompt = "Question: Is Paris the capital?\nContext: Paris"
    example = Example(question="Is Paris the capital?", passages=["Paris"], prompt=prompt, response="Yes.")
    assert {(span.kind, span.start) for span in example.spans} == {("question", 10), ("passage", 41)}
