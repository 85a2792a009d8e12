"""Quality against cost, drawn."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lrp4rag.classifiers.card import Interval
from lrp4rag.experiments.figures.compare import LEAST, draw_cost

ONE = Interval(value=0.7, low=0.6, high=0.8)
NONE = Interval(value=None, low=None, high=None)


def test_systems_with_a_cost_are_drawn_where_they_belong() -> None:
    aurocs = {"g": {"ours": ONE, "cheap": Interval(value=0.6, low=0.5, high=0.7), "unmeasured": ONE}}
    (panel,) = draw_cost(aurocs, {"ours": 4.0, "cheap": 1e-6}, ("ours",)).axes
    assert sorted((x, y) for line in panel.lines[1:] for x, y in line.get_xydata()) == [
        (LEAST, 0.6),
        (4.0, 0.7),
    ]
    assert {text.get_text() for text in panel.texts} == {"ours", "cheap"}


def test_labels_do_not_overlap() -> None:
    many = {f"s{k}": Interval(value=0.7 + k / 1000, low=0.6, high=0.8) for k in range(6)}
    (panel,) = draw_cost({"g": many}, dict.fromkeys(many, 1.0), ()).axes
    heights = sorted(text.xy[1] for text in panel.texts)
    assert min(b - a for a, b in pairwise(heights)) == pytest.approx(0.014)


def test_a_generator_of_one_class_has_an_empty_panel() -> None:
    """Its AUROC is undefined."""
    first, second = draw_cost({"one": {"a": NONE}, "two": {"a": ONE}}, {"a": 1.0}, ()).axes
    assert not first.texts
    assert len(second.texts) == 1
