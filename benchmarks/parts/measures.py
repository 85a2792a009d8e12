"""What a part adds: figures with it less those without, on the same draws of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.elsewhere.judging import OURS
from benchmarks.kinds.judging import Score
from benchmarks.kinds.page import ALL, RESAMPLES, Scored, by_kind
from benchmarks.parts.leaving_out import NOTHING
from lrp4rag.training.metrics import Draws, Scores, Values, intervals_of

AUROC, RANKED = f"auroc {ALL}", "ranked"
FAULT = "fault "


def measure(scores: Sequence[Score], without: Mapping[str, Scores]) -> dict[str, Any]:
    """Measure a set of labelled responses, of which `without` has the probabilities by the part that is left
    out, `NOTHING` first; `scores` say what they are.

    By part: `auroc`, `ranked` (copies above their right answer; None without copies) and `flagged`, by kind,
    each {value, adds}.
    """
    scored = Scored.of(scores)
    draws = Draws.of(scored.groups, RESAMPLES)
    by_part = {name: draws.values(partial(figures, scored, values)) for name, values in without.items()}
    whole = by_part[NOTHING]
    parts = {}
    for name, values in by_part.items():
        found = intervals_of(values)
        adds = intervals_of({figure: whole[figure] - value for figure, value in values.items()})
        both = {figure: {"value": found[figure], "adds": adds[figure]} for figure in values}
        parts[name] = {
            "auroc": both[AUROC],
            "ranked": both.get(RANKED),
            "flagged": {kind: both[f"{FAULT}{kind}"] for kind in scored.faults},
        }
    return {
        "questions": len(set(scored.groups.tolist())),
        "responses": len(scores),
        "faults": {kind: int(mask.sum()) for kind, mask in scored.faults.items()},
        "threshold": scored.threshold(OURS),
        "parts": parts,
    }


def figures(scored: Scored, values: Scores, weights: Scores) -> Values:
    """Compute all figures of a set's probabilities under each of W weightings (W, R)."""
    found, twins = by_kind(scored, values, weights), scored.twins
    copies = np.flatnonzero(scored.labels & (twins >= 0))
    if len(copies):
        above = (1 + np.sign(values[copies] - values[twins[copies]])) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            found[RANKED] = (weights[:, copies] @ above) / weights[:, copies].sum(1)
    return found
