"""Simulate a policy on many answers: how many it serves and, where there are labels, with which errors."""

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
    """An answer's action, and whether the answer is hallucinated (None without labels)."""

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

        interval = binomtest(self.part, self.count).proportion_ci(method="wilson")
        return float(interval.low), float(interval.high)


def outcome(rows: Iterable[Row]) -> dict[str, Share]:
    """Return the shares of served answers, of hallucinated among served answers, and of withheld among
    faithful answers. Answers without labels count in the first only."""
    rows = list(rows)
    labelled = [row for row in rows if row.hallucinated is not None]
    served = [row for row in labelled if row.served]
    faithful = [row for row in labelled if not row.hallucinated]
    return {
        "served": Share(sum(row.served for row in rows), len(rows)),
        "hallucinated": Share(sum(bool(row.hallucinated) for row in served), len(served)),
        "faithful_withheld": Share(sum(not row.served for row in faithful), len(faithful)),
    }


def by_generator(rows: Sequence[Row]) -> dict[str, dict[str, Share]]:
    """Return the outcome for each known generator, in the order of their names."""
    names = sorted({row.generator for row in rows if row.generator is not None})
    return {name: outcome(row for row in rows if row.generator == name) for name in names}


class Simulation:
    """A simulation of policies on the same answers, beside serving all and withholding what the detector
    flags."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._policies = policies
        self.rows: dict[str, list[Row]] = {name: [] for name in (*policies, ALONE, ALL)}
        self.changed = 0

    def add(self, example: Example, verdict: Verdict) -> dict[str, Assessment]:
        """Decide on one more answer, by each policy."""
        assessments = {name: assess(policy, example, verdict) for name, policy in self._policies.items()}
        actions: dict[str, Action] = {name: result.decided.action for name, result in assessments.items()}
        self.changed += len(set(actions.values())) > 1
        actions |= {ALONE: "withhold" if verdict.hallucinated else "serve", ALL: "serve"}
        for name, action in actions.items():
            self.rows[name].append(Row(action, example.hallucinated, example.generator))
        return assessments


def outcome_table(rows: Mapping[str, Sequence[Row]]) -> Table:
    """Lay policies out side by side: their actions, and their errors where there are labels; by generator
    below."""
    table = Table(box=None, pad_edge=False)
    labelled = any(row.hallucinated is not None for answers in rows.values() for row in answers)
    heads = ["served", *(["wrong of served", "faithful withheld"] if labelled else [])]
    for name in ("", *ACTIONS, *heads):
        table.add_column(name, justify="left" if not name else "right", no_wrap=name in ACTIONS)
    for name, answers in rows.items():
        actions = Counter(row.action for row in answers)
        counts = [str(actions[action]) for action in ACTIONS]
        table.add_row(Text(visible(name), style="bold"), *counts, *_cells(outcome(answers), labelled))
        outcomes = by_generator(answers)
        for generator, shares in outcomes.items() if labelled and len(outcomes) > 1 else ():
            table.add_row(f"  {one_line(generator, 40)}", *[""] * len(ACTIONS), *_cells(shares, labelled))
    return table


def outcome_record(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the outcome as JSON values."""

    def records(shares: Mapping[str, Share]) -> dict[str, Any]:
        return {name: share_record(share) for name, share in shares.items()}

    return {
        "actions": dict(Counter(row.action for row in rows)),
        **records(outcome(rows)),
        "by_generator": {name: records(shares) for name, shares in by_generator(rows).items()},
    }


def share_record(share: Share) -> dict[str, Any]:
    """Return a share as JSON values."""
    return {"value": share.value, "interval": share.interval, "part": share.part, "count": share.count}


def _cells(shares: Mapping[str, Share], labelled: bool) -> list[str]:
    return [share_cell(share) for share in (shares.values() if labelled else [shares["served"]])]


def share_cell(share: Share) -> str:
    """Return a share as "67% [50, 80]"."""
    if share.value is None or share.interval is None:
        return "-"
    low, high = share.interval
    return f"{share.value:.0%}\u00a0[{100 * low:.0f},\u00a0{100 * high:.0f}]"
