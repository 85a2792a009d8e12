"""How many conditions that answers leave out are found, and how many that are reported are left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.command import Report, benchmark, table
from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.omissions import Omissions
from lrp4rag.source import Source

CASES = Path(__file__).parent / "omission_cases.json"
HALVES = ("development", "test")


def is_reported(case: dict[str, Any]) -> bool:
    sources = tuple(Source(passage) for passage in case["passages"])
    return bool(Omissions()(CheckInput(case["question"], sources, case["answer"])))


def measured() -> dict[str, Any]:
    """By half: pairs, how many leave something out, precision, recall, and the answers judged wrongly."""
    cases = json.loads(CASES.read_text())
    return {half: _of([case for case in cases if case["half"] == half]) for half in HALVES}


def _of(cases: list[dict[str, Any]]) -> dict[str, Any]:
    told = [(case, case["kind"] == "omitted", is_reported(case)) for case in cases]
    right = sum(omitted and reported for _, omitted, reported in told)
    return {
        "pairs": len(cases),
        "omitted": sum(omitted for _, omitted, _ in told),
        "reported": sum(reported for *_, reported in told),
        "right": right,
        "precision": right / max(sum(reported for *_, reported in told), 1),
        "recall": right / max(sum(omitted for _, omitted, _ in told), 1),
        "wrong": [
            {"kind": case["kind"], "answer": case["answer"]}
            for case, omitted, reported in told
            if omitted != reported
        ],
    }


@benchmark
def main() -> Report:
    """Precision and recall of the check for omitted conditions on pairs written by hand.

    \b
    Examples:
      python -m benchmarks.omissions --out docs/results/checks/omissions.json
    """
    halves = measured()
    rows = [
        (name, str(half["pairs"]), f"{half['precision']:.2f}", f"{half['recall']:.2f}")
        for name, half in halves.items()
    ]
    return {"halves": halves}, table(("half", "pairs", "precision", "recall"), rows)


if __name__ == "__main__":
    main()
