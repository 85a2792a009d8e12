"""Table 2 as figures, numbers and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lrp4rag.experiments.figures import forest
from lrp4rag.experiments.paper.context import Exhibit
from lrp4rag.experiments.paper.published import Published, published, published_table
from lrp4rag.experiments.paper.table2 import Line, Table2
from lrp4rag.report.figure_text import label
from lrp4rag.report.markdown import emphasised, strong, text
from lrp4rag.report.numbers import METRICS, percent, slug, with_interval

if TYPE_CHECKING:
    import pandas as pd

COMPARED = {"forest": "response", "mlp": "response", "svm": "response", "lstm": "matrix"}
"""The vector of ours beside which each of the paper's classifiers is printed."""
_EMPHASIS = {"control": emphasised, "best": strong}


def show(result: Table2) -> Exhibit:
    """A forest plot a generator (the honest protocol where there is one), and a table a protocol."""
    import pandas as pd

    figures, shown, lines = {}, {}, []
    for generator, table in result.generators.items():
        first, *_ = result.protocols
        entries = [_entry(generator, line) for line in table.lines[first]]
        title = f"{label(generator)}, {first} protocol"
        figures[f"table2-{slug(generator)}"] = forest.draw(entries, title=title)
        for protocol, found in table.lines.items():
            shown[f"table2-{slug(generator)}-{protocol}"] = _words(generator, found)
            lines += [line for each in found for line in _numbers(generator, protocol, each)]
    shown["table2-published"] = _published()
    return Exhibit(figures, {"table2": pd.DataFrame(lines), "table2-chosen": _chosen(result)}, shown)


def _entry(generator: str, line: Line) -> forest.Entry:
    kind: forest.Kind = "control" if line.kind == "control" else "detector"
    return forest.Entry(_name(line), kind, line.metrics, _reported(generator, line))


def _reported(generator: str, line: Line) -> Published | None:
    return published(line.classifier, generator) if COMPARED.get(line.classifier) == line.vector else None


def _name(line: Line) -> str:
    return f"{line.name} (ours)" if line.kind == "ours" else line.name


def _words(generator: str, lines: Sequence[Line]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for line in lines:
        paper = _reported(generator, line)
        row: dict[str, str] = {"": _EMPHASIS.get(line.kind, text)(_name(line))}
        row |= {title: with_interval(line.metrics[name]) for name, title in METRICS.items()}
        row["paper: accuracy"] = percent(paper.accuracy) if paper else ""
        row["paper: F1"] = percent(paper.f1) if paper else ""
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _numbers(generator: str, protocol: str, line: Line) -> list[dict[str, Any]]:
    paper = _reported(generator, line)
    return [
        {
            "generator": generator,
            "protocol": protocol,
            "name": line.name,
            "kind": line.kind,
            "metric": metric,
            "value": interval.value,
            "low": interval.low,
            "high": interval.high,
            "paper": getattr(paper, metric, None),
            "leaks": line.leaks,
        }
        for metric, interval in line.metrics.items()
    ]


def _chosen(result: Table2) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {"generator": generator, "name": line.name, "chosen": label, "folds": folds}
        for generator, table in result.generators.items()
        for line in table.lines.get("honest", ())
        for label, folds in line.chosen.items()
    )


def _published() -> pd.DataFrame:
    table = published_table()
    words = {name: table[name].map(percent) for name in ("accuracy", "precision", "recall", "f1")}
    named = table[["classifier", "generator"]].assign(
        kind=table["kind"].replace("lrp4rag", "LRP4RAG"), **words
    )
    return named.rename(columns={"f1": "F1"})
