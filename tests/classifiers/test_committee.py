"""The committee: what its members learn, how they vote, and that nothing is lost on disk."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from lrp4rag.classifiers.committee import Committee, Count, Judged, Member, fit_members, with_neighbours


def planted(rows: int, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Made up where the product of two features is high; another block has noise only."""
    draw = np.random.default_rng(seed)
    inputs = draw.normal(size=(rows, 4)).astype(np.float32)
    flags = inputs[:, 0] + 2 * inputs[:, 1] * inputs[:, 2] > 0.5
    return {"told": inputs, "noise": draw.normal(size=(rows, 6)).astype(np.float16)}, flags


def fit_committee(blocks, flags, folds, owner, seed=0) -> tuple[Committee, Judged]:
    fitted = {name: fit_members(Member.fit, table, flags, folds, seed) for name, table in blocks.items()}
    outside = np.stack([votes for _, votes in fitted.values()], axis=1)
    count = Count.fit(outside, flags, owner)
    return Committee({name: members for name, (members, _) in fitted.items()}, count), count(outside, owner)


@pytest.fixture(scope="module")
def fitted() -> tuple[Committee, Judged]:
    blocks, flags = planted(3000)
    return fit_committee(blocks, flags, list(KFold(3).split(flags)), np.arange(3000) // 30)


def test_it_learns_a_product_that_no_line_shows(fitted) -> None:
    committee, outside = fitted
    blocks, flags = planted(1000, seed=1)
    assert roc_auc_score(planted(3000)[1], outside.alone) > 0.9
    log_odds = committee.judge(blocks).alone
    assert roc_auc_score(flags, log_odds) > 0.9
    assert abs((1 / (1 + np.exp(-log_odds))).mean() - flags.mean()) < 0.06


def test_votes_are_weighted_by_what_they_told_of_others(fitted) -> None:
    committee, _ = fitted
    assert committee.weight("told") > 0.5 > abs(committee.weight("noise"))
    blocks, _ = planted(50, seed=2)
    expected = committee.count.alone.bias + sum(
        committee.weight(name) * np.mean([one.log_odds(table) for one in committee.members[name]], axis=0)
        for name, table in blocks.items()
    )
    np.testing.assert_allclose(committee.judge(blocks).alone, expected, rtol=1e-6)


def test_what_is_said_of_a_row_comes_from_members_that_did_not_learn_from_it() -> None:
    blocks, flags = planted(600)
    folds = list(KFold(3).split(flags))
    committee, outside = fit_committee(blocks, flags, folds, np.zeros(600, dtype=int))
    for k, (_, held) in enumerate(folds):
        said = committee.count.alone.bias + sum(
            committee.weight(name) * committee.members[name][k].log_odds(table[held])
            for name, table in blocks.items()
        )
        np.testing.assert_allclose(outside.alone[held], said, rtol=1e-6)


def test_neighbours_are_those_of_the_same_response() -> None:
    votes = np.arange(12.0)[:, None] - 6
    owner = np.array([0] * 5 + [3] * 7)
    found = with_neighbours(votes, owner)
    assert found.shape == (12, 6)
    np.testing.assert_array_equal(found[:, 0], votes[:, 0])
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-votes[:, 0])))
    np.testing.assert_allclose(found[[0, 4], 2], -4)  # nine tokens reach over all five
    np.testing.assert_allclose(found[5, 2], votes[5:10].mean())
    np.testing.assert_allclose(found[5:, 4], votes[5:].mean())


def test_made_up_runs_are_told_better_among_their_neighbours() -> None:
    draw = np.random.default_rng(0)
    flags = np.tile(np.arange(40) < 10, 60)
    inputs = (draw.normal(size=(2400, 2)) + 0.7 * flags[:, None]).astype(np.float32)
    folds = list(KFold(3).split(flags))
    _, outside = fit_committee({"noisy": inputs}, flags, folds, np.arange(2400) // 40)
    assert roc_auc_score(flags, outside.among) > roc_auc_score(flags, outside.alone) + 0.05


def test_every_array_comes_back(fitted) -> None:
    committee, _ = fitted
    blocks, _ = planted(50, seed=2)
    again = Committee.of(committee.arrays())
    for kind in ("alone", "among"):
        found, expected = (getattr(one.judge(blocks), kind) for one in (again, committee))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
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
    owner = np.zeros(300, dtype=int)
    first, second = (fit_committee(blocks, flags, folds, owner, seed=3)[1] for _ in range(2))
    np.testing.assert_array_equal(first.among, second.among)


def test_a_column_that_never_changes_is_no_trouble() -> None:
    blocks, flags = planted(300)
    still = {"told": np.concatenate([blocks["told"], np.ones((300, 1), np.float32)], 1)}
    _, outside = fit_committee(still, flags, list(KFold(2).split(flags)), np.zeros(300, dtype=int))
    assert np.isfinite(outside.among).all()
