"""The columns that a token classifier reads of a plain pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import TypeAdapter

from lrp4rag.example import Example
from lrp4rag.features.alignment import alignment
from lrp4rag.features.claims import claim_features
from lrp4rag.features.contrast import claims
from lrp4rag.features.plain import ENTAILMENT, FEATURES, GROUPS, PlainTable, likelihoods
from lrp4rag.features.record import Record
from lrp4rag.features.replay import PlainReplay
from lrp4rag.features.units import ends_of, sentence_numbers, smoothed
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import encode
from lrp4rag.reader.reading import LIKELIHOODS
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_in
from tests.features.test_context import worded
from tests.features.test_contrast import encoded

PASSAGES = ("Leave lasts 16 weeks.", "You may not smoke.")
RESPONSE = "Leave lasts 18 weeks. You may smoke."
NEIGHBOURS = ("likelihoods", "alignment")


def plain_record(response: str = RESPONSE, seed: int = 0) -> Record:
    """Of random likelihoods, and no scores of values."""
    one = worded("How long?", PASSAGES, response)
    draw, length = np.random.default_rng(seed), len(one.response_ids)
    signals = {name: draw.random(length) for name in LIKELIHOODS}
    signals["rank"] = draw.integers(0, 100, length)
    signals |= {"places": np.zeros((0, 6), np.int32), "scores": np.zeros((0, 3), np.float32)}
    return Record(one, {}, signals)


def test_names_are_unique() -> None:
    names = [name for group in GROUPS.values() for name in group.names]
    assert len(names) == len(set(names)) == len(FEATURES)


def test_likelihoods_are_the_signals_in_their_order() -> None:
    """The rank as a logarithm."""
    record = plain_record()
    expected = [np.log1p(record[name]) if name == "rank" else record[name] for name in LIKELIHOODS]
    np.testing.assert_array_equal(likelihoods(record), expected)


def test_own_columns_are_the_groups_one_after_another() -> None:
    record = plain_record()
    own = np.concatenate([likelihoods(record), alignment(record), claim_features(record)])
    np.testing.assert_allclose(PlainTable()(record)[:, : len(own)].T, own, rtol=1e-6)


def test_columns_of_a_feature_are_those_that_are_named_after_it() -> None:
    entailment, record = PlainTable((ENTAILMENT,), (ENTAILMENT,)), plain_record()
    for feature in FEATURES:
        table = entailment if feature in GROUPS[ENTAILMENT].names else PlainTable()
        names = table.columns(record)
        found = [names[k] for k in table.columns_of(feature)]
        beside = [f"{feature}, token before", f"{feature}, token after"]
        near = any(feature in GROUPS[group].names for group in (*NEIGHBOURS, ENTAILMENT))
        assert found == [feature, *(beside if near else [])]


def test_neighbours_are_shifted_by_a_token() -> None:
    """What follows a sentence is not known at its end."""
    table = PlainTable()
    values = table(plain_record())
    for feature in (name for group in NEIGHBOURS for name in GROUPS[group].names):
        own, before, after = values[:, table.columns_of(feature)].T.tolist()
        assert before == [0, *own[:-1]]
        assert after == [*own[1:4], 0, *own[5:], 0]


def test_a_table_of_one_group_reads_nothing_else() -> None:
    record = plain_record()
    bare = replace(record, signals={name: record.signals[name] for name in LIKELIHOODS})
    np.testing.assert_allclose(PlainTable(("likelihoods",), ())(bare).T, likelihoods(record), rtol=1e-6)


@pytest.mark.parametrize("signal", [*LIKELIHOODS, "places", "scores"])
def test_a_signal_that_was_not_extracted_is_named(signal: str) -> None:
    record = plain_record()
    bare = replace(record, signals={k: v for k, v in record.signals.items() if k != signal})
    with pytest.raises(InputError, match=f"need the signal '{signal}'"):
        PlainTable()(bare)


@pytest.mark.parametrize(
    ("groups", "beside"), [(("relevance",), ()), ((*GROUPS, "x"), ()), (tuple(GROUPS), ("places",))]
)
def test_unknown_groups_are_refused(groups: tuple[str, ...], beside: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"unknown group .* choose from likelihoods, alignment, claims"):
        PlainTable(groups, beside)


def test_neighbours_of_a_group_that_is_not_read_are_refused() -> None:
    with pytest.raises(InputError, match="is read of the token itself too"):
        PlainTable(("claims",), ("alignment",))


def test_a_table_is_read_back_from_json() -> None:
    adapter, table = TypeAdapter(PlainTable), PlainTable(("likelihoods", "claims"), ("likelihoods",))
    assert adapter.validate_json(adapter.dump_json(table)) == table


# Odd input.


ODD = (
    *("one", "7", "not", "!", "...", "\u2014", "\U0001f44d", "\U0001f44d\U0001f44d 7 km \U0001f44d"),
    *("\u200b", "e\u0301", "\u65e5\u672c\u8a9e 3 km", " x ", "a\n\n\nb", "\t", "7 7 7 7 7", "Not. Not. Not."),
)


@pytest.mark.parametrize(
    ("response", "passages"),
    [
        *((response, ("Leave lasts 7 km, not 8.",)) for response in ODD),
        *((response, passages) for response in ODD[:3] for passages in (("\U0001f44d",), ("!", "3", "not"))),
    ],
)
def test_odd_texts_have_finite_values(tiny_reader: Reader, response: str, passages: tuple[str, ...]) -> None:
    one = replace(encoded("x", passages)).with_response(response, tiny_reader.tokenizer)
    found = PlainTable()(PlainReplay(tiny_reader)(one))
    assert found.shape[0] == len(one.response_ids)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("question", ["?", "\U0001f44d", "the", "7"])
def test_odd_questions_have_finite_values(tiny_reader: Reader, question: str) -> None:
    one = encode(
        Example(question, PASSAGES, RESPONSE, template="{question}\n{context}\n"),
        tiny_reader.tokenizer,
        chat_template=False,
    )
    assert np.isfinite(PlainTable()(PlainReplay(tiny_reader)(one))).all()


@pytest.mark.parametrize("kept", [1, 8])
def test_passages_that_were_cut_away_leave_finite_values(tiny_reader: Reader, kept: int) -> None:
    example = Example("How long?", PASSAGES, RESPONSE, template="{question}\n{context}\n")
    whole = encode(example, tiny_reader.tokenizer, chat_template=False)
    passages = sum(segment >= 2 for segment in whole.segments)
    one = encode(
        example,
        tiny_reader.tokenizer,
        chat_template=False,
        window=len(whole.prompt_ids) + len(whole.response_ids) - passages + kept,
        truncation="passages",
    )
    assert one.dropped == passages - kept
    assert np.isfinite(PlainTable()(PlainReplay(tiny_reader)(one))).all()


def test_a_response_of_one_token_has_no_neighbours() -> None:
    table = PlainTable()
    found = table(plain_record("Leave"))
    assert found.shape[0] == 1
    assert not found[0, len(table.features) :].any()


def test_a_response_of_no_token_has_no_rows() -> None:
    table = PlainTable()
    record = plain_record("")
    assert table(record).shape == (0, len(table.columns(record)))


# What follows a sentence changes nothing of it.

SEVERAL = (
    "Leave lasts 18 weeks, and you may not smoke. It ends after 16 weeks in Milan! You may apply: \n\n - You "
    "may smoke \n - Leave lasts 16 weeks.  \n\n It is so."
)


def cut(record: Record, end: int) -> Record:
    """The record of the response's first characters: a causal reader finds what it found of the whole."""
    one = record.encoded
    count = sum(last <= end for _, last in one.response_offsets)
    shorter = replace(
        one,
        response=one.response[:end],
        response_ids=one.response_ids[:count],
        response_offsets=one.response_offsets[:count],
    )
    signals = {name: record.signals[name][:count] for name in (*LIKELIHOODS, "rank")}
    inside = record.signals["places"][:, 1] <= end
    signals |= {name: record.signals[name][inside] for name in ("places", "scores")}
    return replace(record, encoded=shorter, signals=signals)


