"""Print what a store holds, and why responses failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from lrp4rag.reader.identity import reader_name
from lrp4rag.training.inventory import Inventory, Reason
from lrp4rag.util.terminal import say, say_json
from lrp4rag.util.text import one_line

MOST = 20
"""Reasons that are shown."""


def print_inventory(inventory: Inventory, *, as_json: bool) -> None:
    if as_json:
        say_json({**asdict(inventory), "folder": str(inventory.folder)})
        return
    configuration = inventory.configuration
    reader = f"{reader_name(configuration.reader)}, {configuration.reader['dtype']}"
    say(f"reader      {one_line(reader)}")
    say(f"composite   {configuration.composite}, target {one_line(configuration.target)}")
    say(f"examples    {inventory.examples} of {inventory.sources} sources")
    for name, count in inventory.generators.items():
        say(f"  {one_line(name, 60):<24} {count:>6}, {inventory.hallucinated.get(name, 0)} hallucinated")
    say("parts       responses     MB    kB each" + ("  damaged" if inventory.first_damaged else ""))
    for part, count in inventory.files.items():
        size = inventory.megabytes[part]
        damaged = f" {inventory.damaged[part]:>8}" if inventory.first_damaged else ""
        say(f"  {part:<14} {count:>6} {size:>8.1f} {size / max(count, 1) * 1000:>8.1f}{damaged}")
    if inventory.first_damaged:
        say(f"damaged     the first is {inventory.first_damaged}; lrp4rag extract computes these again")
    if inventory.failures:
        say(f"failed      {inventory.failed} in the last run")
        say(reasons_table(inventory.failures))


def reasons_table(reasons: Sequence[Reason]) -> str:
    """Build a line per reason: the number of responses, the id of the first, and its error."""
    lines = [f"{'count':>6}  {'first':<24} reason"]
    for reason in reasons[:MOST]:
        lines.append(f"{reason.count:>6}  {one_line(reason.first, 24):<24} {one_line(reason.reason, 300)}")
    if len(reasons) > MOST:
        rest = sum(reason.count for reason in reasons[MOST:])
        lines.append(f"{rest:>6}  for {len(reasons) - MOST} other reasons; failures.jsonl has all")
    return "\n".join(lines)
