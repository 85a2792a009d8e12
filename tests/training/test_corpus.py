"""The corpus: its sets, the variants made of faithful responses, other shapes of input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from lrp4rag.example import DEFAULT_TEMPLATE, Example, Label, render
from lrp4rag.training.corpus import (
    ALONE,
    ANNOTATED,
    FAULTS_EACH,
    MADE,
    PROMPTS,
    SHAPES,
    SHORTEST,
    Corpus,
    reshaped,
    variants,
)
from lrp4rag.training.pairs import KINDS
from lrp4rag.training.pairs.statements import REFUSALS
from lrp4rag.util.errors import InputError
from tests.training.pairs.texts import ALL, FERRY, LEAVE, MOWER

SEEDS = range(4)


def named(id: str, *, kind: str | None = None, like: Example = LEAVE) -> Example:
    """A faithful example, or one with a fault."""
    labels = () if kind is None else (Label(0, 8, kind),)
    return replace(like, id=id, labels=labels)


def made(seed: int = 0, examples: Sequence[Example] = ALL) -> list[Example]:
    return list(variants(examples, seed=seed))


@pytest.fixture(scope="module")
def every() -> dict[int, list[Example]]:
    return {seed: made(seed) for seed in SEEDS}


@pytest.fixture(scope="module")
def rows(every: dict[int, list[Example]]) -> list[Example]:
    return [one for some in every.values() for one in some]


# Corpus: sets and rows.

CORPUS = Corpus.of(
    [named("x"), named("y", kind="")],
    {"one": [named("a"), named("a~number", kind="number")], "two": [named("b")]},
)


def test_annotated_rows_come_first() -> None:
    assert [(row.example.id, row.set) for row in CORPUS.rows] == [
        *(("x", ANNOTATED), ("y", ANNOTATED)),
        *(("a", "one"), ("a~number", "one"), ("b", "two")),
    ]


@pytest.mark.parametrize(
    ("name", "numbers"), [(ANNOTATED, [0, 1]), ("one", [2, 3]), ("two", [4]), (MADE, []), ("none", [])]
)
def test_numbers_of_a_set(name: str, numbers: list[int]) -> None:
    assert CORPUS.numbers(name).tolist() == numbers


def test_further_sets_are_named() -> None:
    assert {name: rows.tolist() for name, rows in CORPUS.sets().items()} == {"one": [2, 3], "two": [4]}


def test_without_some_ids() -> None:
    left = CORPUS.without({"x", "b", "unknown"})
    assert [row.example.id for row in left.rows] == ["y", "a", "a~number"]


def test_with_pairs_variants_of_the_annotated_rows_are_there(every: dict[int, list[Example]]) -> None:
    corpus = Corpus.of(ALL, {"more": [replace(FERRY, id="f", source="f")]}, pairs=True, seed=2)
    assert [corpus.rows[k].example for k in corpus.numbers(MADE)] == every[2]


@pytest.mark.parametrize("name", [ANNOTATED, MADE])
def test_a_further_set_has_a_name_of_its_own(name: str) -> None:
    with pytest.raises(InputError, match=f"cannot be called '{name}'"):
        Corpus.of([LEAVE], {name: [MOWER]})


# Variants.


def test_variants_are_the_same_again(every: dict[int, list[Example]]) -> None:
    assert made(1) == every[1] != every[2]


UNUSED = {
    "unlabelled": replace(MOWER, id="z", source="z", labels=None),
    "unanswered": replace(MOWER, id="z", source="z", labels=None, response=None),
    "faulty": replace(MOWER, id="z", source="z", labels=(Label(0, 3),)),
    "short": replace(MOWER, id="z", source="z", response="8 weeks."),
    "refusing": replace(MOWER, id="z", source="z", response="The passages do not mention which lawns suit."),
}


@pytest.mark.parametrize("example", UNUSED.values(), ids=UNUSED)
def test_what_lends_nothing_makes_no_difference(example: Example, every: dict[int, list[Example]]) -> None:
    assert made(0, [example, *ALL]) == made(0, [*ALL, example]) == every[0]


@pytest.mark.parametrize(
    "response", ["The passages do not mention it anywhere, I am sorry to say.", *REFUSALS]
)
def test_nothing_is_made_of_a_refusal(response: str) -> None:
    refusing = replace(LEAVE, response=response.replace("{topic}", "parental leave").ljust(SHORTEST + 1, "."))
    assert made(0, [refusing]) == []


def test_each_source_has_its_variants(every: dict[int, list[Example]]) -> None:
    for some in every.values():
        assert {one.source for one in some} == {example.source for example in ALL}
        assert all(one.id.startswith(one.source) for one in some)


def test_ids_are_unique_and_none_is_given(every: dict[int, list[Example]]) -> None:
    for some in every.values():
        ids = [example.id for example in ALL] + [one.id for one in some]
        assert len(set(ids)) == len(ids)


def test_ids_that_are_taken_are_not_given_again(every: dict[int, list[Example]]) -> None:
    taken = [replace(UNUSED["unlabelled"], id=one.id) for one in every[0]]
    ids = [one.id for one in made(0, [*ALL, *taken])]
    assert ids == [f"{one.id}~2" for one in taken]


def test_faults_of_each_kind_are_made_and_several_are_labelled_apart(
    rows: list[Example],
) -> None:
    kinds = {label.kind for one in rows for label in one.labels}
    assert {*ALONE, "number", "name", "negation"} <= kinds <= set(KINDS)
    several = [one for one in rows if len(one.labels) > 1]
    assert max(len(one.labels) for one in several) == 3
    for one in several:
        ends = [label.end for label in one.labels]
        assert all(end < label.start for end, label in zip(ends, one.labels[1:], strict=False))
        assert not {label.kind for label in one.labels} & set(ALONE)


def test_there_are_at_most_so_many_shapes_and_faults_of_each(every: dict[int, list[Example]]) -> None:
    """A shape is a stretch of sentences of the response, and its copies have ids that begin with its own."""
    for some in every.values():
        for example in ALL:
            own = [one for one in some if one.source == example.source]
            bases = [one for one in own if re.fullmatch(rf"{example.id}~cut-\d", one.id)]
            assert 0 < len(bases) <= SHAPES
            for base in bases:
                assert base.response in example.response
                assert base.labels == ()
                faulty = [one for one in own if one.id.startswith(f"{base.id}~") and one.labels]
                assert len(faulty) <= FAULTS_EACH
                assert len({one.labels[0].kind for one in faulty}) == len(faulty)
                assert all(one.response != base.response for one in faulty)


def test_refusals_are_right_for_passages_of_another_source(rows: list[Example]) -> None:
    refused = [one for one in rows if re.search(r"~refused(~\d)?$", one.id) and "cut" not in one.id]
    assert refused
    known = {example.source: example for example in ALL}
    for one in refused:
        assert one.response in REFUSALS
        assert one.question == known[one.source].question
        assert not set(one.passages) & set(known[one.source].passages)


# Shapes.


def shapes_of(example: Example, others: Sequence[Example] = (), count: int = 60) -> list[Example]:
    return [reshaped(example, others, Random(seed)) for seed in range(count)]


@pytest.mark.parametrize("others", [(), (MOWER, FERRY)], ids=["alone", "others"])
def test_response_question_and_source_stay_and_nothing_that_the_passages_say_is_lost(
    others: tuple[Example, ...],
) -> None:
    for one in shapes_of(LEAVE, others):
        assert (one.response, one.question, one.source, one.labels) == (
            LEAVE.response,
            LEAVE.question,
            LEAVE.source,
            (),
        )
        text = " ".join(one.passages)
        assert all(sentence in text for passage in LEAVE.passages for sentence in passage.split(". "))


def test_passages_of_others_are_added_to_some() -> None:
    counts = {len(set(one.passages) - set(LEAVE.passages)) for one in shapes_of(LEAVE, (MOWER,))}
    assert {0, 1} <= counts


def test_passages_are_shuffled_merged_and_split() -> None:
    found = {one.passages for one in shapes_of(LEAVE)}
    assert LEAVE.passages[::-1] in found
    assert ("\n".join(LEAVE.passages),) in found
    assert any(len(passages) == 3 for passages in found)


ODD = {
    "one word": ["Yes"],
    "ends": [". . . . . ."],
    "spaces": [" \n x. \t. . . "],
    "same": ["Same.", "Same.", "Same."],
    "short": ["a", "b"],
}


@pytest.mark.parametrize("passages", ODD.values(), ids=ODD)
def test_no_shape_loses_all_passages(passages: list[str]) -> None:
    example = Example("Q?", passages, "Yes.", labels=(), source="odd")
    for one in shapes_of(example):
        assert one.passages
        assert all(passage.strip() for passage in one.passages)


def test_spans_are_where_the_prompt_has_the_passages() -> None:
    for one in shapes_of(LEAVE, (MOWER,)):
        for span in one.spans:
            part = one.question if span.kind == "question" else one.passages[span.index]
            assert one.prompt[span.start : span.end] == part
        assert len(one.spans) == len(one.passages) + 1


def test_an_example_without_a_question_is_given_one() -> None:
    given = Example("", ["Only this."], "Yes.", prompt="Sum up: Only this.", labels=())
    assert {one.question for one in shapes_of(given, count=5)} == {"What do the passages say?"}


def test_passages_that_are_cited_by_number_stay_where_they_are() -> None:
    citing = replace(LEAVE, response="According to passage 2, sick leave at Brennholt is paid for 9 weeks.")
    for seed in SEEDS:
        for one in made(seed, [citing, MOWER, FERRY]):
            if one.response == citing.response and not one.labels:
                assert LEAVE.passages[1] in one.passages[1]


# Prompts.


def test_all_prompts_are_used() -> None:
    expected = {render(one or DEFAULT_TEMPLATE, LEAVE.question, LEAVE.passages)[0] for one in PROMPTS}
    assert expected <= {one.prompt for one in shapes_of(LEAVE, count=200)}


def test_pairs_are_made_of_some_sources() -> None:
    every = Corpus.of(ALL, pairs=True)
    some = Corpus.of(ALL, pairs=True, pairs_every=2)
    sources = {row.example.source for row in some.rows if row.set == MADE}
    assert sources < {row.example.source for row in every.rows if row.set == MADE}
    assert sources
    assert some.rows == tuple(row for row in every.rows if row.set != MADE or row.example.source in sources)


def test_some_hallucinated_responses_of_further_data_are_left_out_and_no_faithful_ones() -> None:
    faithful = replace(LEAVE, id="a", labels=())
    wrong = [replace(LEAVE, id=f"a~{k}", labels=(Label(0, 4, kind="number"),)) for k in range(40)]
    every = Corpus.of(ALL, {"more": [faithful, *wrong]})
    some = Corpus.of(ALL, {"more": [faithful, *wrong]}, more_every=2)
    kept = [row for row in some.rows if row.set == "more"]
    assert kept[0].example.id == "a"
    assert 10 < len(kept) < 31
    assert set(some.rows) < set(every.rows)
