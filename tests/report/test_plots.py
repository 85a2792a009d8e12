from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.report.plots import figure, png
from tests.report.samples import analysis_of, grounded_then_not
from tests.report.test_record import judged


def panels(drawn):
    return [ax for ax in drawn.axes if ax.get_label() != "<colorbar>"]


def test_png_is_written_and_touches_no_global_state(tmp_path):
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    before, opened = dict(mpl.rcParams), plt.get_fignums()
    png(grounded_then_not(token_threshold=0.0), tmp_path / "figure.png")
    content = (tmp_path / "figure.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 10_000
    assert plt.get_fignums() == opened
    assert dict(mpl.rcParams) == before


def test_axes():
    analysis = grounded_then_not(token_threshold=0.0)
    drawn = figure(analysis)
    line, segments, prompt = panels(drawn)
    smooth, threshold = line.get_lines()[:2]
    np.testing.assert_allclose(smooth.get_ydata(), analysis.token_relevance)
    assert list(threshold.get_ydata()) == [0.0, 0.0]
    assert [t.get_text() for t in line.get_xticklabels()][:4] == ["It", "opened", "in", "1874."]
    names = ["passage 1", "passage 2", "question", "template"]
    assert [t.get_text() for t in segments.get_xticklabels()] == names
    shown = segments.collections[0].get_array().reshape(2, 4)
    np.testing.assert_allclose(shown, [[8, 0, 0, 0], [0, -5, 0, 0]])
    mesh = prompt.collections[0]
    assert mesh.get_array().size == analysis.sentence_rows.size
    assert mesh.norm.vmin == -mesh.norm.vmax
    assert {"passage 1", "passage 2", "question"} <= {t.get_text() for t in prompt.get_xticklabels()}
    assert segments.get_yticklabels()[0].get_text().startswith("1  It opened")
    assert len(figure(judged()).axes) > len(drawn.axes), "a token detector's probabilities"


def test_suspect_spans_are_shaded_and_sentences_marked():
    drawn = figure(grounded_then_not(token_threshold=99.0))
    assert any(patch.get_alpha() for patch in drawn.axes[0].patches)
    assert drawn.axes[1].get_yticklabels()[0].get_text().startswith("1*")


@pytest.mark.parametrize(
    ("options", "count"), [({"rows": False}, 2), ({"segments": False, "rows": False}, 1)]
)
def test_what_was_not_attributed_is_left_out(options, count):
    assert len(panels(figure(analysis_of(**options)))) == count


def test_relevance_of_zero():
    blank = analysis_of(matrix=np.zeros((9, len(analysis_of().encoded.prompt_ids))))
    assert len(panels(figure(blank))) == 3
