"""What policies do to labelled answers: each is judged by networks and a rule that did not learn from its
source.

    python -m benchmarks.policies RAGTRUTH --store STORE --out docs/results/policies.json

The rows, and the store, are those of `benchmarks.rule`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.command import Report, benchmark, table
from benchmarks.rule import chosen_corpus, held_out
from lrp4rag.classifiers.card import Interval
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.example import Example
from lrp4rag.features.parts import READING
from lrp4rag.guard.policy import WITHHELD, Policy, assess, decide, load_policy
from lrp4rag.report.numbers import percent_interval
from lrp4rag.training.metrics import ratios
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store
from lrp4rag.util.progress import track

EXAMPLES = Path("examples") / "policies"
HEADS = {
    "marked": "right answers marked",
    "withheld": "right answers withheld",
    "alarms": "right answers that the detector flags",
    "served": "faults served unmarked",
    "misses": "faults that the detector misses",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer, of which `set`, what the detector says of it, and what each policy does."""

    example: Example
    set: str
    flagged: bool | None
    actions: Mapping[str, str]
    reasons: Mapping[str, str]

    @property
    def wrong(self) -> bool:
        return bool(self.example.hallucinated)


def policies(folder: Path) -> dict[str, Policy]:
    """Those of a folder, the default one among them."""
    return {one.name: one for one in map(load_policy, sorted(folder.glob("*.yaml")))}


@benchmark
@click.argument("ragtruth", type=click.Path(exists=True))
@click.option("--store", required=True, type=click.Path(exists=True), help="Of benchmarks.rule.")
@click.option("--sources", default=(150, 100), nargs=2, type=int, help="Of RAGTruth, of everyday questions.")
@click.option(
    "--policies", "folder", default=str(EXAMPLES), show_default=True, type=click.Path(), help="YAML."
)
def main(ragtruth: str, store: str, sources: tuple[int, int], folder: str) -> Report:
    """Decisions on held-out answers of RAGTruth and of everyday questions, and by kind of fault."""
    chosen, by_source = chosen_corpus(Path(ragtruth), sources)
    kept = Store.existing(store)
    corpus = chosen.without([one.id for one in chosen.examples if not kept.holds(one, READING)])
    rows = Rows(kept, corpus.examples)
    folds = np.array([by_source[one.source] for one in corpus.examples])
    every, found = policies(Path(folder)), list[Judged]()
    verdicts = held_out(FittedDetector.load(), rows, corpus, folds)
    for row, verdict in track(verdicts, len(rows), "deciding"):
        example = corpus.examples[row]
        measures = assess(Policy(), example, verdict).measures  # the files' checks are the default ones
        made = {name: decide(policy, measures) for name, policy in every.items()}
        found.append(
            Judged(
                example,
                corpus.rows[row].set,
                verdict.hallucinated,
                {name: one.action for name, one in made.items()},
                {name: one.reason for name, one in made.items()},
            )
        )
    return reported(found, list(every))


def reported(found: Sequence[Judged], names: Sequence[str]) -> Report:
    """By set and policy the shares `HEADS`, and what the default policy serves unmarked of each kind of
    fault."""
    shares = {
        name: {part: _shares([one for one in found if one.set == part], name) for part in _sets(found)}
        for name in names
    }
    default = Policy().name
    result: dict[str, Any] = {
        "answers": len(found),
        "hallucinated": sum(one.wrong for one in found),
        "questions": len({one.example.source for one in found}),
        "verdict and decision disagree": {name: _disagrees(found, name) for name in names},
        "policies": {
            name: {
                part: {key: one.model_dump() for key, one in values.items()} for part, values in parts.items()
            }
            for name, parts in shares.items()
        },
        "served unmarked by kind": {kind: one.model_dump() for kind, one in _by_kind(found, default).items()},
        "right answers by reason": _reasons(found, default),
    }
    lines = [
        (f"{name}, {part}", *(percent_interval(one) for one in values.values()))
        for name, parts in shares.items()
        for part, values in parts.items()
    ]
    kinds = [(kind, percent_interval(one)) for kind, one in _by_kind(found, default).items()]
    return result, [
        *table(("", *HEADS.values()), lines),
        "",
        *table(("everyday fault", "served unmarked"), kinds),
    ]


def _sets(found: Sequence[Judged]) -> list[str]:
    return sorted({one.set for one in found})


def _shares(some: Sequence[Judged], policy: str) -> dict[str, Interval]:
    wrong = np.array([one.wrong for one in some])
    right = (~wrong).astype(np.intp)
    action = np.array([one.actions[policy] for one in some])
    flagged = np.array([bool(one.flagged) for one in some])
    withheld = np.isin(action, WITHHELD)
    quotients = {
        "marked": (right * np.isin(action, ("mark", "disclose")), right),
        "withheld": (right * withheld, right),
        "alarms": (right * flagged, right),
        "served": (wrong * (action == "serve"), wrong.astype(np.intp)),
        "misses": (wrong * ~flagged, wrong.astype(np.intp)),
    }
    return ratios(quotients, np.array([one.example.source for one in some]))


def _by_kind(found: Sequence[Judged], policy: str) -> dict[str, Interval]:
    kinds: dict[str, list[Judged]] = {}
    for one in found:
        for kind in dict.fromkeys(label.kind for label in one.example.labels or () if label.kind):
            if one.set != "annotated":
                kinds.setdefault(kind, []).append(one)
    return {
        kind: ratios(
            {
                "served": (
                    np.array([one.actions[policy] == "serve" for one in some]).astype(np.intp),
                    np.ones(len(some), dtype=np.intp),
                )
            },
            np.array([one.example.source for one in some]),
        )["served"]
        for kind, some in sorted(kinds.items())
    }


def _disagrees(some: Sequence[Judged], policy: str) -> dict[str, int]:
    """How many flagged answers are served unmarked, and how many are withheld though they are not flagged, by
    reason."""
    counts = {
        "flagged, served unmarked": sum(bool(one.flagged) and one.actions[policy] == "serve" for one in some)
    }
    for one in some:
        if one.flagged is False and one.actions[policy] in WITHHELD:
            name = f"not flagged, withheld: {one.reasons[policy]}"
            counts[name] = counts.get(name, 0) + 1
    return counts


def _reasons(found: Sequence[Judged], policy: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in found:
        if not one.wrong and one.actions[policy] != "serve":
            counts[one.reasons[policy]] = counts.get(one.reasons[policy], 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


if __name__ == "__main__":
    main()
