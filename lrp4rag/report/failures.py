"""Responses that failed, as a table of reasons."""

from __future__ import annotations

from collections.abc import Sequence

from lrp4rag.text import one_line
from lrp4rag.training.inventory import Reason

MOST = 20
"""Reasons that are shown."""


def reasons_table(reasons: Sequence[Reason]) -> str:
    """A line for each reason: how many responses, the first one's id, and what happened to it."""
    lines = [f"{'count':>6}  {'first':<24} reason"]
    for one in reasons[:MOST]:
        lines.append(f"{one.count:>6}  {one_line(one.first, 24):<24} {one_line(one.reason, 300)}")
    if len(reasons) > MOST:
        rest = sum(one.count for one in reasons[MOST:])
        lines.append(f"{rest:>6}  for {len(reasons) - MOST} other reasons; failures.jsonl has all")
    return "\n".join(lines)
