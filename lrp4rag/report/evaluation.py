"""Evaluations as tables of metrics, of responses and of tokens, spans and sentences, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.classifiers.card import Card, Located, Metrics
from lrp4rag.guard.evaluation.evaluate import Evaluation
from lrp4rag.guard.evaluation.measures import MEASURES
from lrp4rag.guard.evaluation.saved import EXAMPLES, FORMAT
from lrp4rag.guard.policy.simulate import Share, outcome_record, outcome_table, share_cell, share_record
from lrp4rag.report.cards import metrics_table
from lrp4rag.report.numbers import METRICS, stacked, with_interval
from lrp4rag.training.localisation import CONTROLS, Localisation, lines_record
from lrp4rag.util.terminal import open_console
from lrp4rag.util.text import one_line

COLUMNS = ("token AUROC", "token AP", "span F1", "sentence F1")
"""Precision and recall are in the record."""

LONGEST_NAME = 60
"""Characters of a generator's name."""

SHOWN = 5
"""Ids of rows that are listed for one reason."""

RESPONSES = ("auroc", "accuracy", "f1", "ece")


def print_evaluation(
    evaluation: Evaluation, policy: str, kinds: Mapping[str, Share], measures: Metrics
) -> None:
    """Metrics of responses, and of a token detector also those of tokens, spans and sentences; and what the
    policy of that name does with them."""
    console = open_console()
    console.print(render_evaluation(evaluation))
    if evaluation.localisation is not None:
        note = "the detector has not seen these rows; the controls' thresholds are cross-validated on them"
        print_localisation(evaluation.localisation, note)
    if kinds:
        console.print(kinds_table(kinds))
    console.print(decisions(evaluation, policy, measures))


def kinds_table(kinds: Mapping[str, Share]) -> Table:
    """How many responses with a label of each kind are flagged."""
    table = Table(title="Kinds of hallucination", title_justify="left", title_style="bold", box=None)
    for name in ("", "responses", "flagged"):
        table.add_column(name, justify="right" if name else "left")
    for kind, found in kinds.items():
        table.add_row(Text(one_line(kind, LONGEST_NAME)), str(found.count), share_cell(found))
    return table


def decisions(evaluation: Evaluation, policy: str, measures: Metrics) -> RenderableType:
    """What the policy does with the answers, what its errors are, and measures that no table above has."""
    rows = [one.row for one in evaluation.results]
    names = ("faithfulness", "sentence_f1", "span_f1", "with_verdict")
    told = [
        f"{MEASURES[name].words} {with_interval(measures[name])}"
        for name in names
        if measures[name].value is not None
    ]
    return Group(Text(), outcome_table({policy: rows}), Text("; ".join(told), style="dim"))


def render_evaluation(evaluation: Evaluation) -> RenderableType:
    """Metrics per generator with intervals."""
    rows = {
        f"{name} ({evaluation.hallucinated[name]}/{evaluation.rows[name]} hallucinated)": metrics
        for name, metrics in evaluation.metrics.items()
    }
    parts: list[RenderableType] = [metrics_table("Responses", rows)]
    parts.append(Text("95 % bootstrap intervals over sources below each value.", style="dim"))
    if evaluation.prevalence is not None:
        parts.append(Text(f"at a prevalence of {evaluation.prevalence:.3g}", style="dim"))
    if evaluation.abstained:
        parts += _abstained(evaluation)
    if evaluation.seen:
        note = f"{evaluation.seen} of these examples share sources with the training data: "
        note += "these metrics are too good."
        parts.append(Text(note, style="bold red"))
    if evaluation.failures:
        parts.append(Text(f"{len(evaluation.failures)} examples failed and are left out."))
    return Group(*parts)


def _abstained(evaluation: Evaluation) -> list[RenderableType]:
    """How many rows have no verdict and why, and metrics of the others."""
    many = len(evaluation.abstained)
    note = f"{many} are unlike the training data: analyse gives no verdict on them. --json lists them all."
    by_facet: dict[str, list[str]] = {}
    for name, why in evaluation.abstained.items():
        for one in why:
            by_facet.setdefault(one.facet, []).append(one_line(name, LONGEST_NAME))
    found: list[RenderableType] = [Text(note, style="yellow")]
    for facet, names in by_facet.items():
        more = ", ..." if len(names) > SHOWN else ""
        found.append(Text(f"  {facet}: {len(names)} ({', '.join(names[:SHOWN])}{more})"))
    if evaluation.judged:
        found.append(metrics_table("Responses with a verdict", evaluation.judged))
    return found


def evaluation_record(
    evaluation: Evaluation,
    card: Card,
    made_with: Mapping[str, Any],
    kinds: Mapping[str, Share],
    measures: Metrics,
) -> dict[str, Any]:
    """The evaluation for machines; a later one can be compared with it (`evaluation.saved`)."""
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
        "probabilities": evaluation.probabilities,
        "abstained": {
            name: [{"facet": one.facet, "words": one.words} for one in why]
            for name, why in evaluation.abstained.items()
        },
        "with_verdict": {
            name: {key: value.model_dump() for key, value in metrics.items()}
            for name, metrics in evaluation.judged.items()
        },
        "located": None if evaluation.localisation is None else lines_record(evaluation.localisation),
        "seen": evaluation.seen,
        "failures": evaluation.failures,
        "measures": {name: one.model_dump() for name, one in measures.items()},
        "kinds": {kind: share_record(found) for kind, found in kinds.items()},
        "outcomes": outcome_record([one.row for one in evaluation.results]),
        EXAMPLES: [one.model_dump(mode="json") for one in evaluation.results],
    }


def print_localisation(found: Localisation, protocol: str) -> None:
    """A table for each generator; controls are dim. `protocol` says in words who learned from what."""
    console = open_console()
    console.print(f"{protocol}; 95 % bootstrap intervals over sources", style="dim")
    for generator, lines in found.lines.items():
        counts = f"{found.rows[generator]} responses, {found.hallucinated[generator]} hallucinated"
        title = f"{one_line(generator, LONGEST_NAME)}: {counts}"
        table = Table("", *COLUMNS, title=title, title_justify="left", show_lines=True)
        for name, line in lines.items():
            table.add_row(name, *_cells(line), style="dim" if name in CONTROLS else None)
        console.print(table)
        whole = Table("whole responses", *(METRICS[name] for name in RESPONSES), show_lines=True)
        for name, metrics in found.responses[generator].items():
            cells = [stacked(metrics[metric]) for metric in RESPONSES]
            whole.add_row(name, *cells, style="dim" if name in CONTROLS else None)
        console.print(whole)


def _cells(line: Located) -> list[str]:
    values = (line.tokens["auroc"], line.tokens["auprc"], line.spans["f1"], line.sentences["f1"])
    return [stacked(value) for value in values]
