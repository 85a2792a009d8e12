"""The command line for mkdocs-click: what commands say of themselves, as Markdown."""

from __future__ import annotations

import re
from inspect import cleandoc

import click
from mkdocs.config.defaults import MkDocsConfig

from lrp4rag.cli import main


def on_pre_build(config: MkDocsConfig) -> None:
    """Commands describe themselves in Markdown: mkdocs-click takes their help for it."""
    commands: list[click.Command] = [main]
    while commands:
        one = commands.pop()
        one.help = as_markdown(one.help or "")
        if isinstance(one, click.Group):
            context = click.Context(one)
            commands += [
                found for name in one.list_commands(context) if (found := one.get_command(context, name))
            ]


def as_markdown(text: str) -> str:
    """Help of click, with the examples, which it leaves as they are, as blocks of code."""

    def block(found: re.Match[str]) -> str:
        lines = found[1].splitlines()
        return "\n".join(f"    {line}" if line.startswith(" ") else f"{line}\n" for line in lines)

    return re.sub(r"^\x08\n(.*?)(?=\n\n|\Z)", block, cleandoc(text), flags=re.DOTALL | re.MULTILINE)
