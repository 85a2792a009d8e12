"""Figures 2, 3 and 4: box plots, curves and heatmaps."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.metrics import roc_auc_score

from lrp4rag.experiments.figures import curves, heatmaps, save, spread
from lrp4rag.experiments.figures.style import CLASSES
from lrp4rag.experiments.paper.sweep import row_means
from tests.experiments.figures.samples import GENERATORS, by_generator, data, panels, texts


def test_spread_by_hand():
    rows = data()
    found = spread.spread(rows.vectors, rows.labels)
    # Means of R_prompt and of R_response are the mean of R*.
    np.testing.assert_allclose(found.logits["prompt"], found.logits["response"])
    np.testing.assert_allclose(found.logits["prompt"], [row.mean() for row in rows.vectors["prompt"]])
    np.testing.assert_allclose(found.within["response"], row_means(rows.vectors["response"], "within"))
    table = spread.table({"g": found})
    assert len(table) == 2 * 2 * 2
    line = table.query("scale == 'logits' and vector == 'response' and `class` == 'normal'").iloc[0]
    normal = found.logits["response"][~rows.labels]
    assert line["median"] == pytest.approx(np.median(normal))
    assert line["q1"] == pytest.approx(np.quantile(normal, 0.25))
    assert line["count"] == 24
    assert line["auroc"] == pytest.approx(roc_auc_score(rows.labels, -found.logits["response"]))


def test_spread_drawn():
    found = {name: spread.spread(rows.vectors, rows.labels) for name, rows in by_generator().items()}
    drawn = spread.draw(found)
    assert len(panels(drawn)) == 4
    boxes = {to_hex(patch.get_facecolor()) for patch in panels(drawn)[0].patches}
    assert set(CLASSES.values()) <= boxes
    words = texts(drawn)
    assert all(name in words for name in (*GENERATORS, *CLASSES, "logits", "R_{prompt}"))


def test_band_is_the_mean_and_its_spread_over_sources():
    noise = np.random.default_rng(0)
    values = noise.normal([0.0, 5.0], 1.0, (400, 2))
    band = curves.mean_band(values, np.arange(400).astype(str))
    np.testing.assert_allclose(band.mean, values.mean(0))
    half = 1.96 * values.std(0, ddof=1) / 20
    np.testing.assert_allclose(band.high - band.mean, half, rtol=0.12)
    np.testing.assert_allclose(band.mean - band.low, half, rtol=0.12)
    # Four copies of every row in its source are no more evidence than one.
    copies = curves.mean_band(np.tile(values, (4, 1)), np.tile(np.arange(400).astype(str), 4))
    np.testing.assert_allclose(copies.high, band.high)
    assert copies.count == 1600


def test_curves_by_class_and_table():
    rows = data()
    values = rows.resampled("response", 10)
    found = curves.curves(values, rows.labels, rows.groups)
    np.testing.assert_allclose(found["hallucinated"].mean, values[rows.labels].mean(0))
    np.testing.assert_allclose(found["normal"].mean, values[~rows.labels].mean(0))
    table = curves.table({"g": {"response": found}})
    assert len(table) == 20
    line = table.query("`class` == 'normal' and position == 7").iloc[0]
    assert line["mean"] == pytest.approx(values[~rows.labels, 7].mean())
    assert line["rows"] == 24
    np.testing.assert_allclose(curves.percent(4), [12.5, 37.5, 62.5, 87.5])


def test_a_peak_does_not_flatten_the_curves():
    values = np.random.default_rng(0).normal(0.02, 0.01, (60, 100))
    values[:, 0] -= 0.9
    labels, groups = np.arange(60) % 2 == 0, (np.arange(60) // 2).astype(str)
    found = curves.curves(values, labels, groups)
    drawn = curves.draw({"one": {"prompt": found}, "other": {"prompt": found}})
    lowest = min(band.mean.min() for band in found.values())
    for ax in drawn.axes:
        assert -0.05 < ax.get_ylim()[0] < ax.get_ylim()[1] < 0.1
        assert [text.get_text() for text in ax.texts] == [f"to {lowest:.2g}"]
    flat = curves.draw({"one": {"prompt": curves.curves(values[:, 1:], labels, groups)}})
    assert not flat.axes[0].texts


def test_curves_drawn():
    found = {
        name: {
            vector: curves.curves(rows.resampled(vector), rows.labels, rows.groups) for vector in rows.vectors
        }
        for name, rows in by_generator().items()
    }
    drawn = curves.draw(found)
    assert len(panels(drawn)) == 4
    lines = {line.get_label(): line for line in panels(drawn)[2].get_lines()}
    for name, colour in CLASSES.items():
        assert to_hex(lines[name].get_color()) == colour
        np.testing.assert_allclose(lines[name].get_ydata(), found[GENERATORS[0]]["response"][name].mean)
    assert "position in the prompt (%)" in texts(drawn)


def test_mean_matrices_by_hand():
    matrices = np.array([[[1.0, 2.0]], [[3.0, 4.0]], [[10.0, 0.0]]], dtype=np.float32)
    found = heatmaps.mean_matrices(matrices, np.array([True, True, False]))
    np.testing.assert_allclose(found.hallucinated, [[2, 3]])
    np.testing.assert_allclose(found.difference, [[-8, 3]])
    assert found.rows == (2, 1)
    table = heatmaps.table({"g": found})
    assert table.iloc[1].to_dict() == {
        "generator": "g",
        "response_bin": 0,
        "prompt_bin": 1,
        "hallucinated": 3.0,
        "normal": 0.0,
        "difference": 3.0,
    }


def test_heatmaps_share_a_symmetric_scale_and_stay_small(tmp_path):
    noise = np.random.default_rng(0)
    labels = np.arange(10) % 2 == 0
    found = {
        name: heatmaps.mean_matrices(noise.normal(0.01, 0.02, (10, 64, 16)), labels) for name in GENERATORS
    }
    drawn = heatmaps.draw(found)
    assert len(panels(drawn)) == 6
    meshes = [ax.collections[0] for ax in panels(drawn)]
    assert len({(mesh.norm.vmin, mesh.norm.vmax) for mesh in meshes}) == 1
    assert meshes[0].norm.vmin == -meshes[0].norm.vmax
    np.testing.assert_allclose(meshes[2].get_array().reshape(64, 16), found[GENERATORS[0]].difference)
    words = texts(drawn)
    assert "hallucinated minus normal" in words
    assert "prompt (%)" in words
    assert "relevance (logits)" in words
    assert all(5000 < path.stat().st_size < 150_000 for path in save(drawn, tmp_path / "figure"))


def test_a_heatmap_of_nothing_but_zeros_can_be_drawn():
    found = heatmaps.mean_matrices(np.zeros((4, 3, 2)), np.array([True, False, True, False]))
    assert len(panels(heatmaps.draw({"g": found}))) == 3
