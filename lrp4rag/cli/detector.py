"""`lrp4rag detector info`."""

from __future__ import annotations

import click


@click.group()
def detector() -> None:
    """Look at trained detectors."""


@detector.command()
@click.argument("folder", default="default", metavar="[FOLDER]")
@click.option("--json", "as_json", is_flag=True, help="The whole card as JSON.")
def info(folder: str, as_json: bool) -> None:
    """Print a detector's card: what it was trained with and on, and how well it does.

    FOLDER is a detector folder; without it, the bundled detector is shown.
    """
    from lrp4rag.classifiers.folder import load_card
    from lrp4rag.report.cards import print_card

    print_card(load_card(folder), as_json=as_json)
