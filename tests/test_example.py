"""An example: its parts are checked, and found in the prompt."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lrp4rag.example import (
    DEFAULT_TEMPLATE,
    Example,
    Label,
    Span,
    content_hash,
    first_sources,
    locate,
    render,
)
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError

QUESTION = "When was it opened?"
PASSAGES = ["The bridge was opened in 1901.", "The river runs under it."]
NO_CONTEXT = ("no placeholders", "{question} only", "{context} {context} {question}")
NO_QUESTION = ("{context} only", "{question} {context} {question}", "{ question } {context}")
IN_PASSAGE = {"passages": ["It opened."], "prompt": "It opened. Really"}
EMPTY = ("", " ", "\n\t ")
TEXTS = ("question", "response", "prompt", "template")


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


@pytest.mark.parametrize(
    ("question", "passages", "prompt", "starts"),
    [
        ("", ["same", "same"], "same same same", [0, 5]),  # one after the other
        ("", ["the bridge", "bridge"], "the bridge bridge", [0, 11]),  # not inside one another
        ("opened", ["It opened."], "opened? It opened. opened?", [8, 0]),
        ("opened", ["It opened."], "It opened. opened?", [0, 11]),
        ("Is Paris the capital?", ["Paris"], "Question: Is Paris the capital?\nContext: Paris", [41, 10]),
    ],
)
def test_each_part_has_a_place_for_itself(
    question: str, passages: list[str], prompt: str, starts: list[int]
) -> None:
    spans = sorted(create(question=question, passages=passages, prompt=prompt).spans, key=lambda s: s.kind)
    assert [span.start for span in spans if span.end > span.start] == starts


# Checks.

HALF = "half \ud83d"
FAULTS: list[tuple[dict[str, object], str]] = [
    *(({"template": text}, r"field 'template': .*\{context\} exactly once") for text in NO_CONTEXT),
    *(({"template": text}, r"field 'template': .*\{question\} exactly once") for text in NO_QUESTION),
    ({"question": "opened"} | IN_PASSAGE, r"field 'question': .*outside the passages"),
    ({"question": "opened. Really"} | IN_PASSAGE, "field 'question'"),
    ({"prompt": " ".join(PASSAGES)}, r"field 'question': .*does not occur"),
    (
        {"prompt": f"{QUESTION} {PASSAGES[0]}"},
        r"field 'passages\[1\]': passage 2 does not occur in the prompt;",
    ),
    (
        {"prompt": f"{QUESTION} {PASSAGES[1]} {PASSAGES[0]}"},
        r"field 'passages\[1\]': .*after the passage before it",
    ),
    ({"passages": []}, "field 'passages': at least one"),
    *(({"passages": [text]}, r"field 'passages\[0\]': the passage is empty") for text in EMPTY),
    ({"passages": EMPTY}, "field 'passages': all passages are empty"),
    *(({"response": text}, r"field 'response': .*empty") for text in EMPTY),
    *(({name: HALF}, rf"field '{name}': .*surrogate at character 5") for name in TEXTS),
    ({"passages": ["whole 🗼", HALF]}, r"field 'passages\[1\]': .*surrogate at character 5"),
    *(
        (
            {"labels": (Label(0, 8), Label(*span))},
            r"'labels\[1\]': span {}\.\.{} .*8 characters".format(*span),
        )
        for span in ((-1, 2), (0, 9), (8, 9), (3, 3), (4, 3))
    ),
    *(
        ({"response": None, "labels": labels}, r"field 'labels': .*need a response")
        for labels in ((), (Label(0, 1),))
    ),
    *(({"labels": labels}, "field 'labels': give a list of Labels") for labels in ("all", 3)),
    *(
        ({"labels": [label]}, r"field 'labels\[0\]': a Label is needed")
        for label in ((0, 2), {"start": 0, "end": 2}, "0..2", Span("passage", 0, 0, 2))
    ),
    *(({"labels": [Label(0, end)]}, r"field 'labels\[0\].end': a whole number") for end in (True, 2.0, "2")),
    ({"labels": [Label(0, 2, kind=3)]}, r"field 'labels\[0\].kind': a text is needed"),
    *(
        ({"prompt": "Q P1", "spans": spans}, rf"field 'spans.*{message}")
        for spans, message in (
            ([Span("passage", 0, 2, 9)], "outside the prompt, which has 4 characters"),
            ([Span("passage", 0, -2, 2)], "outside the prompt"),
            ([Span("passage", 0, 2, 2)], "outside the prompt"),
            ([Span("passage", 7, 2, 4)], "there is no passage 7"),
            ([Span("passage", -1, 2, 4)], "there is no passage -1"),
            ([Span("answer", 0, 2, 4)], "there is no answer 0"),
            ([Span("passage", 0, 1, 4), Span("question", 0, 0, 2)], r"0\.\.2 and 1\.\.4 overlap"),
            ([(0, 2)], "a Span is needed"),
            ([Span("passage", 0, 0, True)], "a whole number"),
        )
    ),
    *(
        ({"passages": [passage]}, rf"field 'passages\[0\]{message}")
        for passage, message in (
            ({"txt": "P"}, "': a passage has no field 'txt'"),
            ({"title": "T"}, ".text': a passage needs a text"),
            ({"text": 3}, "': a text is needed"),
            ({"text": "P", "title": 3}, ".title': a text is needed"),
            ({"text": "P", "score": True}, ".score': a number is needed"),
            (["P"], "': a text is needed, not list"),
        )
    ),
]


@pytest.mark.parametrize("text", EMPTY)
@pytest.mark.parametrize("place", range(4))
def test_an_empty_passage_is_no_part_of_the_prompt_and_the_others_keep_their_numbers(
    text: str, place: int
) -> None:
    passages = [*PASSAGES, "It is of steel."]
    passages.insert(place, text)
    example = create(passages=passages)
    assert (example.passages, example.empty) == (tuple(passages), (place,))
    numbers = [k for k in range(4) if k != place]
    context = "\n\n".join(f"passage {k + 1}:{passages[k]}" for k in numbers)
    assert f"following passages:\n{context}\n\n" in example.prompt
    located = create(passages=passages, prompt=example.prompt)
    for one in (example, located):
        found = texts(one.prompt, one.spans)
        assert found == {("question", 0): QUESTION} | {("passage", k): passages[k] for k in numbers}


@pytest.mark.parametrize(("change", "message"), FAULTS, ids=str)
def test_what_is_wrong_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        create(**change)


def test_a_passage_may_be_an_object() -> None:
    given = {"text": "In 1874.", "title": "Bridge", "score": 0.5}
    assert create(passages=[given, "P"]) == create(passages=[Source(**given), "P"])


class Loud(str):
    """What it says of itself is not what it holds."""

    __slots__ = ()

    def __str__(self) -> str:
        return "<b>loud</b>"

    __html__ = __repr__ = __str__

    def __format__(self, _: str) -> str:
        return "<b>loud</b>"

    def strip(self, _: object = None) -> str:
        return "loud"


def test_no_text_brings_methods_of_its_own() -> None:
    """Such as markup, which pages would not escape."""
    names = {"id": "a", "source": "s", "generator": "g"}
    texts = {"question": "Q?", "response": "R."} | names
    passages = [Source(Loud("P"), title=Loud("T")), Loud("N"), {Loud("text"): Loud("M")}]
    loud = create(
        **{name: Loud(text) for name, text in texts.items()},
        passages=passages,
        labels=[Label(0, 1, Loud("k"))],
    )
    plain = create(**texts, passages=[Source("P", title="T"), "N", "M"], labels=(Label(0, 1, "k"),))
    assert loud == plain
    held = [getattr(loud, name) for name in (*texts, "prompt")] + list(loud.passages)
    held += [text for one in loud.sources for text in (one.text, one.title) if text is not None]
    held += [label.kind for label in loud.labels or ()]
    assert {type(text) for text in held} == {str}


def test_another_response_has_no_labels_and_is_checked_too() -> None:
    example = create(labels=(Label(0, 1),))
    assert example.with_response("Later.") == create(response="Later.")
    assert example.response == "In 1901."
    for text, message in ((" ", "empty"), (HALF, "surrogate")):
        with pytest.raises(InputError, match=rf"field 'response': .*{message}"):
            create().with_response(text)


# Identity.


def test_defaults() -> None:
    example = create()
    assert example.id == "example"
    assert example.generator is None
    assert example.source == example.content_hash
    assert example.passages == tuple(PASSAGES)
    assert create(source="s").source == "s"


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


def test_the_first_sources_are_different_ones_in_the_order_of_the_data() -> None:
    assert first_sources(["b", "a", "b", "c"], 2) == {"b", "a"}
    assert first_sources(iter("bac"), None) == first_sources("bac", 9) == {"a", "b", "c"}
