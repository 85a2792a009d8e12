"""Contradictions: which values a passage has otherwise, where, and what kind of span that makes; and the
relevance that is pulled for suspect sentences and contradicted values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from lrp4rag.claims.answer import Passages, compare_answer
from lrp4rag.classifiers.analysis import pull_evidence
from lrp4rag.classifiers.contradiction import (
    ALIKE,
    LARGEST,
    Placed,
    compared,
    computed_values,
    contradictions,
    of_their_slots,
)
from lrp4rag.classifiers.decision import COMPARED
from lrp4rag.classifiers.verdict import (
    Assessment,
    Claims,
    Contradiction,
    Evidence,
    Judgement,
    TokenMarks,
    Verdict,
)
from lrp4rag.example import Example
from lrp4rag.features.contrast import PLACES, SCORES, Claim, claims, context_of
from lrp4rag.features.record import Record
from lrp4rag.features.replay import PlainReplay
from lrp4rag.lrp import Target, attribute, relevance_mode
from lrp4rag.lrp.attribution import segment_weights
from lrp4rag.lrp.flow import Flow
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import Encoded, encode, tokens_in
from lrp4rag.util.sentences import sentences_in
from tests import tiny
from tests.classifiers.samples import READER
from tests.tiny import CORPUS, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
LIGHTHOUSE = "The Marlow lighthouse is 31 metres tall."
FERRY = "Dogs may board the ferry to Sandholm."
FAITHFUL = f"{LIGHTHOUSE} {FERRY}"
TOO_TALL, NO_DOGS = LIGHTHOUSE.replace("31", "45"), FERRY.replace("may", "may not")


def example_of(response: str, *passages: str) -> Example:
    return Example("What is known?", passages or (LIGHTHOUSE, FERRY), response)


def encoded_of(response: str, *passages: str) -> Encoded:
    return encode(example_of(response, *passages), TOKENIZER)


Margin = Callable[[Claim, str], float]


def record_of(encoded: Encoded, margin: float | Margin = -5.0) -> Record:
    """The reader finds each alternative by so many nats likelier than what is written."""
    places, scores = [], []
    for claim in claims(encoded, context_of(encoded)):
        for number, one in enumerate(claim.alternatives):
            nats = margin if isinstance(margin, float) else margin(claim, one.text)
            own = claim.last - claim.first
            places.append((claim.value.start, claim.value.end, number, claim.first, claim.last, own))
            scores.append((nats, 0.0, nats))
    signals = {
        "logprob": np.zeros(len(encoded.response_ids), dtype=np.float32),
        "places": np.array(places, dtype=np.int32).reshape(-1, len(PLACES)),
        "scores": np.array(scores, dtype=np.float32).reshape(-1, len(SCORES)),
    }
    return Record(encoded, READER, signals)


def found_in(
    response: str, *passages: str, margin: float | Margin = -5.0
) -> tuple[list[Contradiction], Encoded]:
    encoded = encoded_of(response, *passages)
    return found_of(encoded, margin), encoded


def found_of(encoded: Encoded, margin: float | Margin = -5.0) -> list[Contradiction]:
    return [one.contradiction for one in contradictions(record_of(encoded, margin))]


def words(found: Sequence[Contradiction]) -> list[tuple[str, str, int]]:
    return [(one.text, one.instead, one.passage) for one in found]


def only(text: str, nats: float = 3.0) -> Margin:
    """This alternative is likelier, and no other one is."""
    return lambda _, other: nats if other == text else -5.0


# What is found, and where.


def test_a_number_that_a_passage_has_otherwise() -> None:
    found, _ = found_in(TOO_TALL, margin=only("31 metres"))
    assert words(found) == [("45 metres", "31 metres", 0)]
    assert found[0].margin == pytest.approx(3.0)
    assert found[0].relevance is None


@pytest.mark.parametrize("before", ["", "\n\n  ", "Once. ", "\u2028", "\u00fc\U0001f309 "])
@pytest.mark.parametrize("after", ["", " \n\n"])
def test_places_are_those_of_the_words(before: str, after: str) -> None:
    found, encoded = found_in(TOO_TALL, FERRY, before + LIGHTHOUSE + after, margin=only("31 metres"))
    (one,) = found
    assert encoded.response[one.start : one.end] == one.text == "45 metres"
    passage = context_of(encoded).passages[one.passage]
    assert passage[one.passage_start : one.passage_end] == one.instead == "31 metres"


@pytest.mark.parametrize(
    ("response", "passage", "text", "instead"),
    [
        (NO_DOGS, FERRY, "may not", "may"),
        (FERRY, NO_DOGS, "may", "may not"),
        ("Ask before the trip.", "Ask after the trip.", "before", "after"),
        ("It sails with a crew.", "It sails without a crew.", "with", "without"),
        (
            "Dogs are not allowed on the ferry.",
            "Dogs are allowed on the ferry.",
            "are not allowed",
            "allowed",
        ),
        # The end of another number supports no value.
        ("The parcel weighs 5 kg.", "The parcel weighs 2.5 kg.", "5 kg", "2.5 kg"),
        ("Growth was 3%.", "Growth was -3% in 2020.", "3%", "-3%"),
        ("The temperature was 5 °C.", "The temperature was \u22125 °C.", "5 °C", "\u22125 °C"),
        ("Net income was $4 million.", "Net income was -$4 million.", "$4 million", "-$4 million"),
        ("The ticket costs $4.", "The ticket costs $4.50.", "$4", "$4.50"),
        ("The dose is 5 mg.", "The dose is 0.5 mg.", "5 mg", "0.5 mg"),
        # A sentence that says "in total" can be wrong.
        ("The total sum was $60 million.", "The total sum was $48 million.", "$60 million", "$48 million"),
        ("Overall, 60 people were hurt.", "48 people were hurt.", "60", "48"),
        ("The overall score is 8.", "The overall score is 6 (before: 5).", "8", "6"),
        ("Overall, Peter Westbury won.", "Overall, Jane Harlow won.", "Peter Westbury", "Jane Harlow"),
        ("They lived together until 1975.", "They lived together until 1981.", "1975", "1981"),
    ],
)
def test_a_value_against_another(response: str, passage: str, text: str, instead: str) -> None:
    assert words(found_in(response, passage, margin=5.0)[0]) == [(text, instead, 0)]


@pytest.mark.parametrize(
    ("response", "passages", "margin"),
    [
        *((response, (), -5.0) for response in (FAITHFUL, "The lighthouse is tall.", "Yes.")),
        (NO_DOGS, (NO_DOGS, "Cats may sleep."), 5.0),  # a more similar place supports it
        ("A cable of 45 metres links both shores.", (LIGHTHOUSE,), -5.0),  # which says something else
        ("The tower was built on 3 May 1874.", (LIGHTHOUSE,), 5.0),  # no passage has any such value
    ],
)
def test_nothing_contradicts(response: str, passages: tuple[str, ...], margin: float) -> None:
    assert found_in(response, *passages, margin=margin)[0] == []


def test_what_passages_support_is_contradicted_only_where_the_reader_says_so() -> None:
    passages = (LIGHTHOUSE, "The lighthouse of Sandholm is 45 metres tall.")
    assert words(found_in(TOO_TALL, *passages, margin=only("31 metres"))[0]) == [
        ("45 metres", "31 metres", 0)
    ]
    assert found_in(TOO_TALL, *passages)[0] == []


def test_without_support_a_similar_place_contradicts_whatever_the_reader_says() -> None:
    assert words(found_in(TOO_TALL)[0]) == [("45 metres", "31 metres", 0)]


def test_a_place_that_shares_no_word_contradicts_nothing_whatever_the_reader_says() -> None:
    passage = "The ferry leaves from Marlow harbour."
    assert found_in("It won a gold medal in Paris.", passage, margin=5.0)[0] == []
    found, _ = found_in("The ferry leaves from Paris.", passage, margin=5.0)
    assert words(found) == [("Paris", "Marlow", 0)]


def test_the_likeliest_alternative_is_told() -> None:
    passages = ("The Marlow lighthouse is 31 metres tall.", "The Marlow tower is 27 metres tall.")
    found, _ = found_in(TOO_TALL, *passages, margin=lambda _, text: 4.0 if text == "27 metres" else 2.0)
    assert [(one.text, one.instead, one.passage, one.margin) for one in found if "metres" in one.text] == [
        ("45 metres", "27 metres", 1, pytest.approx(4.0))
    ]


def test_contradictions_come_in_the_order_of_the_response() -> None:
    def margin(claim: Claim, text: str) -> float:
        return 1.0 if text in ("31 metres", "may") else -5.0

    found, _ = found_in(f"{NO_DOGS} {TOO_TALL}", margin=margin)
    assert words(found) == [("may not", "may", 1), ("45 metres", "31 metres", 0)]


def test_a_reader_s_record_gives_margins_that_hold(tiny_reader: Reader) -> None:
    """Against the log-probability of the response's own text with the other value in it."""
    encoded = tiny_reader.encode(example_of(TOO_TALL, LIGHTHOUSE))
    found = [one.contradiction for one in contradictions(PlainReplay(tiny_reader)(encoded))]
    (one,) = [one for one in found if one.instead == "31 metres"]

    def logprob(response: str) -> float:
        ids = tiny_reader.encode(example_of(response, LIGHTHOUSE))
        with torch.no_grad():
            logits = tiny_reader.model(torch.tensor([[*ids.prompt_ids, *ids.response_ids]])).logits[0]
        rows = logits[len(ids.prompt_ids) - 1 : -1].log_softmax(-1)
        return float(rows.gather(1, torch.tensor(ids.response_ids)[:, None]).sum())

    assert one.margin == pytest.approx(logprob(LIGHTHOUSE) - logprob(TOO_TALL), abs=1e-3)


