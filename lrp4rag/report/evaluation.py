"""Evaluations as tables of metrics, and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from lrp4rag.classifiers.card import Card
from lrp4rag.report.cards import metrics_table
from lrp4rag.report.localisation import print_localisation
from lrp4rag.terminal import open_console
from lrp4rag.training.evaluate import Evaluation
from lrp4rag.training.localisation import lines_record


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
    if evaluation.abstained:
        note = f"{evaluation.abstained} are unlike the training data: analyse gives no verdict on them."
        parts.append(Text(note, style="yellow"))
    if evaluation.seen:
        note = f"{evaluation.seen} of these examples share sources with the training data: too good."
        parts.append(Text(note, style="bold red"))
    if evaluation.failures:
        parts.append(Text(f"{len(evaluation.failures)} examples failed and are left out."))
    return Group(*parts)


def evaluation_record(evaluation: Evaluation, card: Card) -> dict[str, Any]:
    """The evaluation for machines."""
    return {
        "reader": card.reader,
        "threshold": card.threshold,
        "generators": {
            name: {
                "rows": evaluation.rows[name],
                "hallucinated": evaluation.hallucinated[name],
                "metrics": {key: value.model_dump() for key, value in metrics.items()},
            }
            for name, metrics in evaluation.metrics.items()
        },
        "probabilities": evaluation.probabilities,
        "abstained": evaluation.abstained,
        "located": None if evaluation.localisation is None else lines_record(evaluation.localisation),
        "seen": evaluation.seen,
        "failures": evaluation.failures,
    }
