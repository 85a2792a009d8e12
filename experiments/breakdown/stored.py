"""`StoredRows`: labelled examples and what systems made of them, from a folder of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.systems.comparison.scores import SystemScores, known_scores
from lrp4rag.example import Example
from lrp4rag.training.folds import groups_of, labels_of
from lrp4rag.training.localisation import ALL, Marking
from lrp4rag.util.errors import InputError

Labels = NDArray[np.bool_]
Numbers = NDArray[np.intp]

ENDING = ".json.xz"


@dataclass(frozen=True, eq=False)
class StoredRows:
    """R labelled responses, and the scores of systems by the names of their files."""

    examples: tuple[Example, ...]
    scores: Mapping[str, SystemScores]

    @cached_property
    def labels(self) -> Labels:
        """(R,), True for hallucinated."""
        return labels_of(self.examples)

    @cached_property
    def groups(self) -> NDArray[np.str_]:
        return groups_of(self.examples)

    @cached_property
    def generators(self) -> NDArray[np.str_]:
        return np.array([example.generator or "unknown" for example in self.examples])

    @cached_property
    def parts(self) -> dict[str, Numbers]:
        """The numbers of each generator's rows, and of all."""
        generators = self.generators
        by_name = {name: np.flatnonzero(generators == name) for name in sorted(set(generators.tolist()))}
        return by_name | {ALL: np.arange(len(self.examples))}

    def marking(self, name: str, count: int) -> Marking:
        """A system's scores and marks of the responses' tokens, one response after the other, (count,).

        Raises `ValueError` where it scored none, or other tokens.
        """
        marking = self.scores[name].marking
        if marking is None:
            raise ValueError("no scores of tokens")
        if len(marking.scores) != count:
            raise ValueError("the scores are of other tokens")
        return marking

    def judged_by(self, name: str) -> Numbers:
        """The rows that a system judged."""
        return np.flatnonzero(np.isfinite(self.scores[name].outcome.probabilities[0]))


def read_stored(examples: Sequence[Example], folder: Path) -> StoredRows:
    """The labelled examples that the scores of a folder are of, in their order.

    Raises `InputError` where there are no scores, they are of different responses, or an example is missing.
    """
    found = {path.name.removesuffix(ENDING): known_scores(path) for path in sorted(folder.glob(f"*{ENDING}"))}
    if not found:
        raise InputError(f"no scores ({ENDING}) here", path=folder)
    first = next(iter(found.values()))
    for name, one in found.items():
        if one.ids != first.ids:
            raise InputError(f"{name} has scores of other responses than {first.system}", path=folder)
    by_id = {example.id: example for example in examples if example.labels is not None}
    missing = [id_ for id_ in first.ids if id_ not in by_id]
    if missing:
        raise InputError(f"{len(missing)} scored responses are not in the data (first: '{missing[0]}')")
    rows = tuple(by_id[id_] for id_ in first.ids)
    return StoredRows(rows, {name: one.scores for name, one in found.items()})
