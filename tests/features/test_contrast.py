"""The values of a response, what could stand in their place, and how likely the reader finds that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lrp4rag.example import Example
from lrp4rag.features import contrast as module
from lrp4rag.features.contrast import (
    ALTERNATIVES,
    FEWER,
    PLACES,
    SCORES,
    TAIL,
    Claim,
    Scored,
    context_of,
    first_difference,
    read_response,
)
from lrp4rag.features.record import Record
from lrp4rag.features.replay import PlainReplay
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import Encoded, encode
from lrp4rag.reader.reading import PromptReading
from lrp4rag.util.errors import InputError
from tests.tiny import tiny_tokenizer

QUESTION = "How long is parental leave?"
PASSAGES = (
    "Parental leave lasts 16 weeks. Sick pay ends after 26 weeks.",
    "The office in Turin opened on 3 May 2021. You can apply online before June.",
)
RESPONSE = "Parental leave lasts 18 weeks, and you cannot apply in Milan. Sick pay ends after 26 weeks."


def encoded(response: str = RESPONSE, passages: tuple[str, ...] = PASSAGES) -> Encoded:
    example = Example(QUESTION, passages, response, template="{question}\n{context}\n")
    return encode(example, tiny_tokenizer(), chat_template=False)


def claim_of(response: str, text: str, *passages: str) -> Claim:
    """That of the value with this text."""
    (found,) = (one for one in claims(encoded(response, passages or PASSAGES)) if one.value.text == text)
    return found


def texts(claim: Claim) -> list[str]:
    return [one.text for one in claim.alternatives]


def record(reader: Reader, response: str = RESPONSE, passages: tuple[str, ...] = PASSAGES) -> Record:
    """As a store has it: with arrays of what was read."""
    read = PlainReplay(reader)(encoded(response, passages))
    signals = {name: array for name, array in read.arrays().items() if name not in read.states}
    stored = replace(read, signals=signals, scored=None)
    assert stored.contrasts == read.contrasts
    return stored


def claims(one: Encoded) -> tuple[Claim, ...]:
    return module.claims(one, context_of(one))


def contrasts(one: Record) -> list[tuple[Claim, tuple[Scored, ...]]]:
    return [(each.claim, each.scored) for each in one.contrasts]


# Claims.


def test_claims_are_the_values_in_order() -> None:
    found = [(one.value.kind, one.value.text) for one in claims(encoded())]
    assert found == [
        ("quantity", "18 weeks"),
        ("polarity", "cannot"),
        ("name", "Milan"),
        ("polarity", "ends"),
        ("polarity", "after"),
        ("quantity", "26 weeks"),
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_claims_tokens_are_those_of_its_characters(number: int) -> None:
    one = encoded()
    claim = claims(one)[number]
    for k, (start, end) in enumerate(one.response_offsets):
        shared = start < claim.value.end and end > claim.value.start
        assert (claim.first <= k < claim.last) == shared


def test_a_value_without_tokens_is_no_claim() -> None:
    """Such as one whose end the window cut off."""
    one = encoded("Leave lasts 18 weeks.")
    cut = replace(one, response_ids=one.response_ids[:3], response_offsets=one.response_offsets[:3])
    assert claims(cut) == ()


@pytest.mark.parametrize("response", ["See passage 2.", "The passages do not mention a fee.", "hello"])
def test_references_absences_and_plain_words_are_no_claims(response: str) -> None:
    assert claims(encoded(response)) == ()


def test_a_claim_knows_its_sentence() -> None:
    first, *_, last = claims(encoded())
    assert RESPONSE[slice(*first.sentence)].startswith("Parental leave")
    assert RESPONSE[slice(*last.sentence)] == "Sick pay ends after 26 weeks."


@pytest.mark.parametrize(
    ("response", "text", "support"),
    [
        ("Parental leave lasts 16 weeks.", "16 weeks", 1.0),
        ("Parental leave lasts 112 days.", "112 days", 1.0),
        ("Parental leave lasts 18 weeks.", "18 weeks", 0.0),
        ("Parental leave lasts 26 weeks.", "26 weeks", 0.0),  # no word of its place
        ("Apply online before June.", "before", 1.0),
        ("You cannot apply online.", "cannot", 0.0),
    ],
)
def test_support_is_the_similarity_of_the_best_place_that_agrees(
    response: str, text: str, support: float
) -> None:
    passages = ("Parental leave lasts 16 weeks.", "Sick pay ends after 26 weeks.", PASSAGES[1])
    assert claim_of(response, text, *passages).support == pytest.approx(support)


def test_a_lone_value_is_compared_with_what_is_asked() -> None:
    first, second = claim_of("16 weeks", "16 weeks"), claim_of("26 weeks", "26 weeks")
    assert first.support > second.support > 0


def test_rivals_are_the_values_that_do_not_agree_the_most_similar_first() -> None:
    rivals = claim_of("Sick pay ends after 18 weeks.", "18 weeks").rivals
    assert [one.value.text for one in rivals] == ["26 weeks", "16 weeks"]
    assert rivals[0].similarity == 1.0 > rivals[1].similarity


# Alternatives.


@pytest.mark.parametrize(
    ("passage", "response", "text", "alternatives"),
    [
        ("It lasts 16 weeks.", "It lasts 18 weeks.", "18 weeks", ["16 weeks"]),
        ("It lasts 16 weeks.", "It lasts twelve weeks.", "twelve weeks", ["16 weeks"]),
        ("It lasts 16 weeks.", "It lasts 18 calendar weeks.", "18 calendar weeks", ["16 calendar weeks"]),
        ("It weighs 16 kilograms.", "It weighs 18 kg.", "18 kg", ["16 kg"]),
        ("It costs 2 euros.", "It costs \u20ac3.", "\u20ac3", ["\u20ac2"]),
        ("It lasts 3 days.", "It lasts 18 weeks.", "18 weeks", ["3 days"]),  # not 3 weeks
        ("It costs $2 billion.", "It costs $3 million.", "$3 million", ["$2 billion"]),
        ("It lasts 16 weeks.", "It lasts forty two weeks.", "forty two weeks", ["16 weeks"]),
        ("Nine people came.", "18 people came.", "18", ["Nine"]),  # a plain count has no unit to keep
        ("See Turin.", "See Milan.", "Milan", ["Turin"]),
        ("On 3 May 2021.", "On 4 May 2021.", "4 May 2021", ["3 May 2021"]),
    ],
)
def test_alternatives_are_the_rivals_in_the_writing_of_the_values_unit(
    passage: str, response: str, text: str, alternatives: list[str]
) -> None:
    assert texts(claim_of(response, text, passage)) == alternatives


@pytest.mark.parametrize(
    ("response", "text", "alternatives"),
    [
        ("You cannot apply.", "cannot", ["can"]),
        ("Before June.", "Before", ["After"]),
        ("The pay ends.", "ends", ["starts", "begins"]),
        ("It is red, not blue.", "not", [""]),
    ],
)
def test_alternatives_of_a_polarity_word_are_its_opposites(
    response: str, text: str, alternatives: list[str]
) -> None:
    assert texts(claim_of(response, text)) == alternatives


MANY = ("It lasts 2 weeks, 3 weeks, 4 weeks, 5 weeks, 6 weeks or 7 weeks.",)


@pytest.mark.parametrize(("weeks", "count"), [(18, ALTERNATIVES), (2, FEWER)])
def test_a_value_without_support_has_more_alternatives(weeks: int, count: int) -> None:
    claim = claim_of(f"It lasts {weeks} weeks.", f"{weeks} weeks", *MANY)
    assert bool(claim.support) == (count == FEWER)
    assert len(claim.alternatives) == count < len(claim.rivals)


# Scores.


def log_likelihood(reader: Reader, one: Encoded, ids: list[int]) -> list[float]:
    """Of each of the tokens after the prompt, by a pass of their own."""
    with torch.no_grad():
        logits = reader.model(torch.tensor([[*one.prompt_ids, *ids]]), use_cache=False).logits[0]
    rows = logits[len(one.prompt_ids) - 1 : -1].double().log_softmax(-1)
    return [float(row[token]) for row, token in zip(rows, ids, strict=True)]


def ids_of(text: str) -> list[int]:
    found: list[int] = tiny_tokenizer()(text, add_special_tokens=False)["input_ids"]
    return found


CASES = [
    (RESPONSE, PASSAGES),
    ("18 weeks", PASSAGES),  # nothing before, nothing after
    ("It lasts 18 weeks.", MANY),
    ("\U0001f44d 18 weeks \U0001f44d\U0001f44d and then it ends \U0001f44d.", PASSAGES),
]
cases = pytest.mark.parametrize(("response", "passages"), CASES)


def rows_of(record: Record) -> list[tuple[Claim, str, dict[str, int], dict[str, float]]]:
    """Each scored alternative: its claim, its text, and its row of places and of scores."""
    by_span = {(one.value.start, one.value.end): one for one in claims(record.encoded)}
    found = []
    for place, score in zip(
        record.signals["places"].tolist(), record.signals["scores"].tolist(), strict=True
    ):
        at = dict(zip(PLACES, place, strict=True))
        claim = by_span[at["start"], at["end"]]
        text = claim.alternatives[at["number"]].text
        found.append((claim, text, at, dict(zip(SCORES, score, strict=True))))
    assert found
    return found


@cases
def test_scores_are_log_likelihoods_of_a_pass_for_each(
    tiny_reader: Reader, response: str, passages: tuple[str, ...]
) -> None:
    one = record(tiny_reader, response, passages)
    for claim, text, at, score in rows_of(one):
        end = one.encoded.response_offsets[at["last"] - 1][1]
        ids = ids_of(response[: claim.value.start] + text + response[claim.value.end : end])
        assert tuple(ids[: at["first"]]) == one.encoded.response_ids[: at["first"]]
        parts = log_likelihood(tiny_reader, one.encoded, ids)[at["first"] :]
        assert score["opening"] == pytest.approx(parts[0], abs=1e-3)
        assert score["value"] == pytest.approx(sum(parts[: at["tokens"]]), abs=1e-3)
        assert score["tail"] == pytest.approx(sum(parts[at["tokens"] :]), abs=1e-3)


@cases
def test_the_tokens_of_an_alternative_end_with_its_text(
    tiny_reader: Reader, response: str, passages: tuple[str, ...]
) -> None:
    """Or are the one after it, where it ends before the first token that differs."""
    for claim, text, at, _ in rows_of(record(tiny_reader, response, passages)):
        end = len(ids_of(response[: claim.value.start] + text))
        assert at["first"] + at["tokens"] == max(end, at["first"] + 1)


@cases
def test_what_follows_is_scored_for_some_characters(
    tiny_reader: Reader, response: str, passages: tuple[str, ...]
) -> None:
    one = record(tiny_reader, response, passages)
    for claim, _, at, _ in rows_of(one):
        end = one.encoded.response_offsets[at["last"] - 1][1]
        until = min(claim.value.end + TAIL, claim.sentence[1])
        start = one.encoded.response_offsets[at["last"] - 1][0]
        assert start < until <= end


@cases
def test_a_margin_is_the_difference_of_two_texts(
    tiny_reader: Reader, response: str, passages: tuple[str, ...]
) -> None:
    """Of the log-likelihoods of the response up to there, with the alternative and as it is."""
    one = record(tiny_reader, response, passages)
    places = {
        (claim.value.start, claim.alternatives[at["number"]].text): at["last"]
        for claim, _, at, _ in rows_of(one)
    }
    for claim, scored in contrasts(one):
        for alternative in scored:
            text = alternative.alternative.text
            last = places[claim.value.start, text]
            end = one.encoded.response_offsets[last - 1][1]
            other = ids_of(response[: claim.value.start] + text + response[claim.value.end : end])
            difference = sum(log_likelihood(tiny_reader, one.encoded, other)) - sum(
                log_likelihood(tiny_reader, one.encoded, list(one.encoded.response_ids[:last]))
            )
            assert alternative.margin == pytest.approx(difference, abs=5e-3)


def test_every_claim_has_its_alternatives_the_best_first(tiny_reader: Reader) -> None:
    one = record(tiny_reader, "It lasts 18 weeks.", MANY)
    ((claim, scored),) = contrasts(one)
    assert {part.alternative for part in scored} == set(claim.alternatives)
    margins = [part.margin for part in scored]
    assert margins == sorted(margins, reverse=True)


def test_what_is_written_has_its_own_log_probability(tiny_reader: Reader) -> None:
    one = record(tiny_reader, "It lasts 18 weeks.")
    ((claim, (scored, *_)),) = contrasts(one)
    first = claim.last - scored.written
    assert claim.first <= first < claim.last
    assert scored.written_logprob == pytest.approx(one["logprob"][first : claim.last].sum())


def test_a_response_without_values_has_empty_arrays(tiny_reader: Reader) -> None:
    one = record(tiny_reader, "Hello there.")
    assert one.signals["places"].shape == (0, len(PLACES))
    assert one.signals["scores"].shape == (0, len(SCORES))
    assert contrasts(one) == []


def test_a_claim_without_alternatives_has_no_scores(tiny_reader: Reader) -> None:
    ((claim, scored),) = contrasts(record(tiny_reader, "It costs 5 euros."))
    assert (claim.alternatives, scored) == ((), ())


# Limits.


def scored_texts(reader: Reader, one: Encoded) -> tuple[list[str], list[int]]:
    """The values that are scored, in this order, and the tokens of each branch."""
    lengths, texts, made, real = [], [], [], module._branch

    def branch_of(encoded, claim, *given):
        branch = real(encoded, claim, *given)
        made.append((claim.value.text, branch))
        return branch

    class Counting(PromptReading):
        def read(self, response_ids, branches=()):
            lengths.extend(len(branch.ids) for branch in branches)
            texts.extend(next(text for text, one in made if one and one[0] is each) for each in branches)
            return super().read(response_ids, branches)

    prompt = Counting(reader, one, (0,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_branch", branch_of)
        read_response(one, context_of(one), prompt, reader.tokenizer)
    return texts, lengths


def test_values_without_support_come_first_and_polarity_last(tiny_reader: Reader, monkeypatch) -> None:
    """In each sentence; of each kind of them, in the order of the text."""
    monkeypatch.setattr(module, "MOST_TOKENS", 1000)
    response = "Sick pay ends after 26 weeks, parental leave lasts 18 weeks, and you cannot apply in Milan."
    found, _ = scored_texts(tiny_reader, encoded(response))
    assert list(dict.fromkeys(found)) == ["18 weeks", "Milan", "26 weeks", "cannot", "ends", "after"]
    apart = response.replace(", parental", ". Parental")
    found, _ = scored_texts(tiny_reader, encoded(apart))
    assert list(dict.fromkeys(found)) == ["26 weeks", "ends", "after", "18 weeks", "Milan", "cannot"]


SENTENCES = ("Parental leave lasts 18 weeks, and you cannot apply in Milan.", "Sick pay ends after 26 weeks.")


@pytest.mark.parametrize("most", [1, 2])
def test_a_number_of_values_of_each_sentence_is_scored(tiny_reader: Reader, monkeypatch, most: int) -> None:
    whole = [scored_texts(tiny_reader, encoded(one))[0] for one in SENTENCES]
    monkeypatch.setattr(module, "MOST_VALUES", most)
    found, _ = scored_texts(tiny_reader, encoded())
    assert found == [text for one in whole for text in one if text in list(dict.fromkeys(one))[:most]]


@pytest.mark.parametrize("most", [0, 20, 40])
def test_a_number_of_tokens_of_each_sentence_is_scored(tiny_reader: Reader, monkeypatch, most: int) -> None:
    every, whole = scored_texts(tiny_reader, encoded())
    monkeypatch.setattr(module, "MOST_TOKENS", most)
    found, branches = scored_texts(tiny_reader, encoded())
    assert len(found) == len(branches)
    for sentence in SENTENCES:
        used, all_of_it = (
            sum(count for text, count in zip(texts, counts, strict=True) if text in sentence)
            for texts, counts in ((found, branches), (every, whole))
        )
        assert used <= most < all_of_it


def test_what_follows_a_sentence_changes_nothing_of_its_claims_and_scores(tiny_reader: Reader) -> None:
    """Nor how many are left for those after it."""
    after = (
        " It ends after 18 weeks in Milan, 3 weeks later, and you cannot apply on 4 May 2020 or before June."
    )
    one, whole = record(tiny_reader), record(tiny_reader, RESPONSE + after)
    count = len(one.signals["places"])
    assert claims(whole.encoded)[: len(claims(one.encoded))] == claims(one.encoded)
    assert len(whole.signals["places"]) > count
    np.testing.assert_array_equal(whole.signals["places"][:count], one.signals["places"])
    np.testing.assert_allclose(whole.signals["scores"][:count], one.signals["scores"], atol=1e-4)


# Tables of another version.


@pytest.mark.parametrize(("column", "value"), [("start", 3), ("end", 4), ("number", 99)])
def test_scores_of_other_values_are_refused(tiny_reader: Reader, column: str, value: int) -> None:
    one = record(tiny_reader)
    places = one.signals["places"].copy()
    places[1, PLACES.index(column)] = value
    with pytest.raises(InputError, match="those of another version; extract them again"):
        contrasts(replace(one, signals={**one.signals, "places": places}))


@pytest.mark.parametrize("name", ["logprob", "places", "scores"])
def test_missing_scores_are_refused(tiny_reader: Reader, name: str) -> None:
    one = record(tiny_reader)
    signals = {key: array for key, array in one.signals.items() if key != name}
    with pytest.raises(InputError, match=f"need the signal '{name}'"):
        contrasts(replace(one, signals=signals))


# The first other token.


@pytest.mark.parametrize(
    ("response", "text", "other"),
    [
        ("It lasts 18 weeks.", "18 weeks", "16 weeks"),
        ("It lasts 18 weeks.", "18 weeks", "26 weeks"),
        ("18 weeks", "18", "7"),
        ("It is \U0001f44d here.", "\U0001f44d", "\U0001f44e"),
    ],
)
def test_the_first_token_that_differs(response: str, text: str, other: str) -> None:
    one, start = encoded(response), response.index(text)
    number, token = first_difference(one, start, start + len(text), other, tiny_tokenizer())
    ids = ids_of(response[:start] + other + response[start + len(text) :])
    assert tuple(ids[:number]) == one.response_ids[:number]
    assert ids[number] == token != one.response_ids[number]


@pytest.mark.parametrize(("text", "other"), [("18", "18"), (" 18.", ""), (".", ".!")])
def test_texts_of_the_same_tokens_have_no_difference(text: str, other: str) -> None:
    """Nor has one that ends before, or goes on after, the response."""
    one = encoded("It is 18.")
    start = one.response.rindex(text)
    found = first_difference(one, start, start + len(text), other, tiny_tokenizer())
    assert found is None


# Odd input.


@pytest.mark.parametrize("response", ["not", "!", "\U0001f44d 7 km", "7\n7\n7", "\u2014 18"])
@pytest.mark.parametrize("passages", [("9 km",), ("\U0001f44d 3",)])
def test_odd_input_has_finite_scores(tiny_reader: Reader, response: str, passages: tuple[str, ...]) -> None:
    one = record(tiny_reader, response, passages)
    assert len(one.signals["places"]) == len(one.signals["scores"])
    assert np.isfinite(one.signals["scores"]).all()


def test_a_plain_verb_is_a_value_where_the_passages_deny_one_nearby() -> None:
    denied = "The ramp is not wet at dawn. The pier has a shop."
    assert texts(claim_of("The ramp is wet at dawn.", "is", denied)) == ["is not"]
    plain = claims(encoded("The ramp is wet at dawn.", ("The ramp is wet. The pier has a shop.",)))
    assert "is" not in {one.value.text for one in plain}


def test_an_alternative_may_go_on_from_the_value() -> None:
    """It is scored too: what differs begins after the value's tokens."""
    assert texts(claim_of("You may go on board.", "may", "You may not go on board.")) == ["may not", "must"]
