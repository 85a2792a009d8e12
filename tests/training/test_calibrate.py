"""A model's log odds on the comparer's scale, and figures of what its folds did not learn from."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.reader.comparer import Pair
from lrp4rag.training.calibrate import LOG_ODDS, Numbers, figures, fit_scales
from lrp4rag.training.labelled_pairs import LabelledPair, Told
from lrp4rag.util.errors import InputError

KINDS: tuple[tuple[Told, str], ...] = (
    ("e", ""),
    ("e", ""),
    ("e", ""),
    ("c", "number"),
    ("n", "invention"),
    ("not_e", "condition"),
)


def labelled(count: int = 600) -> list[LabelledPair]:
    """Half of the sentences are right; a source has six of them."""
    return [
        LabelledPair(Pair("", "", str(k)), label, (), f"s{k // 6}", "everyday", kind)
        for k in range(count)
        for label, kind in [KINDS[k % 6]]
    ]


def scores(
    pairs: list[LabelledPair], slope: float = 1.0, offset: float = 0.0, seed: int = 0
) -> dict[str, Numbers]:
    noise = np.random.default_rng(seed)
    clean = np.array([2.0 * one.wrong - 1 for one in pairs]) + noise.normal(0, 1.5, len(pairs))
    return {name: slope * clean + offset + k for k, name in enumerate(LOG_ODDS)}


def test_a_comparer_on_another_scale_is_put_back_on_its_own():
    pairs = labelled()
    scales = fit_scales(scores(pairs, 0.25, 3.0), scores(pairs), pairs)
    for k, scale in enumerate((scales.unsupported, scales.contradicted, scales.words)):
        assert scale.slope == pytest.approx(4, rel=1e-3)
        assert scale.offset == pytest.approx(k - 4 * (3 + k), abs=0.05)


def random(pairs: list[LabelledPair]) -> dict[str, Numbers]:
    """Of a model that tells nothing: its scores fall by chance."""
    noise = np.random.default_rng(1).normal(size=len(pairs))
    wrong = np.array([one.wrong for one in pairs])
    noise[wrong] -= noise[wrong].mean() - noise[~wrong].mean() + 0.01
    return dict.fromkeys(LOG_ODDS, noise)


@pytest.mark.parametrize(
    ("own", "cause"), [("opposite", "--labels"), ("random", "another model"), ("few", "--every")]
)
def test_a_model_that_cannot_be_calibrated_is_refused_by_its_cause(own: str, cause: str):
    pairs = labelled(120)
    others = scores(pairs, -1.0 if own == "few" else 1.0)
    given = {"opposite": scores(pairs, -1.0), "random": random(pairs), "few": scores(pairs)}[own]
    with pytest.raises(InputError, match=cause) as refused:
        fit_scales(given, others, pairs)
    others_named = {"--labels", "another model", "--every"} - {cause}
    assert not any(name in str(refused.value) for name in others_named)


def test_only_known_contradictions_tell_of_contradictions():
    pairs = labelled()
    own, others = scores(pairs), scores(pairs)
    unknown = np.array([one.label in ("n", "not_e") for one in pairs])
    fitted = fit_scales(own, others, pairs)
    own["contradicted"] = np.where(unknown, 1e3, own["contradicted"])
    assert fit_scales(own, others, pairs) == fitted


def test_decisions_and_calibration_change_and_the_order_does_not():
    pairs = labelled()
    metrics, kinds = figures(scores(pairs, 0.25, 3.0), scores(pairs), pairs, resamples=50)
    value = {name: {key: one.value or 0.0 for key, one in row.items()} for name, row in metrics.items()}
    assert value["before"]["balanced_accuracy"] < 0.6
    assert value["after"]["balanced_accuracy"] == pytest.approx(
        value["the comparer"]["balanced_accuracy"], abs=0.02
    )
    assert value["after"]["ece"] < value["before"]["ece"]
    assert value["after"]["auroc"] == pytest.approx(value["before"]["auroc"], abs=0.005)
    assert set(kinds) == {"number", "invention", "condition"}
    for row in kinds.values():
        assert row["model"] == row["the comparer"]  # the same order
        low, share, high = row["model"].low, row["model"].value, row["model"].high
        assert 0.06 < low <= share <= high < 1


def test_too_few_sources_are_refused():
    pairs = labelled(18)
    with pytest.raises(InputError, match="sources"):
        figures(scores(pairs), scores(pairs), pairs, resamples=10)
