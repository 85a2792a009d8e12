from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from lrp4rag.report.record import record
from lrp4rag.report.terminal import render, render_line, render_summary
from tests.report.samples import analysis_of, grounded_then_not, hostile


def printed(renderable: RenderableType, *, encoding: str = "utf-8", **options) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    Console(file=stream, width=100, **options).print(renderable)
    return raw.getvalue().decode(encoding)


def test_verdict_response_sentences_and_time():
    text = printed(render(grounded_then_not(token_threshold=0.0)))
    assert "Likely hallucinated, probability 0.78" in text
    assert "flagged from 0.50" in text
    assert "passage 1 (+2.00)" in text
    assert "no passage" in text
    assert "push 1.2 s, classify 0.5 s; 1.8 s in all" in text


@pytest.mark.parametrize(
    ("probability", "words"), [(0.2, "Likely grounded"), (None, "Evidence only, no detector")]
)
def test_other_verdicts(probability, words):
    assert words in printed(render(analysis_of(probability=probability)))


def test_without_segments_nothing_is_said_of_passages():
    assert "not attributed" in printed(render(analysis_of(segments=False)))


def test_marks_survive_a_pipe():
    text = printed(render(grounded_then_not(token_threshold=99.0)))
    assert "\x1b" not in text
    assert "⟦It opened in 1874. Aliens built it from cheese.⟧" in text
    assert "suspect" in text


def test_marks_survive_no_color(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "⟦" in printed(render(grounded_then_not(token_threshold=99.0)), force_terminal=True)


def test_marks_in_ascii():
    assert "[[It opened in 1874." in printed(
        render(grounded_then_not(token_threshold=99.0)), encoding="ascii"
    )


def test_colour_needs_no_marks():
    text = printed(
        render(grounded_then_not(token_threshold=99.0)), force_terminal=True, color_system="standard"
    )
    assert "\x1b[1;4;35m" in text
    assert "⟦" not in text


CONTROLS = "a\x1b[2J\x1b]0;owned\x07\x9b31m\r\x08\x7f\u202eb\ud800"
HOSTILE = f"{CONTROLS} [bold red]x[/] [link=http://e.org]y[/link] :smile:"


@pytest.mark.parametrize("view", [render, render_line])
def test_control_characters_and_markup_in_any_field_stay_text(view):
    text = printed(view(hostile(HOSTILE)))
    for character in "\x1b\x07\x9b\r\x08\x7f\u202e":
        assert character not in text
    assert "[bold red]x[/]" in text or view is render_line  # clipped there
    assert "😄" not in text


def test_a_line_per_example():
    text = printed(render_line(grounded_then_not()))
    assert text.count("\n") == 1
    assert text.split()[:3] == ["bridge-1", "0.78", "hallucinated"]
    assert "Aliens built it from cheese." in text
    assert "\n" not in render_line(hostile("line\nbreak")).plain


def test_summary():
    flagged, fine = record(analysis_of(probability=0.9)), record(analysis_of(probability=0.2))
    slow = {**fine, "id": "slow\x1b[1m", "seconds": {"push": 20.0}}
    text = render_summary([flagged, fine, slow, {"id": "failed", "error": "too long"}]).plain
    assert text.startswith("4 examples, 1 flagged, mean probability 0.43, slowest slow")
    assert text.endswith("(20.0 s)")
    assert "\x1b" not in text


def test_summary_of_nothing_and_of_evidence_only():
    assert render_summary([]).plain == "0 examples"
    assert (
        render_summary([record(analysis_of(probability=None))]).plain == "1 example, slowest bridge-1 (1.8 s)"
    )
