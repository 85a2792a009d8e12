"""An evaluation and the gate on a terminal and as JSON: metrics, decisions, and drops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.classifiers.card import Card, Metrics
from lrp4rag.guard.evaluation.evaluate import Evaluation
from lrp4rag.guard.evaluation.regression_gate import EXAMPLES, FORMAT, Gate, State
from lrp4rag.guard.evaluation.result import MEASURES
from lrp4rag.guard.policy.simulate import Share, outcome_record, outcome_table, share_cell, share_record
from lrp4rag.report.cards import metrics_table
from lrp4rag.report.numbers import difference, number, with_interval
from lrp4rag.report.words import comparer_words
from lrp4rag.util.terminal import open_console
from lrp4rag.util.text import one_line

LONGEST_NAME = 60
"""Characters of a generator's name."""

SHOWN = 8
"""Ids of rows that are listed for a reason."""

STYLES: dict[State, str] = {"fails": "bold red", "not ruled out": "yellow", "passes": "green"}
FEW = 30
"""Sources below which an interval rarely excludes anything."""


def print_evaluation(
    evaluation: Evaluation, policy: str, kinds: Mapping[str, Share], measures: Metrics
) -> None:
    """Print metrics of responses, and the decisions of the policy of that name."""
    console = open_console()
    console.print(render_evaluation(evaluation))
    if kinds:
        console.print(kinds_table(kinds))
    console.print(decisions(evaluation, policy, measures))


def kinds_table(kinds: Mapping[str, Share]) -> Table:
    """Tabulate how many responses with a label of each kind are flagged."""
    table = Table(title="Kinds of hallucination", title_justify="left", title_style="bold", box=None)
    for name in ("", "responses", "flagged"):
        table.add_column(name, justify="right" if name else "left")
    for kind, share in kinds.items():
        table.add_row(Text(one_line(kind, LONGEST_NAME)), str(share.count), share_cell(share))
    return table


def decisions(evaluation: Evaluation, policy: str, measures: Metrics) -> RenderableType:
    """Show the policy's actions and errors, and the measures that no table above has."""
    rows = [result.row for result in evaluation.results]
    names = ("faithfulness", "sentence_f1", "span_f1", "with_verdict")
    words = [
        f"{MEASURES[name].words} {with_interval(measures[name])}"
        for name in names
        if measures[name].value is not None
    ]
    return Group(Text(), outcome_table({policy: rows}), Text("; ".join(words), style="dim"))


def render_evaluation(evaluation: Evaluation) -> RenderableType:
    """Show the metrics per generator with intervals."""
    rows = {
        f"{name} ({evaluation.hallucinated[name]}/{evaluation.rows[name]} hallucinated)": metrics
        for name, metrics in evaluation.metrics.items()
    }
    lines: list[RenderableType] = [metrics_table("Responses", rows)]
    lines.append(Text("95 % bootstrap intervals over sources below each value.", style="dim"))
    if evaluation.controls:
        words = "; ".join(f"{name} {with_interval(auroc)}" for name, auroc in evaluation.controls.items())
        lines.append(Text(f"AUROC of what anybody can count: {words}", style="dim"))
    wrong = [result for result in evaluation.results if result.right is False]
    for words, ids in (
        ("missed", [result.id for result in wrong if result.hallucinated]),
        ("flagged, and faithful", [result.id for result in wrong if not result.hallucinated]),
    ):
        lines += [Text(f"{len(ids)} {words}: {_listed(ids)}")] if ids else []
    if evaluation.comparer is not None:
        lines.append(Text(comparer_words(evaluation.comparer), style="yellow"))
    if evaluation.prevalence is not None:
        lines.append(Text(f"at a prevalence of {evaluation.prevalence:.3g}", style="dim"))
    if evaluation.abstained:
        lines += _abstained(evaluation)
    if evaluation.seen:
        note = f"{evaluation.seen} of these examples share sources with the training data: "
        note += "these metrics are too good."
        lines.append(Text(note, style="bold red"))
    if evaluation.failures:
        lines.append(Text(f"{len(evaluation.failures)} examples failed and are left out."))
    return Group(*lines)


def _abstained(evaluation: Evaluation) -> list[RenderableType]:
    """Count the rows without a verdict by reason, and show metrics of the rows with a verdict."""
    count = len(evaluation.abstained)
    note = f"{count} are unlike the training data: analyse gives no verdict on them. --json lists them all."
    by_facet: dict[str, list[str]] = {}
    for id, features in evaluation.abstained.items():
        for feature in features:
            by_facet.setdefault(feature.facet, []).append(id)
    lines: list[RenderableType] = [Text(note, style="yellow")]
    for facet, ids in by_facet.items():
        lines.append(Text(f"  {facet}: {len(ids)} ({_listed(ids)})"))
    if evaluation.judged:
        lines.append(metrics_table("Responses with a verdict", evaluation.judged))
    return lines


