"""From tokens to a verdict: pooling, thresholds and sentences, on numbers that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import f1_score, precision_recall_curve, roc_auc_score

from lrp4rag.classifiers.decision import (
    TOPS,
    best_threshold,
    choose_rule,
    in_marked_sentences,
    summaries,
    summary,
    top_mean,
    top_means,
)


def planted(rows: int = 80, seed: int = 0):
    """Log odds, flags, owners, labels and sentences, two a response; odd responses have a run."""
    draw = np.random.default_rng(seed)
    log_odds, flags, owner, sentence = [], [], [], []
    for k in range(rows):
        length = int(draw.integers(20, 40))
        flag = np.zeros(length, dtype=bool)
        if k % 2:
            flag[2:8] = True
        log_odds.append(draw.normal(-2, 1, length) + 2.5 * flag)
        flags.append(flag)
        owner.append(np.full(length, k))
        sentence.append(2 * k + (np.arange(length) >= 10))
    labels = np.arange(rows) % 2 == 1
    return *(np.concatenate(one) for one in (log_odds, flags, owner)), labels, np.concatenate(sentence)


NOBODY = np.full(80, "")


def test_the_highest_are_averaged() -> None:
    scores = np.array([1.0, 5, 3, 2, 8, 8])
    assert top_mean(scores[:4], 2) == 4
    assert top_mean(scores[:4], 9) == 2.75
    owner = np.array([0, 0, 0, 0, 2, 2])
    np.testing.assert_allclose(top_means(scores, owner, np.array([0, 2]), 1), [5, 8])
    with pytest.raises(ValueError, match="no tokens"):
        top_means(scores, owner, np.array([1]), 1)


def test_a_response_is_summed_up_by_its_highest_tokens_and_its_length() -> None:
    scores = np.array([1.0, 5, 3, 2, 8, 8])
    np.testing.assert_allclose(summary(scores[:4]), [5, 10 / 3, 11 / 4, 11 / 4, np.log(4)])
    every = summaries(scores, np.array([0, 0, 0, 0, 1, 1]), 2)
    np.testing.assert_allclose(every, [summary(scores[:4]), summary(scores[4:])])


def test_long_faithful_responses_are_flagged_as_rarely_as_short_ones() -> None:
    """The highest of many scores are higher, though nothing is wrong; a fault is one token."""
    draw = np.random.default_rng(0)
    lengths, labels = draw.integers(10, 300, 1500), draw.random(1500) < 0.5
    owner = np.repeat(np.arange(1500), lengths)
    flags = np.zeros(len(owner), dtype=bool)
    flags[np.searchsorted(owner, np.flatnonzero(labels))] = True
    log_odds = draw.normal(-3, 1, len(owner)) + 3.5 * flags
    nobody = np.full(1500, "")
    rule = choose_rule(log_odds, log_odds, flags, owner, labels, owner, nobody)

    def gap(scores: np.ndarray) -> float:
        flagged = scores[~labels] >= np.median(scores)
        long, short = lengths[~labels] > 200, lengths[~labels] < 100
        return float(flagged[long].mean() - flagged[short].mean())

    assert gap(top_means(log_odds, owner, np.arange(1500), 1)) > 0.2
    assert abs(gap(rule.probabilities(log_odds, owner, nobody))) < 0.12


def test_each_number_is_chosen_by_what_it_is_for() -> None:
    log_odds, flags, owner, labels, sentence = planted()
    rule = choose_rule(log_odds, log_odds, flags, owner, labels, sentence, NOBODY)
    assert len(rule.weights) == len(TOPS) + 1
    probabilities = rule.probabilities(log_odds, owner, NOBODY)
    auroc = {top: roc_auc_score(labels, top_means(log_odds, owner, np.arange(80), top)) for top in TOPS}
    assert roc_auc_score(labels, probabilities) > max(auroc.values()) - 0.02
    assert abs(probabilities.mean() - labels.mean()) < 0.02
    assert rule.probability(log_odds[owner == 3]) == pytest.approx(probabilities[3])
    precision, recall, _ = precision_recall_curve(flags, log_odds)
    best = (2 * precision * recall / (precision + recall)).max()
    assert f1_score(flags, expit(log_odds) >= rule.token_threshold) == pytest.approx(best)
    # Sentences are marked whole.
    marked = in_marked_sentences(expit(log_odds), sentence, rule.sentence_top, rule.sentence_threshold)
    numbers = range(sentence.max() + 1)
    truth, some, whole = (
        [find(one[sentence == number]) for number in numbers]
        for find, one in ((np.any, flags), (np.any, marked), (np.all, marked))
    )
    assert some == whole
    assert f1_score(truth, whole) > 0.8


def test_a_generator_that_hallucinates_more_shifts_its_responses() -> None:
    log_odds, flags, owner, _, sentence = planted(400)
    draw = np.random.default_rng(1)
    generators = np.array(["a", "b", "c", ""])[np.arange(400) % 4]
    # Labels that tokens say nothing of: only the generators differ.
    rates = {"a": 0.8, "b": 0.3, "c": 0.5, "": 0.5}
    labels = draw.random(400) < np.array([rates[name] for name in generators])
    rule = choose_rule(log_odds, log_odds, flags, owner, labels, sentence, generators)
    probabilities = rule.probabilities(log_odds, owner, generators)
    assert list(rule.shifts) == ["a", "b", "c"]
    for name in "ab":
        theirs = generators == name
        assert abs(probabilities[theirs].mean() - labels[theirs].mean()) < 0.05
    names = ("a", "b", "another", None)
    more, less, unknown, plain = (rule.probability(log_odds[owner == 4], name) for name in names)
    assert more == pytest.approx(probabilities[4])
    assert more > plain == unknown > less


def test_few_responses_shift_little_and_one_generator_does_not() -> None:
    log_odds, flags, owner, labels, sentence = planted()
    generators = np.where(np.arange(80) < 4, "rare", "often")
    labels_ = labels | (generators == "rare")
    shifts = choose_rule(log_odds, log_odds, flags, owner, labels_, sentence, generators).shifts
    assert 0 < shifts["rare"] < 1
    one = np.full(80, "often")
    assert choose_rule(log_odds, log_odds, flags, owner, labels, sentence, one).shifts == {}


def test_where_a_response_is_from_does_not_tell_its_class() -> None:
    """One set has few hallucinated responses, the other many; scores say the same in both."""
    log_odds, flags, owner, labels, sentence = planted(400)
    draw = np.random.default_rng(2)
    sets = np.where(draw.random(400) < np.where(labels, 0.8, 0.2), "many", "few")
    one = choose_rule(log_odds, log_odds, flags, owner, labels, sentence, np.full(400, ""))
    both = choose_rule(log_odds, log_odds, flags, owner, labels, sentence, np.full(400, ""), sets)
    np.testing.assert_allclose(both.weights, one.weights, rtol=0.3)
    probabilities = both.probabilities(log_odds, owner, np.full(400, ""))
    for name in ("few", "many"):
        inside = sets == name
        halves = [probabilities[inside & (labels == label)].mean() for label in (True, False)]
        assert np.mean(halves) == pytest.approx(0.5, abs=0.06)


def test_tokens_between_sentences_are_in_none() -> None:
    sentence = np.array([0, 0, -1, 1])
    marked = in_marked_sentences(np.array([0.9, 0.1, 0.9, 0.2]), sentence, top=1, threshold=0.6)
    assert marked.tolist() == [True, True, False, False]


def test_the_threshold_maximises_f1() -> None:
    draw = np.random.default_rng(0)
    flags = draw.random(200) < 0.3
    scores = np.round(draw.random(200) * 0.5 + 0.3 * flags, 2)  # with ties
    best = best_threshold(scores, flags)
    values = [f1_score(flags, scores >= threshold) for threshold in np.unique(scores)]
    assert f1_score(flags, scores >= best) == pytest.approx(max(values))
    assert best_threshold(scores, np.zeros(200, dtype=bool)) == np.inf


def test_shifts_of_generators_are_learned_with_the_weights() -> None:
    """One generator writes long responses and hallucinates more. Length tells nothing else, and is not made
    to tell it."""
    draw = np.random.default_rng(2)
    generators = np.array(["terse", "wordy"])[np.arange(2000) % 2]
    wordy = generators == "wordy"
    lengths = np.where(wordy, draw.integers(60, 120, 2000), draw.integers(20, 60, 2000))
    labels = draw.random(2000) < np.where(wordy, 0.8, 0.2)
    owner = np.repeat(np.arange(2000), lengths)
    log_odds = draw.normal(-3, 1, len(owner))
    rule = choose_rule(log_odds, log_odds, labels[owner], owner, labels, owner, generators)
    assert rule.shifts["wordy"] - rule.shifts["terse"] > 1.5
    probabilities = rule.probabilities(log_odds, owner, generators)
    for short, name in ((wordy & (lengths < 75), "wordy"), (~wordy & (lengths > 50), "terse")):
        assert abs(probabilities[short].mean() - labels[short].mean()) < 0.06, name