# How they compare.


def compared_in(response: str, *passages: str, margin: float | Margin = -5.0) -> list[Placed]:
    return contradictions(record_of(encoded_of(response, *passages), margin))


def test_support_is_the_similarity_of_the_best_place_that_has_the_value() -> None:
    (alone,) = compared_in(TOO_TALL)
    assert alone.support == 0
    assert alone.similarity >= ALIKE
    passages = (LIGHTHOUSE, "The lighthouse of Sandholm is 45 metres tall.")
    (one,) = compared_in(TOO_TALL, *passages, margin=only("31 metres"))
    assert 0 < one.support < one.similarity


def test_a_less_similar_place_contradicts_nothing_that_a_passage_has() -> None:
    passages = (LIGHTHOUSE, "The lighthouse of Sandholm is 45 metres tall.")
    assert compared_in("In Sandholm it is 45 metres tall.", *passages, margin=only("31 metres")) == []


def test_what_is_computed_from_a_passage_is_not_contradicted() -> None:
    passage = "There were 24 adults and 18 children on the ferry, and a crew of 12."
    (wrong,) = compared_in("There were 43 people on the ferry.", passage, margin=5.0)
    assert wrong.contradiction.text == "43"
    assert compared_in("There were 42 people on the ferry.", passage, margin=5.0) == []
    assert compared_in("In total there were 43 people on the ferry.", passage, margin=5.0) == []
    passages = ("On Monday 24 guests came.", "On Tuesday 18 guests came.")
    assert compared_in("There were 42 guests in total.", *passages, margin=5.0) == []


