"""What policies do to labelled answers: each is judged by a detector that did not learn from its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.command import Report, benchmark, table
from benchmarks.out_of_fold import PROTOCOL, judged
from lrp4rag.classifiers.card import Metrics
from lrp4rag.policy import Policy, load_policy
from lrp4rag.policy.simulate import Row, Simulation
from lrp4rag.report.numbers import percent_interval
from lrp4rag.training.localisation import ALL
from lrp4rag.training.metrics import ratios

EXAMPLES = Path("examples") / "policies"
BANDS_ALONE = "balanced, bands alone"
"""The default policy without what checks find: what these add to the sentences' probabilities."""
HEADS = {
    "served": "served",
    "wrong_of_served": "hallucinated, of the served",
    "faithful_withheld": "withheld, of the faithful",
}


def policies(folder: Path) -> dict[str, Policy]:
    """The default one, that without rules, and those of a folder."""
    rules = dict.fromkeys(Policy().rules.model_dump())
    alone = Policy.model_validate({"name": BANDS_ALONE, "rules": rules, "checks": {"facts": {}}})
    given = [load_policy(path) for path in sorted(folder.glob("*.yaml"))]
    return {one.name: one for one in (Policy(), alone, *given)}


@benchmark
@click.argument("store", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--policies", "folder", default=str(EXAMPLES), show_default=True, type=click.Path(), help="YAML files."
)
def main(store: str, folder: str) -> Report:
    """Decisions on the labelled answers of a store, by generator: five folds, grouped by source.

    \b
    Examples:
      lrp4rag extract RAGTRUTH --parts reading --store STORE --workers 2
      python -m benchmarks.policies STORE --out docs/results/policies.json
    """
    simulation, sources_of, hallucinated = Simulation(policies(Path(folder))), list[str](), 0
    for example, verdict in judged(store):
        simulation.add(example, verdict)
        sources_of.append(example.source)
        hallucinated += bool(example.hallucinated)
    sources = np.array(sources_of)
    found = {name: shares(some, sources) for name, some in simulation.rows.items()}
    result: dict[str, Any] = {
        "answers": len(sources),
        "sources": len(set(sources)),
        "hallucinated": hallucinated,
        "policies": {
            name: {
                part: {key: one.model_dump() for key, one in values.items()} for part, values in parts.items()
            }
            for name, parts in found.items()
        },
        "actions": {
            name: dict(Counter(row.action for row in some)) for name, some in simulation.rows.items()
        },
        "protocol": PROTOCOL,
    }
    lines = [
        (f"**{name}**" if part == ALL else part, *map(percent_interval, values.values()))
        for name, parts in found.items()
        for part, values in parts.items()
    ]
    return result, table(("", *HEADS.values()), lines)


def shares(rows: Sequence[Row], sources: NDArray[np.str_]) -> dict[str, Metrics]:
    """Of all rows, and of each generator's: `HEADS`, with intervals over sources."""
    generators = np.array([row.generator or "unknown" for row in rows])
    served = np.array([row.served for row in rows], dtype=np.intp)
    wrong = np.array([bool(row.hallucinated) for row in rows], dtype=np.intp)
    ones = np.ones(len(rows), dtype=np.intp)
    counts = {
        "served": (served, ones),
        "wrong_of_served": (served * wrong, served),
        "faithful_withheld": ((1 - served) * (1 - wrong), 1 - wrong),
    }
    parts = {ALL: ones == 1} | {name: generators == name for name in sorted(set(generators))}
    return {
        part: ratios(
            {name: (above[inside], below[inside]) for name, (above, below) in counts.items()}, sources[inside]
        )
        for part, inside in parts.items()
    }


if __name__ == "__main__":
    main()
