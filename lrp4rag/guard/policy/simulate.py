"""Simulate a policy on many answers: how many it serves, and at which errors where labels tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from lrp4rag.example import Example
from lrp4rag.guard.policy.assessment import Assessment, assess
from lrp4rag.guard.policy.policy import ACTIONS, WITHHELD, Action, Policy
from lrp4rag.util.text import one_line, visible

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Verdict

ALONE, ALL = "detector alone", "serve all"


@dataclass(frozen=True, slots=True)
class Row:
    """An answer, what was done with it, and whether it is hallucinated (None without labels)."""

    action: Action
    hallucinated: bool | None = None
    generator: str | None = None

    @property
    def served(self) -> bool:
        return self.action not in WITHHELD


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


def outcome(rows: Iterable[Row]) -> dict[str, Share]:
    """Return what part of the answers is served, of the served ones hallucinated, and of the faithful ones
    withheld. Answers without labels count among those served only."""
    every = list(rows)
    labelled = [row for row in every if row.hallucinated is not None]
    served = [row for row in labelled if row.served]
    faithful = [row for row in labelled if not row.hallucinated]
    return {
        "served": Share(sum(row.served for row in every), len(every)),
        "hallucinated": Share(sum(bool(row.hallucinated) for row in served), len(served)),
        "faithful_withheld": Share(sum(not row.served for row in faithful), len(faithful)),
    }


def by_generator(rows: Sequence[Row]) -> dict[str, dict[str, Share]]:
    """Simulate the policies for each known generator, in the order of their names."""
    names = sorted({row.generator for row in rows if row.generator is not None})
    return {name: outcome(row for row in rows if row.generator == name) for name in names}


class Simulation:
    """Simulate policies on the same answers, beside serving all and withholding what the detector flags."""

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


def outcome_table(rows: Mapping[str, Sequence[Row]]) -> Table:
    """Policies side by side: their actions, and their errors where there are labels; by generator below."""
    table = Table(box=None, pad_edge=False)
    labelled = any(row.hallucinated is not None for some in rows.values() for row in some)
    heads = ["served", *(["wrong of served", "faithful withheld"] if labelled else [])]
    for name in ("", *ACTIONS, *heads):
        table.add_column(name, justify="left" if not name else "right", no_wrap=name in ACTIONS)
    for name, some in rows.items():
        actions = Counter(row.action for row in some)
        counts = [str(actions[action]) for action in ACTIONS]
        table.add_row(Text(visible(name), style="bold"), *counts, *_shares(outcome(some), labelled))
        found = by_generator(some)
        for generator, one in found.items() if labelled and len(found) > 1 else ():
            table.add_row(f"  {one_line(generator, 40)}", *[""] * len(ACTIONS), *_shares(one, labelled))
    return table


def outcome_record(rows: Sequence[Row]) -> dict[str, Any]:
    """JSON values."""

    def told(shares: Mapping[str, Share]) -> dict[str, Any]:
        return {name: share_record(one) for name, one in shares.items()}

    return {
        "actions": dict(Counter(row.action for row in rows)),
        **told(outcome(rows)),
        "by_generator": {name: told(one) for name, one in by_generator(rows).items()},
    }


def share_record(one: Share) -> dict[str, Any]:
    """JSON values."""
    return {"value": one.value, "interval": one.interval, "part": one.part, "count": one.count}


def _shares(found: Mapping[str, Share], labelled: bool) -> list[str]:
    return [share_cell(one) for one in (found.values() if labelled else [found["served"]])]


def share_cell(one: Share) -> str:
    """67% [50, 80]"""
    if one.value is None or one.interval is None:
        return "-"
    low, high = one.interval
    return f"{one.value:.0%}\u00a0[{100 * low:.0f},\u00a0{100 * high:.0f}]"