@pytest.mark.parametrize(
    ("response", "follows"),
    [
        ("There were 42 people on the ferry.", ("42", "24 + 18", "computed")),
        ("The lighthouse of Marlow is about 61 metres tall.", ("61 metres", "61.4 metres", "rounded")),
        ("There were 24 adults on the ferry.", None),
        ("The gap between the two is 61 metres.", None),
    ],
)
def test_values_that_follow_lead_to_what_they_follow_from(
    response: str, follows: tuple[str, str, str] | None
) -> None:
    passages = (
        "There were 24 adults and 18 children on the ferry, and a crew of 12.",
        "The lighthouse of Marlow is 61.4 metres tall.",
    )
    found = computed_values(record_of(encoded_of(response, *passages)), response, "")
    assert [(one.text, one.words, one.kind) for one in found] == ([] if follows is None else [follows])
    for one in found:
        parts = [passages[one.passage][start:end] for start, end in one.parts]
        assert " + ".join(parts) == one.words


def test_columns_of_sentences_are_those_of_their_contradicted_values() -> None:
    def one(start: int, margin: float, similarity: float, support: float) -> Placed:
        return Placed(Contradiction(start, start + 2, "45", "31", 0, 0, 2, margin), similarity, support)

    known = [one(0, -3, 0.8, 0.0), one(5, 2, 0.4, 0.3), one(31, 99, 0.5, 0.5), one(19, 1, 0.9, 0.9)]
    rows = compared(known, [(0, 20), (20, 30), (30, 40)])
    # The one at 19 reaches into what follows, and is nobody's.
    np.testing.assert_allclose(rows, [[1, 2, 0.8, 1], [0, 0, 0, 0], [1, LARGEST, 0.5, 0]])
    assert compared([], [(0, 20)]).tolist() == [[0.0] * len(COMPARED)]
    low = compared([one(0, -99, 0.8, 0.0)], [(0, 20)])
    assert low.tolist() == [[1, -LARGEST, 0.8, 1]]