def evaluation_record(
    evaluation: Evaluation,
    card: Card,
    made_with: Mapping[str, Any],
    kinds: Mapping[str, Share],
    measures: Metrics,
) -> dict[str, Any]:
    """Return the evaluation for machines; `read_saved` reads it, to compare a later evaluation with it."""
    return {
        "format": FORMAT,
        "made_with": dict(made_with),
        "reader": card.reader,
        "threshold": evaluation.threshold,
        "prevalence": evaluation.prevalence,
        "generators": {
            name: {
                "rows": evaluation.rows[name],
                "hallucinated": evaluation.hallucinated[name],
                "metrics": {key: value.model_dump() for key, value in metrics.items()},
            }
            for name, metrics in evaluation.metrics.items()
        },
        "controls": {name: value.model_dump() for name, value in evaluation.controls.items()},
        "probabilities": evaluation.probabilities,
        "abstained": {
            id: [{"facet": feature.facet, "words": feature.words} for feature in features]
            for id, features in evaluation.abstained.items()
        },
        "with_verdict": {
            name: {key: value.model_dump() for key, value in metrics.items()}
            for name, metrics in evaluation.judged.items()
        },
        "seen": evaluation.seen,
        "failures": evaluation.failures,
        "measures": {name: value.model_dump() for name, value in measures.items()},
        "kinds": {kind: share_record(share) for kind, share in kinds.items()},
        "outcomes": outcome_record([result.row for result in evaluation.results]),
        EXAMPLES: [result.model_dump(mode="json") for result in evaluation.results],
    }


def render_gate(gate: Gate, baseline: str) -> RenderableType:
    """Show the measures side by side, and the outcome in the last line."""
    pairs = gate.pairs
    lines: list[RenderableType] = [
        Text(
            f"Compared with {one_line(baseline, LONGEST_NAME)}: {len(pairs.results)} examples of "
            f"{gate.sources} sources",
            style="bold",
        )
    ]
    for words, ids in (
        ("in DATA only, left out", pairs.only_now),
        ("in the baseline only, left out", pairs.only_before),
        ("with other texts than in the baseline, left out", pairs.other_texts),
        ("with other labels; both are measured by those of DATA", pairs.relabelled),
    ):
        lines += [Text(f"  {len(ids)} {words}: {_listed(ids)}")] if ids else []
    if gate.made_with:
        changes = [
            f"{one_line(name, 40)} {_value_words(before)}, now {_value_words(now)}"
            for name, (before, now) in gate.made_with.items()
        ]
        lines.append(Text(f"  made with another: {'; '.join(changes)}"))
    lines.append(_gate_table(gate))
    for words, ids, style in (
        ("wrong, and were right", gate.newly_wrong, "red"),
        ("without a verdict, and had one", gate.lost, "red"),
        ("right, and were wrong", gate.newly_right, "green"),
    ):
        lines += [Text(f"  {len(ids)} are {words}: {_listed(ids)}", style=style)] if ids else []
    return Group(*lines, *_outcome(gate))


def _gate_table(gate: Gate) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in ("", "baseline", "now", "drop [95 %]", ""):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for name, change in gate.changes.items():
        style = STYLES.get(change.state, "dim")
        cells = (number(change.before) or "-", number(change.now) or "-", difference(change.drop) or "-")
        table.add_row(MEASURES[name].words, *cells, Text(change.state, style=style))
    return table


def _outcome(gate: Gate) -> list[Text]:
    more = f"more than {gate.max_drop:g}"
    lines = []
    if gate.open:
        words = f"Not ruled out: a drop of {more} in {_measures(gate.open)}. More examples would tell."
        lines.append(Text(words, style="yellow"))
    if gate.sources < FEW:
        words = f"{gate.sources} sources are few: only large drops can be told from chance."
        lines.append(Text(words, style="dim"))
    if gate.failed:
        words = f"The gate fails, worse by {more} and not by chance: {_measures(gate.failed)}."
        return [*lines, Text(words, style="bold red")]
    return [*lines, Text("The gate passes.", style="bold green")]


def gate_record(gate: Gate, baseline: str) -> dict[str, Any]:
    """Return the gate as JSON values."""
    pairs = gate.pairs
    return {
        "baseline": baseline,
        "passed": not gate.failed,
        "failed": list(gate.failed),
        "not_ruled_out": list(gate.open),
        "max_drop": gate.max_drop,
        "compared": len(pairs.results),
        "sources": gate.sources,
        "only_now": list(pairs.only_now),
        "only_baseline": list(pairs.only_before),
        "other_texts": list(pairs.other_texts),
        "relabelled": list(pairs.relabelled),
        "newly_wrong": list(gate.newly_wrong),
        "newly_right": list(gate.newly_right),
        "lost": list(gate.lost),
        "made_with": {name: list(values) for name, values in gate.made_with.items()},
        "measures": {
            name: {
                "baseline": change.before,
                "now": change.now,
                "drop": change.drop.model_dump(),
                "better": MEASURES[name].better,
                "state": change.state,
            }
            for name, change in gate.changes.items()
        },
    }


def _measures(names: Sequence[str]) -> str:
    return ", ".join(MEASURES[name].words for name in names)


def _listed(ids: Sequence[str]) -> str:
    more = ", ..." if len(ids) > SHOWN else ""
    return ", ".join(one_line(id, LONGEST_NAME) for id in ids[:SHOWN]) + more


def _value_words(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "none" if value is None else one_line(str(value), 16)
