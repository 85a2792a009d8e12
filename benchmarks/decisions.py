"""Every decision there is, by every policy of the examples: writes docs/results/decisions.csv.

python -m benchmarks.decisions
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from lrp4rag.guard.policy import Measures, Policy, decide, load_policy

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "results" / "decisions.csv"
SENTENCES: dict[str, dict[str, Any]] = {
    "supported": {"supported": 3},
    "one of three unsupported": {"supported": 2, "unsupported": 1},
    "one of three contradicted": {"supported": 2, "contradicted": 1},
    "two of three unsupported": {"supported": 1, "unsupported": 2},
    "two of three contradicted": {"supported": 1, "contradicted": 2},
    "states nothing": {},
    "not judged": {"supported": 3, "abstained": True},
    "no verdict": {"judged": False},
}
CITATIONS = {"right": None, "misattributed": "misattributed", "fabricated": "fabricated"}
GATE = {"open": None, "refused": "null"}
CONFLICT = {"no conflict": None, "conflict": "conflict"}
OUTDATED = {"in force": None, "outdated": "outdated"}
UNAVAILABLE = {"all checks": (), "a check failed": ("conflicts",)}


def policies() -> dict[str, Policy]:
    """The default one, and those of the examples."""
    files = sorted((ROOT / "examples" / "policies").glob("*.yaml"))
    return {"default": Policy()} | {path.stem: load_policy(path) for path in files}


def rows_of(every: Mapping[str, Policy]) -> Iterator[dict[str, str]]:
    """One row for each combination, with the action and the reason of each policy."""
    for given in product(SENTENCES, CITATIONS, GATE, CONFLICT, OUTDATED, UNAVAILABLE):
        sentences, citations, gate, conflict, outdated, unavailable = given
        counts = SENTENCES[sentences]
        known = {name: counts.get(name, 0) for name in ("supported", "contradicted", "unsupported")}
        flagged = known["contradicted"] + known["unsupported"]
        kinds = (CITATIONS[citations], GATE[gate], CONFLICT[conflict], OUTDATED[outdated])
        measures = Measures(
            **counts,
            hallucinated=flagged > 0,
            faithfulness=known["supported"] / sum(known.values()) if any(known.values()) else None,
            found=frozenset(kind for kind in kinds if kind is not None),  # type: ignore[misc]
            unavailable=frozenset(UNAVAILABLE[unavailable]),
        )
        heads = ("sentences", "citations", "gate", "passages", "documents", "checks")
        made = {name: decide(policy, measures) for name, policy in every.items()}
        yield dict(zip(heads, given, strict=True)) | {
            name: f"{one.action}: {one.reason}" for name, one in made.items()
        }


def main() -> None:
    rows = list(rows_of(policies()))
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"wrote {len(rows)} decisions to {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
