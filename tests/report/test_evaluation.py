"""Evaluations as a user reads them."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from lrp4rag.classifiers.card import Interval
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.guard.evaluation.evaluate import Evaluation
from lrp4rag.report.evaluation import render_evaluation

METRICS = {"auroc": Interval(value=0.75, low=0.7, high=0.8)}
LONG = Unlike("response tokens", "the response's tokens: 900, trained on 10 to 400", True)
ODD = Unlike("surprise", "how unlikely the reader finds the response (nats a token): 9", True)


def shown(abstained: dict[str, tuple[Unlike, ...]], prevalence: float | None = None) -> str:
    evaluation = Evaluation(
        metrics={"g1": METRICS},
        rows={"g1": 9},
        hallucinated={"g1": 4},
        probabilities={},
        seen=0,
        failures={},
        abstained=abstained,
        judged={"g1": {"auroc": Interval(value=0.85, low=0.8, high=0.9)}} if abstained else {},
        prevalence=prevalence,
    )
    console = Console(width=100, file=StringIO())
    console.print(render_evaluation(evaluation))
    return " ".join(console.file.getvalue().split())


def test_rows_without_a_verdict_are_counted_by_reason() -> None:
    text = shown({f"row\x1b{k}": (LONG,) if k else (LONG, ODD) for k in range(7)})
    assert "7 are unlike the training data" in text
    assert "response tokens: 7 (" in text
    assert "surprise: 1 (" in text
    assert text.count("...") == 1
    assert "\x1b" not in text
    assert "Responses with a verdict" in text
    assert "0.85" in text


def test_nothing_is_said_of_rows_that_all_have_one() -> None:
    text = shown({})
    assert "unlike" not in text
    assert "verdict" not in text
    assert "prevalence" not in text


def test_the_prevalence_is_said() -> None:
    assert "at a prevalence of 0.1" in shown({}, 0.1)
