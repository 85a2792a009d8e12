"""Which rows of annotated responses have a fault, and how alarms are learned."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from lrp4rag.classifiers.alarms import OF_LABEL, Fault, units
from lrp4rag.classifiers.ensemble import mean_log_odds
from lrp4rag.example import Label
from lrp4rag.features.replay import PlainReplay
from lrp4rag.features.rows import Row
from lrp4rag.reader import Reader
from lrp4rag.training.alarms import FaultRows, RowTable, fit_alarm
from tests.features.test_contrast import encoded

PASSAGES = ("Leave lasts 16 weeks. Rest lasts 30 weeks.",)
RESPONSE = "Leave lasts 18 weeks. Rest lasts 30 weeks."
VALUE = Fault("values", None, OF_LABEL)


def rows_of(tiny_reader: Reader, *annotated: str, unit: str = "values", kind: str = "number") -> FaultRows:
    record = PlainReplay(tiny_reader)(encoded(RESPONSE, PASSAGES))
    labels = [Label(RESPONSE.index(text), RESPONSE.index(text) + len(text), kind) for text in annotated]
    table = RowTable()
    table.add(units(record)[unit], 3, 7, labels)
    return table.rows()


@pytest.mark.parametrize(
    ("annotated", "wrong", "clear"),
    [
        ((), [False, False], [True, True]),
        (("18",), [True, False], [True, True]),
        (("18 weeks", "30 weeks"), [True, True], [True, True]),
        (("Leave lasts 18 weeks. Rest lasts",), [True, False], [False, True]),
    ],
    ids=["faithful", "a part of it", "two labels", "a long label"],
)
def test_values_are_wrong_where_they_are_what_is_annotated(tiny_reader, annotated, wrong, clear) -> None:
    rows = rows_of(tiny_reader, *annotated)
    assert rows.table.shape == (2, len(rows.columns))
    assert [flags.tolist() for flags in rows.wrong(VALUE)] == [wrong, clear]
    assert rows.owner.tolist() == [3, 3]
    assert rows.sentence.tolist() == [7, 8]


def test_a_fault_of_another_kind_is_neither_wrong_nor_right(tiny_reader: Reader) -> None:
    rows = rows_of(tiny_reader, "18", unit="sentences", kind="negation")
    of_kind, of_another = (Fault("sentences", frozenset({kind})) for kind in ("negation", "condition"))
    assert [flags.tolist() for flags in rows.wrong(of_kind)] == [[True, False], [True, True]]
    assert [flags.tolist() for flags in rows.wrong(of_another)] == [[False, False], [False, True]]


def test_rows_have_the_columns_of_all_and_are_taken_with_their_numbers() -> None:
    table = RowTable()
    table.add([Row(0, 4, 0, {"b": 1.0})], 0, 0, [])
    table.add([Row(0, 4, 0, {"a": 2.0, "b": 3.0}), Row(5, 9, 1, {})], 2, 1, [])
    rows = table.rows()
    assert rows.columns == ("a", "b")
    assert rows.table.tolist() == [[0, 1], [2, 3], [0, 0]]
    taken = rows.take(np.array([2]))
    assert taken.owner.tolist() == [0, 0]
    assert taken.sentence.tolist() == [1, 2]
    assert not len(rows.take(np.array([1])).table)
    assert not len(RowTable().rows().table)


def planted(rows: int = 400, seed: int = 0) -> tuple[FaultRows, np.ndarray, np.ndarray]:
    """One row of each response, one feature of which tells every second response's fault."""
    draw = np.random.default_rng(seed)
    labels = np.arange(rows) % 2 == 1
    table = draw.normal(size=(rows, 3)).astype(np.float32)
    table[:, 1] += 2.5 * labels
    numbers, kinds = np.arange(rows), np.where(labels, "negation", "")
    of = FaultRows(("a", "b", "c"), table, numbers, numbers, kinds, labels.astype(float))
    return of, labels, np.array([f"s{k // 4}" for k in range(rows)])


def test_an_alarm_finds_its_fault_in_sources_that_it_did_not_learn_from() -> None:
    rows, labels, groups = planted()
    chosen = np.arange(400)
    networks, outside = fit_alarm(rows, Fault("sentences", frozenset({"negation"})), groups, chosen)
    assert roc_auc_score(labels, outside) > 0.9
    assert roc_auc_score(labels, mean_log_odds(networks, rows.table)) > 0.9
    none, scores = fit_alarm(rows, Fault("sentences", frozenset({"condition"})), groups, chosen)
    assert none == ()
    assert len(scores) == 400
