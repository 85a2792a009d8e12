"""The option --max-memory and the sizes that it understands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from lrp4rag.text import one_line

_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
LARGEST = 2.0**63


class MemorySize(click.ParamType):  # type: ignore[type-arg]
    """Bytes, from a text such as 4GB or 500MiB."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?", str(value).strip().lower())
        size = float(match[1]) * _UNITS.get(match[2], 0) if match else 0.0
        if not 1 <= size < LARGEST:
            self.fail(f"'{one_line(str(value), 40)}' is no size; give one such as 4GB or 500MB", param, ctx)
        return int(size)


def memory_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--max-memory",
        type=MemorySize(),
        metavar="SIZE",
        help="What the process (or GPU) may hold, such as 4GB: passes are made as small as that needs.",
    )(function)
