"""Token models: tables of records, what is learned of them, and the detector that is made of it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from lrp4rag.classifiers import Model, ensemble, trees
from lrp4rag.classifiers.decision import COMPARED, TOPS, top_mean
from lrp4rag.classifiers.ensemble import WINDOWS, Ensemble, Logistic, Stacker
from lrp4rag.classifiers.folder import CARD
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.features.plain import PlainTable, StateBlock
from lrp4rag.features.record import Record
from lrp4rag.features.units import sentence_numbers
from lrp4rag.training import token_folds
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_detector import fit_detector, reference_of
from lrp4rag.training.token_folds import fit_ensemble
from lrp4rag.training.tokens import Tokens, tokens_of
from lrp4rag.util.errors import InputError
from tests.features.records import random_record, without_tokens
from tests.training.stored import stored

BLOCKS = {"plain": PlainTable(("likelihoods",), ()), "state": StateBlock("around")}
TEXT = "All is well here now. Nothing of this is so at all."


def test_sentences_are_numbered_and_what_is_between_them_is_not() -> None:
    record = random_record(11, text="All is well here now. - Nothing of this is so.")
    numbers = sentence_numbers(record)
    assert numbers[:5].tolist() == [0] * 5
    assert sorted(set(numbers.tolist())) == [0, 1]
    assert (np.diff(numbers) >= 0).all()


def test_tokens_are_the_records_one_after_the_other() -> None:
    records = [random_record(12, seed, text=TEXT) for seed in range(3)]
    flags = [np.arange(12) == k for k in range(3)]
    tokens = Tokens.of(records, flags, np.ones(3, dtype=bool), np.array(["a", "b", "c"]), BLOCKS)
    assert tokens.owner.tolist() == [0] * 12 + [1] * 12 + [2] * 12
    assert np.flatnonzero(tokens.flags).tolist() == [0, 13, 26]
    assert tokens.sentence[::12].tolist() == [0, 2, 4]
    for k, record in enumerate(records):
        inside = tokens.within(np.array([k]))
        np.testing.assert_array_equal(tokens.blocks["plain"][inside], BLOCKS["plain"](record))
        np.testing.assert_allclose(tokens.blocks["state"][inside], BLOCKS["state"](record), rtol=1e-3)
    assert list(tokens.select(["state"]).blocks) == ["state"]
    assert tokens.stating.tolist() == [True] * 6
    assert tokens.compared.shape == (6, len(COMPARED))
    empty = without_tokens(records[0])
    with pytest.raises(InputError, match="without tokens"):
        Tokens.of([empty], flags[:1], np.ones(1, dtype=bool), np.array(["a"]), BLOCKS)


def test_claims_of_some_responses_are_those_that_the_detector_would_see() -> None:
    texts = (TEXT, "Hello there! All of it is well.", TEXT)
    records = [random_record(len(text.split(" ")), seed, text=text) for seed, text in enumerate(texts)]
    flags = [np.zeros(len(one), dtype=bool) for one in records]
    tokens = Tokens.of(records, flags, np.ones(3, dtype=bool), np.array(["a", "b", "c"]), BLOCKS)
    assert tokens.stating.tolist() == [True, True, False, True, True, True]
    draw = np.random.default_rng(0)
    alone, among = draw.normal(size=(2, len(tokens.flags)))
    for rows in ([0, 1, 2], [1], [1, 2]):
        inside = tokens.within(np.array(rows))
        columns, sentences, owner = tokens.claims_of(alone[inside], among[inside], inside)
        assert sentences.tolist() == [k for k in (0, 1, 3, 4, 5) if k // 2 in rows]
        assert owner.tolist() == [k // 2 for k in sentences]
        for row, number in zip(columns, sentences, strict=True):
            own = tokens.sentence == number
            highest = [top_mean(one[own], top) for one in (alone, among) for top in TOPS]
            np.testing.assert_allclose(row[: len(highest)], highest)
            assert not row[len(highest) :].any()
    part = tokens.take(np.array([1, 2]))
    inside = np.arange(len(part.flags))
    kept = tokens.within(np.array([1, 2]))
    found, expected = (
        part.claims_of(alone[kept], among[kept], inside),
        tokens.claims_of(alone[kept], among[kept], kept),
    )
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[2].tolist() == (expected[2] - 1).tolist()


@pytest.fixture(scope="module", autouse=True)
def _few_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_folds, "FOLDS", 2)
        patch.setattr(trees, "COUNT", 20)
        patch.setattr(ensemble, "EPOCHS", 10)
        yield


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Rows:
    return stored(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def records(rows: Rows) -> list[Record]:
    return list(rows.readings())


@pytest.fixture(scope="module")
def detector(rows: Rows) -> TokenModel:
    return fit_detector(rows, tokens_of(rows, BLOCKS), BLOCKS)


@pytest.fixture(scope="module")
def probabilities(records: list[Record], detector: TokenModel) -> np.ndarray:
    return detector.predict_proba(records)


def test_what_is_chosen_is_chosen_on_sources_that_were_not_learned_from(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_folds, "FOLDS", 3)
    monkeypatch.setattr(ensemble, "EPOCHS", 20)
    tokens = tokens_of(rows, {"plain": BLOCKS["plain"]})
    some = np.flatnonzero(np.arange(len(rows)) % 5 > 0)
    inside = tokens.within(some)
    _, _, fitted = fit_ensemble(tokens, some)
    assert fitted.scores.alone.shape == fitted.scores.among.shape == inside.shape
    assert roc_auc_score(tokens.flags[inside], fitted.scores.alone) > 0.85
    # Shuffled labels cannot be learned. A network scores the rows that it was trained on near 1; choosing the
    # epoch on forty positive tokens lifts chance by about a tenth.
    shuffled = np.random.default_rng(0).permutation(tokens.flags)
    _, _, nonsense = fit_ensemble(replace(tokens, flags=shuffled), some)
    assert 0.4 < roc_auc_score(shuffled[inside], nonsense.scores.alone) < 0.7


def test_it_judges_a_response_and_marks_what_is_hallucinated(rows, records, detector, probabilities) -> None:
    assert roc_auc_score(rows.labels, probabilities) > 0.9
    row = int(np.argmax(probabilities))
    verdict = detector.predict(records[row])
    assert verdict.probability == probabilities[row]
    assert verdict.hallucinated
    assert verdict.marks.probabilities.shape == (len(records[row]),)
    first = rows.examples[row].response.split(" ")[0]
    assert any(span.start == 0 and span.end >= len(first) for span in verdict.spans)
    assert 0 < verdict.spans[0].probability <= 1
    assert verdict.sentences[0].suspect
    assert verdict.sentences[0].status == "unsupported"
    # What moved it.
    reason = verdict.reasons[0]
    assert (reason.feature, reason.sentence) == ("best other", 0)  # the one that was planted
    assert reason.moved > 0
    assert reason.value > reason.faithful[2]
    assert not any(one.usual for one in verdict.reasons)
    calm = detector.predict(records[int(np.argmin(probabilities))])
    assert calm.reasons
    assert all(one.moved <= 0 for one in calm.reasons)


def test_a_response_is_flagged_where_a_sentence_of_it_is_and_nowhere_else(records, detector) -> None:
    for record in records:
        verdict = detector.predict(record)
        known = [one.probability for one in verdict.sentences]
        assert verdict.probability == max(known)
        assert verdict.hallucinated == any(one.suspect for one in verdict.sentences)
        assert [one.suspect for one in verdict.sentences] == [one >= verdict.threshold for one in known]
        for span in verdict.spans:
            (inside,) = [one for one in verdict.sentences if one.start <= span.start < one.end]
            assert inside.suspect
            assert span.end <= inside.end
        assert bool(verdict.spans) == verdict.hallucinated


def spoken(*sentences: str, seed: int = 0) -> Record:
    """Each word is as in the record of fewer sentences."""
    text = " ".join(sentences)
    words = len(text.split(" "))
    every, record = random_record(60, seed), random_record(words, seed, text)
    signals = {name: array[:words] for name, array in every.signals.items()}
    states = {"around": every.states["around"][:, : words + 1]}
    return replace(record, signals=signals, states=states)


AS_THEY_ARE = Stacker(
    Logistic(np.ones(1, dtype=np.float32), 0.0),
    Logistic(np.ones(2 * len(WINDOWS), dtype=np.float32) / len(WINDOWS), 0.0),
)
SPOKEN = (TEXT, "It is red.", "Nobody knows why this is so.", "Blue is the door.", "It was opened in 1874.")


@pytest.mark.parametrize("seed", range(4))
def test_what_is_added_never_makes_a_response_less_suspect(detector: TokenModel, seed: int) -> None:
    """And more suspect only where the added sentence is more suspect than all before; of these nothing
    changes."""
    reads = detector.input.model_copy(update={"blocks": {"state": StateBlock("around")}})
    ensemble = Ensemble({"state": detector.ensemble.networks["state"]}, AS_THEY_ARE)
    model = TokenModel(detector.card.model_copy(update={"input": reads}), ensemble)
    before, claims = 0.0, np.zeros(0)
    for count in range(1, len(SPOKEN) + 1):
        found = model.score(spoken(*SPOKEN[:count], seed=seed))
        highest = max([before, *found.claims.probabilities[len(claims) :]])
        assert found.probability == pytest.approx(highest, rel=1e-6)
        np.testing.assert_allclose(found.claims.probabilities[: len(claims)], claims, rtol=1e-6)
        before, claims = found.probability, found.claims.probabilities


def test_what_states_nothing_is_no_reason_to_call_a_response_hallucinated(detector) -> None:
    greeting = "Hello there!"
    found = detector.score(spoken(greeting, "Is it red?", TEXT))
    assert found.claims.stating == ("nothing", "an aside", "a claim", "a claim")
    assert found.probability == found.claims.probabilities[1:].max()
    alone = detector.score(spoken(greeting))
    assert alone.probability is None
    verdict = detector.predict(spoken(greeting))
    assert verdict.states_nothing
    assert verdict.hallucinated is None
    assert (verdict.spans, verdict.reasons) == ((), ())
    assert [one.status for one in verdict.sentences] == ["states nothing"]
    assert detector.predict_proba([spoken(greeting)]).tolist() == [0.0]


def test_the_card_holds_every_selection(detector: TokenModel) -> None:
    card = detector.card
    assert {"balanced", "one-in-ten", "high-precision", "high-recall"} == set(card.operating_points)
    assert card.threshold == card.operating_points["balanced"].threshold
    assert len(card.selections) == 8
    assert set(card.input.reading.shifts) == {"g1", "g2"}
    assert all(one.data and one.rule for one in card.selections)
    assert set(card.reference) == set(BLOCKS["plain"].features)
    assert card.reference["best other"].hallucinated[2] > card.reference["best other"].faithful[2]
    assert set(card.domain) >= {"response tokens", "prompt tokens"}


def test_operating_points_are_had_by_name_or_rate(records, detector: TokenModel) -> None:
    few = detector.at("high-precision").predict(records[0]).threshold
    assert few == detector.card.operating_points["high-precision"].threshold
    assert detector.at(0.01).card.threshold >= detector.at(0.3).card.threshold
    with pytest.raises(InputError, match="no operating point 'loud'; choose from balanced"):
        detector.at("loud")
    with pytest.raises(InputError, match="false-positive rate"):
        detector.at(1.5)


def test_no_verdict_on_what_is_unlike_the_training_data(detector: TokenModel) -> None:
    verdict = detector.predict(random_record(2))
    assert verdict.abstained
    assert verdict.hallucinated is None
    assert verdict.probability is not None
    assert "response tokens" in {one.facet for one in verdict.unlike}


def test_saved_and_loaded_it_is_the_same(records, detector, probabilities, tmp_path) -> None:
    loaded = Model.load(detector.save(tmp_path / "d"))
    np.testing.assert_allclose(loaded.predict_proba(records[:5]), probabilities[:5], rtol=1e-5)
    assert loaded.card.model_copy(update={"estimator_sha256": "", "sha256": ""}) == detector.card
    card = json.loads((tmp_path / "d" / CARD).read_text())
    assert card["input"]["blocks"]["state"]["part"] == "around"


def test_signals_that_are_missing_are_named(records, detector: TokenModel) -> None:
    for lacking, match in (({"signals": {}}, "features need"), ({"states": {}}, "hidden states")):
        with pytest.raises(InputError, match=match):
            detector.predict(replace(records[0], **lacking))


def test_reference_quantiles_are_of_sentence_means() -> None:
    values = np.array([1.0, 3, 10, 20, 5])
    found = reference_of(values, np.array([0, 0, 1, 1, -1]), np.array([0, 0, 1, 0, 1], dtype=bool))
    assert found.faithful == (2.0,) * 5
    assert found.hallucinated == (15.0,) * 5
