"""`--config`: options of a command by name, from a YAML or JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lrp4rag.cli.options import PATH
from lrp4rag.util.errors import InputError


def _read(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Make the file's values the defaults of the command's options; the command line comes first."""
    from lrp4rag.util.yaml_file import line_of, read_yaml

    if path is None:
        return
    options = [
        option for option in ctx.command.params if isinstance(option, click.Option) and not option.is_eager
    ]
    names = {
        name.lstrip("-"): str(option.name)
        for option in options
        for name in option.opts
        if name.startswith("--")
    }
    defaults: dict[str, Any] = {}
    for name, value in read_yaml(path).items():
        spelled = name.replace("_", "-")
        if spelled not in names:
            raise InputError(
                f"'{name}' is no option of {ctx.command.name}; there are: {', '.join(sorted(names))}",
                path=path,
                line=line_of(path, name),
            )
        defaults[names[spelled]] = value
    ctx.default_map = {**(ctx.default_map or {}), **defaults}


CONFIG = click.option(
    "--config",
    type=PATH,
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_read,
    help="YAML or JSON file with options by name, also those that few need (docs/detector.md).",
)
