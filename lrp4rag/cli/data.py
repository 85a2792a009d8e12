"""`lrp4rag data fetch`."""

from __future__ import annotations

from pathlib import Path

import click

from lrp4rag.cli.options import PATH
from lrp4rag.util.terminal import say


@click.group()
def data() -> None:
    """Fetch public labelled data."""


@data.command()
@click.argument("name")
@click.option("--out", type=PATH, help="Folder for the files.  [default: data/NAME in the cache of lrp4rag]")
@click.option(
    "--mirror", metavar="URL", help="Fetch the files from below this URL.  [default: the publisher's]"
)
def fetch(name: str, out: Path | None, mirror: str | None) -> None:
    """Fetch the public set NAME. There is one: ragtruth (37 MB, MIT), by the RAGTruth authors, of GitHub.

    Files are kept only where size and SHA-256 are those that lrp4rag knows; ones that are there are not
    fetched again. Safe to interrupt: running it again goes on. HTTPS_PROXY and HTTP_PROXY are honoured.
    `train`, `evaluate`, `extract` and `corrupt` then take the name as DATA: of ragtruth these are the
    question-answering responses of the train split. It is the cache's that they read, not that of --out.

    \b
    Examples:
      lrp4rag data fetch ragtruth
      lrp4rag train ragtruth --more everyday --more-every 2 --pairs-every 12 --reader MODEL --out mine/
    """
    from lrp4rag.training.fetch import fetch as run
    from lrp4rag.training.fetch import public_set

    folder = run(name, out, mirror)
    say(f"{folder}\nlicence: {public_set(name).licence}")
