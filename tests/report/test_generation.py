"""How a generated response is shown: colours where there are any, whole characters, no control codes."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from lrp4rag.claims.nearest import Nearest
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.classifiers.verdict import Contradiction, Sentence, SuspectSpan
from lrp4rag.generation import GeneratedToken, Generation
from lrp4rag.guard.policy.answer import DecidedSentence
from lrp4rag.guard.policy.decision import Decided
from lrp4rag.guard.policy.policy import Action
from lrp4rag.report.generation import (
    PiecePrinter,
    TokenPrinter,
    record_generation,
    record_piece,
    record_token,
    render_legend,
    render_totals,
    style,
)
from lrp4rag.streaming import JudgedPiece
from lrp4rag.util.sentences import Piece
from tests.report.samples import analysis_of

NAMES = ("template", "question", "passage 1", "passage 2")
GROUNDED, INVENTED = (0.5, 0.5, 8.0, 1.0), (3.0, 1.0, 0.25, -0.25)
RESPONSE = [(" It", GROUNDED), (" opened", GROUNDED), (" in", INVENTED), (" 1874", GROUNDED), (".", INVENTED)]


def token(text: str, by_segment=GROUNDED, id: int = 7) -> GeneratedToken:
    return GeneratedToken(id, text, NAMES, np.array(by_segment, np.float32), 9.5)


def generation(parts=RESPONSE, *, response: str | None = None, ending="end") -> Generation:
    tokens = tuple(token(text, by_segment) for text, by_segment in parts)
    made = analysis_of()
    text = "".join(one.text for one in tokens) if response is None else response
    encoded = replace(made.relevance.encoded, response=text, response_ids=tuple(t.id for t in tokens))
    relevance = replace(made.relevance, encoded=encoded)
    return Generation(made.example, relevance, tokens, ending, {"first token": 1.0, "further tokens": 0.5})


def console(**options) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, width=options.pop("width", 80), highlight=False, **options), stream


def streamed(made: Generation, **options) -> str:
    shown, stream = console(**options)
    printer = TokenPrinter(shown)
    for one in made.tokens:
        printer(one)
    printer.finish(made)
    return stream.getvalue()


TERMINAL = {"force_terminal": True, "color_system": "256"}


def test_the_background_says_what_comes_from_the_passages():
    assert style(0.0) != style(0.3) != style(0.5) != style(0.7) != style(0.9)
    assert style(1.0) == style(0.85)
    text = streamed(generation(), **TERMINAL)
    assert "\x1b[38;5;16;48;5;75m opened\x1b[0m" in text
    assert "\x1b[38;5;16;48;5;214m in\x1b[0m" in text
    legend = render_legend(console(**TERMINAL)[0])
    assert "relevance from the passages" in legend.plain
    assert "80-100%" in legend.plain


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "no_color": True}])
def test_without_colour_it_is_plain_text(options):
    assert streamed(generation(), **options) == "It opened in 1874.\n"
    assert render_legend(console(**options)[0]) is None


def test_the_tokens_of_a_character_count_together():
    made = generation([("", INVENTED), ("", INVENTED), ("🗼", (0, 0, 99.0, 0))], response="🗼")
    assert streamed(made, **TERMINAL) == "\x1b[38;5;16;48;5;75m🗼\x1b[0m\n"


def test_what_stays_incomplete_is_shown_in_the_end():
    made = generation([("It", GROUNDED), ("", INVENTED)], response="It\ufffd")
    assert streamed(made) == "It\ufffd\n"


def test_lines_break_between_words_on_a_terminal_only():
    parts = [("It", GROUNDED), *((f" word{k}", GROUNDED) for k in range(9)), (" a\nb", GROUNDED)]
    lines = streamed(generation(parts), force_terminal=True, color_system=None, width=20).splitlines()
    assert lines == ["It word0 word1 word2", "word3 word4 word5", "word6 word7 word8 a", "b"]
    assert streamed(generation(parts), width=20).count("\n") == 2


def test_control_codes_and_markup_stay_text():
    made = generation([("\x1b[2J", GROUNDED), (" [bold]x[/bold]", GROUNDED), ("\x07\x9b", GROUNDED)])
    assert not set("\x1b\x07\x9b") & set(streamed(made))
    assert "[bold]x[/bold]" in streamed(made)


def test_totals():
    shown, stream = console()
    shown.print(render_totals(generation()))
    lines = stream.getvalue().splitlines()
    assert [line.split() for line in lines[:6]] == [
        ["segment", "relevance", "share"],
        ["passage", "1", "+24.50", "64%"],
        ["passage", "2", "+2.50", "7%"],
        ["question", "+3.50", "9%"],
        ["template", "+7.50", "20%"],
        ["whole", "prompt", "+38.00"],
    ]
    assert "passage 1 leads" in lines[6]
    assert "5 response tokens; ended" in " ".join(lines[7:])
    shown, stream = console()
    shown.print(render_totals(generation([("x", (1.0, 1.0, -1.0, -2.0))], ending="length")))
    assert "0% from the passages;" in stream.getvalue()
    assert "-40%" in stream.getvalue()
    assert "limit of new tokens" in stream.getvalue()


def test_the_record_of_a_token():
    assert record_token(token(" in", INVENTED, id=3)) == {
        "token": 3,
        "text": " in",
        "relevance": {"template": 3.0, "question": 1.0, "passage 1": 0.25, "passage 2": -0.25},
        "total": 4.0,
        "from_passages": 0.0,
        "logit": 9.5,
    }
    digits = record_token(token("x", (0.1, 0.2, 0.3, 0.4)))["relevance"]
    assert list(digits.values()) == [0.1, 0.2, 0.3, 0.4]  # those of a float32, not of the float64 next to it


def test_the_record_of_a_response():
    row = json.loads(json.dumps(record_generation(generation())))
    assert row["response"] == " It opened in 1874."
    assert row["ending"] == "end"
    assert row["passage"] == 1
    assert row["total"] == pytest.approx(sum(one["total"] for one in row["tokens"]))
    assert row["relevance"]["passage 1"] == pytest.approx(24.5)
    assert [one["text"] for one in row["tokens"]] == [text for text, _ in RESPONSE]


# Sentences that are judged while they are written.

SAID = Contradiction(0, 7, "4 weeks", "2 weeks", 0, 0, 7, 1.0)
SPAN = SuspectSpan(0, 7, "4 weeks", None, 0.6, 0, (SAID,))
SENTENCE = Sentence(
    0, 19, "4 weeks\x1b[31m of it.", None, (), None, "contradicted", 0.6, Nearest(0, 0, 8, 0.5, ((0, 7),))
)
PIECE = JudgedPiece(0, 20, "4 weeks\x1b[31m of it. ", SENTENCE, 0.7, (SPAN,))
FINE = JudgedPiece(20, 26, "Fine. ", Sentence(20, 25, "Fine.", None, (), None, "supported", 0.02), 0.7)
ODD = replace(
    FINE,
    text="Odd. ",
    sentence=replace(FINE.sentence, text="Odd.", status="not judged"),
    unlike=(Unlike("surprise", "unlikely", decides=True),),
)
BLANK = JudgedPiece(26, 28, "\n\n")


def judged(*pieces: JudgedPiece, terminal: bool = False) -> str:
    out = io.StringIO()
    colours = "256" if terminal else None
    printer = PiecePrinter(Console(file=out, force_terminal=terminal, color_system=colours, width=80))
    printer.begin("one")
    for piece in pieces:
        printer(piece)
    printer.finish()
    return out.getvalue()


def test_probabilities_and_what_contradicts_are_told() -> None:
    found = judged(PIECE, BLANK, ODD)
    for words in (
        "one",
        "[60.0 %]",
        "[2.0 %]",
        "passage 1 has",
        "2 weeks",
        "unlike the training data",
        "60.0 %",
    ):
        assert words in found
    assert "\x1b" not in found, "what was written is shown and not obeyed"


def test_a_terminal_shows_colours_and_their_meaning() -> None:
    found = judged(PIECE, terminal=True)
    assert "P(hallucinated)" in found
    assert "48;5;214" in found
    assert "[60.0 %]" not in found


def test_json_counts_passages_from_one() -> None:
    found = record_piece(PIECE)
    (told,) = found["contradictions"]
    assert (told["text"], told["passage"], told["instead"]) == ("4 weeks", 1, "2 weeks")
    assert (found["start"], found["end"], found["probability"], found["suspect"]) == (0, 20, 0.6, True)
    assert (found["status"], found["so_far"], found["abstained"]) == ("contradicted", 0.7, False)
    assert found["nearest"]["passage"] == 1
    assert found["read"] is None
    assert record_piece(replace(PIECE, read=(0, 13)))["read"] == [1, 14]


def test_every_piece_has_a_status() -> None:
    told = [record_piece(one) for one in (FINE, ODD, BLANK)]
    assert [(one["status"], one["probability"]) for one in told] == [
        ("supported", 0.02),
        ("not judged", 0.02),
        ("states nothing", None),
    ]
    assert [(one["suspect"], one["abstained"]) for one in told] == [
        (False, False),
        (False, True),
        (False, False),
    ]


@pytest.mark.parametrize("action", ["mark", "disclose", "escalate", "withhold"])
def test_what_is_withheld_is_told_nowhere(action: Action) -> None:
    piece = Piece(PIECE.start, PIECE.end, PIECE.text, "prose")
    decided = Decided(action, "contradicted", "claims.contradicted")
    found = DecidedSentence(piece, decided, PIECE).record()
    assert (found["status"], found["suspect"]) == ("contradicted", True)
    (told,) = found["contradictions"]
    let_out = action in ("mark", "disclose")
    assert (told["text"] == "4 weeks", told["instead"]) == (let_out, "2 weeks")
    assert found["nearest"]["words"] == ([[0, 7]] if let_out else [])
    assert ("4 weeks" in str(found)) == let_out
