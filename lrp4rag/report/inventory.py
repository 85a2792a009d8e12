"""The inventory of a store, printed."""

from __future__ import annotations

from dataclasses import asdict

from lrp4rag.reader.identity import reader_name
from lrp4rag.report.failures import reasons_table
from lrp4rag.terminal import say, say_json
from lrp4rag.text import one_line
from lrp4rag.training.inventory import Inventory


def print_inventory(found: Inventory, *, as_json: bool) -> None:
    if as_json:
        say_json({**asdict(found), "folder": str(found.folder)})
        return
    configuration = found.configuration
    reader = f"{reader_name(configuration.reader)}, {configuration.reader['dtype']}"
    say(f"reader      {one_line(reader)}")
    say(f"composite   {configuration.composite}, target {one_line(configuration.target)}")
    say(f"examples    {found.examples} of {found.sources} sources")
    for name, count in found.generators.items():
        say(f"  {one_line(name, 60):<24} {count:>6}, {found.hallucinated.get(name, 0)} hallucinated")
    say("parts       responses     MB    kB each" + ("  damaged" if found.first_damaged else ""))
    for part, count in found.files.items():
        size = found.megabytes[part]
        damaged = f" {found.damaged[part]:>8}" if found.first_damaged else ""
        say(f"  {part:<14} {count:>6} {size:>8.1f} {size / max(count, 1) * 1000:>8.1f}{damaged}")
    if found.first_damaged:
        say(f"damaged     {found.first_damaged}, for example; lrp4rag extract computes these anew")
    if found.failures:
        say(f"failed      {found.failed} in the last run")
        say(reasons_table(found.failures))
