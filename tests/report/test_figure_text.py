"""Text in figures: it is drawn as it is named, and no name makes a figure of a mile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lrp4rag.lrp.units import Unit, UnitRelevance
from lrp4rag.report.figure_text import LINES, LONGEST, plain_text
from lrp4rag.report.plots import png
from lrp4rag.report.units import heatmap
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import visible
from tests.hostile.strings import CONTROLS, HTML, MATHEMATICS
from tests.report import samples

LONG = "x" * 100_000


def size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


@pytest.mark.parametrize("value", [*MATHEMATICS, *CONTROLS, *HTML, "<!-- comment", LONG, "a\n" * 9, "\ufffe"])
def test_text_is_made_plain(value: str) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    drawn = Figure()
    ax = drawn.subplots()
    shown = [ax.set_title(value), ax.text(0, 0, value), ax.annotate(value, (0, 0)), drawn.suptitle(value)]
    ax.set_xticks([0, 1], [value, "b"])
    plain_text(drawn)
    for one in [*shown, *ax.get_xticklabels()[:1]]:
        lines = one.get_text().split("\n")
        assert len(lines) <= LINES
        assert max(map(len, lines)) <= LONGEST
        assert one.get_text() == visible(one.get_text())
        assert not one.get_parse_math()
    formatter = ax.xaxis.get_major_formatter()
    assert isinstance(formatter, FuncFormatter)
    assert formatter(0, 0) == shown[1].get_text()  # also when it is drawn again


@pytest.mark.parametrize("value", [MATHEMATICS[3], "\\$5 ^{", "\x1b[2J\x00 \u202e", "模型 🗼", "x" * 900])
def test_the_picture_of_an_analysis(value: str, tmp_path: Path) -> None:
    png(samples.hostile(value, rows=False, segments=False), tmp_path / "a.png")
    assert max(size(tmp_path / "a.png")) < 3000


def test_the_picture_of_many_sentences_has_an_end(tmp_path: Path) -> None:
    png(samples.hostile("$ a. " * 180), tmp_path / "a.png")
    assert max(size(tmp_path / "a.png")) < 12_000


def relevance_between(label: str, rows: int = 2, columns: int = 3) -> UnitRelevance:
    def units(count: int) -> tuple[Unit, ...]:
        return tuple(Unit(label, 0, 1, (k,)) for k in range(count))

    values = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    ones = np.ones(rows, np.float32)
    return UnitRelevance(units(rows), units(columns), values, ones, ones, label, label, 0)


@pytest.mark.parametrize("value", [MATHEMATICS[3], "\x1b[2J\x00 \u202e", "模型 🗼\ud800", LONG])
def test_the_picture_of_units(value: str, tmp_path: Path) -> None:
    heatmap(relevance_between(value), tmp_path / "u.png")
    assert max(size(tmp_path / "u.png")) < 2000


@pytest.mark.parametrize("draw", ["analysis", "units"])
def test_a_picture_replaces_files_only(draw: str, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    (tmp_path / "target").write_text("mine")
    path.symlink_to(tmp_path / "target")
    analysis = samples.analysis_of(rows=False, segments=False)
    write = {"units": lambda: heatmap(relevance_between("a"), path), "analysis": lambda: png(analysis, path)}
    with pytest.raises(InputError):
        write[draw]()
    assert (tmp_path / "target").read_text() == "mine"
    assert not list(tmp_path.glob(".*"))
