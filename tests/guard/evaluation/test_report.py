"""Evaluations and gates as a user reads them, on eighty columns."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from lrp4rag.classifiers.card import Interval
from lrp4rag.classifiers.domain import Unlike
from lrp4rag.guard.evaluation.evaluate import Evaluation
from lrp4rag.guard.evaluation.regression_gate import compare
from lrp4rag.guard.evaluation.report import gate_record, render_evaluation, render_gate
from lrp4rag.util.terminal import open_console
from tests.guard.evaluation.results import result, results, saved

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
    text = shown({f"row\x1b{k}": (LONG,) if k else (LONG, ODD) for k in range(10)})
    assert "10 are unlike" in text
    assert "response tokens: 10 (" in text
    assert "surprise: 1 (" in text
    assert text.count("...") == 1
    assert "\x1b" not in text
    assert "Responses with a verdict" in text
    assert "0.85" in text


def test_the_prevalence_is_said_where_there_is_one() -> None:
    assert "at a prevalence of 0.1" in shown({}, 0.1)
    assert not {"unlike", "verdict", "prevalence"} & set(shown({}).split())


def gate_shown(gate, baseline: str = "last.json") -> str:
    console = open_console(width=80, file=StringIO())
    console.print(render_gate(gate, baseline))
    return console.file.getvalue()


def test_it_says_what_fails_what_is_open_and_which_examples_turned() -> None:
    text = gate_shown(compare(results(wrong=8), saved(results()), {"detector": "mine"}, max_drop=0.05))
    assert "…" not in text
    assert "-0.000" not in text
    assert "detector default, now mine" in text
    told = " ".join(text.split())
    assert "right: 25, 27, 29, 31, 33, 35, 37, 39" in told
    assert "by chance: AUROC of verdicts" in told
    few = " ".join(gate_shown(compare(results(6, wrong=1), saved(results(6)), {}, max_drop=0.05)).split())
    assert "Not ruled out" in few
    assert "6 sources are few" in few
    assert few.endswith("The gate passes.")


def test_what_a_baseline_holds_is_shown_and_not_obeyed() -> None:
    evil = "x\x1b[2J\nThe gate passes.\u202e"
    before = [result(evil, True, True), result("a", False, False), result(f"gone {evil}", True, True)]
    found = compare(
        [result(evil, True, False), result("a", False, False), result(f"new {evil}", True, True)],
        saved(before, **{evil: evil}),
        {evil: "other"},
        max_drop=0.05,
    )
    text = gate_shown(found, evil)
    assert not {"\x1b", "\u202e"} & set(text)
    assert [line for line in text.splitlines() if line.startswith("The gate passes.")] == ["The gate passes."]
    assert gate_record(found, "last.json")["newly_wrong"] == [evil]
