"""Figure 5, the threshold tables, and the plots of cross-validated results."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lrp4rag.experiments.figures import forest, lengths, positions, reliability, save, thresholds, transfer
from lrp4rag.experiments.figures.style import CONTROL, DETECTOR
from lrp4rag.experiments.paper.published import LLAMA_7B, published
from lrp4rag.experiments.paper.significance import position_test
from lrp4rag.experiments.paper.sweep import SCALINGS, threshold_method
from lrp4rag.training.metrics import response_metrics
from lrp4rag.training.metrics import reliability as reliability_of
from tests.experiments.figures.samples import GENERATORS, by_generator, interval, panels, texts


def written(drawn, folder) -> bool:
    return all(path.stat().st_size > 5000 for path in save(drawn, folder / "figure"))


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
    table = positions.table(found)
    assert len(table) == 2 * 2 * 20
    test = found[GENERATORS[1]]["response"]
    part = table.query("generator == @GENERATORS[1] and vector == 'response'")
    np.testing.assert_allclose(part["auroc"], test.auroc)
    drawn = positions.draw(found)
    top, middle, bottom = (panels(drawn)[k] for k in (1, 3, 5))
    assert top.get_yscale() == middle.get_yscale() == "log"
    np.testing.assert_allclose(top.get_lines()[1].get_ydata(), test.median_p)
    np.testing.assert_allclose(middle.get_lines()[1].get_ydata(), np.maximum(test.adjusted, positions.FLOOR))
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
    sweeps = thresholds.sweep_table(found)
    assert len(sweeps) == 2 * 4 * 101
    drawn = thresholds.draw(found)
    assert len(panels(drawn)) == 8
    np.testing.assert_allclose(panels(drawn)[2].get_lines()[0].get_ydata(), method.sweep.f1)
    assert "the paper's best F1" in texts(drawn)


def test_reliability(tmp_path):
    noise = np.random.default_rng(0)
    probabilities = noise.random(500)
    labels = noise.random(500) < probabilities
    line = reliability_of(labels, probabilities)
    assert reliability.calibration_error(line) == pytest.approx(
        response_metrics(labels, probabilities, 0.5)["ece"]
    )
    # A line with empty bins beside one without.
    narrow = reliability_of(labels, 0.4 + probabilities / 10)
    found = {"wide": line, "narrow": narrow}
    table = reliability.table(found)
    assert table.groupby("name")["count"].sum().to_dict() == {"wide": 500, "narrow": 500}
    drawn = reliability.draw(found, title="a title")
    above, below = panels(drawn)
    np.testing.assert_allclose(above.get_lines()[1].get_ydata(), line.frequency)
    np.testing.assert_allclose(below.get_lines()[0].get_ydata(), line.count)
    assert len(above.get_lines()[2].get_ydata()) == 1
    assert f"wide (ECE {reliability.calibration_error(line):.3f})" in texts(drawn)
    assert written(drawn, tmp_path)


def test_lengths(tmp_path):
    curve = lengths.LengthCurve(
        (10, 50, 220),
        tuple({"accuracy": interval(x), "auroc": interval(x + 0.05)} for x in (0.5, 0.6, 0.65)),
    )
    table = lengths.table({"svm": curve})
    assert len(table) == 6
    assert table.query("length == 220 and metric == 'auroc'")["low"].item() == pytest.approx(0.67)
    drawn = lengths.draw({"svm": curve, "forest": curve}, title=LLAMA_7B)
    first = panels(drawn)[0]
    np.testing.assert_allclose(first.get_lines()[0].get_xydata(), [[10, 0.5], [50, 0.6], [220, 0.65]])
    assert "resampling length" in texts(drawn)
    assert "the paper's length" in texts(drawn)
    assert written(drawn, tmp_path)


def test_undefined_metrics_leave_a_gap():
    curve = lengths.LengthCurve((1, 2), ({"auroc": interval(None)}, {"auroc": interval(0.7)}))
    np.testing.assert_array_equal(np.isnan(curve.values("auroc")), [[True, False]] * 3)
    assert len(panels(lengths.draw({"svm": curve}, ["auroc"]))) == 1


def test_forest(tmp_path):
    entries = [
        forest.Entry("length only $t$", "control", {"auroc": interval(0.6), "f1": interval(0.68)}),
        forest.Entry(
            "svm", "detector", {"auroc": interval(0.7), "f1": interval(0.69)}, published("svm", LLAMA_7B)
        ),
        forest.Entry("nothing", "control", {"auroc": interval(None), "f1": interval(0.7, 0)}),
    ]
    table = forest.table(entries)
    assert table.query("name == 'svm' and metric == 'f1'")["paper"].item() == 0.7064
    assert table["paper"].notna().sum() == 1  # the paper has no AUROC
    drawn = forest.draw(entries, ("auroc", "f1"), title=LLAMA_7B)
    left, right = panels(drawn)
    assert [label.get_text() for label in left.get_yticklabels()] == ["nothing", "length only $t$", "svm"]
    dots = {tuple(line.get_xydata()[0]): line for line in right.get_lines() if line.get_marker() == "o"}
    assert to_hex(dots[(0.69, 2)].get_color()) == DETECTOR
    assert to_hex(dots[(0.68, 1)].get_color()) == CONTROL
    hollow = [line for line in right.get_lines() if line.get_marker() == "D"]
    assert [tuple(line.get_xydata()[0]) for line in hollow] == [(0.7064, 2)]
    assert hollow[0].get_markerfacecolor() == "none"
    assert written(drawn, tmp_path)


def test_transfer(tmp_path):
    found = {(a, b): interval(0.6 + 0.1 * (a == b)) for a in (*GENERATORS, "all others") for b in GENERATORS}
    del found["all others", GENERATORS[1]]
    assert len(transfer.table(found)) == 5
    drawn = transfer.draw(found, title="AUROC")
    words = texts(drawn)
    assert "0.70\n[0.67, 0.73]" in words
    assert all(name in words for name in (*GENERATORS, "all others", "trained on", "tested on"))
    shown = panels(drawn)[0].collections[0].get_array()
    assert np.ma.count(np.ma.masked_invalid(shown)) == 5
    assert written(drawn, tmp_path)
