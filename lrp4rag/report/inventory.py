"""The inventory of a store, printed."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from lrp4rag.experiments.inventory import Inventory
from lrp4rag.generator.reader import reader_name


def print_inventory(found: Inventory, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({**asdict(found), "folder": str(found.folder)}))
        return
    configuration = found.configuration
    click.echo(f"reader      {reader_name(configuration.reader)}, {configuration.reader['dtype']}")
    click.echo(f"composite   {configuration.composite}, target {configuration.target}")
    click.echo(f"examples    {found.examples} of {found.sources} sources")
    for name, count in found.generators.items():
        click.echo(f"  {name:<24} {count:>6}, {found.hallucinated.get(name, 0)} hallucinated")
    click.echo("parts       responses     MB    kB each")
    for part, count in found.files.items():
        size = found.megabytes[part]
        click.echo(f"  {part:<14} {count:>6} {size:>8.1f} {size / max(count, 1) * 1000:>8.1f}")
