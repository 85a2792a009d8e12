"""The committee: what its members learn, how they vote, and that nothing is lost on disk."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from lrp4rag.classifiers.committee import Committee, Member, fit_committee


def planted(rows: int, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Made up where the product of two features is high; another block has noise only."""
    draw = np.random.default_rng(seed)
    inputs = draw.normal(size=(rows, 4)).astype(np.float32)
    flags = inputs[:, 0] + 2 * inputs[:, 1] * inputs[:, 2] > 0.5
    return {"told": inputs, "noise": draw.normal(size=(rows, 6)).astype(np.float16)}, flags


@pytest.fixture(scope="module")
def fitted() -> tuple[Committee, np.ndarray]:
    blocks, flags = planted(3000)
    return fit_committee(blocks, flags, list(KFold(3).split(flags)))


def test_it_learns_a_product_that_no_line_shows(fitted) -> None:
    committee, outside = fitted
    blocks, flags = planted(1000, seed=1)
    assert roc_auc_score(planted(3000)[1], outside) > 0.9
    log_odds = committee.log_odds(blocks)
    assert roc_auc_score(flags, log_odds) > 0.9
    assert abs((1 / (1 + np.exp(-log_odds))).mean() - flags.mean()) < 0.06


def test_votes_are_weighted_by_what_they_told_of_others(fitted) -> None:
    committee, _ = fitted
    assert committee.weights["told"] > 0.5 > abs(committee.weights["noise"])
    blocks, _ = planted(50, seed=2)
    expected = committee.bias + sum(
        committee.weights[name] * np.mean([one.log_odds(table) for one in committee.members[name]], axis=0)
        for name, table in blocks.items()
    )
    np.testing.assert_allclose(committee.log_odds(blocks), expected)


def test_what_is_said_of_a_row_comes_from_members_that_did_not_learn_from_it() -> None:
    blocks, flags = planted(600)
    folds = list(KFold(3).split(flags))
    committee, outside = fit_committee(blocks, flags, folds)
    for k, (_, held) in enumerate(folds):
        said = committee.bias + sum(
            committee.weights[name] * committee.members[name][k].log_odds(table[held])
            for name, table in blocks.items()
        )
        np.testing.assert_allclose(outside[held], said, rtol=1e-6)


def test_every_array_comes_back(fitted) -> None:
    committee, _ = fitted
    blocks, _ = planted(50, seed=2)
    again = Committee.of(committee.arrays())
    np.testing.assert_allclose(again.log_odds(blocks), committee.log_odds(blocks), rtol=1e-6)
    assert list(again.members) == ["told", "noise"]
    assert len(again.members["told"]) == 3
    with pytest.raises(KeyError):
        Committee.of({key: array for key, array in committee.arrays().items() if "mean" not in key})


def test_a_feature_far_outside_says_no_more_than_ten_deviations() -> None:
    blocks, flags = planted(600)
    rows = np.arange(600)
    member = Member.fit(blocks["told"], flags, rows[:400], rows[400:], seed=0)
    edge = member.mean + 10 * member.scale
    np.testing.assert_allclose(member.log_odds(edge[None]), member.log_odds((edge + 1e6)[None]), rtol=1e-4)


def test_the_same_seed_gives_the_same_committee() -> None:
    blocks, flags = planted(300)
    folds = list(KFold(2).split(flags))
    first, second = (fit_committee(blocks, flags, folds, seed=3)[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_column_that_never_changes_is_no_trouble() -> None:
    blocks, flags = planted(300)
    still = {"told": np.concatenate([blocks["told"], np.ones((300, 1), np.float32)], 1)}
    _, outside = fit_committee(still, flags, list(KFold(2).split(flags)))
    assert np.isfinite(outside).all()
