"""`Bench`: outcomes, their metrics and their differences, for as many entrants at once as there are cores.

An entrant is anything that gives each row of a part a probability under a protocol: a classifier on a
vector, the best of several, a control.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from lrp4rag.classifiers.calibration import Contender
from lrp4rag.classifiers.card import Metrics
from lrp4rag.experiments.paper.judge import Judged, choose, judge
from lrp4rag.experiments.paper.parts import Part
from lrp4rag.experiments.paper.settings import (
    DEFAULTS,
    GRID,
    MATRICES,
    VECTOR_WORDS,
    estimator_of,
    lengths_of,
)
from lrp4rag.lrp.resample import Mode
from lrp4rag.training.cache import Cache, Cell, Task
from lrp4rag.training.controls import CONTROLS, Setting
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import compare, outcome_metrics
from lrp4rag.training.search import Outcome, cross_validated

MOST = 24
"""Contenders that a control may have; of more (hidden states of many layers), one penalty is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Entrant:
    """A line of a table: `combine` makes the outcome out of what the cells hold."""

    name: str
    part: Part
    cells: tuple[Cell, ...]
    combine: Callable[[Sequence[Any]], Outcome]
    how: str = ""

    @property
    def key(self) -> dict[str, Any]:
        return {"cells": [cell.name for cell in self.cells], "how": self.how}


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A classifier on a vector of a part; `mode` says how the vector is resampled.

    `variant` names the store of a part that is not the main one's.
    """

    part: Part
    classifier: str
    vector: str
    mode: Mode = "interpolate"
    variant: str = ""

    @property
    def name(self) -> str:
        return f"{self.classifier} on {VECTOR_WORDS.get(self.vector, self.vector)}"

    def key(self, length: int, settings: str, protocol: Protocol) -> dict[str, Any]:
        # Only what this contender depends on: whatever else the protocol lets contend does not matter.
        one = asdict(replace(protocol, name="", lengths=(length,), repeats=1, mode=self.mode))
        one.pop("scoring")
        parts = {"classifier": self.classifier, "settings": settings, "vector": self.vector}
        if self.variant:
            parts["variant"] = self.variant
        return {**parts, "rows": self.part.digest, "protocol": one}

    def contender(self, length: int, settings: str) -> Contender:
        inputs = self.part.inputs(self.vector, length, self.mode)
        name = VECTOR_WORDS.get(self.vector, self.vector)
        if self.vector not in MATRICES:
            name += f" at {length}"
        if self.variant:
            name += f" ({self.variant})"
        return Contender(name, self.classifier, settings, estimator_of(self.classifier, settings), inputs)


def nested(ways: Sequence[Way], protocol: Protocol, name: str = "", *, share_inner: bool = False) -> Entrant:
    """The best of everything that contends in these ways, chosen inside the folds.

    An LSTM that is alone calibrates itself and needs no inner folds, which are dear; `share_inner` has
    them all the same, since it contends elsewhere too.
    """
    part = ways[0].part
    grid = [
        (way, length, settings)
        for way in ways
        for length in lengths_of(way.classifier, way.vector)
        for settings in GRID[way.classifier].settings
    ]
    inner = share_inner or len(grid) > 1 or ways[0].classifier != "lstm"
    cells = tuple(
        Cell(
            {"what": "judged", "repeat": repeat, "inner": inner, **way.key(length, settings, protocol)},
            Judged,
            partial(_prepare_judge, way, length, settings, protocol, repeat, inner),
        )
        for repeat in range(protocol.repeats)
        for way, length, settings in grid
    )
    combine = partial(_chosen, part, protocol, len(grid))
    return Entrant(name or ways[0].name, part, cells, combine, how=protocol.scoring)


def single(way: Way, length: int, protocol: Protocol, name: str = "") -> Entrant:
    """A classifier at its default setting and one length, under a protocol that chooses nothing."""
    settings = DEFAULTS[way.classifier]
    cell = Cell(
        {"what": "single", "repeats": protocol.repeats, **way.key(length, settings, protocol)},
        Outcome,
        partial(_prepare_single, way, length, settings, protocol),
    )
    return Entrant(name or way.name, way.part, (cell,), _first)


def control(part: Part, control_name: str, setting: Setting, protocol: Protocol) -> Entrant:
    """One of `CONTROLS`, with as many contenders as the result beside it has."""
    key: dict[str, Any] = {"what": "control", "name": control_name, "rows": part.digest}
    key |= {"setting": asdict(setting), "protocol": asdict(protocol)}
    cell = Cell(key, Outcome, partial(_prepare_control, part, control_name, setting, protocol))
    return Entrant(control_name, part, (cell,), _first)


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """Computes what entrants need and keeps it. `seed` is the bootstrap's."""

    cache: Cache
    resamples: int
    seed: int = 0

    def outcomes(self, entrants: Sequence[Entrant], label: str) -> list[Outcome]:
        self.cache.all([cell for entrant in entrants for cell in entrant.cells], label)
        return [self._outcome(entrant) for entrant in entrants]

    def metrics(self, entrants: Sequence[Entrant], label: str) -> list[Metrics]:
        """With bootstrap intervals over sources."""
        cells = [self._metrics_cell(entrant) for entrant in entrants]
        return self._derived(cells, entrants, label)

    def metrics_of(self, part: Part, outcome: Outcome) -> Metrics:
        """Of an outcome that needed no fitting."""
        found: Metrics = _metrics_task(part, outcome, self.resamples, self.seed)()
        return found

    def differences(self, pairs: Sequence[tuple[Entrant, Entrant]], label: str) -> list[Metrics]:
        """The first less the second of each pair, of the same rows, on the same draws."""
        cells = [
            Cell(
                {"what": "difference", "of": [first.key, second.key], **self._key(first.part)},
                Metrics,
                partial(self._prepare_difference, first, second),
            )
            for first, second in pairs
        ]
        return self._derived(cells, [entrant for pair in pairs for entrant in pair], label)

    def _derived(self, cells: Sequence[Cell], entrants: Sequence[Entrant], label: str) -> list[Metrics]:
        if not all(self.cache.holds(cell) for cell in cells):
            self.cache.all([cell for entrant in entrants for cell in entrant.cells], label)
        return self.cache.all(cells, f"{label}: intervals")

    def _metrics_cell(self, entrant: Entrant) -> Cell:
        key = {"what": "metrics", "of": entrant.key, **self._key(entrant.part)}
        return Cell(key, Metrics, partial(self._prepare_metrics, entrant))

    def _key(self, part: Part) -> dict[str, Any]:
        return {"rows": part.digest, "resamples": self.resamples, "bootstrap seed": self.seed}

    def _outcome(self, entrant: Entrant) -> Outcome:
        return entrant.combine([self.cache.read(cell) for cell in entrant.cells])

    def _prepare_metrics(self, entrant: Entrant) -> Task:
        return _metrics_task(entrant.part, self._outcome(entrant), self.resamples, self.seed)

    def _prepare_difference(self, first: Entrant, second: Entrant) -> Task:
        return partial(
            compare,
            self._outcome(first),
            self._outcome(second),
            first.part.labels,
            first.part.groups,
            resamples=self.resamples,
            seed=self.seed,
        )


