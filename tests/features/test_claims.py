"""What is told of the tokens of a value, on scores that can be compared by eye."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, log1p

import numpy as np
import pytest

from lrp4rag.features.claims import FEATURES, KINDS, LARGEST, NAMES, claim_features
from lrp4rag.features.contrast import claims, context_of
from lrp4rag.features.record import Record
from lrp4rag.features.replay import PlainReplay
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import Encoded
from tests.features.test_context import worded
from tests.features.test_contrast import encoded

QUESTION = "How many weeks?"
PASSAGES = ("Leave lasts 16 weeks. Rest lasts 30 weeks.", "You may not smoke. You must pay.")
RESPONSE = "Leave lasts 18 weeks. You may smoke. Rest lasts 30 weeks."
ONE, TWO, NONE = log(5 / 1.5), log(5 / 2.5), log(5 / 0.5)  # rarity of a word in 1, 2, 0 of 4 places
WRONG = (ONE + 2 * TWO) / (ONE + 2 * TWO + NONE)  # similarity of the first sentence and its place
NEAR = (0.5 * ONE + TWO) / (ONE + TWO)  # "Rest", near the place, and "lasts", in it
# "16 weeks" is likelier by itself and makes the rest less likely, "30 weeks" is unlikelier; "may not" wins.
PLACES = ((12, 20, 0, 2, 6, 1), (12, 20, 1, 2, 6, 2), (26, 29, 0, 5, 7, 2))
SCORES = ((-1.0, -3.5, -1.0), (-5.0, -1.0, -2.0), (-0.5, -0.25, -0.25))

UNSUPPORTED = {
    "value": 1,
    "quantity": 1,
    "support": 0,
    "rival": 1,
    "rival's lead": 1,
    "unsupported": 1,
    "rivals": log1p(2),
    "value asked": 1,
    "scored": 1,
    "margin": -0.5,
    "value margin": 1,
    "tail margin": 1,
    "share": 1 / (1 + exp(-0.5) + exp(-2)),
    "best's lead": 1,
    "margin a token": 0,
    "best's tail": -1.5,
    "alternatives": 2,
    "sentence's similarity": WRONG,
}
MODAL = {
    "value": 1,
    "polarity": 1,
    "rival": 1,
    "rival's lead": 1,
    "unsupported": 1,
    "rivals": log1p(2),  # "may not" and "must"
    "scored": 1,
    "margin": 1.25,
    "value margin": 0.5,
    "tail margin": 0.75,
    "share": 1 / (1 + exp(1.25)),
    "margin a token": 0.75,
    "best's tail": 0.75,
    "alternatives": 1,
    "opposite polarity": 1,
    "polarity's lead": 1,
    "sentence's similarity": 1,
}
SUPPORTED = {
    "value": 1,
    "quantity": 1,
    "support": 1,
    "rival": NEAR,
    "rival's lead": NEAR - 1,
    "rivals": log1p(1),
    "value asked": 1,
    "same number": 1,
    "sentence's similarity": 1,
    "support of it": 1,
}


def record_of(one: Encoded, places=(), scores=(), logprob=None) -> Record:
    signals = {
        "logprob": -np.ones(len(one.response_ids)) if logprob is None else np.asarray(logprob),
        "places": np.array(places, dtype=np.int32).reshape(-1, 6),
        "scores": np.array(scores, dtype=np.float32).reshape(-1, 3),
    }
    return Record(one, {}, signals)


def columns(record: Record) -> dict[str, list[float]]:
    found = claim_features(record)
    assert found.shape == (len(FEATURES), len(record))
    assert np.isfinite(found).all()
    return dict(zip(NAMES, found.tolist(), strict=True))


def by_hand() -> dict[str, list[float]]:
    return columns(record_of(worded(QUESTION, PASSAGES, RESPONSE), PLACES, SCORES))


def of_value(response: str, passages=PASSAGES, places=(), scores=(), token: int = 0) -> dict[str, float]:
    """Of one token of a response."""
    found = columns(record_of(worded(QUESTION, passages, response), places, scores))
    return {name: values[token] for name, values in found.items()}


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [((2, 3), UNSUPPORTED), ((5,), MODAL), ((9, 10), SUPPORTED)],
    ids=["unsupported", "modal", "supported"],
)
def test_each_feature_by_hand(tokens: tuple[int, ...], expected: dict[str, float]) -> None:
    found = by_hand()
    for k in tokens:
        told = {name: found[name][k] for name in NAMES}
        assert told == pytest.approx(dict.fromkeys(NAMES, 0) | expected, abs=3e-6)


def test_other_tokens_have_none() -> None:
    for values in by_hand().values():
        assert not any(values[token] for token in (0, 1, 4, 6, 7, 8))


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ("30 weeks", "quantity"),
        ("May 2021", "date"),
        ("noon", "time"),
        ("weekly", "period"),
        ("see Turin", "name"),
        ("cannot", "polarity"),
    ],
)
def test_each_kind_has_a_column_of_its_own(response: str, kind: str) -> None:
    found = of_value(response, token=-1)
    assert [name for name in KINDS if found[name]] == [kind]


@pytest.mark.parametrize("word", ["may not", "mayn't", "cannot"])
def test_a_not_is_told(word: str) -> None:
    found = of_value(f"You {word} smoke.", token=1)
    assert (found["negated"], found["same polarity"]) == (1, pytest.approx(1, abs=1e-5))


def test_a_date_may_have_the_number_of_a_quantity() -> None:
    found = of_value("Leave began in 2016", ("Leave began in 2016 places.",), token=3)
    assert (found["date"], found["same number"]) == (1, pytest.approx(1, abs=1e-5))


def test_another_unit_may_have_the_same_number() -> None:
    found = of_value("Leave lasts 16 euros.", token=2)
    assert (found["unsupported"], found["same number"] > 0) == (1, True)


def test_a_value_without_a_number_has_none() -> None:
    found = of_value("Twice half of Leave lasts", token=0)
    assert (found["quantity"], found["same number"]) == (1, 0)


@pytest.mark.parametrize("size", [1e3, -1e3])
def test_margins_are_clipped(size: float) -> None:
    found = of_value(RESPONSE, places=PLACES[:1], scores=[(size, 2 * size, size)], token=2)
    for name in ("margin", "value margin", "tail margin", "margin a token", "best's tail"):
        assert found[name] == np.sign(size) * LARGEST
    assert found["share"] == pytest.approx(1 if size < 0 else 0, abs=1e-12)


def test_the_best_alternative_is_that_with_the_largest_margin() -> None:
    """Not the one of the most similar place."""
    better = [(-9.0, -9.0, -9.0), (-1.0, -1.5, -1.0)]
    found = of_value(RESPONSE, places=PLACES[:2], scores=better, token=2)
    assert (found["margin"], found["best's tail"]) == (1.5, 0.5)
    assert 0 < found["best's lead"] < 1


def one_token(response: str) -> Encoded:
    return replace(
        worded(QUESTION, PASSAGES, response), response_ids=(1,), response_offsets=((0, len(response)),)
    )


@pytest.mark.parametrize("response", ["may 30 weeks", "30 weeks may", "may 30 weeks must"])
def test_a_token_of_a_polarity_word_and_another_value_is_that_ones(response: str) -> None:
    found = columns(record_of(one_token(response)))
    assert (found["quantity"], found["polarity"]) == ([1], [0])


def test_a_token_of_two_polarity_words_is_the_firsts() -> None:
    one = one_token("cannot must")
    assert [claim.value.text for claim in claims(one, context_of(one))] == ["cannot", "must"]
    assert columns(record_of(one))["negated"] == [1]


@pytest.mark.parametrize("response", ["", "hello", "!", "\U0001f44d"])
def test_a_response_without_values_has_zeros(response: str) -> None:
    found = claim_features(record_of(worded(QUESTION, PASSAGES, response)))
    assert not found.any()


@pytest.mark.parametrize("passages", [("", ""), ("!",), ("\U0001f44d",)])
def test_passages_without_values_support_none(passages: tuple[str, ...]) -> None:
    found = of_value(RESPONSE, passages, token=2)
    assert (found["value"], found["unsupported"], found["rivals"], found["alternatives"]) == (1, 1, 0, 0)


@pytest.mark.parametrize("response", ["7", "not", "Turin", "18 \U0001f44d", "\U0001f44d 18 weeks, not 16"])
def test_what_a_reader_reads_is_finite(tiny_reader: Reader, response: str) -> None:
    found = columns(PlainReplay(tiny_reader)(encoded(response)))
    assert max(found["value"]) == 1
