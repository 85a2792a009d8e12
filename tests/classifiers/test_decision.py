"""From tokens to claims and responses: pooling, weights and thresholds, on numbers that can be checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit
from sklearn.metrics import f1_score, roc_auc_score

from lrp4rag.classifiers.decision import (
    COLUMNS,
    COMPARED,
    LOWEST,
    TOPS,
    Claimed,
    DecisionRule,
    best_threshold,
    choose_rule,
    claim_columns,
    top_mean,
)

RULE = DecisionRule(
    weights=(0.5, 0.2, -0.1, 0.3, 0.4, 0.6, 1.0, 0.05, -0.2, 0.7), offset=0.5, token_threshold=0.4
)


def compared_with(rows: int) -> np.ndarray:
    """Of sentences without a contradicted value."""
    return np.zeros((rows, len(COMPARED)))


def planted(rows: int = 80, seed: int = 0, sentences: int = 2):
    """Columns of claims, which of them are wrong, their responses and the labels of these; in odd responses
    the first claim has a run of tokens."""
    draw = np.random.default_rng(seed)
    log_odds, sentence = [], []
    for number in range(rows * sentences):
        length = int(draw.integers(8, 20))
        values = draw.normal(-2, 1, length)
        if number % (2 * sentences) == sentences:
            values[2:7] += 2.5
        log_odds.append(values)
        sentence.append(np.full(length, number))
    scores = np.concatenate(log_odds)
    columns = claim_columns(scores, scores, np.concatenate(sentence), compared_with(rows * sentences))
    wrong = np.arange(rows * sentences) % (2 * sentences) == sentences
    return columns, wrong, np.repeat(np.arange(rows), sentences), np.arange(rows) % 2 == 1


NOBODY = np.full(80, "")


# Columns of claims.


def test_the_highest_are_averaged() -> None:
    scores = np.array([1.0, 5, 3, 2])
    assert top_mean(scores, 2) == 4
    assert top_mean(scores, 9) == 2.75
    with pytest.raises(ValueError, match="no tokens"):
        top_mean(scores[:0], 1)


def test_a_claim_is_summed_up_by_its_highest_tokens_and_its_values() -> None:
    alone, among = np.array([1.0, 5, 3, 2, 8, 7]), np.array([0.0, 1, 2, 3, -1, -2])
    known = np.arange(8.0).reshape(2, 4)
    found = claim_columns(alone, among, np.array([0, 0, 0, 0, 1, 1]), known)
    assert found.shape == (2, len(COLUMNS)) == (2, 2 * len(TOPS) + len(COMPARED))
    np.testing.assert_allclose(found[0], [5, 10 / 3, 11 / 4, 3, 2, 1.5, 0, 1, 2, 3])
    np.testing.assert_allclose(found[1], [8, 7.5, 7.5, -1, -1.5, -1.5, 4, 5, 6, 7])


def test_tokens_between_sentences_are_in_none_and_a_sentence_without_tokens_is_zeros() -> None:
    scores = np.array([9.0, 1, 9, 3, 9])
    found = claim_columns(scores, -scores, np.array([-1, 0, -1, 2, -1]), np.ones((4, 4)))
    np.testing.assert_array_equal(found[:, 0], [1, 0, 3, 0])
    np.testing.assert_array_equal(found[:, len(TOPS)], [-1, 0, -3, 0])
    assert not found[[1, 3]].any()
    nothing = claim_columns(scores, scores, np.full(5, -1), np.ones((2, 4)))
    assert nothing.shape == (2, len(COLUMNS))
    assert not nothing.any()
    assert claim_columns(scores[:0], scores[:0], np.array([], dtype=int), compared_with(0)).shape[0] == 0


# A response is as suspect as its most suspect claim.


def test_claims_have_log_odds_of_their_columns_and_a_response_those_of_the_highest() -> None:
    columns, _, owner, _ = planted(20)
    expected = columns @ np.array(RULE.weights) + 0.5
    claims = RULE.claims(Claimed(columns))
    np.testing.assert_allclose(logit(claims), expected)
    responses = RULE.responses(Claimed(columns), owner, NOBODY[:20])
    np.testing.assert_allclose(responses, claims.reshape(20, 2).max(1), rtol=1e-12)


def test_a_response_that_claims_nothing_has_the_probability_zero() -> None:
    columns, _, owner, _ = planted(4)
    found = RULE.responses(Claimed(columns[:4]), owner[:4] * 2, np.array(["a", "", "b", ""]))
    assert found[[1, 3]].tolist() == [0, 0]
    assert (found[[0, 2]] > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_what_is_added_never_makes_a_response_less_suspect(seed: int) -> None:
    """And more suspect only where it is more suspect than all that is there."""
    draw = np.random.default_rng(seed)
    columns = draw.normal(size=(12, len(COLUMNS))) * 2
    rule = replace(RULE, weights=tuple(draw.normal(size=len(COLUMNS)).tolist()))
    claims = rule.claims(Claimed(columns))
    before = 0.0
    for count in range(1, len(columns) + 1):
        (now,) = rule.responses(Claimed(columns[:count]), np.zeros(count, dtype=int), NOBODY[:1])
        added = claims[count - 1]
        assert now >= before
        assert (now > before) == (added > before * (1 + 1e-12))
        assert now == pytest.approx(max(before, added), rel=1e-12)
        before = now
    # In whatever order.
    backwards = rule.responses(Claimed(columns[::-1]), np.zeros(len(columns), dtype=int), NOBODY[:1])
    assert backwards[0] == pytest.approx(before, rel=1e-12)


def test_tokens_of_other_sentences_change_nothing_of_a_claim() -> None:
    draw = np.random.default_rng(0)
    scores, sentence = draw.normal(size=40), np.repeat([0, 1, 2, 3], 10)
    whole = claim_columns(scores, scores, sentence, compared_with(4))
    for count in (1, 2, 3):
        cut = sentence < count
        part = claim_columns(scores[cut], scores[cut], sentence[cut], compared_with(count))
        np.testing.assert_array_equal(part, whole[:count])


# How the rule is chosen.


def faithful_and_faulty(seed: int, responses: int = 1500):
    """Responses of 1 to 12 claims of 25 tokens, half of them with a fault of one token in one claim."""
    draw = np.random.default_rng(seed)
    counts, labels = draw.integers(1, 13, responses), draw.random(responses) < 0.5
    owner = np.repeat(np.arange(responses), counts)
    wrong = np.zeros(len(owner), dtype=bool)
    wrong[np.searchsorted(owner, np.flatnonzero(labels))] = True
    sentence = np.repeat(np.arange(len(owner)), 25)
    log_odds = draw.normal(-3, 1, len(sentence))
    log_odds[np.arange(len(owner))[wrong] * 25] += 5.0
    columns = claim_columns(log_odds, log_odds, sentence, compared_with(len(owner)))
    return columns, wrong, owner, labels, counts


def test_long_faithful_responses_are_flagged_about_as_rarely_as_calibration_asks() -> None:
    """A long response has more claims to be wrong in: each is judged as in a short one, and at a threshold
    that calls few of the faithful responses wrong, few of the long ones are."""
    nobody = np.full(1500, "")
    columns, wrong, owner, labels, _ = faithful_and_faulty(0)
    rule = choose_rule(Claimed(columns), wrong, owner, labels, 0.5, nobody)
    columns, _, owner, labels, counts = faithful_and_faulty(1)
    probabilities = rule.responses(Claimed(columns), owner, nobody)
    claims = rule.claims(Claimed(columns))
    long, short = counts > 8, counts < 5
    for threshold in (0.5, 0.7):
        by_claim = (claims[~labels[owner]] >= threshold).mean()
        for some in (long, short):
            flagged = (probabilities[~labels & some] >= threshold).mean()
            expected = 1 - (1 - by_claim) ** counts[~labels & some]
            assert flagged == pytest.approx(expected.mean(), abs=0.03)
        assert (probabilities[~labels & long] >= threshold).mean() < 0.12
    # A claim of a long response is suspect as often as one of a short response.
    rates = [(claims[~labels[owner] & some[owner]] >= 0.5).mean() for some in (long, short)]
    assert rates[0] == pytest.approx(rates[1], abs=0.01)


def test_each_number_is_chosen_by_what_it_is_for() -> None:
    columns, wrong, owner, labels = planted()
    rule = choose_rule(Claimed(columns), wrong, owner, labels, 0.37, NOBODY)
    assert len(rule.weights) == len(COLUMNS)
    assert rule.token_threshold == 0.37
    assert rule.shifts == {}
    probabilities = rule.responses(Claimed(columns), owner, NOBODY)
    highest = columns[:, : len(TOPS)].reshape(80, 2, len(TOPS)).max(1)
    auroc = [roc_auc_score(labels, highest[:, k]) for k in range(len(TOPS))]
    assert roc_auc_score(labels, probabilities) > max(auroc) - 0.02
    assert abs(probabilities.mean() - labels.mean()) < 0.02
    # Claims are told apart by the same numbers, at the same threshold.
    claims = rule.claims(Claimed(columns))
    cut = best_threshold(probabilities, labels)
    assert f1_score(labels, probabilities >= cut) > 0.9
    assert f1_score(wrong, claims >= cut) > 0.9
    flagged = np.zeros(80, dtype=bool)
    np.logical_or.at(flagged, owner, claims >= cut)
    np.testing.assert_array_equal(flagged, probabilities >= cut)


def test_contradicted_values_count_as_much_as_they_tell() -> None:
    draw = np.random.default_rng(3)
    columns = np.concatenate([draw.normal(-2, 1, (600, 6)), np.zeros((600, 4))], axis=1)
    wrong = draw.random(600) < 0.3
    told = draw.random(600) < np.where(wrong, 0.8, 0.1)
    columns[told, 6:] = [1.0, 4.0, 0.6, 1.0]
    rule = choose_rule(Claimed(columns), wrong, np.arange(600), wrong, 0.5, np.full(600, ""))
    found = rule.claims(Claimed(columns))
    for some in (told, ~told):
        assert found[some].mean() == pytest.approx(wrong[some].mean(), abs=0.03)


def test_a_suspect_claim_never_speaks_for_a_response() -> None:
    """Where labels say the opposite of the annotated claims, claims tell nothing of a response."""
    columns, wrong, owner, labels = planted()
    rule = choose_rule(Claimed(columns), wrong, owner, ~labels, 0.5, NOBODY)
    assert rule.weights == (0.0,) * len(COLUMNS)
    assert len(set(rule.responses(Claimed(columns), owner, NOBODY))) == 1


def test_responses_that_claim_nothing_are_left_out_of_the_regression() -> None:
    columns, wrong, owner, labels = planted()
    silent = choose_rule(
        Claimed(columns), wrong, owner, np.append(labels, [True] * 20), 0.5, np.full(100, "")
    )
    alone = choose_rule(Claimed(columns), wrong, owner, labels, 0.5, NOBODY)
    assert silent == alone


def test_a_generator_that_hallucinates_more_shifts_its_responses() -> None:
    columns, _, owner, _ = planted(400)
    draw = np.random.default_rng(1)
    generators = np.array(["a", "b", "c", ""])[np.arange(400) % 4]
    # Labels that tokens say nothing of: only the generators differ.
    rates = {"a": 0.8, "b": 0.3, "c": 0.5, "": 0.5}
    labels = draw.random(400) < np.array([rates[name] for name in generators])
    rule = choose_rule(Claimed(columns), labels[owner], owner, labels, 0.5, generators)
    probabilities = rule.responses(Claimed(columns), owner, generators)
    assert list(rule.shifts) == ["a", "b", "c"]
    for name in "ab":
        theirs = generators == name
        assert abs(probabilities[theirs].mean() - labels[theirs].mean()) < 0.05
    names = ("a", "b", "another", None)
    more, less, unknown, plain = (rule.claims(Claimed(columns[owner == 4]), name).max() for name in names)
    assert more == pytest.approx(probabilities[4])
    assert more > plain == unknown > less


def test_few_responses_shift_little_and_one_generator_does_not() -> None:
    columns, wrong, owner, labels = planted()
    generators = np.where(np.arange(80) < 4, "rare", "often")
    labels_ = labels | (generators == "rare")
    shifts = choose_rule(Claimed(columns), wrong, owner, labels_, 0.5, generators).shifts
    assert 0 < shifts["rare"] < 1
    one = np.full(80, "often")
    assert choose_rule(Claimed(columns), wrong, owner, labels, 0.5, one).shifts == {}


def test_where_a_response_is_from_does_not_tell_its_class() -> None:
    """One set has few hallucinated responses, the other many; scores say the same in both."""
    columns, wrong, owner, labels = planted(400)
    nobody = np.full(400, "")
    draw = np.random.default_rng(2)
    # Half as clear, so that weights are not those of perfectly separated classes.
    columns = columns + draw.normal(0, 1, columns.shape[:1])[:, None] * (np.arange(len(COLUMNS)) < 6)
    sets = np.where(draw.random(400) < np.where(labels, 0.8, 0.2), "many", "few")
    one = choose_rule(Claimed(columns), wrong, owner, labels, 0.5, nobody)
    both = choose_rule(Claimed(columns), wrong, owner, labels, 0.5, nobody, sets)
    single, several = (columns @ np.array(rule.weights) for rule in (one, both))
    assert np.corrcoef(single, several)[0, 1] > 0.98
    assert several.std() == pytest.approx(single.std(), rel=0.3)
    probabilities = both.responses(Claimed(columns), owner, nobody)
    for name in ("few", "many"):
        inside = sets == name
        halves = [probabilities[inside & (labels == label)].mean() for label in (True, False)]
        assert np.mean(halves) == pytest.approx(0.5, abs=0.06)
    # One set is as none.
    assert choose_rule(Claimed(columns), wrong, owner, labels, 0.5, nobody, np.full(400, "one")) == one


def test_shifts_of_generators_are_learned_with_the_slope() -> None:
    """One generator writes long responses and hallucinates more, which no token tells. That is not taken for
    something that the highest of more claims tells."""
    draw = np.random.default_rng(2)
    generators = np.array(["terse", "wordy"])[np.arange(2000) % 2]
    wordy = generators == "wordy"
    counts = np.where(wordy, draw.integers(4, 9, 2000), draw.integers(1, 4, 2000))
    labels = draw.random(2000) < np.where(wordy, 0.8, 0.2)
    owner = np.repeat(np.arange(2000), counts)
    sentence = np.repeat(np.arange(len(owner)), 15)
    log_odds = draw.normal(-3, 1, len(sentence))
    columns = claim_columns(log_odds, log_odds, sentence, compared_with(len(owner)))
    rule = choose_rule(Claimed(columns), labels[owner], owner, labels, 0.5, generators)
    assert rule.shifts["wordy"] - rule.shifts["terse"] > 1.5
    probabilities = rule.responses(Claimed(columns), owner, generators)
    for some, name in ((wordy & (counts < 6), "wordy"), (~wordy & (counts > 2), "terse")):
        assert abs(probabilities[some].mean() - labels[some].mean()) < 0.06, name


def test_the_threshold_maximises_f1() -> None:
    draw = np.random.default_rng(0)
    flags = draw.random(200) < 0.3
    scores = np.round(draw.random(200) * 0.5 + 0.3 * flags, 2)  # with ties
    best = best_threshold(scores, flags)
    values = [f1_score(flags, scores >= threshold) for threshold in np.unique(scores)]
    assert f1_score(flags, scores >= best) == pytest.approx(max(values))
    assert best_threshold(scores, np.zeros(200, dtype=bool)) == np.inf


# Alarms of single kinds of faults, and trees, beside the words of a claim.


def test_alarms_weigh_in_what_a_claim_has_in_all() -> None:
    draw = np.random.default_rng(0)
    labels = draw.random(600) < 0.5
    columns, owner, nobody = draw.normal(size=(600, len(COLUMNS))), np.arange(600), np.full(600, "")
    suspicion = np.where(draw.random(600) < 0.3, -np.inf, draw.normal(size=600) + 4.0 * labels)
    claims = Claimed(columns, {"value": suspicion})
    rule = choose_rule(claims, labels, owner, labels, 0.5, nobody)
    assert rule.alarm_weights["value"] > 0.05
    assert rule.tree_weight == 0
    found, some = rule.claims(claims), np.isfinite(suspicion)
    assert roc_auc_score(labels[some], found[some]) > 0.85
    # A claim without a value is as one whose value is least suspect.
    least = Claimed(columns, {"value": np.where(some, suspicion, LOWEST)})
    np.testing.assert_array_equal(rule.claims(least), found)


def test_trees_decide_alone_where_they_tell_more_than_weights() -> None:
    columns, wrong, owner, labels = planted()
    draw = np.random.default_rng(4)
    telling, noise = np.where(wrong, 2.0, -2.0) + draw.normal(0, 1, 160), draw.normal(size=160)
    unclear = draw.normal(size=columns.shape)
    rule = choose_rule(Claimed(unclear, {}, telling), wrong, owner, labels, 0.5, NOBODY)
    assert rule.weights == (0.0,) * len(COLUMNS)
    assert rule.tree_weight > 0
    log_odds = logit(rule.claims(Claimed(unclear, {}, telling)))
    np.testing.assert_allclose(log_odds, rule.tree_weight * telling + rule.offset)
    plain = choose_rule(Claimed(columns), wrong, owner, labels, 0.5, NOBODY)
    assert choose_rule(Claimed(columns, {}, noise), wrong, owner, labels, 0.5, NOBODY) == plain
