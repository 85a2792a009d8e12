"""A detector's card as tables of metrics, as JSON, and as a page of Markdown."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.classifiers.card import Card, Interval, Metrics
from lrp4rag.classifiers.operating import precision_at
from lrp4rag.classifiers.prevalence import PREVALENCES
from lrp4rag.reader.words import NONE
from lrp4rag.report.numbers import METRICS, abridged, number, with_interval
from lrp4rag.report.templates import markdown_templates
from lrp4rag.report.words import reader_words
from lrp4rag.util.terminal import open_console, say_json
from lrp4rag.util.text import one_line

RESPONSES = ("auroc", "accuracy", "precision", "recall", "f1", "ece")
"""Metrics of responses on the page."""
COLUMNS = {"auroc": "AUROC", "auprc": "AUPRC"} | METRICS
COLUMNS |= {"accuracy": "acc.", "balanced_accuracy": "bal.acc", "precision": "prec."}
"""Short names: eight metrics with intervals must fit a terminal of 80 columns."""


def print_card(card: Card, *, as_json: bool = False) -> None:
    """Print a detector's card: all of it as JSON, or as tables."""
    if as_json:
        say_json(card.model_dump(mode="json"), indent=2)
    else:
        open_console().print(render_card(card))


def render_card(card: Card) -> RenderableType:
    """Show a detector's facts, and its cross-validated metrics beside the controls."""
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(card).items():
        facts.add_row(Text(name, style="dim"), Text(value))
    blocks: list[RenderableType] = [facts]
    if card.evidence is not None:
        rows = {f"{card.classifier} (this)": card.evidence.metrics, **card.evidence.controls}
        blocks += [Text(), metrics_table("Responses", rows), Text()]
        blocks += [metrics_table("Tokens", {"suspect tokens": card.evidence.tokens}), Text()]
        blocks.append(Text(f"95 % intervals below each value. {card.evidence.protocol}.", style="dim"))
    return Group(*blocks)


def metrics_table(title: str, rows: dict[str, Metrics]) -> Table:
    """Build a table with one row per name, each value above its interval."""
    columns = [name for name in COLUMNS if any(name in metrics for metrics in rows.values())]
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
    text = Text(number(interval.value), no_wrap=True)
    if interval.low is not None and interval.high is not None:
        text.append(f"\n{abridged(interval.low, interval.high)}", style="dim")
    return text


def _facts(card: Card) -> dict[str, str]:
    reader = card.reader
    prompt = "chat template" if reader["chat_template"] else "raw prompt"
    facts = {
        "reader": f"{reader['name']}, {prompt}, {reader['dtype']} ({reader['digest']})",
        "relevance": f"{card.composite}, target {card.target}",
    }
    if reader["name"] == NONE:
        facts = {"reader": "none: texts are compared"}
    facts |= {
        "features": card.input.words(),
        "classifier": f"{card.classifier} ({card.settings}), threshold {card.threshold:g}",
        "rows": f"{card.rows}, {card.hallucinated} hallucinated",
    }
    if reader.get("quantised"):
        facts["weights"] = f"quantised: {one_line(reader['quantised'], 60)}; relevance is pushed, not pulled"
    if card.training is not None:
        counts = ", ".join(f"{name}: {count}" for name, count in card.training.generators.items())
        facts["trained on"] = (
            f"{counts}; {len(card.training.sources)} sources; data {card.training.data_hash[:16]}"
        )
        facts["command"] = card.training.command
    facts["versions"] = ", ".join(f"{name} {version}" for name, version in card.versions.items())
    return facts


def model_card(card: Card, name: str) -> str:
    """Write the card of the detector `name` as a page of Markdown: purpose, worth and failures."""
    generators = {} if card.evidence is None else dict(card.evidence.generators)
    page: str = _template().render(
        card=card,
        name=name,
        reader=reader_words({**card.reader, "name": Path(str(card.reader.get("name", ""))).name}),
        generators=generators,
        responses=RESPONSES,
        precision_at=precision_at,
        prevalences=PREVALENCES,
        point=next(
            (name for name, point in card.operating_points.items() if point.threshold == card.threshold),
            "balanced",
        ),
    )
    return page


@cache
def _template() -> Any:
    environment = markdown_templates(Path(__file__).parent)
    environment.filters["interval"] = with_interval
    return environment.get_template("model_card.md.j2")
