"""Results whose names users chose, made by hand, and pages of them read as a browser would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from markdown_it import MarkdownIt

from lrp4rag.classifiers.card import Interval
from lrp4rag.experiments.paper import (
    ablations,
    findings,
    implicit,
    length,
    reliability,
    table2,
    thresholds,
    transfer,
)
from lrp4rag.experiments.paper.parts import Note
from lrp4rag.experiments.paper.settings import Settings
from lrp4rag.experiments.paper.sweep import Chosen, Sweep, ThresholdMethod
from lrp4rag.experiments.systems.comparison.ours import FACTS
from lrp4rag.report.numbers import METRICS
from lrp4rag.training.metrics import Reliability
from lrp4rag.training.records import from_json
from tests.hostile.strings import TEXTS

DOCS = Path(__file__).parents[2] / "docs" / "results"
SYSTEMS = 7

MARKDOWN = [
    "<script>alert(1)</script>",
    "</text><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!-- comment",
    "<https://evil.example>",
    "&lt;script&gt; &#x3c;",
    "[click](javascript:alert(1))",
    "![i](https://evil.example/i.png)",
    "[0.1, 0.2](https://evil.example)",
    "[0.1, 0.2]: https://evil.example",
    "[a]: https://evil.example 'b'",
    "a ][b](c",
    "# heading",
    "\n# heading\n\n<script>",
    "\n\n---\n\n",
    "\n| a | b |\n|---|---|\n",
    "a|b||c",
    "a\\|b",
    "ends in a backslash\\",
    "`code`",
    "`` ` ``",
    "```\nfence",
    "` `` ``` ````",
    "**bold** *italic* __b__ _i_ ~~s~~",
    "* item",
    "- item",
    "+ item",
    "1. item",
    "> quote",
    "    indented",
    "\tindented",
    "===",
    "---",
    "***",
    "$$\\frac{1}{0}$$",
    "{{ name }} {% raw %}",
    "[x] task",
    "[^1] note",
    "a\r\nb\u2028c\u2029d\x85e",
]
FORMULAS = [
    "=1+1",
    '=HYPERLINK("http://evil.example","x")',
    "+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    'a"\n=1',
    "a,=1",
    "\uff1d1",
    "-",
]
MATHEMATICS = ["$", "$$", "$a$", "$\\frac{$", "\\frac{1}{2}", "$x_1", "\\$5", "R_1 ^{", "$$$"]
NAMES = [
    "",
    " ",
    ".",
    "..",
    "../../etc/passwd",
    "a/b",
    "a\\b",
    "/",
    "a\x00b",
    "-rf",
    "CON",
    "a:b",
    "模型",
    "\u200b",
    "_hidden",
    "\udc80",
    "\ufffe\uffff",
    "e\u0301",
    'x d="1.23456',
    "x" * 300,
    "items",
    "all",
]
HOSTILE = list(dict.fromkeys([*MARKDOWN, *FORMULAS, *MATHEMATICS, *NAMES, *TEXTS]))

_READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@cache
def structure(page: str) -> tuple[str, ...]:
    """What a browser makes of a page: its elements in their order, without the words in them."""
    found: list[str] = []
    for token in _READER.parse(page):
        if token.type != "inline":
            found.append(f"{token.type} {token.tag}")
            continue
        for child in token.children or []:
            kind = f"{child.type} {child.tag}"
            if not (kind.startswith("text") and found[-1].startswith("text")):
                found.append(kind)
    return tuple(found)


def words(page: str) -> str:
    """The text that a browser shows of a page."""
    parts = []
    for token in _READER.parse(page):
        parts += [token.content] if token.type != "inline" else [_text(one) for one in token.children or []]
    return "".join(parts)


def _text(token: Any) -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else str(token.content)


def links(page: str) -> set[str]:
    """Where links and images lead."""
    inline = [child for token in _READER.parse(page) for child in token.children or []]
    found = {str(child.attrs.get("href") or child.attrs.get("src") or "") for child in inline}
    return found - {""}


def interval(value: float = 0.6) -> Interval:
    return Interval(value=value, low=value - 0.05, high=value + 0.05)


METRIC = {name: interval() for name in METRICS}


def renamed(record: Any, names: Mapping[str, str]) -> Any:
    """The record with other names, as keys and as values."""
    if isinstance(record, dict):
        return {names.get(key, key): renamed(value, names) for key, value in record.items()}
    if isinstance(record, list):
        return [renamed(value, names) for value in record]
    return names.get(record, record) if isinstance(record, str) else record


def recorded(kind: Any, name: str, names: Mapping[str, str]) -> Any:
    """The committed results of a study or a comparison, with other names, and few lines."""
    return from_json(kind, renamed(_record(kind, name), names))


@cache
def _record(kind: Any, name: str) -> Any:
    record = json.loads((DOCS / name / "results.json").read_text(encoding="utf-8"))
    if "facts" in record:
        every = [*FACTS, *(one for one in record["facts"] if one not in FACTS)]
    else:
        every = list(record["ways"]["responses"]["all"])
    record = _without(record, set(every[SYSTEMS:]))
    return {field.name: record[field.name] for field in fields(kind)}


def _without(record: Any, dropped: set[str]) -> Any:
    if not isinstance(record, dict):
        return record
    return {key: _without(value, dropped) for key, value in record.items() if key not in dropped}


def rows_named(names: list[str], reader: str) -> Any:
    """As much of `Rows` as a page asks for."""

    class Rows(SimpleNamespace):
        def __len__(self) -> int:
            return 4

    store = SimpleNamespace(configuration=SimpleNamespace(reader={"name": reader}))
    return Rows(digest="d", generators=np.array(names), store=store)


def reproduced(name: str) -> dict[str, Any]:
    """A result of each section but one, of a generator and a variant of this name."""
    left_out = (Note(f"R_prompt of {name}", f"lrp4rag extract {name}"),)
    curve = length.Curve("svm", "response", "zeros", (10, 220), (METRIC, METRIC))
    chosen = Chosen((0.5,), METRIC)
    values = np.linspace(0, 1, 5)
    method = ThresholdMethod(
        "response", "within", Sweep(*[values] * len(fields(Sweep))), chosen, chosen, 0.4, interval(0.0)
    )
    line = table2.Line(
        "svm on R_response", "paper", METRIC, {f"R_response ({name})": 3}, 2, "svm", "response"
    )
    control = replace(line, name="length only", kind="control")
    best = replace(line, name=table2.BEST_OF_ALL, kind="best")
    target = table2.Target(
        0.9,
        "svm",
        interval(),
        interval(),
        "length only",
        3,
        interval(),
        interval(),
        interval(),
        (name, name),
        "svm",
        interval(),
        "svm",
        interval(),
        0.4,
        0.5,
    )
    table = table2.GeneratorTable(40, 20, 10, {"honest": (best, line, control)}, target)
    bins = Reliability(values, values[1:], values[1:], np.full(4, 5))
    return {
        "table2": table2.Table2({name: table}, {"honest": "5-fold"}, left_out),
        "thresholds": thresholds.Thresholds({name: (method,)}, left_out),
        "length": length.Lengths({name: (curve,)}, "5-fold", left_out),
        "ablations": ablations.Ablations(
            f"svm on R_response; {name}",
            (ablations.Change(name, "rules", f"{name} ({name})", 40, METRIC, METRIC, METRIC),),
            left_out,
        ),
        "implicit": implicit.Implicit({name: implicit.Counted(40, 10, 2, METRIC, METRIC, METRIC)}, left_out),
        "reliability": reliability.Diagrams({name: {"svm": bins, "novel words": bins}}),
        "transfer": transfer.Transfer((transfer.Pair(name, name, METRIC), transfer.Pair("x", name, METRIC))),
        "findings": findings.Findings(
            {
                "1": (findings.Case(name, findings.MEAN, interval(), null=0.5),),
                "2": (),
                "3": (findings.Case(f"{name} to {name}", "best", interval(), interval()),),
                "4": (),
            },
            left_out,
        ),
    }


def context_named(name: str) -> Any:
    """As much of `Context` as the page asks for."""

    class Part(SimpleNamespace):
        def __len__(self) -> int:
            return 40

    configuration = SimpleNamespace(
        reader={"name": name, "chat_template": True, "dtype": name}, composite=name, target=name
    )
    rows = SimpleNamespace(store=SimpleNamespace(configuration=configuration))
    part = Part(rows=rows, groups=["a", "b"], prevalence=0.4)
    return SimpleNamespace(parts={name: part}, settings=Settings())
