"""The gate as a user reads it, on eighty columns."""

from __future__ import annotations

from io import StringIO

from lrp4rag.guard.evaluation.regression_gate import compare
from lrp4rag.report.regression_gate import gate_record, render_gate
from lrp4rag.util.terminal import open_console
from tests.guard.evaluation.results import result, results, saved


def shown(gate, baseline: str = "last.json") -> str:
    console = open_console(width=80, file=StringIO())
    console.print(render_gate(gate, baseline))
    return console.file.getvalue()


def test_it_says_what_fails_what_is_open_and_which_examples_turned() -> None:
    text = shown(compare(results(wrong=8), saved(results()), {"detector": "mine"}, max_drop=0.05))
    assert "…" not in text
    assert "-0.000" not in text
    assert "made with another: detector default, now mine" in text
    told = " ".join(text.split())
    assert "8 are wrong, and were right: 25, 27, 29, 31, 33, 35, 37, 39" in told
    assert "The gate fails, worse by more than 0.05 and not by chance: AUROC of verdicts" in told
    few = " ".join(shown(compare(results(6, wrong=1), saved(results(6)), {}, max_drop=0.05)).split())
    assert "Not ruled out: a drop of more than 0.05 in" in few
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
    text = shown(found, evil)
    assert not {"\x1b", "\u202e"} & set(text)
    assert [line for line in text.splitlines() if line.startswith("The gate passes.")] == ["The gate passes."]
    assert gate_record(found, "last.json")["newly_wrong"] == [evil]
