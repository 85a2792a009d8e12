"""LRP4RAG's four claims beside what was measured, from the tables that `reproduce` wrote: no store is needed.

Each line has the paper's figure, ours with its interval, what it must exceed, and a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from lrp4rag.classifiers.card import Interval
from lrp4rag.errors import InputError
from lrp4rag.experiments.figures.style import save_table
from lrp4rag.experiments.paper.findings import MEAN, worded
from lrp4rag.experiments.published import BEST_THRESHOLDS, SOURCE, TABLE_2, Published
from lrp4rag.experiments.results_page import write_markdown, write_record
from lrp4rag.report.markdown import Markdown, strong
from lrp4rag.report.numbers import markdown, number, with_interval

KIND = "lrp4rag experiments claims"
TEMPLATE = Path(__file__).parent / "templates" / "claims.md.j2"
HONEST, BEST = "honest", "best of the paper's own, chosen by accuracy"
CONTROLS, MAJORITY = "control", "majority class"
LENGTHS = "svm, R_response, interpolate"
GENERATORS = ("llama-2-7b-chat", "llama-2-13b-chat")
"""Those that the paper has figures of."""
TITLES = {
    "1": "Relevance of hallucinated and of faithful responses differs",
    "2": "It beats the baselines",
    "3": "It stays good across models and lengths",
    "4": "Which relevance tells most",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A part of a claim: it holds where the interval of `here` lies above `against`."""

    claim: str
    where: str
    what: str
    paper: str
    here: Interval
    against: float
    against_what: str

    @property
    def verdict(self) -> str:
        return worded(self.here, self.against)


@dataclass(frozen=True, slots=True)
class Tables:
    """What a folder of results has."""

    table2: pd.DataFrame
    findings: pd.DataFrame
    thresholds: pd.DataFrame
    lengths: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Tables:
        """Raises `InputError` for a missing file."""
        names = ("table2", "findings", "tables-1-and-5", "length")
        found = [_csv(folder / f"{name}.csv") for name in names]
        return cls(*found)


def lines(tables: Tables, matrix: pd.DataFrame) -> list[Line]:
    """All four claims; `matrix` are findings of a store that has R*."""
    return [*_differs(tables), *_beats(tables), *_stays(tables), *_tells(tables.findings, matrix)]


def _differs(tables: Tables) -> Iterator[Line]:
    found = tables.findings
    for row in _rows(found[(found["finding"] == 1) & (found["metric"] == "auroc")]):
        what = row["what"] if row["what"] == MEAN else f"also: {row['what']}"
        yield Line("1", row["where"], what, "lower", _interval(row), float(row["null"]), "AUROC of chance")
    for row in _rows(tables.thresholds):
        key = str(row["vector"]), str(row["generator"])
        if row["chosen_on"] == "training folds" and row["scaling"] == "within" and key in BEST_THRESHOLDS:
            at, f1 = BEST_THRESHOLDS[key]
            yield Line(
                "1",
                key[1],
                "F1 of the threshold on R_response",
                f"F1 {f1:.3f} at {at:.2f}",
                Interval(value=row["f1"], low=row["f1_low"], high=row["f1_high"]),
                float(row["flag_everything_f1"]),
                "F1 of flagging everything",
            )


def _beats(tables: Tables) -> Iterator[Line]:
    table = tables.table2
    table = table[(table["protocol"] == HONEST) & (table["metric"] == "accuracy")]
    for generator in GENERATORS:
        own = table[table["generator"] == generator]
        (best,) = _rows(own[own["name"] == BEST])
        ours, theirs = best_published("lrp4rag", generator), best_published("baseline", generator)
        words = f"{100 * ours.accuracy:.2f} % ({ours.classifier}) beside {100 * theirs.accuracy:.2f} %"
        controls = own[own["kind"] == CONTROLS]
        (highest,) = _rows(controls.nlargest(1, "value"))
        for against, what in (
            (theirs.accuracy, f"the paper's best baseline, {theirs.classifier}"),
            (float(highest["value"]), f"the best control here, {highest['name']}"),
            (float(own[own["name"] == MAJORITY]["value"].iloc[0]), "the more frequent class"),
        ):
            yield Line(
                "2", generator, "accuracy of its best classifier", words, _interval(best), against, what
            )