# Verdicts.


def marks_of(encoded: Encoded, *suspect: str) -> TokenMarks:
    """The tokens of some texts of the response are suspect."""
    spans = [(encoded.response.index(text), encoded.response.index(text) + len(text)) for text in suspect]
    inside = tokens_in(encoded.response_offsets, spans) if spans else np.zeros(len(encoded.response_ids))
    return TokenMarks(np.where(inside, 0.9, 0.1).astype(np.float32), 0.5)


def claims_of(encoded: Encoded, *suspect: str) -> Claims:
    """So are the sentences that have them."""
    places = [encoded.response.index(text) for text in suspect]
    probabilities = [
        0.8 if any(start <= place < end for place in places) else 0.2
        for start, end in sentences_in(encoded.response)
    ]
    return Claims(np.array(probabilities), ("a claim",) * len(probabilities))


def judgement_of(
    encoded: Encoded, *suspect: str, found: Sequence[Contradiction] = (), threshold: float = 0.5
) -> Judgement:
    claims = claims_of(encoded, *suspect)
    assessment = Assessment(
        float(claims.probabilities.max()),
        marks=marks_of(encoded, *suspect),
        claims=claims,
        contradictions=tuple(found),
    )
    return Judgement.of(encoded, assessment, threshold)


def verdict_of(encoded: Encoded, *suspect: str, **options: Any) -> Verdict:
    return judgement_of(encoded, *suspect, **options).verdict(Evidence(), Verdict)


BOTH = f"{TOO_TALL} It was built by Robert."
CONTRADICTED = only("31 metres")


def judged(*suspect: str, threshold: float = 0.5) -> Verdict:
    encoded = encoded_of(BOTH)
    return verdict_of(encoded, *suspect, found=found_of(encoded, CONTRADICTED), threshold=threshold)


