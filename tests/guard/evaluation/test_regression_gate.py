"""What the gate lets pass, what it stops, and what it says of the rest."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.classifiers.card import Interval
from lrp4rag.guard.evaluation.regression_gate import compare, paired, state_of
from lrp4rag.util.errors import InputError
from tests.guard.evaluation.results import result, results, saved

HOW = {"detector": "default"}


def gate(now, before, **options):
    return compare(now, saved(before), HOW, **{"max_drop": 0.05, "resamples": 400, **options})


def test_the_same_results_pass_with_no_doubt() -> None:
    found = gate(results(12), results(12))
    assert (found.failed, found.open, found.made_with) == ((), (), {})
    assert {one.drop.value for one in found.changes.values()} == {0.0}
    assert found.sources == 12


def test_what_is_worse_by_more_than_chance_fails_and_names_its_examples() -> None:
    found = gate(results(wrong=8), results())
    assert {"recall", "f1", "accuracy", "balanced_accuracy", "auroc", "sentence_f1", "span_f1"} <= set(
        found.failed
    )
    assert "precision" not in found.failed
    assert found.changes["recall"].drop.value == pytest.approx(0.4)
    assert (len(found.newly_wrong), found.newly_right) == (8, ())
    assert found.changes["served"].state == found.changes["faithfulness"].state == "not gated"
    assert gate(results(), results(wrong=8)).failed == ()


def test_a_small_drop_of_many_is_no_reason_to_stop() -> None:
    found = gate(results(2000, wrong=20), results(2000))
    assert found.changes["recall"].drop.value == pytest.approx(0.02)
    assert found.changes["recall"].drop.low > 0
    assert (found.failed, found.open) == ((), ())


def test_fewer_verdicts_are_a_drop_and_verdicts_are_compared_where_both_have_one() -> None:
    """Who gives no verdict on what is hard must not seem better."""
    before = results(wrong=8)
    now = [result(one.id, one.hallucinated, None if not one.right else one.flagged) for one in before]
    found = gate(now, before)
    assert found.failed == ("with_verdict",)
    assert found.changes["recall"].drop.value == 0
    assert len(found.lost) == 8


def test_more_that_is_withheld_or_wrongly_served_is_a_drop() -> None:
    harder = [
        one.model_copy(update={"action": "withhold"}) if k % 4 == 0 else one
        for k, one in enumerate(results())
    ]
    assert gate(harder, results()).failed == ("faithful_withheld",)
    softer = [one.model_copy(update={"action": "mark"}) for one in results()]
    found = gate(softer, results())
    assert found.failed == ("hallucinated_served",)
    assert found.changes["hallucinated_served"].now == 0.5
    assert found.changes["hallucinated_served"].drop.value == 0.5


def test_only_the_measures_that_are_asked_for_can_fail() -> None:
    assert gate(results(wrong=8), results(), gated=["precision"]).failed == ()
    assert gate(results(wrong=8), results(), gated=["recall"]).failed == ("recall",)
    for name in ("served", "speed"):
        with pytest.raises(InputError, match=f"no measure '{name}'"):
            gate(results(), results(), gated=[name])


def test_examples_are_paired_by_id_and_texts_whatever_their_order() -> None:
    before = [*results(6), result("gone", True, True)]
    now = [
        result("new", False, False),
        *reversed(results(6)),
    ]
    now[1] = now[1].model_copy(update={"judged": "another"})
    found = paired(now, before)
    assert [one.id for one in found.results] == [one.id for one in found.before] == list("43210")
    assert (found.only_now, found.only_before, found.other_texts) == (("new",), ("gone",), ("5",))
    with pytest.raises(InputError, match="is in both"):
        gate([result("new", False, False)], results(6))


def test_a_corrected_label_is_no_drop() -> None:
    """Both are measured by the labels of now; the label was wrong all the time."""
    before = results(12)
    now = [one.model_copy(update={"labels": ()}) if one.id == "11" else one for one in results(12)]
    found = gate(now, before)
    assert found.pairs.relabelled == ("11",)
    assert found.changes["precision"].before == found.changes["precision"].now < 1
    assert (found.failed, found.open) == ((), ())


def test_sources_are_drawn_whole() -> None:
    """Twenty answers to one question are one piece of evidence, not twenty."""
    before = [one.model_copy(update={"source": str(int(one.id) % 4)}) for one in results(40)]
    now = [one.model_copy(update={"source": str(int(one.id) % 4)}) for one in results(40, wrong=8)]
    found = gate(now, before)
    assert found.sources == 4
    alone = gate(results(40, wrong=8), results(40))
    drops = [one.changes["accuracy"].drop for one in (found, alone)]
    assert drops[0].value == drops[1].value
    one = [one.model_copy(update={"source": "s"}) for one in now]
    single = gate(one, [row.model_copy(update={"source": "s"}) for row in before])
    assert single.changes["recall"].drop.low is None
    assert (single.failed, "recall" in single.open) == ((), True)


def test_what_is_not_defined_is_not_gated() -> None:
    faithful = [one for one in results(20) if not one.hallucinated]
    found = gate(faithful, faithful)
    assert {name for name, one in found.changes.items() if one.state == "undefined"} >= {
        "auroc",
        "balanced_accuracy",
        "recall",
        "precision",
    }
    assert found.changes["accuracy"].state == "passes"
    with pytest.raises(InputError, match="is defined here: auroc"):
        gate(faithful, faithful, gated=["auroc"])


@pytest.mark.parametrize(("hallucinated", "fails"), [(1, False), (2, False), (6, True)])
def test_a_few_hallucinated_examples_are_no_certainty(hallucinated, fails) -> None:
    """All draws that have one at all have the same few."""
    rows = [(k, k < hallucinated) for k in range(40)]
    before = [result(k, label, label) for k, label in rows]
    now = [result(k, label, False) for k, label in rows]
    found = gate(now, before, gated=["recall"])
    assert found.changes["recall"].drop.value == 1
    assert bool(found.failed) == fails


@pytest.mark.parametrize(
    ("value", "low", "high", "state"),
    [
        (0.1, 0.02, 0.2, "fails"),
        (0.1, 0.0, 0.2, "not ruled out"),
        (0.1, -0.02, 0.2, "not ruled out"),
        (0.04, 0.02, 0.06, "not ruled out"),
        (0.04, 0.02, 0.05, "passes"),
        (1.0 - 0.95, 0.02, 1.0 - 0.95, "passes"),
        (-0.2, -0.3, -0.1, "passes"),
        (0.1, None, None, "not ruled out"),
        (None, None, None, "undefined"),
    ],
)
def test_the_rule(value, low, high, state) -> None:
    assert state_of(Interval(value=value, low=low, high=high), 0.05) == state


def test_chance_alone_rarely_blocks() -> None:
    """Two detectors of equal worth that disagree on a quarter of 60 examples, drawn 60 times: with all
    measures gated, few of these fail."""
    draw, blocked = np.random.default_rng(0), 0
    truth = [bool(k % 2) for k in range(60)]

    def judged(wrong):
        return [
            result(k, label, label != bool(miss))
            for k, (label, miss) in enumerate(zip(truth, wrong, strict=True))
        ]

    for _ in range(60):
        first, second = map(judged, draw.random((2, 60)) < 0.15)
        blocked += bool(gate(first, second, resamples=200).failed)
    assert blocked <= 6
