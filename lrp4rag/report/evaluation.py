"""Evaluations as tables of metrics, of responses and of tokens, spans and sentences, and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.classifiers.card import Card, Located
from lrp4rag.report.cards import metrics_table
from lrp4rag.report.numbers import METRICS, stacked
from lrp4rag.terminal import open_console
from lrp4rag.text import one_line
from lrp4rag.training.evaluate import Evaluation
from lrp4rag.training.localisation import CONTROLS, Localisation, lines_record

COLUMNS = ("token AUROC", "token AP", "span F1", "sentence F1")
"""Precision and recall are in the record."""

LONGEST_NAME = 60
"""Characters of a generator's name."""

SHOWN = 5
"""Ids of rows that are listed for one reason."""

RESPONSES = ("auroc", "accuracy", "f1", "ece")


def print_evaluation(evaluation: Evaluation) -> None:
    """Metrics of responses, and of a token detector also those of tokens, spans and sentences."""
    open_console().print(render_evaluation(evaluation))
    if evaluation.localisation is not None:
        note = "the detector has not seen these rows; the controls' thresholds are cross-validated on them"
        print_localisation(evaluation.localisation, note)


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


def evaluation_record(evaluation: Evaluation, card: Card) -> dict[str, Any]:
    """The evaluation for machines."""
    return {
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
