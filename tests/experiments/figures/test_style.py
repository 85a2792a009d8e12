from __future__ import annotations

from xml.etree import ElementTree

import pandas as pd
from PIL import Image

from experiments.figures import save, save_table
from experiments.figures.style import legend_below, panels, themed


def example():
    with themed():
        drawn, axes = panels(1, ["one", "two"])
        for ax in axes.flat:
            ax.plot([0, 1, 3], [0.123456789, 1, 0.5], label="a line")
        legend_below(drawn, axes.flat)
        return drawn


def test_files_are_written_whole_and_equal_figures_give_equal_files(tmp_path):
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    before, opened = dict(mpl.rcParams), plt.get_fignums()
    png, svg = save(example(), tmp_path / "deep" / "figure")
    with Image.open(png) as image:
        assert image.format == "PNG"
        assert len(image.convert("RGB").getcolors(10_000)) > 20  # something was drawn
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    again = save(example(), tmp_path / "again")
    assert [path.read_bytes() for path in again] == [png.read_bytes(), svg.read_bytes()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.png", "again.svg", "deep"]
    assert plt.get_fignums() == opened
    assert dict(mpl.rcParams) == before


def test_svg_keeps_its_words_and_short_paths(tmp_path):
    content = save(example(), tmp_path / "figure")[1].read_text()
    assert ">a line</text>" in content
    paths = [part.split('"')[0] for part in content.split(' d="')[1:]]
    numbers = [word for path in paths for word in path.split() if "." in word]
    assert numbers
    assert max(len(number.split(".")[1]) for number in numbers) == 1


def test_legend_names_each_line_once():
    (legend,) = example().legends
    assert [text.get_text() for text in legend.get_texts()] == ["a line"]


def test_table(tmp_path):
    path = save_table(pd.DataFrame({"x": [1 / 3], "name": ["a, b"]}), tmp_path / "new" / "table.csv")
    assert path.read_text() == 'x,name\n0.333333,"a, b"\n'
