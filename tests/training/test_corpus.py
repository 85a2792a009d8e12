"""What a detector learns from: which rows are twins, what is made of faithful responses, other shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from lrp4rag.example import DEFAULT_TEMPLATE, Example, Label, render
from lrp4rag.training.corpus import (
    ADDED,
    ALONE,
    ANNOTATED,
    FAITHFUL,
    FAULTS_EACH,
    MADE,
    PROMPTS,
    REFUSED,
    REWORDED,
    SEVERAL,
    SHAPES,
    SHORTEST,
    Corpus,
    Variant,
    reshaped,
    variants,
)
from lrp4rag.training.pair_evidence import Twin
from lrp4rag.training.pairs import KINDS, pairs_of
from lrp4rag.training.pairs.statements import REFUSALS
from lrp4rag.util.errors import InputError
from tests.training.pairs.texts import ALL, FERRY, LEAVE, MOWER

SEEDS = range(4)
HARMLESS = {ADDED, FAITHFUL, REWORDED, REFUSED}


def named(id: str, *, kind: str | None = None, like: Example = LEAVE) -> Example:
    """A faithful example, or one with a fault."""
    labels = () if kind is None else (Label(0, 8, kind),)
    return replace(like, id=id, labels=labels)


def twins_of(*given: Example, name: str = "further") -> list[tuple[str, str, str, bool]]:
    """Ids of each twin and of its faithful one, its kind, and whether it is harmless."""
    corpus = Corpus.of([], {name: given})
    ids = [row.example.id for row in corpus.rows]
    return [(ids[one.row], ids[one.faithful], one.kind, one.harmless) for one in corpus.twins()]


def made(seed: int = 0, examples: Sequence[Example] = ALL) -> list[Variant]:
    return list(variants(examples, seed=seed))


@pytest.fixture(scope="module")
def every() -> dict[int, list[Variant]]:
    return {seed: made(seed) for seed in SEEDS}


@pytest.fixture(scope="module")
def rows(every: dict[int, list[Variant]]) -> list[Variant]:
    return [one for some in every.values() for one in some]


# Corpus: twins of further sets, by their ids.


@pytest.mark.parametrize(
    ("id", "kind"), [("a~number", "number"), ("a~number~2", "number"), ("a~number+name", "name")]
)
def test_a_faulty_copy_is_a_twin_of_the_example_its_id_begins_with(id: str, kind: str) -> None:
    assert twins_of(named("a"), named(id, kind=kind)) == [(id, "a", kind, False)]


@pytest.mark.parametrize("id", ["a~reworded", "a~passage-added", "a~refused"])
def test_a_faithful_copy_is_a_harmless_twin(id: str) -> None:
    assert twins_of(named("a"), named(id)) == [(id, "a", REWORDED, True)]


def test_the_order_of_a_file_makes_no_difference() -> None:
    assert twins_of(named("a~number", kind="number"), named("a")) == [("a~number", "a", "number", False)]


def test_several_faults_are_one_kind() -> None:
    both = replace(LEAVE, id="a~number+name", labels=(Label(0, 8, "number"), Label(9, 14, "name")))
    assert twins_of(named("a"), both) == [("a~number+name", "a", "number and name", False)]


def test_a_fault_without_a_kind_is_one_too() -> None:
    assert twins_of(named("a"), named("a~x", kind="")) == [("a~x", "a", "fault", False)]


@pytest.mark.parametrize(
    "given",
    [
        (named("a~b"),),
        (named("a"), named("b")),
        (named("a~b"), named("c~b")),
        (named("a", kind="number"), named("a~number", kind="number")),  # nothing faithful to be a twin of
        (named("a~number", kind="number"),),
        (named("ab"), named("a~number", kind="number")),
        (named("a~b"), named("a", kind="number")),
    ],
)
def test_ids_that_are_no_twins(given: tuple[Example, ...]) -> None:
    assert twins_of(*given) == []


def test_an_id_with_a_tilde_can_have_twins() -> None:
    found = twins_of(named("a~b"), named("a~b~number", kind="number"))
    assert found == [("a~b~number", "a~b", "number", False)]


def test_a_second_harmless_copy_is_a_twin_of_the_example_too() -> None:
    found = twins_of(named("a"), named("a~reworded"), named("a~reworded~2"))
    assert found == [("a~reworded", "a", REWORDED, True), ("a~reworded~2", "a", REWORDED, True)]


def test_all_copies_of_lrp4rag_corrupt_are_twins() -> None:
    pairs = list(pairs_of(ALL, each=4))
    corpus = Corpus.of([], {"pairs": pairs})
    twins = {one.row: one for one in corpus.twins()}
    assert set(twins) == {k for k, one in enumerate(pairs) if "~" in one.id}
    for k, twin in twins.items():
        assert pairs[twin.faithful].source == pairs[k].source
        assert twin.harmless == (pairs[k].labels == ())


# Corpus: sets and rows.

CORPUS = Corpus.of(
    [named("x"), named("y", kind="")],
    {"one": [named("a"), named("a~number", kind="number")], "two": [named("b")]},
)


def test_annotated_rows_come_first_and_are_in_no_pair() -> None:
    assert [(row.example.id, row.set) for row in CORPUS.rows] == [
        *(("x", ANNOTATED), ("y", ANNOTATED)),
        *(("a", "one"), ("a~number", "one"), ("b", "two")),
    ]
    assert CORPUS.twins() == [Twin(3, 2, "number", False, "one")]


def test_examples_are_those_of_the_rows() -> None:
    assert [example.id for example in CORPUS.examples] == ["x", "y", "a", "a~number", "b"]


@pytest.mark.parametrize(
    ("name", "numbers"), [(ANNOTATED, [0, 1]), ("one", [2, 3]), ("two", [4]), (MADE, []), ("none", [])]
)
def test_numbers_of_a_set(name: str, numbers: list[int]) -> None:
    assert CORPUS.numbers(name).tolist() == numbers


def test_further_sets_are_named() -> None:
    assert {name: rows.tolist() for name, rows in CORPUS.sets().items()} == {"one": [2, 3], "two": [4]}


def test_what_was_made_is_no_further_set() -> None:
    assert Corpus.of(ALL, pairs=True).sets() == {}


def test_without_some_ids() -> None:
    left = CORPUS.without({"x", "b", "unknown"})
    assert [row.example.id for row in left.rows] == ["y", "a", "a~number"]
    assert left.twins() == [Twin(2, 1, "number", False, "one")]


def test_a_twin_without_its_faithful_one_is_none() -> None:
    assert CORPUS.without({"a"}).twins() == []


def test_with_pairs_variants_of_the_annotated_rows_are_there(every: dict[int, list[Variant]]) -> None:
    corpus = Corpus.of(ALL, {"more": [replace(FERRY, id="f", source="f")]}, pairs=True, seed=2)
    found = [corpus.rows[k] for k in corpus.numbers(MADE)]
    assert [(row.example, row.kind, row.twin) for row in found] == [
        (one.example, one.kind, one.twin) for one in every[2]
    ]


def test_twins_of_variants_are_told_by_kind() -> None:
    corpus = Corpus.of(ALL, pairs=True)
    twins = corpus.twins()
    assert {one.set for one in twins} == {MADE}
    assert {one.kind for one in twins if one.harmless} == {REWORDED}
    assert {one.kind for one in twins if not one.harmless} <= {SEVERAL, *KINDS}
    for one in twins:
        assert corpus.rows[one.faithful].example.labels == ()
        assert corpus.rows[one.row].twin == corpus.rows[one.faithful].example.id


def test_refusals_are_in_no_pair(every: dict[int, list[Variant]]) -> None:
    seed = next(seed for seed, some in every.items() if any(one.kind == REFUSED for one in some))
    corpus = Corpus.of(ALL, pairs=True, seed=seed)
    assert REFUSED in {row.kind for row in corpus.rows}
    assert REFUSED not in {one.kind for one in corpus.twins()}


def test_twins_are_of_their_own_source_where_sets_share_ids() -> None:
    corpus = Corpus.of([replace(LEAVE, id="1"), MOWER], {"more": [replace(FERRY, id="1")]}, pairs=True)
    for one in corpus.twins():
        assert corpus.rows[one.row].example.source == corpus.rows[one.faithful].example.source


@pytest.mark.parametrize("name", [ANNOTATED, MADE])
def test_a_further_set_has_a_name_of_its_own(name: str) -> None:
    with pytest.raises(InputError, match=f"cannot be called '{name}'"):
        Corpus.of([LEAVE], {name: [MOWER]})


# Variants.


def test_variants_are_the_same_again(every: dict[int, list[Variant]]) -> None:
    assert made(1) == every[1]


def test_another_seed_makes_others(every: dict[int, list[Variant]]) -> None:
    assert every[1] != every[2]


UNUSED = {
    "unlabelled": replace(MOWER, id="z", source="z", labels=None),
    "unanswered": replace(MOWER, id="z", source="z", labels=None, response=None),
    "faulty": replace(MOWER, id="z", source="z", labels=(Label(0, 3),)),
    "short": replace(MOWER, id="z", source="z", response="8 weeks."),
    "refusing": replace(MOWER, id="z", source="z", response="The passages do not mention which lawns suit."),
}


@pytest.mark.parametrize("example", UNUSED.values(), ids=UNUSED)
def test_what_lends_nothing_makes_no_difference(example: Example, every: dict[int, list[Variant]]) -> None:
    assert made(0, [example, *ALL]) == made(0, [*ALL, example]) == every[0]


@pytest.mark.parametrize(
    "response", ["The passages do not mention it anywhere, I am sorry to say.", *REFUSALS]
)
def test_nothing_is_made_of_a_refusal(response: str) -> None:
    refusing = replace(LEAVE, response=response.replace("{topic}", "parental leave").ljust(SHORTEST + 1, "."))
    assert made(0, [refusing]) == []


def test_each_source_has_its_variants(every: dict[int, list[Variant]]) -> None:
    for some in every.values():
        assert {one.example.source for one in some} == {example.source for example in ALL}


def test_variants_keep_the_source_of_what_they_are_made_of(rows: list[Variant]) -> None:
    assert all(one.example.id.startswith(one.example.source) for one in rows)


def test_ids_are_unique_and_none_is_given(every: dict[int, list[Variant]]) -> None:
    for some in every.values():
        ids = [example.id for example in ALL] + [one.example.id for one in some]
        assert len(set(ids)) == len(ids)


def test_ids_that_are_taken_are_not_given_again(every: dict[int, list[Variant]]) -> None:
    taken = [replace(UNUSED["unlabelled"], id=one.example.id) for one in every[0]]
    ids = [one.example.id for one in made(0, [*ALL, *taken])]
    assert ids == [f"{one.id}~2" for one in taken]


def test_each_twin_is_there(every: dict[int, list[Variant]]) -> None:
    for some in every.values():
        faithful = {example.id for example in ALL} | {one.example.id for one in some if one.kind == FAITHFUL}
        assert {one.twin for one in some} <= faithful


def test_each_twin_is_there_where_its_id_was_taken() -> None:
    taken = replace(UNUSED["unlabelled"], id="leave~cut-1")
    of_first = [one for one in made(0, [*ALL, taken]) if one.example.id.startswith("leave~cut-1~")]
    assert {one.twin for one in of_first} == {"leave~cut-1~2"}


def test_labels_say_whether_there_is_a_fault(rows: list[Variant]) -> None:
    for one in rows:
        assert (one.example.labels == ()) == (one.kind in HARMLESS)


def test_a_fault_is_of_the_kind_of_its_variant(rows: list[Variant]) -> None:
    single = [one for one in rows if one.kind in KINDS]
    assert {*ALONE, "number", "name", "negation"} <= {one.kind for one in single}
    assert all([label.kind for label in one.example.labels] == [one.kind] for one in single)


def test_several_faults_are_labelled_apart(rows: list[Variant]) -> None:
    several = [one.example for one in rows if one.kind == SEVERAL]
    assert max(len(one.labels) for one in several) == 3
    for one in several:
        ends = [label.end for label in one.labels]
        assert all(end < label.start for end, label in zip(ends, one.labels[1:], strict=False))
        assert not {label.kind for label in one.labels} & set(ALONE)


def pairs(every: dict[int, list[Variant]]) -> list[tuple[Variant, Example]]:
    """Variants with a fault, and what they are twins of."""
    found = []
    for some in every.values():
        known = {example.id: example for example in (*ALL, *(one.example for one in some))}
        found += [(one, known[one.twin]) for one in some if one.example.labels]
    return found


def test_faulty_responses_differ_from_their_twin(every: dict[int, list[Variant]]) -> None:
    assert all(one.example.response != twin.response for one, twin in pairs(every))


def alike(one: str, other: str) -> int:
    """The characters at the beginning that both share."""
    pairs = zip(one, other, strict=False)
    return next((k for k, (first, second) in enumerate(pairs) if first != second), min(len(one), len(other)))


def test_what_changed_is_labelled(every: dict[int, list[Variant]]) -> None:
    """From the first character that differs to the last; where a word was taken out, the one beside it."""
    for one, twin in pairs(every):
        made, given, labels = one.example.response, twin.response, one.example.labels
        first = alike(made, given)
        last = len(made) - alike(made[::-1], given[::-1])
        assert labels[0].start - 1 <= first <= labels[0].end + 1
        assert labels[-1].start - 1 <= last <= labels[-1].end


def test_without_its_faults_a_response_is_as_before(every: dict[int, list[Variant]]) -> None:
    """All that stands between labels stands in the twin, in that order."""
    for one, twin in pairs(every):
        made, at, place = one.example.response, 0, 0
        for start, end in (*((label.start, label.end) for label in one.example.labels), (len(made), 0)):
            piece = made[at:start].strip(" .")
            found = twin.response.find(piece, place)
            assert found >= place
            place, at = found + len(piece), end


def test_faithful_shapes_are_sentences_of_the_response(rows: list[Variant]) -> None:
    known = {example.source: example.response for example in ALL}
    shapes = [one.example for one in rows if one.kind == FAITHFUL]
    assert all(one.response in known[one.source] for one in shapes)


def test_there_are_at_most_so_many_shapes_and_faults_of_each(every: dict[int, list[Variant]]) -> None:
    for some in every.values():
        for example in ALL:
            own = [one for one in some if one.example.source == example.source]
            bases = [
                one for one in own if one.kind == FAITHFUL and "~" not in one.example.id.partition("~")[2]
            ]
            assert len(bases) <= SHAPES
            for base in bases:
                faulty = [one for one in own if one.twin == base.example.id and one.example.labels]
                assert len(faulty) <= FAULTS_EACH
                assert len({one.kind for one in faulty}) == len(faulty)


def test_refusals_are_right_for_passages_of_another_source(rows: list[Variant]) -> None:
    refused = [one.example for one in rows if one.kind == REFUSED]
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
def test_response_question_and_source_stay(others: tuple[Example, ...]) -> None:
    for one in shapes_of(LEAVE, others):
        assert (one.response, one.question, one.source, one.labels) == (
            LEAVE.response,
            LEAVE.question,
            LEAVE.source,
            (),
        )


@pytest.mark.parametrize("others", [(), (MOWER, FERRY)], ids=["alone", "others"])
def test_nothing_that_the_passages_say_is_lost(others: tuple[Example, ...]) -> None:
    for one in shapes_of(LEAVE, others):
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
            if one.example.response == citing.response and not one.example.labels:
                assert LEAVE.passages[1] in one.example.passages[1]


# Prompts.


@pytest.mark.parametrize("template", sorted(set(PROMPTS) - {None}))
def test_prompts_are_rendered(template: str) -> None:
    prompt, spans = render(template, "When {context}?", ["One.", "Two {question}."])
    assert [
        prompt[span.start : span.end] for span in sorted(spans, key=lambda one: (one.kind, one.index))
    ] == [
        *("One.", "Two {question}."),
        "When {context}?",
    ]


def test_the_default_prompt_is_one_of_them_and_none_is_there_twice() -> None:
    others = [one for one in PROMPTS if one is not None]
    assert None in PROMPTS
    assert len(set(others)) == len(others)
    assert DEFAULT_TEMPLATE not in others


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
