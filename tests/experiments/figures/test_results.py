"""Plots of cross-validated results, and of quality against cost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex

from experiments.figures import results
from experiments.figures.results import LEAST, draw_systems
from experiments.figures.style import CONTROL, DETECTOR
from experiments.metrics import reliability
from experiments.published import LLAMA_7B, published
from lrp4rag.training.metrics import weighted_metrics
from tests.experiments.figures.samples import GENERATORS, interval, panels, texts


def dots(ax):
    return {tuple(line.get_xydata()[0]): line for line in ax.get_lines() if line.get_marker() == "o"}


def test_reliability():
    noise = np.random.default_rng(0)
    probabilities = noise.random(500)
    labels = noise.random(500) < probabilities
    line = reliability(labels, probabilities)
    found = weighted_metrics(labels, probabilities, labels, np.ones((1, 500)))
    error = results.calibration_error(line)
    assert error == pytest.approx(found["ece"][0])
    # A line with empty bins beside one without.
    narrow = reliability(labels, 0.4 + probabilities / 10)
    drawn = results.draw_reliability({"wide": line, "narrow": narrow}, title="a title")
    above, below = panels(drawn)
    np.testing.assert_allclose(above.get_lines()[1].get_ydata(), line.frequency)
    np.testing.assert_allclose(below.get_lines()[0].get_ydata(), line.count)
    assert len(above.get_lines()[2].get_ydata()) == 1
    assert f"wide (ECE {error:.3f})" in texts(drawn)


def test_lengths():
    points = {10: 0.5, 50: 0.6, 220: 0.65}
    curve = {at: {"accuracy": interval(x), "auroc": interval(x + 0.05)} for at, x in points.items()}
    drawn = results.draw_lengths({"svm": curve, "forest": curve}, title=LLAMA_7B)
    first = panels(drawn)[0]
    np.testing.assert_allclose(first.get_lines()[0].get_xydata(), list(points.items()))
    assert {"the paper's length", "accuracy", "AUROC"} <= set(texts(drawn).splitlines())
    assert "resampling length" in texts(drawn)


def test_undefined_metrics_leave_a_gap():
    curve = {1: {"auroc": interval(None)}, 2: {"auroc": interval(0.7)}}
    (ax,) = panels(results.draw_lengths({"svm": curve}, ["auroc"]))
    assert np.isnan(ax.get_lines()[0].get_ydata()).tolist() == [True, False]
    values = results.bounds([interval(None), interval(0.7)])
    np.testing.assert_array_equal(np.isnan(values), [[True, False]] * 3)


def test_forest():
    paper = published("svm", LLAMA_7B).metrics
    entries = [
        results.Entry("length only $t$", "control", {"auroc": interval(0.6), "f1": interval(0.68)}),
        results.Entry("svm", "detector", {"auroc": interval(0.7), "f1": interval(0.69)}, paper),
        results.Entry("nothing", "control", {"auroc": interval(None), "f1": interval(0.7, 0)}),
    ]
    drawn = results.draw_forest(entries, ("auroc", "f1"), title=LLAMA_7B)
    left, right = panels(drawn)
    assert [label.get_text() for label in left.get_yticklabels()] == ["nothing", "length only $t$", "svm"]
    found = dots(right)
    assert to_hex(found[(0.69, 2)].get_color()) == DETECTOR
    assert to_hex(found[(0.68, 1)].get_color()) == CONTROL
    hollow = [line for line in right.get_lines() if line.get_marker() == "D"]
    assert [tuple(line.get_xydata()[0]) for line in hollow] == [(0.7064, 2)]
    assert hollow[0].get_markerfacecolor() == "none"
    assert not [line for line in left.get_lines() if line.get_marker() == "D"]  # the paper has no AUROC


def test_differences_without_effect_are_grey():
    found = [
        results.Difference("g", "better", interval(0.1)),
        results.Difference("g", "alike", interval(0.01)),
        results.Difference("g", "undefined", interval(None)),
    ]
    (ax,) = panels(results.draw_differences(found, "AUROC"))
    assert {place: to_hex(dot.get_color()) for place, dot in dots(ax).items()} == {
        (0.1, 0): DETECTOR,
        (0.01, 1): CONTROL,
    }


def test_transfer():
    found = {(a, b): interval(0.6 + 0.1 * (a == b)) for a in (*GENERATORS, "all others") for b in GENERATORS}
    del found["all others", GENERATORS[1]]
    drawn = results.draw_transfer(found, title="AUROC")
    words = texts(drawn)
    assert "0.70\n[0.67, 0.73]" in words
    assert all(name in words for name in (*GENERATORS, "all others", "trained on", "tested on"))
    shown = panels(drawn)[0].collections[0].get_array()
    assert np.ma.count(np.ma.masked_invalid(shown)) == 5


def test_systems_with_a_cost_are_drawn_where_they_belong():
    aurocs = {"g": {"ours": interval(0.7), "cheap": interval(0.6), "unmeasured": interval(0.7)}}
    (panel,) = draw_systems(aurocs, {"ours": 4.0, "cheap": 1e-6}, ("ours",)).axes
    assert set(dots(panel)) == {(LEAST, 0.6), (4.0, 0.7)}
    assert {text.get_text() for text in panel.texts} == {"ours", "cheap"}


def test_labels_do_not_overlap():
    many = {f"s{k}": interval(0.7 + k / 1000) for k in range(6)}
    (panel,) = draw_systems({"g": many}, dict.fromkeys(many, 1.0), ()).axes
    heights = sorted(text.xy[1] for text in panel.texts)
    assert min(b - a for a, b in pairwise(heights)) == pytest.approx(0.014)


def test_a_generator_of_one_class_has_an_empty_panel():
    """Its AUROC is undefined."""
    aurocs = {"one": {"a": interval(None)}, "two": {"a": interval(0.7)}}
    first, second = draw_systems(aurocs, {"a": 1.0}, ()).axes
    assert not first.texts
    assert len(second.texts) == 1
