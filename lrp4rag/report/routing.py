"""Decisions of a policy on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from lrp4rag.guard.policy import ACTIONS
from lrp4rag.guard.policy.assess import Assessment
from lrp4rag.guard.policy.simulate import Outcome, Row, Share, by_generator, outcome
from lrp4rag.util.text import one_line, visible

STYLES = {"serve": "green", "mark": "yellow", "disclose": "yellow", "escalate": "magenta", "withhold": "red"}
QUIET = ("grounded", "verified", "no minimum", "history")
"""Kinds of findings that are no news."""


def decision_lines(id: str, found: Assessment, others: Mapping[str, Assessment]) -> list[Text]:
    """One answer of many: what is done with it and why, and what other policies do, where that is another
    thing."""
    lines = assessment_lines(found, id)
    for name, other in others.items():
        if other.decided.action != found.decided.action:
            lines.append(Text(f"  {name}: {other.decided.action}, {other.decided.reason}", style="bold"))
    return lines


def assessment_lines(found: Assessment, id: str = "") -> list[Text]:
    """What is done with an answer and why, its shares, what checks found that is wrong, and what its reader
    is told."""
    decided = found.decided
    line = Text().append(f"{decided.action:<9}", style=STYLES[decided.action])
    line.append(f"{one_line(id, 40)}  " if id else "").append(decided.reason, style="bold")
    lines = [line.append(f"  {shares_words(found)}", style="dim")]
    lines += [Text(f"  {check}: {words}") for check, words in news(found)]
    lines += [Text(f"  {words}", style="red") for words in unavailable_words(found)]
    if found.message:
        lines.append(Text(f"  The reader is told: {visible(found.message)}", style="dim"))
    return lines


def shares_words(found: Assessment) -> str:
    """Such as "faithfulness 67%, facts 80%"; empty for what has none."""
    shares = {"faithfulness": found.measures.faithfulness, "facts": found.measures.facts}
    return ", ".join(f"{name} {value:.0%}" for name, value in shares.items() if value is not None)


def news(found: Assessment) -> list[tuple[str, str]]:
    """What checks found that is wrong: the check, and its words."""
    return [(one.check, visible(one.words)) for one in found.checked.every if one.kind not in QUIET]


def unavailable_words(found: Assessment) -> list[str]:
    """Of checks that did not finish."""
    return [f"{name}: unavailable, {visible(why)}" for name, why in found.checked.unavailable.items()]


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

    def told(one: Outcome) -> dict[str, Any]:
        shares = {name: getattr(one, name) for name in ("served", "hallucinated", "faithful_withheld")}
        return {name: share_record(x) for name, x in shares.items()}

    return {
        "actions": dict(Counter(row.action for row in rows)),
        **told(outcome(rows)),
        "by_generator": {name: told(one) for name, one in by_generator(rows).items()},
    }


def share_record(one: Share) -> dict[str, Any]:
    """JSON values."""
    return {"value": one.value, "interval": one.interval, "part": one.part, "count": one.count}


def _shares(found: Outcome, labelled: bool) -> list[str]:
    shown = [found.served, *([found.hallucinated, found.faithful_withheld] if labelled else [])]
    return [share_cell(one) for one in shown]


def share_cell(one: Share) -> str:
    """67% [50, 80]"""
    if one.value is None or one.interval is None:
        return "-"
    low, high = one.interval
    return f"{one.value:.0%}\u00a0[{100 * low:.0f},\u00a0{100 * high:.0f}]"
