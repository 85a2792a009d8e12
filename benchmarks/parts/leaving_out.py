"""Cross-validated probabilities of a token detector's rows, with one part of it left out at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import Cells
from lrp4rag.features.blocks import Block
from lrp4rag.features.entailment import OF_ALARMS
from lrp4rag.features.plain import ENTAILMENT, PlainTable
from lrp4rag.training.folds import ONCE
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import alarm_names, decide_fold, folds_of, joined, score_folds
from lrp4rag.training.tokens import Tokens, key_of_block
from lrp4rag.util.progress import track

NOTHING = "nothing"
"""What the detector is called of which nothing is left out."""
ALARMS, COMPARED = "all alarms", "contradicted values"
IN_ALARMS, COMPARER = "comparer in the alarms", "comparer"
NAMES = "parts"
"""The cell that says which parts there are."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is left out: the scores of `dropped` blocks and alarms. `relearned` makes the blocks, or rows of
    alarms, whose networks learn anew without it, with the blocks that their features are of; `changed` makes
    what else is decided by."""

    dropped: frozenset[str] = frozenset()
    relearned: Callable[[Tokens], tuple[Tokens, Mapping[str, Block]]] | None = None
    changed: Callable[[Tokens], Tokens] | None = None


def parts_of(tokens: Tokens, blocks: Mapping[str, Block]) -> dict[str, Part]:
    """Name the parts of a detector: its blocks, groups of features within them, values that a passage
    contradicts, its alarms, and the comparer in its alarms and everywhere."""
    parts = {NOTHING: Part()}
    if len(blocks) > 1:
        parts |= {f"block {name}": Part(frozenset({name})) for name in blocks}
    for name, block in blocks.items():
        if isinstance(block, PlainTable) and len(block.groups) > 1:
            for group in block.groups:
                parts[f"{name}: {group}"] = Part(relearned=partial(without_group, name, block, group))
    parts[COMPARED] = Part(changed=without_compared)
    alarms = alarm_names(tokens)
    parts |= {f"alarm {name}": Part(frozenset({name})) for name in alarms}
    if alarms:
        parts[ALARMS] = Part(frozenset(alarms))
    if any(name.startswith(OF_ALARMS) for rows in tokens.faults.values() for name in rows.columns):
        parts[IN_ALARMS] = Part(relearned=without_entailment)
        if ENTAILMENT in blocks and len(blocks) > 1:
            parts[COMPARER] = Part(frozenset({ENTAILMENT}), without_entailment)
    return parts


def without_group(
    name: str, block: PlainTable, group: str, tokens: Tokens
) -> tuple[Tokens, Mapping[str, Block]]:
    """Keep of a block of features the columns of its other groups, as a block of these alone has them."""
    beside = tuple(one for one in block.beside if one != group)
    less = PlainTable(tuple(one for one in block.groups if one != group), beside)
    columns = sorted(column for feature in less.features for column in block.columns_of(feature))
    table = np.asarray(tokens.blocks[name][:, columns])
    return replace(tokens, blocks={name: table}, faults={}), {name: less}


def without_entailment(tokens: Tokens) -> tuple[Tokens, Mapping[str, Block]]:
    """Keep of the rows of alarms what no comparer tells."""
    faults = {}
    for unit, rows in tokens.faults.items():
        numbers = [k for k, name in enumerate(rows.columns) if not name.startswith(OF_ALARMS)]
        columns = tuple(rows.columns[k] for k in numbers)
        faults[unit] = replace(rows, columns=columns, table=np.ascontiguousarray(rows.table[:, numbers]))
    return replace(tokens, blocks={}, faults=faults), {}


def without_compared(tokens: Tokens) -> Tokens:
    """No value of a sentence is contradicted, as far as is known."""
    return replace(tokens, compared=np.zeros_like(tokens.compared))


def is_complete(cells: Cells) -> bool:
    """Say whether every part's probabilities are there."""
    return NAMES in cells and all(name in cells for name in cells[NAMES]["names"])


def leave_out(
    tokens: Tokens, rows: Rows, blocks: Mapping[str, Block], cells: Cells, cache: Path, jobs: int
) -> None:
    """Cross-validate the detector without each part that the `cells` lack, and add the rows' probabilities.

    All share one split into folds, within which everything is chosen anew; networks learn anew only where
    their features differ. What they say of the rows is kept in the folder `cache`, as in training.
    """
    parts = parts_of(tokens, blocks)
    cells.add({NAMES: {"names": list(parts)}})
    folds = folds_of(tokens, ONCE)

    def scored(features: Tokens, of: Mapping[str, Block]) -> list[dict[str, Any]]:
        keys = {name: key_of_block(rows, block) for name, block in of.items()}
        return score_folds(features, folds, ONCE, cache=cache, keys=keys, jobs=jobs)

    by_whole = scored(tokens, blocks)
    missing = {name: part for name, part in parts.items() if name not in cells}
    for name, part in track(missing.items(), len(missing), "leaving out"):
        started = time.perf_counter()
        scores = [{key: score for key, score in fold.items() if key not in part.dropped} for fold in by_whole]
        if part.relearned is not None:
            anew = scored(*part.relearned(tokens))
            scores = [{**fold, **learned} for fold, learned in zip(scores, anew, strict=True)]
        deciding = tokens if part.changed is None else part.changed(tokens)
        results = (decide_fold(deciding, *fold) for fold in zip(folds, scores, strict=True))
        probabilities = joined(results, tokens).outcome.probabilities[0]
        cell = {
            "probabilities": np.round(probabilities, 6).tolist(),
            "learned": part.relearned is not None,
            "minutes": round((time.perf_counter() - started) / 60, 2),
        }
        cells.add({name: cell})
