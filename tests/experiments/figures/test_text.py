"""Mathematics in figures: ours is drawn as such, and no text of users is."""

import pytest
from matplotlib.figure import Figure

from experiments.figures import text
from experiments.figures.text import SYMBOLS
from lrp4rag.report.figure_text import plain_text
from tests.hostile.strings import MATHEMATICS


@pytest.mark.parametrize("value", [*MATHEMATICS, "plain"])
def test_only_our_mathematics_is_drawn_as_such(value: str) -> None:
    drawn = Figure()
    ax = drawn.subplots()
    ax.set_xticks([0, 1], [value, SYMBOLS["prompt"]])
    shown = [ax.set_title(value), ax.set_ylabel(f"{SYMBOLS['total']} of {value}")]
    plain_text(drawn, text._is_ours)
    first, second = ax.get_xticklabels()
    assert {one.get_parse_math() for one in (*shown, first)} == {"$" not in value}
    assert second.get_parse_math()
