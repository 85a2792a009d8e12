"""Options that commands of the research share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from lrp4rag.cli.options import PATH, Decorator


def store_option(help: str) -> Decorator:
    return click.option(
        "--store",
        required=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help=help,
    )


def sections_option(names: Iterable[str], help: str) -> Decorator:
    return click.option(
        "--section", "sections", multiple=True, type=click.Choice(list(names)), help=f"{help}  [default: all]"
    )


def cache_option(help: str) -> Decorator:
    return click.option("--cache", type=PATH, help=help)