def _metrics_task(part: Part, outcome: Outcome, resamples: int, seed: int) -> Task:
    return partial(outcome_metrics, outcome, part.labels, part.groups, resamples=resamples, seed=seed)


def _prepare_judge(
    way: Way, length: int, settings: str, protocol: Protocol, repeat: int, inner: bool
) -> Task:
    part, contender = way.part, way.contender(length, settings)
    return partial(judge, contender, part.labels, part.groups, protocol, repeat, inner=inner)


def _prepare_single(way: Way, length: int, settings: str, protocol: Protocol) -> Task:
    part, contender = way.part, way.contender(length, settings)
    return partial(cross_validated, [contender], part.labels, part.groups, protocol)


def _prepare_control(part: Part, name: str, setting: Setting, protocol: Protocol) -> Task:
    entry = CONTROLS[name]
    # Attention and hidden states of all rows are too large to stay in memory.
    rows = part.without_memory() if entry.needs else part.rows
    contenders = _thinned(entry.make(rows, setting), protocol)
    return partial(cross_validated, contenders, part.labels, part.groups, protocol)


def _thinned(contenders: Sequence[Contender], protocol: Protocol) -> list[Contender]:
    """The settings that the classifiers on relevance have, and no more."""
    if protocol.nested:
        machines = GRID["svm"].settings
        kept = [each for each in contenders if each.classifier != "svm" or each.settings in machines]
        settings = list(dict.fromkeys(each.settings for each in kept))
        middle = settings[len(settings) // 2]
        return kept if len(kept) <= MOST else [each for each in kept if each.settings == middle]
    usual = [each for each in contenders if DEFAULTS.get(each.classifier) == each.settings]
    return [usual[0]] if usual else [_middle(contenders)]


def _middle(contenders: Sequence[Contender]) -> Contender:
    """Of the middle settings the middle inputs: of hidden states, the mean after the last layer."""
    settings = list(dict.fromkeys(each.settings for each in contenders))
    kept = [each for each in contenders if each.settings == settings[len(settings) // 2]]
    return kept[(len(kept) - 1) // 2]


def _chosen(part: Part, protocol: Protocol, contenders: int, judged: Sequence[Judged]) -> Outcome:
    repeats = [judged[k : k + contenders] for k in range(0, len(judged), contenders)]
    return choose(repeats, part.labels, part.groups, protocol)


def _first(outcomes: Sequence[Outcome]) -> Outcome:
    return outcomes[0]
