"""The ensemble: what its networks learn, how they are stacked, and that nothing is lost on disk."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from lrp4rag.classifiers import ensemble
from lrp4rag.classifiers.ensemble import Ensemble, Network, Stacker, TokenScores, fit_folds, with_neighbours

EVEN = np.ones(3000)
ONE = np.zeros(50, dtype=int)
"""The numbers of the tokens' sentence, where there is one."""


def planted(rows: int, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Hallucinated where the product of two features is high; another block has noise only."""
    draw = np.random.default_rng(seed)
    inputs = draw.normal(size=(rows, 4)).astype(np.float32)
    flags = inputs[:, 0] + 2 * inputs[:, 1] * inputs[:, 2] > 0.5
    return {"signal": inputs, "noise": draw.normal(size=(rows, 6)).astype(np.float16)}, flags


def fit_ensemble(blocks, flags, folds, owner, seed=0) -> tuple[Ensemble, TokenScores]:
    """Of responses of one sentence."""
    fitted = {
        name: fit_folds(Network.fit, table, flags, np.ones(len(flags)), folds, seed)
        for name, table in blocks.items()
    }
    outside = np.stack([scores for _, scores in fitted.values()], axis=1)
    stacker = Stacker.fit(outside, flags, owner, owner)
    networks = {name: networks for name, (networks, _) in fitted.items()}
    return Ensemble(networks, stacker), stacker(outside, owner, owner)


@pytest.fixture(scope="module")
def fitted() -> tuple[Ensemble, TokenScores]:
    blocks, flags = planted(1500)
    return fit_ensemble(blocks, flags, list(KFold(2).split(flags)), np.arange(1500) // 30)


@pytest.fixture
def _few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it does not matter how much is learned."""
    monkeypatch.setattr(ensemble, "EPOCHS", 3)


few_epochs = pytest.mark.usefixtures("_few_epochs")


def test_it_learns_a_product_that_no_linear_model_does(fitted) -> None:
    ensemble, outside = fitted
    blocks, flags = planted(1000, seed=1)
    assert roc_auc_score(planted(1500)[1], outside.alone) > 0.9
    log_odds = ensemble(blocks, np.zeros(1000, dtype=int)).alone
    assert roc_auc_score(flags, log_odds) > 0.9
    assert abs(expit(log_odds).mean() - flags.mean()) < 0.06


@few_epochs
def test_of_too_many_rows_some_are_drawn_and_flagged_ones_first(monkeypatch) -> None:
    blocks, flags = planted(3000)
    rows = np.arange(1500)
    monkeypatch.setattr(ensemble, "MOST_CELLS", 4 * 400)
    drawn = ensemble._drawn(flags, rows, 400, seed=0)
    assert len(drawn) == len(set(drawn)) == 400
    assert set(drawn) <= set(rows)
    assert (np.diff(drawn) > 0).all()
    assert flags[drawn].sum() == 200
    few = np.zeros(1500, dtype=bool)
    few[[3, 900]] = True
    assert {3, 900} <= set(ensemble._drawn(few, rows, 400, seed=0))
    most = np.arange(1500) >= 100
    assert len(ensemble._drawn(most, rows, 400, seed=0)) == 400
    network = Network.fit(blocks["signal"], flags, EVEN, rows, np.arange(1500, 3000), 0)
    alone = Network.fit(
        blocks["signal"], flags, EVEN, drawn, ensemble._drawn(flags, np.arange(1500, 3000), 400, 0), 0
    )
    np.testing.assert_array_equal(network.mean, alone.mean)
    np.testing.assert_array_equal(network.log_odds(blocks["signal"]), alone.log_odds(blocks["signal"]))


def test_blocks_are_weighted_by_what_they_say_of_other_tokens(fitted) -> None:
    ensemble, _ = fitted
    assert ensemble.weight("signal") > 0.5 > abs(ensemble.weight("noise"))
    blocks, _ = planted(50, seed=2)
    expected = ensemble.stacker.alone.bias + sum(
        ensemble.weight(name) * np.mean([one.log_odds(table) for one in ensemble.networks[name]], axis=0)
        for name, table in blocks.items()
    )
    np.testing.assert_allclose(ensemble(blocks, ONE).alone, expected, rtol=1e-6)


def test_scores_of_a_row_are_by_networks_that_did_not_learn_from_it(fitted) -> None:
    ensemble, outside = fitted
    blocks, flags = planted(1500)
    for k, (_, held) in enumerate(KFold(2).split(flags)):
        said = ensemble.stacker.alone.bias + sum(
            ensemble.weight(name) * ensemble.networks[name][k].log_odds(table[held])
            for name, table in blocks.items()
        )
        np.testing.assert_allclose(outside.alone[held], said, rtol=1e-6)


def test_neighbours_are_those_of_the_same_response() -> None:
    scores = np.arange(12.0)[:, None] - 6
    owner = np.array([0] * 5 + [3] * 7)
    found = with_neighbours(scores, owner, owner)
    assert found.shape == (12, 6)
    np.testing.assert_array_equal(found[:, 0], scores[:, 0])
    np.testing.assert_allclose(found[:, 1], expit(scores[:, 0]))
    np.testing.assert_allclose(found[[0, 4], 2], -4)  # nine tokens reach over all five
    np.testing.assert_allclose(found[5, 2], scores[5:10].mean())
    np.testing.assert_allclose(found[5:, 4], scores[5:].mean())


def test_neighbours_are_those_up_to_the_end_of_the_sentence() -> None:
    """Those of sentences before are there, whatever comes after the sentence."""
    draw = np.random.default_rng(0)
    scores, sentence = draw.normal(size=(30, 2)), np.repeat([4, 5, 6], 10)
    whole = with_neighbours(scores, np.zeros(30, dtype=int), sentence)
    for end in (10, 20):
        cut = with_neighbours(scores[:end], np.zeros(end, dtype=int), sentence[:end])
        np.testing.assert_array_equal(cut, whole[:end])
    nine, forty = whole[:, 4:6], whole[:, 8:10]
    np.testing.assert_allclose(nine[9], scores[5:10].mean(0))
    np.testing.assert_allclose(nine[10], scores[6:15].mean(0))
    np.testing.assert_allclose(forty[[10, 19]], np.tile(scores[:20].mean(0), (2, 1)))
    # A token between sentences: a response that ended before it would not have it.
    whole = with_neighbours(scores[:12], np.zeros(12, dtype=int), np.array([0] * 5 + [-1] * 2 + [1] * 5))
    np.testing.assert_array_equal(with_neighbours(scores[:5], *np.zeros((2, 5), dtype=int)), whole[:5])


@few_epochs
def test_runs_of_hallucinated_tokens_are_found_better_among_their_neighbours() -> None:
    draw = np.random.default_rng(0)
    flags = np.tile(np.arange(40) < 10, 30)
    inputs = (draw.normal(size=(1200, 2)) + 0.7 * flags[:, None]).astype(np.float32)
    folds = list(KFold(3).split(flags))
    _, outside = fit_ensemble({"noisy": inputs}, flags, folds, np.arange(1200) // 40)
    assert roc_auc_score(flags, outside.among) > roc_auc_score(flags, outside.alone) + 0.05


def test_every_array_comes_back(fitted) -> None:
    ensemble, _ = fitted
    blocks, _ = planted(50, seed=2)
    again = Ensemble.of(ensemble.arrays(), list(blocks))
    for kind in ("alone", "among"):
        found, expected = (getattr(one(blocks, ONE), kind) for one in (again, ensemble))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert {name: len(networks) for name, networks in again.networks.items()} == {"signal": 2, "noise": 2}


@few_epochs
def test_a_feature_far_outside_says_no_more_than_ten_deviations() -> None:
    blocks, flags = planted(600)
    rows = np.arange(600)
    network = Network.fit(blocks["signal"], flags, EVEN, rows[:400], rows[400:], seed=0)
    edge = network.mean + 10 * network.scale
    np.testing.assert_allclose(network.log_odds(edge[None]), network.log_odds((edge + 1e6)[None]), rtol=1e-4)


@few_epochs
def test_the_same_seed_gives_the_same_ensemble_and_a_column_that_never_changes_is_no_trouble() -> None:
    blocks, flags = planted(300)
    still = {"signal": np.concatenate([blocks["signal"], np.ones((300, 1), np.float32)], 1)}
    folds, owner = list(KFold(2).split(flags)), np.zeros(300, dtype=int)
    first, second = (fit_ensemble(still, flags, folds, owner, seed=3)[1] for _ in range(2))
    assert np.isfinite(first.among).all()
    np.testing.assert_array_equal(first.among, second.among)
