from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.training.folds import HONEST, PAPER, splits

# The pooled data: four generators answered each of 25 questions.
GROUPS = np.repeat([f"s{k}" for k in range(25)], 4)
GENERATORS = np.tile(["a", "b", "c", "d"], 25)
LABELS = np.random.default_rng(0).random(100) < 0.5
ALL = np.ones(100, dtype=bool)


def test_the_two_protocols_differ_as_documented():
    assert (HONEST.grouped, HONEST.nested, HONEST.leaks) == (True, True, "refused")
    assert (PAPER.grouped, PAPER.nested, PAPER.leaks) == (False, False, "counted")
    assert (PAPER.repeats, PAPER.folds, PAPER.mode, PAPER.lengths) == (1, 5, "zeros", (220,))
    assert (HONEST.repeats, HONEST.folds, HONEST.mode) == (3, 5, "interpolate")
    assert HONEST.scoring == "auroc"
    assert HONEST.words == (
        "5-fold cross-validation stratified by label and grouped by source, 3 repeats from seed 0"
    )
    assert PAPER.words == (
        "5-fold cross-validation stratified by label, sources not held out, seed 0, "
        "fixed settings, no calibration"
    )


@pytest.mark.parametrize("protocol", [HONEST, PAPER], ids=lambda protocol: protocol.name)
def test_every_row_is_judged_once_a_repeat_by_all_the_others_it_may_learn_from(protocol):
    made, _ = splits(protocol, LABELS, GROUPS, ALL, ALL)
    assert len(made) == protocol.repeats * 5
    for repeat in range(protocol.repeats):
        mine = [split for split in made if split.repeat == repeat]
        assert sorted(np.concatenate([split.test for split in mine])) == list(range(100))
    for split in made:
        assert sorted([*split.train, *split.test]) == list(range(100))
        # Stratified: each fold has about as many of each class.
        assert abs(LABELS[split.test].mean() - LABELS.mean()) < 0.15


def test_repeats_shuffle_otherwise_and_the_seed_decides():
    first, again = (splits(HONEST, LABELS, GROUPS, ALL, ALL)[0] for _ in range(2))
    for split, same in zip(first, again, strict=True):
        assert np.array_equal(split.test, same.test)
    assert not np.array_equal(first[0].test, first[5].test)
    second_repeat = splits(replace(HONEST, seed=1, repeats=1), LABELS, GROUPS, ALL, ALL)[0]
    assert np.array_equal(second_repeat[0].test, first[5].test)


def test_grouped_folds_leak_nothing():
    made, leaks = splits(HONEST, LABELS, GROUPS, ALL, ALL)
    assert leaks == 0
    for split in made:
        assert not set(GROUPS[split.train]) & set(GROUPS[split.test])


def test_sources_on_both_sides_are_refused_unless_the_protocol_counts_them():
    with pytest.raises(InputError, match=r"rows would be judged by a model that learned from their source"):
        splits(replace(PAPER, leaks="refused"), LABELS, GROUPS, ALL, ALL)
    made, leaks = splits(PAPER, LABELS, GROUPS, ALL, ALL)
    counted = set()
    for split in made:
        counted |= {row for row in split.test if GROUPS[row] in set(GROUPS[split.train])}
    assert leaks == len(counted) > 90


def test_plain_folds_over_one_row_a_source_leak_nothing():
    one = GENERATORS == "a"
    labels, everything = LABELS[one], np.ones(25, dtype=bool)
    _, leaks = splits(replace(PAPER, leaks="refused"), labels, GROUPS[one], everything, everything)
    assert leaks == 0


def test_transfer_holds_out_the_sources_it_judges():
    train, test = GENERATORS != "b", GENERATORS == "b"
    made, leaks = splits(HONEST, LABELS, GROUPS, train, test)
    assert leaks == 0
    judged = np.concatenate([split.test for split in made[:5]])
    assert sorted(judged) == list(np.flatnonzero(test))
    for split in made:
        assert set(GENERATORS[split.train]) == {"a", "c", "d"}
        assert set(GENERATORS[split.test]) == {"b"}
        assert not set(GROUPS[split.train]) & set(GROUPS[split.test])
        # Nothing else is held out.
        assert len(split.train) == 3 * (25 - len(split.test))


def test_transfer_without_grouping_is_a_leak_too():
    train, test = GENERATORS == "a", GENERATORS == "b"
    with pytest.raises(InputError, match="25 rows would be judged"):
        splits(replace(PAPER, leaks="refused"), LABELS, GROUPS, train, test)
    assert splits(PAPER, LABELS, GROUPS, train, test)[1] == 25
