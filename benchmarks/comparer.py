"""What the comparer tells alone: of public claims, and of answers that it did not learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from benchmarks.command import Result, benchmark, count
from benchmarks.elsewhere.sets import PAIRS, read_sets
from benchmarks.harness import seconds
from experiments.comparer.claims import MEASURED, MOST, read_file, read_measured
from lrp4rag.reader.comparer import Comparer
from lrp4rag.training.labelled_pairs import (
    FALSE_ALARMS,
    FEWEST,
    LabelledPair,
    distinct,
    one_in,
    pairs_of_answers,
)
from lrp4rag.training.metrics import Draws, intervals_of, weighted_metrics
from lrp4rag.training.sets import SETS, load_set
from lrp4rag.util.progress import track

RESAMPLES = 1000
TIMED = 64
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Pairs, and the log odds of each that it is not supported, by networks that did not learn from it."""

    pairs: Sequence[LabelledPair]
    scores: Scores

    @classmethod
    def of(cls, comparer: Comparer, pairs: Sequence[LabelledPair], name: str) -> Scored:
        read = track(pairs, len(pairs), name)
        return cls(pairs, np.array([comparer([one.pair], one.source)[0].unsupported for one in read]))

    @property
    def wrong(self) -> NDArray[np.bool_]:
        return np.array([one.wrong for one in self.pairs], dtype=bool)


def measure(scored: Scored) -> dict[str, Any]:
    """Return AUROC and balanced accuracy (above 0) with intervals; sources, or claims, are resampled."""
    draws = Draws.of(
        np.array([one.pair.claim if one.set == MEASURED else one.source for one in scored.pairs]), RESAMPLES
    )
    flagged = scored.scores > 0
    found = intervals_of(
        draws.values(lambda weights: weighted_metrics(scored.wrong, expit(scored.scores), flagged, weights))
    )
    return {name: found[name].model_dump() for name in ("auroc", "balanced_accuracy")}


def by_kind(scored: Scored) -> dict[str, dict[str, float]]:
    """Return, by kind of fault, AUROC against right sentences, and the part above what 6 % of them reach."""
    wrong, scores = scored.wrong, scored.scores
    bar, found = float(np.quantile(scores[~wrong], 1 - FALSE_ALARMS)), {}
    for kind in sorted({one.kind for one in scored.pairs if one.wrong}):
        faults = np.array([one.wrong and one.kind == kind for one in scored.pairs])
        if faults.sum() >= FEWEST:
            some = faults | ~wrong
            area, part = roc_auc_score(faults[some], scores[some]), (scores[faults] > bar).mean()
            found[kind] = {"faults": int(faults.sum()), "auroc": float(area), "flagged": float(part)}
    return found


@benchmark
@click.option(
    "--claims", type=click.Path(path_type=Path, file_okay=False, exists=True), help="Folder of public claims."
)
@count("--every", 8, "One in so many questions of the sets that come with the package.")
@click.option(
    "--comparer",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File of another comparer.  [default: the one that comes with the package]",
)
def main(claims: Path | None, every: int, comparer: Path | None) -> Result:
    """How well the comparer tells claims that are not supported, by set and by kind of fault.

    \b
    Examples:
      python -m benchmarks.comparer
      python -m benchmarks.comparer --claims CLAIMS --every 1       every question, and FEVER-Symmetric
    """
    network, result = Comparer.load(comparer), dict[str, Any]()
    if comparer is not None:
        result["comparer"] = comparer.name
    if claims is not None:
        learned = {row.hypothesis.strip().lower() for name in MOST for row in read_file(claims, name)}
        pairs = [one for one in read_measured(claims) if one.pair.claim.strip().lower() not in learned]
        result["claims"] = claims.name
        scored = Scored.of(network, pairs, "public claims")
        result["fever_symmetric"] = {"claims": len(pairs), **measure(scored)}
    questions = [item.example for item in read_sets(Path(__file__).parent / "data")[PAIRS]]
    sets = {name: one_in(load_set(Path(name)), every) for name in SETS} | {"questions": questions}
    for name, examples in sets.items():
        pairs = distinct(pairs_of_answers(examples, name))
        scored = Scored.of(network, pairs, name)
        result[name] = {"sentences": len(pairs), **measure(scored), "kinds": by_kind(scored)}
        some = [one.pair for one in pairs[:TIMED]]
        network.forget()
        result["seconds_a_sentence"] = seconds(partial(network, some)) / len(some)
    return result


if __name__ == "__main__":
    main()