def test_a_suspect_span_is_contradicted_or_unsupported() -> None:
    verdict = judged("45 metres", "Robert")
    assert [(one.text, one.kind) for one in verdict.spans] == [
        ("45 metres", "contradicted"),
        ("Robert", "unsupported"),
    ]
    assert [one.status for one in verdict.sentences] == ["contradicted", "unsupported"]
    assert words(verdict.contradictions) == [("45 metres", "31 metres", 0)]


@pytest.mark.parametrize("suspect", ["45", "metres", "is 45", "metres tall", LIGHTHOUSE[:5]])
def test_a_span_has_the_contradictions_that_it_shares_a_character_with(suspect: str) -> None:
    """And of a suspect sentence, the contradicted value is in a span, whatever its tokens are."""
    spans = judged(suspect).spans
    told = [one for one in spans if "45" in one.text or "metres" in one.text]
    assert len(told) == 1
    assert "45 metres" in told[0].text
    for span in spans:
        assert words(span.contradictions) == ([("45 metres", "31 metres", 0)] if span in told else [])
    assert any(suspect in span.text for span in spans)


def test_a_contradiction_makes_no_sentence_suspect() -> None:
    """What it tells is in the probability of its sentence."""
    for verdict in (judged(), judged("Robert"), judged("45 metres", "Robert", threshold=0.85)):
        assert verdict.sentences[0].status == "supported"
        assert verdict.contradictions == ()
        assert not any("45" in one.text for one in verdict.spans)
        assert verdict.hallucinated == any(one.suspect for one in verdict.sentences)


def test_without_relevance_there_is_none_in_a_verdict() -> None:
    verdict = judged("45 metres")
    assert verdict.token_relevance is None
    assert {(one.relevance, one.by_passage, one.passage) for one in verdict.sentences} == {(None, (), None)}
    assert (verdict.spans[0].relevance, verdict.spans[0].passage) == (None, None)


# Places in the passages as they were given.


def placed(example: Example, encoded: Encoded) -> tuple[str, str]:
    """What the passage has at the place of the one contradiction, and what it should have."""
    verdict = verdict_of(encoded, "45 metres", found=found_of(encoded, CONTRADICTED))
    ((one,),) = [span.contradictions for span in verdict.spans]
    return example.passages[one.passage][one.passage_start : one.passage_end], one.instead


@pytest.mark.parametrize("before", ["", "\n\n  ", '"', "(", "Once.\n"])
@pytest.mark.parametrize("after", ["", " \n\n", '"'])
def test_places_are_those_of_the_given_passage(before: str, after: str) -> None:
    example = example_of(TOO_TALL, FERRY, before + LIGHTHOUSE + after)
    there, expected = placed(example, encode(example, TOKENIZER))
    assert there == expected == "31 metres"


@pytest.mark.parametrize("before", ["", "\n\n  ", "Once.\n"])
def test_places_are_those_of_the_given_passage_where_the_prompt_was_stripped(before: str) -> None:
    passage = before + LIGHTHOUSE
    given = Example("", [passage], TOO_TALL, prompt=f"{passage}\n")
    there, expected = placed(given, encode(given, TOKENIZER))
    assert there == expected == "31 metres"


@pytest.mark.parametrize("before", ["", '"'])
def test_places_are_right_where_a_token_joins_the_passage_with_what_stands_before(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny, "CORPUS", [*CORPUS, *['passage 1:"The bridge" passage 2:"The river"'] * 50])
    tokenizer = tiny_tokenizer()
    assert ':"' in [tokenizer.decode([token]) for token in tokenizer(':"')["input_ids"]]
    example = example_of(TOO_TALL, FERRY, before + LIGHTHOUSE)
    there, expected = placed(example, encode(example, tokenizer))
    assert there == expected == "31 metres"


# Evidence: relevance of suspect sentences and of contradicted values.

RESPONSE = f"{TOO_TALL} Nobody knows why. {NO_DOGS}"


