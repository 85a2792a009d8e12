"""Cards and evaluations as tables of metrics, and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.classifiers.card import Card, Interval, Metrics, VectorInput
from lrp4rag.report.localisation import print_localisation
from lrp4rag.terminal import open_console, say_json
from lrp4rag.training.evaluate import Evaluation
from lrp4rag.training.localisation import lines_record

VECTOR_WORDS = {
    "total": "relevance of the whole prompt per response token (n x R_response)",
    "response": "R_response",
    "prompt": "R_prompt",
    "segments": "relevance of passages, question and template per response token",
    "matrix": "R* in bins, along the response",
    "matrix_t": "R* in bins, along the prompt",
}
COLUMNS = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "accuracy": "acc.",
    "balanced_accuracy": "bal.acc",
    "precision": "prec.",
    "recall": "recall",
    "f1": "F1",
    "ece": "ECE",
}


def print_card(card: Card, *, as_json: bool = False) -> None:
    """Print a detector's card, whole as JSON or as tables."""
    if as_json:
        say_json(card.model_dump(mode="json"), indent=2)
    else:
        open_console().print(render_card(card))


def print_evaluation(evaluation: Evaluation) -> None:
    """Metrics of responses, and of a token detector also those of tokens, spans and sentences."""
    open_console().print(render_evaluation(evaluation))
    if evaluation.localisation is not None:
        note = "the detector has not seen these rows; the controls' thresholds are cross-validated on them"
        print_localisation(evaluation.localisation, note)


def render_card(card: Card) -> RenderableType:
    """What a detector is, and its cross-validated metrics beside the controls."""
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(card).items():
        facts.add_row(Text(name, style="dim"), Text(value))
    parts: list[RenderableType] = [facts]
    if card.evidence is not None:
        rows = {f"{card.classifier} (this)": card.evidence.metrics, **card.evidence.controls}
        parts += [Text(), metrics_table("Responses", rows), Text()]
        parts += [metrics_table("Tokens", {"suspect tokens": card.evidence.tokens}), Text()]
        parts.append(Text(f"95 % intervals below each value. {card.evidence.protocol}.", style="dim"))
    return Group(*parts)


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


def metrics_table(title: str, rows: dict[str, Metrics]) -> Table:
    """One row of values per name, each above its interval."""
    columns = [name for name in COLUMNS if any(name in metrics for metrics in rows.values())]
    # Eight metrics with intervals must fit a terminal of 80 columns.
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0))
    table.add_column("", min_width=14, max_width=14)
    for name in columns:
        table.add_column(COLUMNS[name], justify="right")
    for name, metrics in rows.items():
        table.add_row(Text(name), *(_cell(metrics.get(column)) for column in columns))
    return table


def _cell(interval: Interval | None) -> Text:
    if interval is None or interval.value is None:
        return Text("-", style="dim")
    text = Text(f"{interval.value:.3f}", no_wrap=True)
    if interval.low is not None and interval.high is not None:
        low, high = (f"{bound:.2f}".removeprefix("0") for bound in (interval.low, interval.high))
        text.append(f"\n{low}-{high}", style="dim")
    return text


def _features(card: Card) -> str:
    given = card.input
    if isinstance(given, VectorInput):
        return f"{VECTOR_WORDS[given.vector]}, resampled to {given.length} ({given.mode})"
    return f"of tokens: {', '.join(given.blocks)}; a response's score is the mean of {given.reading.top}"


def _facts(card: Card) -> dict[str, str]:
    reader = card.reader
    prompt = "chat template" if reader["chat_template"] else "raw prompt"
    facts = {
        "reader": f"{reader['name']}, {prompt}, {reader['dtype']} ({reader['digest']})",
        "relevance": f"{card.composite}, target {card.target}",
        "features": _features(card),
        "classifier": f"{card.classifier} ({card.settings}), flags from probability {card.threshold:g}",
        "rows": f"{card.rows}, {card.hallucinated} hallucinated",
    }
    if card.training is not None:
        counts = ", ".join(f"{name}: {count}" for name, count in card.training.generators.items())
        facts["trained on"] = (
            f"{counts}; {len(card.training.sources)} sources; data {card.training.data_hash[:16]}"
        )
        facts["command"] = card.training.command
    facts["versions"] = ", ".join(f"{name} {number}" for name, number in card.versions.items())
    return facts
