"""How many conflicts between passages the check finds, and how often it sees one where there is none."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from benchmarks.command import Report, benchmark, table
from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.conflicts import Conflicts
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError

CASES = Path(__file__).parent / "conflict_cases.json"
SPLITS = ("development", "test")
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Figures = dict[str, Any]


def found(texts: Iterable[Mapping[str, Any]]) -> list[Finding]:
    sources = tuple(Source(**one) for one in texts)
    return Conflicts()(CheckInput("", sources, now=NOW))


def names_values(findings: Sequence[Finding], case: Mapping[str, Any]) -> bool:
    """Whether a conflict between the first two passages touches the characters of both values."""
    expected = [
        _span(one["text"], value) for one, value in zip(case["passages"], case["values"], strict=False)
    ]
    return any(
        one.passages == (0, 1)
        and all(
            side["start"] < end and start < side["end"]
            for side, (start, end) in zip(_sides(one), expected, strict=True)
        )
        for one in findings
    )


def share(hits: int, of: int) -> Figures:
    """A share with its 95 % interval (Wilson)."""
    if not of:
        return {"hits": 0, "of": 0, "value": None, "low": None, "high": None}
    z, p = 1.959964, hits / of
    middle, scale = (p + z * z / (2 * of)), 1 + z * z / of
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    low, high = max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)
    return {"hits": hits, "of": of, "value": p, "low": low, "high": high}


def judged(cases: Mapping[str, Sequence[Mapping[str, Any]]], splits: Sequence[str] = SPLITS) -> Figures:
    """Recall, false alarms and precision, and the ids of cases that fail."""
    conflicting = [one for one in cases["conflicting"] if one["split"] in splits]
    harmless = [one for one in cases["harmless"] if one["split"] in splits]
    missed = [one["id"] for one in conflicting if not names_values(found(one["passages"]), one)]
    alarms = [one["id"] for one in harmless if found(one["passages"])]
    hits = len(conflicting) - len(missed)
    return {
        "recall": share(hits, len(conflicting)),
        "false_alarms": share(len(alarms), len(harmless)),
        "precision": share(hits, hits + len(alarms)),
        "missed": missed,
        "alarms": alarms,
    }


def counterfactual(path: Path) -> Figures:
    """RGB: the same passage with another answer, another passage with another answer, and two passages with
    the same answer."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", path=path) from error
    same, across, agreeing = [], [], []
    for row in rows:
        right, wrong = row["positive"], row["positive_wrong"]
        pair = {"passages": [{"text": right[0]}, {"text": wrong[0]}]}
        same.append(_tells(pair["passages"], row))
        if len(right) > 1 and len(wrong) > 1:
            across.append(_tells([{"text": right[0]}, {"text": wrong[1]}], row))
            agreeing.append(bool(found([{"text": right[0]}, {"text": right[1]}])))
    return {
        "same_passage_recall": share(sum(same), len(same)),
        "other_passage_recall": share(sum(across), len(across)),
        "agreeing_false_alarms": share(sum(agreeing), len(agreeing)),
    }


def _tells(passages: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> bool:
    """Whether a conflict is about the answer: a side's value and the answer share a word, on both sides."""
    for finding in found(passages):
        texts = [set(str(side["value"]).casefold().replace(",", " ").split()) for side in _sides(finding)]
        if all(texts[k] & set(answer.split()) for k, answer in enumerate(_answers(row))):
            return True
    return False


def _answers(row: Mapping[str, Any]) -> list[str]:
    answer = row["answer"]
    while isinstance(answer, list):
        answer = answer[0]
    return [str(one).casefold().replace(",", " ") for one in (answer, row["fakeanswer"])]


def _sides(finding: Finding) -> list[Mapping[str, Any]]:
    return list(finding.details["sides"])  # type: ignore[arg-type]


def _span(text: str, value: str) -> tuple[int, int]:
    match = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text)
    if match is None:
        raise InputError(f"no passage has the value '{value}' of a case")
    return match.span()


def _line(name: str, figures: Figures) -> tuple[str, str, str]:
    if figures["value"] is None:
        return name, "", ""
    interval = f"{figures['value']:.2f} [{figures['low']:.2f}, {figures['high']:.2f}]"
    return name, f"{figures['hits']} of {figures['of']}", interval


@benchmark
@click.option(
    "--cases", type=click.Path(exists=True, dir_okay=False), help="JSON.  [default: conflict_cases.json]"
)
@click.option(
    "--rgb", type=click.Path(exists=True, dir_okay=False), help="RGB's en_fact.json: counterfactual passages."
)
@click.option("--split", type=click.Choice(SPLITS), help="Only these cases.  [default: both]")
def main(cases: str | None, rgb: str | None, split: str | None) -> Report:
    """Conflicts that are found, and alarms where passages do not contradict each other.

    \b
    Examples:
      python -m benchmarks.conflicts
      python -m benchmarks.conflicts --rgb en_fact.json --out conflicts.json
    """
    read = json.loads(Path(cases or CASES).read_text(encoding="utf-8"))
    parts = {name: judged(read, [name]) for name in SPLITS if split in (None, name)}
    if split is None:
        parts["all"] = judged(read)
    result: Figures = {"parts": parts, "counterfactual": counterfactual(Path(rgb)) if rgb else None}
    rows = [
        _line(f"{name}: {what}", figures[what])
        for name, figures in parts.items()
        for what in ("recall", "false_alarms", "precision")
    ]
    rows += [_line(f"RGB: {what}", figures) for what, figures in (result["counterfactual"] or {}).items()]
    failing = [f"{name}: missed {one['missed']}, alarms {one['alarms']}" for name, one in parts.items()]
    return result, [*table(("", "cases", "share [95 %]"), rows), "", *failing]


if __name__ == "__main__":
    main()
