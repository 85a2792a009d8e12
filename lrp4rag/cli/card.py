"""`lrp4rag card`."""

from __future__ import annotations

import click

from lrp4rag.cli.command import command
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import say


@command()
@click.argument("folder", default="default", metavar="[FOLDER]")
@click.option("--json", "as_json", is_flag=True, help="Print the whole card as JSON.")
@click.option("--markdown", is_flag=True, help="Print a model card in Markdown.")
def card(folder: str, as_json: bool, markdown: bool) -> None:
    """Print a detector's card: what it was trained with and on, and how well it does.

    FOLDER is a detector folder. Without it, the card is that of the detector that comes with the package.
    """
    from lrp4rag.classifiers.folder import load_card
    from lrp4rag.report.cards import model_card, print_card

    if as_json and markdown:
        raise InputError("--json and --markdown are two ways to print the card; choose one")
    detector_card = load_card(folder)
    if markdown:
        say(model_card(detector_card, folder.rstrip("/").rsplit("/", 1)[-1]), end=False)
    else:
        print_card(detector_card, as_json=as_json)