def best_published(kind: str, generator: str) -> Published:
    """The row of the paper's Table 2 with the highest accuracy."""
    return max(
        (row for row in TABLE_2 if (row.kind, row.generator) == (kind, generator)), key=attrgetter("accuracy")
    )


def _stays(tables: Tables) -> Iterator[Line]:
    found = tables.findings
    for row in _rows(found[(found["finding"] == 3) & (found["metric"] == "accuracy")]):
        # The claim is that it is no worse on the larger one.
        yield Line(
            "3",
            row["where"],
            "accuracy on the larger less on the smaller",
            "69.16 % and 69.87 %" if row["where"] == " to ".join(GENERATORS) else "",
            _turned(_interval(row)),
            0.0,
            "no difference",
        )
    table, curve = tables.table2, tables.lengths
    for generator in GENERATORS:
        rows = curve[
            (curve["generator"] == generator) & (curve["name"] == LENGTHS) & (curve["metric"] == "accuracy")
        ]
        (lowest,) = _rows(rows.nsmallest(1, "low"))
        majority = table[
            (table["generator"] == generator)
            & (table["protocol"] == HONEST)
            & (table["metric"] == "accuracy")
            & (table["name"] == MAJORITY)
        ]
        what = f"lowest accuracy of {len(rows)} lengths (L_new {lowest['length']}), {LENGTHS}"
        against = "the more frequent class"
        yield Line("3", generator, what, "", _interval(lowest), float(majority["value"].iloc[0]), against)


def _tells(findings: pd.DataFrame, matrix: pd.DataFrame) -> Iterator[Line]:
    for table, number_ in ((findings, 2), (matrix, 4)):
        for row in _rows(table[(table["finding"] == number_) & (table["metric"] == "auroc")]):
            yield Line("4", row["where"], row["what"], "", _interval(row), 0.0, "no difference in AUROC")


def write(found: list[Line], out: Path, command: str) -> list[Path]:
    """README.md, claims.csv and results.json. Raises `InputError` where `out` has something else's page."""
    lines = [_record(line) for line in found]
    record = write_record(out, KIND, {"lines": lines}, command=command)
    table = save_table(pd.DataFrame(lines), out / "claims.csv")
    page = write_markdown(
        out,
        TEMPLATE,
        command=command,
        source=SOURCE,
        titles=TITLES,
        tables={name: _shown([line for line in found if line.claim == name]) for name in TITLES},
    )
    return [page, record, table]


def _shown(found: list[Line]) -> Markdown:
    return markdown(
        pd.DataFrame(
            [
                {
                    "where": line.where,
                    "what": line.what,
                    "the paper": line.paper,
                    "here": with_interval(line.here),
                    "must exceed": f"{number(line.against)}, {line.against_what}",
                    "verdict": strong(line.verdict),
                }
                for line in found
            ],
            dtype=object,
        )
    )


def _record(line: Line) -> dict[str, Any]:
    return {
        "claim": line.claim,
        "where": line.where,
        "what": line.what,
        "paper": line.paper,
        "value": line.here.value,
        "low": line.here.low,
        "high": line.here.high,
        "against": line.against,
        "against_what": line.against_what,
        "verdict": line.verdict,
    }


def _csv(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise InputError("no table of lrp4rag experiments reproduce", path=path)
    return pd.read_csv(path)


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.to_dict("records")
    return found


def _interval(row: dict[str, Any]) -> Interval:
    return Interval(value=row["value"], low=row["low"], high=row["high"])


def _turned(one: Interval) -> Interval:
    """Of the difference the other way round."""
    if one.value is None or one.low is None or one.high is None:
        return one
    return Interval(value=-one.value, low=-one.high, high=-one.low)
