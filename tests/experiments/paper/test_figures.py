"""Figures 2 to 5 of the paper, and the figure of its threshold method."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.metrics import roc_auc_score

from experiments.figures import save
from experiments.figures.style import CLASSES, percent
from experiments.paper import distributions, thresholds
from experiments.paper.distributions import FLOOR, draw_tests, position_test, significance_table
from experiments.paper.thresholds import SCALINGS, row_means, threshold_method
from experiments.published import LLAMA_7B
from tests.experiments.figures.samples import GENERATORS, by_generator, data, panels, texts


def test_boxes():
    rows = data()
    found = distributions.spread(rows.vectors, rows.labels)
    # Means of R_prompt and of R_response are the mean of R*.
    np.testing.assert_allclose(found.logits["prompt"], found.logits["response"])
    np.testing.assert_allclose(found.logits["prompt"], [row.mean() for row in rows.vectors["prompt"]])
    np.testing.assert_allclose(found.within["response"], row_means(rows.vectors["response"], "within"))
    table = distributions.spreads_table({"g": found})
    assert len(table) == 2 * 2 * 2
    line = table.query("scale == 'logits' and vector == 'response' and `class` == 'normal'").iloc[0]
    normal = found.logits["response"][~rows.labels]
    assert line["median"] == pytest.approx(np.median(normal))
    assert line["q1"] == pytest.approx(np.quantile(normal, 0.25))
    assert line["count"] == 24
    assert line["auroc"] == pytest.approx(roc_auc_score(rows.labels, -found.logits["response"]))
    drawn = distributions.draw_spreads(dict.fromkeys(GENERATORS, found))
    assert len(panels(drawn)) == 4
    boxes = {to_hex(patch.get_facecolor()) for patch in panels(drawn)[0].patches}
    assert set(CLASSES.values()) <= boxes
    assert all(name in texts(drawn) for name in (*GENERATORS, *CLASSES, "logits", "R_{prompt}"))


def test_a_band_is_the_mean_and_its_spread_over_sources():
    noise = np.random.default_rng(0)
    values = noise.normal([0.0, 5.0], 1.0, (400, 2))
    band = distributions.mean_band(values, np.arange(400).astype(str))
    np.testing.assert_allclose(band.mean, values.mean(0))
    half = 1.96 * values.std(0, ddof=1) / 20
    np.testing.assert_allclose(band.high - band.mean, half, rtol=0.12)
    np.testing.assert_allclose(band.mean - band.low, half, rtol=0.12)
    # Four copies of every row in its source are no more evidence than one.
    copies = distributions.mean_band(np.tile(values, (4, 1)), np.tile(np.arange(400).astype(str), 4))
    np.testing.assert_allclose(copies.high, band.high)
    assert copies.count == 1600


def test_curves_by_class():
    rows = data()
    found = {}
    for vector in rows.vectors:
        values = rows.resampled(vector, 10)
        found[vector] = distributions.class_curves(values, rows.labels, rows.groups)
    np.testing.assert_allclose(found["response"]["hallucinated"].mean, values[rows.labels].mean(0))
    table = distributions.curves_table({"g": {"response": found["response"]}})
    assert len(table) == 20
    line = table.query("`class` == 'normal' and position == 7").iloc[0]
    assert line["mean"] == pytest.approx(values[~rows.labels, 7].mean())
    assert line["rows"] == 24
    np.testing.assert_allclose(percent(4), [12.5, 37.5, 62.5, 87.5])
    drawn = distributions.draw_curves(dict.fromkeys(GENERATORS, found))
    assert len(panels(drawn)) == 4
    lines = {line.get_label(): line for line in panels(drawn)[2].get_lines()}
    for name, colour in CLASSES.items():
        assert to_hex(lines[name].get_color()) == colour
        np.testing.assert_allclose(lines[name].get_ydata(), found["response"][name].mean)
    assert "position in the prompt (%)" in texts(drawn)


def test_a_peak_does_not_flatten_the_curves():
    values = np.random.default_rng(0).normal(0.02, 0.01, (60, 100))
    values[:, 0] -= 0.9
    labels, groups = np.arange(60) % 2 == 0, (np.arange(60) // 2).astype(str)
    found = distributions.class_curves(values, labels, groups)
    drawn = distributions.draw_curves({"one": {"prompt": found}, "other": {"prompt": found}})
    lowest = min(band.mean.min() for band in found.values())
    for ax in drawn.axes:
        assert -0.05 < ax.get_ylim()[0] < ax.get_ylim()[1] < 0.1
        assert [text.get_text() for text in ax.texts] == [f"to {lowest:.2g}"]
    flat = distributions.class_curves(values[:, 1:], labels, groups)
    assert not distributions.draw_curves({"one": {"prompt": flat}}).axes[0].texts


def test_mean_matrices_by_hand():
    matrices = np.array([[[1.0, 2.0]], [[3.0, 4.0]], [[10.0, 0.0]]], dtype=np.float32)
    found = distributions.mean_matrices(matrices, np.array([True, True, False]))
    np.testing.assert_allclose(found.hallucinated, [[2, 3]])
    np.testing.assert_allclose(found.difference, [[-8, 3]])
    assert found.rows == (2, 1)
    assert distributions.matrices_table({"g": found}).iloc[1].to_dict() == {
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
        name: distributions.mean_matrices(noise.normal(0.01, 0.02, (10, 64, 16)), labels)
        for name in GENERATORS
    }
    drawn = distributions.draw_matrices(found)
    assert len(panels(drawn)) == 6
    meshes = [ax.collections[0] for ax in panels(drawn)]
    assert len({(mesh.norm.vmin, mesh.norm.vmax) for mesh in meshes}) == 1
    assert meshes[0].norm.vmin == -meshes[0].norm.vmax
    np.testing.assert_allclose(meshes[2].get_array().reshape(64, 16), found[GENERATORS[0]].difference)
    for words in ("hallucinated minus normal", "prompt (%)", "relevance (logits)"):
        assert words in texts(drawn)
    assert all(5000 < path.stat().st_size < 150_000 for path in save(drawn, tmp_path / "figure"))
    zeros = distributions.mean_matrices(np.zeros((4, 3, 2)), np.array([True, False, True, False]))
    assert len(panels(distributions.draw_matrices({"g": zeros}))) == 3


def test_positions():
    found = {
        name: {
            vector: position_test(
                rows.resampled(vector, 20), rows.labels, rows.groups, draws=5, samples=12, resamples=20
            )
            for vector in rows.vectors
        }
        for name, rows in by_generator().items()
    }
    table = significance_table(found)
    assert len(table) == 2 * 2 * 20
    test = found[GENERATORS[1]]["response"]
    part = table.query("generator == @GENERATORS[1] and vector == 'response'")
    assert list(part["position"]) == list(range(20))
    np.testing.assert_allclose(part["auroc"], test.auroc)
    np.testing.assert_allclose(part["p_adjusted"], test.adjusted)
    drawn = draw_tests(found)
    top, middle, bottom = (panels(drawn)[k] for k in (1, 3, 5))
    assert top.get_yscale() == middle.get_yscale() == "log"
    np.testing.assert_allclose(top.get_lines()[1].get_ydata(), test.median_p)
    np.testing.assert_allclose(middle.get_lines()[1].get_ydata(), np.maximum(test.adjusted, FLOOR))
    np.testing.assert_allclose(bottom.get_lines()[1].get_ydata(), test.auroc)
    assert "5 draws of 12 + 12" in texts(drawn)
    assert "p = 0.05" in texts(drawn)


def test_thresholds():
    found = {
        name: [
            threshold_method(vector, values, rows.labels, rows.groups, scaling=scaling, resamples=20)
            for scaling in SCALINGS
            for vector, values in rows.vectors.items()
        ]
        for name, rows in by_generator().items()
    }
    best = thresholds.best_table(found)
    assert len(best) == 2 * 4 * 2
    line = best.query("generator == @LLAMA_7B and vector == 'response' and scaling == 'within'").iloc[0]
    method = found[LLAMA_7B][1]
    assert line["chosen_on"] == "reported rows"
    assert line["f1"] == pytest.approx(method.sweep.f1.max())
    assert line["threshold"] == method.sweep.best()
    assert (line["paper_threshold"], line["paper_f1"]) == (0.54, 0.697)
    assert best.query("generator != @LLAMA_7B")["paper_f1"].isna().all()
    assert len(thresholds.sweep_table(found)) == 2 * 4 * 101
    # Across rows both vectors have the same mean, so one row of panels shows both.
    across = best.query("scaling == 'across' and chosen_on == 'reported rows'")
    prompt, response = (across.query(f"vector == '{name}'")["auroc"] for name in ("prompt", "response"))
    np.testing.assert_allclose(prompt, response, atol=0.02)
    drawn = thresholds.draw(found)
    assert len(panels(drawn)) == 3 * len(GENERATORS)
    np.testing.assert_allclose(panels(drawn)[2].get_lines()[0].get_ydata(), method.sweep.f1)
    assert "the paper's best F1" in texts(drawn)
    found[GENERATORS[0]] = [each for each in found[GENERATORS[0]] if each.vector == "response"]
    lacking = panels(thresholds.draw(found))
    assert len(lacking) == 3 * len(GENERATORS)
    assert [text.get_text() for text in lacking[0].texts] == ["not stored"]
    assert not lacking[0].get_lines()
    assert lacking[1].get_lines()
    assert not lacking[2].texts


def test_curves_of_a_generator_without_r_prompt():
    rows = data()
    found = {
        vector: distributions.class_curves(rows.resampled(vector, 10), rows.labels, rows.groups)
        for vector in rows.vectors
    }
    drawn = distributions.draw_curves({"one": {"response": found["response"]}, "other": found})
    lacking, stored, *below = panels(drawn)
    assert [text.get_text() for text in lacking.texts] == ["not stored"]
    assert stored.get_lines()
    assert all(ax.get_lines() for ax in below)