def explained(
    reader: Reader,
    *suspect: str,
    response: str = RESPONSE,
    margin: Margin = lambda _, text: 3.0 if text in ("31 metres", "may") else -5.0,
    threshold: float = 0.5,
) -> tuple[Verdict, Encoded]:
    """The verdict with the relevance that is pulled for it."""
    encoded = reader.encode(example_of(response))
    judgement = judgement_of(encoded, *suspect, found=found_of(encoded, margin), threshold=threshold)
    with relevance_mode(reader.model) as flow:
        by_sentence, contrastive = pull_evidence(flow, judgement, reader.tokenizer)
    return judgement.verdict(Evidence(by_sentence=by_sentence, contrastive=contrastive), Verdict), encoded


SUSPECT = ("45 metres", "may not")


@pytest.mark.parametrize(("suspect", "pass_"), [(SUSPECT, "push"), (SUSPECT[:1], "pull")])
def test_relevance_of_suspect_sentences_is_that_of_their_tokens(
    suspect: tuple[str, ...], pass_: str, tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tangents are pushed where they are fewer than the sentences and contradictions."""
    with monkeypatch.context() as without:
        without.delattr(Flow, "pull" if pass_ == "push" else "read")
        found, encoded = explained(tiny_reader, *suspect)
    pushed = attribute(tiny_reader, encoded, segments=True)
    first, between, last = found.sentences
    for one in (first, last)[: len(suspect)]:
        inside = tokens_in(encoded.response_offsets, [(one.start, one.end)])
        expected = pushed.by_segment[:, inside].mean(1)
        np.testing.assert_allclose(one.by_passage, expected[2:], rtol=1e-3, atol=1e-3)
        assert one.relevance == pytest.approx(float(expected.sum()), rel=1e-3, abs=1e-3)
        largest = int(np.argmax(one.by_passage))
        assert one.passage == (largest if one.by_passage[largest] > 0 else None)
    assert (between.relevance, between.by_passage, between.passage) == (None, (), None)


def contrast(reader: Reader, encoded: Encoded, one: Contradiction) -> float:
    """R(other value) - R(written) of the passage, by a push at the first token that differs."""
    other = encoded.response[: one.start] + one.instead + encoded.response[one.end :]
    ids = reader.tokenizer(other, add_special_tokens=False)["input_ids"]
    pairs = zip(ids, encoded.response_ids, strict=False)
    place = next(k for k, (new, old) in enumerate(pairs) if new != old)
    minus = [*encoded.response_ids]
    minus[place] = ids[place]
    with relevance_mode(reader.model, target=Target("response", tuple(minus))) as flow:
        return -float(flow.push(encoded, segment_weights(encoded))[2 + one.passage, place])


def test_contrastive_relevance_is_that_of_a_push_with_that_target(tiny_reader: Reader) -> None:
    """And a contradicted span rests on the passage that contradicts it."""
    found, encoded = explained(tiny_reader, *SUSPECT)
    assert [(one.kind, one.passage) for one in found.spans] == [("contradicted", 0), ("contradicted", 1)]
    told = [one for span in found.spans for one in span.contradictions]
    assert [one.text for one in told] == ["45 metres", "may not"]
    for one in told:
        expected = contrast(tiny_reader, encoded, one)
        assert abs(expected) > 1e-3
        assert one.relevance == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_an_unsupported_span_rests_on_the_passage_of_its_sentence(tiny_reader: Reader) -> None:
    verdict, _ = explained(tiny_reader, "Nobody")
    assert [one.kind for one in verdict.spans] == ["unsupported"]
    assert verdict.spans[0].passage == verdict.sentences[1].passage


def test_a_contradicted_value_in_a_sentence_that_is_not_suspect_has_no_evidence(tiny_reader: Reader) -> None:
    verdict, _ = explained(tiny_reader, "45 metres", threshold=0.85)
    assert not any(one.suspect or one.by_passage for one in verdict.sentences)
    assert verdict.spans == verdict.contradictions == ()
    some, _ = explained(tiny_reader, "may not")
    assert [bool(one.by_passage) for one in some.sentences] == [False, False, True]
    assert [(one.text, one.relevance is not None) for one in some.contradictions] == [("may not", True)]


def test_a_contradicted_value_of_several_words_is_marked_whole(tiny_reader: Reader) -> None:
    response = "The lighthouse was built by Robert Louis Stevenson himself."
    passages = ("The lighthouse was built by Ann Mary Lee herself.", FERRY)
    encoded = tiny_reader.encode(Example("What is known?", passages, response))
    start = response.index("Robert")
    one = Contradiction(start, start + 22, response[start : start + 22], "Ann Mary Lee", 0, 28, 40, 1.0)
    judgement = judgement_of(encoded, "Robert", "Stevenson", found=[one])
    with relevance_mode(tiny_reader.model) as flow:
        _, contrastive = pull_evidence(flow, judgement, tiny_reader.tokenizer)
    (span,) = judgement.verdict(Evidence(contrastive=contrastive), Verdict).spans
    assert span.text == one.text
    expected = pytest.approx(contrast(tiny_reader, encoded, one), rel=1e-3)
    assert span.contradictions[0].relevance == expected


ROOMS = [f"Room {100 + k} is on floor {k % 4 + 1}. It seats {20 + 3 * k} people." for k in range(30)]


@pytest.mark.parametrize("preferred", [2, 17])
def test_of_thirty_alike_that_of_which_the_response_speaks_contradicts(preferred: int) -> None:
    response = "Room 117 seats 91 people."
    compared = compare_answer(Passages("How many does room 117 seat?", ROOMS), response, [(0, len(response))])
    start, at = response.index("91"), ROOMS[preferred].index("seats") + 6
    found = Contradiction(
        start, start + 2, "91", ROOMS[preferred][at : at + 2], preferred, at, at + 2, margin=7.0
    )
    (named,) = of_their_slots([found], compared)
    assert (named.passage, named.instead) == (17, "71")
    assert ROOMS[17][named.passage_start : named.passage_end] == "71"
    assert named.margin == (7.0 if preferred == 17 else None), "of another value the margin is not known"


FARES = [
    "The Go fare costs 14 euros. A bag costs 30 euros, and a seat 8 euros.",
    "The Max fare costs 55 euros.",
]
OVEN = ["Bake the loaf at 170 °C for 50 minutes.", "Bake the rolls at 180 °C for 20 minutes."]


@pytest.mark.parametrize(
    ("passages", "response", "text", "preferred", "named"),
    [
        (FARES, "A bag costs 40 euros.", "40 euros", "55 euros", "30 euros"),
        (FARES, "A bag costs 40 euros.", "40 euros", "30 euros", "30 euros"),
        (OVEN, "Bake the loaf at 170 °F.", "170 °F", "180 °C", "170 °C"),
        (OVEN, "Bake the rolls at 170 °F.", "170 °F", "170 °C", "170 °C"),  # only the unit is wrong
    ],
)
def test_what_fits_the_slot_contradicts(
    passages: list[str], response: str, text: str, preferred: str, named: str
) -> None:
    compared = compare_answer(Passages("What must I know?", passages), response, [(0, len(response))])
    (passage,) = (k for k, other in enumerate(passages) if preferred in other)
    start, at = response.index(text), passages[passage].index(preferred)
    found = Contradiction(
        *(start, start + len(text), text, preferred, passage, at, at + len(preferred)), margin=1.0
    )
    (contradiction,) = of_their_slots([found], compared)
    assert contradiction.instead == named
    place = slice(contradiction.passage_start, contradiction.passage_end)
    assert passages[contradiction.passage][place] == named


def test_what_no_slot_has_stays() -> None:
    found = Contradiction(0, 4, "Room", "Hall", 0, 0, 4, margin=1.0)
    assert of_their_slots([found], []) == (found,)
