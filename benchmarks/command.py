"""What the benchmarks' commands share: options, quiet libraries, and results as JSON or as tables."""

from __future__ import annotations

import functools
import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks.harness import silence
from lrp4rag.reader.reader import DTYPES
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.files import check_output, write_atomically

Report = tuple[dict[str, Any], list[str]]
"""Results for --json, and Markdown lines for people; the settings are added to both."""
Result = Report | dict[str, Any]
"""Without lines, each result that is no long list has one."""
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

SETTINGS = {"max_content_width": 110, "help_option_names": ["-h", "--help"]}


class OutputFile(click.ParamType[Path]):
    """A file to be written. It is looked at before anything is measured: that may take hours."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        try:
            return check_output(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


class Listed(click.ParamType[tuple[Any, ...]]):
    """Values of one type with commas between them."""

    def __init__(self, item: click.ParamType[Any]) -> None:
        self.item, self.name = item, f"{item.name},..."

    def convert(self, value: Any, param: Any, ctx: click.Context | None) -> tuple[Any, ...]:
        parts = value if isinstance(value, tuple) else [part for part in str(value).split(",") if part]
        return tuple(self.item.convert(part, param, ctx) for part in parts)


def count(name: str, default: int, help: str, least: int = 1) -> Decorator:
    return click.option(name, default=default, show_default=True, type=click.IntRange(least), help=help)


def listed(name: str, item: click.ParamType[Any], default: str, help: str) -> Decorator:
    return click.option(name, type=Listed(item), default=default, show_default=True, help=help)


rounds = functools.partial(count, "--rounds", help="Rounds of all ways.")
device = click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:K.")
dtype = click.option("--dtype", default="float32", show_default=True, type=click.Choice(list(DTYPES)))
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; benchmarks/README.md has the keys."
)


def benchmark(function: Callable[..., Result]) -> click.Command:
    """A command that prints what a function reports, as a table or as JSON, and may write the JSON."""

    @click.command(context_settings=SETTINGS)
    @as_json
    @click.option("--out", type=OutputFile(), help="Also write JSON here.")
    @functools.wraps(function)
    def main(as_json: bool, out: Path | None, **options: Any) -> None:
        silence()
        with exit_codes():
            found = function(**options)
        values, text = found if isinstance(found, tuple) else (found, rows_of(found))
        settings = {"threads": torch.get_num_threads(), "device": "cpu", **options}
        settings["device_name"] = device_name(torch.device(settings["device"]))
        content = json.dumps(settings | values, indent=2)
        if out is not None:
            write_atomically(out, content + "\n")
        about = ", ".join(f"{name} {value}" for name, value in settings.items())
        click.echo(content if as_json else "\n".join([about, "", *text]))

    return main


@contextmanager
def exit_codes() -> Iterator[None]:
    """Errors of lrp4rag end a command as they end `lrp4rag`: with their message and their exit code."""
    try:
        yield
    except LRP4RAGError as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(error.exit_code) from error


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def rows_of(result: Mapping[str, Any]) -> list[str]:
    """A line for each result that is no long list."""
    rows = [
        (name.replace("_", " "), f"{value:.3g}" if isinstance(value, float) else str(value))
        for name, value in result.items()
        if not isinstance(value, list) or len(value) < 5
    ]
    return table(("", ""), rows)


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.2f} GB"


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return model or platform.processor() or platform.machine()
