"""What a policy does to many answers: how many it serves, and at which errors where labels tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lrp4rag.example import Example
from lrp4rag.guard.policy.assess import Assessment, assess
from lrp4rag.guard.policy.policy import Action, Policy

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Verdict

ALONE, ALL = "detector alone", "serve all"
SERVED: tuple[Action, ...] = ("serve", "mark", "disclose")


@dataclass(frozen=True, slots=True)
class Row:
    """An answer, what was done with it, and whether it is hallucinated (None without labels)."""

    action: Action
    hallucinated: bool | None = None
    generator: str | None = None

    @property
    def served(self) -> bool:
        return self.action in SERVED


@dataclass(frozen=True, slots=True)
class Share:
    """`part` of `count`, with its 95 % interval (Wilson)."""

    part: int
    count: int

    @property
    def value(self) -> float | None:
        return self.part / self.count if self.count else None

    @property
    def interval(self) -> tuple[float, float] | None:
        if not self.count:
            return None
        from scipy.stats import binomtest

        found = binomtest(self.part, self.count).proportion_ci(method="wilson")
        return float(found.low), float(found.high)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy does: the share that is served, that of the served answers that is hallucinated, and that
    of the faithful answers that is withheld."""

    served: Share
    hallucinated: Share
    faithful_withheld: Share


def outcome(rows: Iterable[Row]) -> Outcome:
    """Answers without labels count among those served only."""
    every = list(rows)
    labelled = [row for row in every if row.hallucinated is not None]
    served = [row for row in labelled if row.served]
    faithful = [row for row in labelled if not row.hallucinated]
    return Outcome(
        Share(sum(row.served for row in every), len(every)),
        Share(sum(bool(row.hallucinated) for row in served), len(served)),
        Share(sum(not row.served for row in faithful), len(faithful)),
    )


def by_generator(rows: Sequence[Row]) -> dict[str, Outcome]:
    """The same for each generator that is known, in the order of their names."""
    names = sorted({row.generator for row in rows if row.generator is not None})
    return {name: outcome(row for row in rows if row.generator == name) for name in names}


class Simulation:
    """What policies do to the same answers, beside serving all and withholding what the detector flags."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._policies = policies
        self.rows: dict[str, list[Row]] = {name: [] for name in (*policies, ALONE, ALL)}
        self.changed = 0

    def add(self, example: Example, verdict: Verdict) -> dict[str, Assessment]:
        """Decide on one more answer, by each policy."""
        found = {name: assess(policy, example, verdict) for name, policy in self._policies.items()}
        actions: dict[str, Action] = {name: one.decided.action for name, one in found.items()}
        self.changed += len(set(actions.values())) > 1
        actions |= {ALONE: "withhold" if verdict.hallucinated else "serve", ALL: "serve"}
        for name, action in actions.items():
            self.rows[name].append(Row(action, example.hallucinated, example.generator))
        return found