def scored(record: Record, seed: int = 0) -> Record:
    """With random scores of each alternative of its values."""
    draw, places = np.random.default_rng(seed), []
    for claim in claims(record.encoded, record.context):
        start, end, first, last = claim.value.start, claim.value.end, claim.first, claim.last
        places += [(start, end, k, first, last, last - first) for k in range(len(claim.alternatives))]
    scores = draw.normal(-5, 2, (len(places), 3)).astype(np.float32)
    return replace(record, signals=record.signals | {"places": np.array(places, np.int32), "scores": scores})


@pytest.mark.parametrize("seed", range(3))
def test_features_of_a_sentence_do_not_change_with_what_follows_it(seed: int) -> None:
    record, table = scored(plain_record(SEVERAL, seed), seed), PlainTable()
    whole, numbers = table(record), sentence_numbers(record)
    statements = sentences_in(SEVERAL)
    assert len(statements) == 6
    assert record.signals["places"].shape[0] > 4
    for number, (_, end) in enumerate(statements):
        shorter = cut(record, end)
        assert sentences_in(shorter.encoded.response) == statements[: number + 1]
        found = table(shorter)
        known = numbers[: len(found)]
        np.testing.assert_array_equal(sentence_numbers(shorter), known)
        np.testing.assert_array_equal(found[known >= 0], whole[: len(found)][known >= 0])


def test_a_token_between_sentences_is_not_what_follows_one() -> None:
    """The line breaks between two items are a token, which is not there while the second is not written."""
    response = "Leave lasts 18 weeks \n\n You may smoke."
    one = plain_record(response)
    gap = (response.index("\n"), response.index("You"))
    offsets = tuple(sorted((*one.encoded.response_offsets, gap)))
    encoded = replace(one.encoded, response_ids=tuple(range(8)), response_offsets=offsets)
    draw = np.random.default_rng(0)
    signals = one.signals | {name: draw.random(8) for name in (*LIKELIHOODS, "rank")}
    record, table = replace(one, encoded=encoded, signals=signals), PlainTable()
    assert sentence_numbers(record).tolist() == [0, 0, 0, 0, -1, 1, 1, 1]
    assert ends_of(sentence_numbers(record)).tolist() == [4, 4, 4, 4, 5, 8, 8, 8]
    np.testing.assert_array_equal(table(cut(record, len("Leave lasts 18 weeks"))), table(record)[:4])


@pytest.mark.parametrize(
    ("numbers", "ends"),
    [
        ([], []),
        ([0, 0, 1, 1], [2, 2, 4, 4]),
        ([-1, 0, -1, -1, 1], [1, 2, 4, 4, 5]),
        ([0, 2, 2, -1], [1, 3, 3, 4]),
    ],
)
def test_where_sentences_end(numbers: list[int], ends: list[int]) -> None:
    assert ends_of(np.array(numbers, dtype=int)).tolist() == ends


def test_smoothed_values_are_those_up_to_an_end() -> None:
    values = np.arange(6.0) ** 2
    found = smoothed(values, 5, np.array([3, 3, 3, 6, 6, 6]))
    np.testing.assert_allclose(found[:3], smoothed(values[:3], 5))
    np.testing.assert_allclose(found[3:], smoothed(values, 5)[3:])
