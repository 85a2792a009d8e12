"""`lrp4rag attribute`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.inputs import Source, example_options, work_through
from lrp4rag.cli.options import JSON_LINES, ReaderChoice, check_written, file_option, hidden, reader_options
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import open_console, say, say_json

if TYPE_CHECKING:
    from lrp4rag.example import Example

UNITS = ("token", "word", "sentence")
TARGETS = ("response", "largest", "mean", "response-mean", "response-largest", "largest-mean")


@command()
@example_options(response="The response.")
@click.option(
    "--granularity",
    type=click.Choice([*UNITS, "passage"]),
    default="passage",
    help="Units of the prompt.",
)
@click.option(
    "--response-granularity",
    type=click.Choice(UNITS),
    default="sentence",
    help="Units of the response.",
)
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    default="response",
    help="The logit that is explained: of the response's token, the largest, the mean, or a contrast.",
)
@hidden(
    click.option("--layer", default=0, type=click.IntRange(0), help="At the input of this decoder layer.")
)
@reader_options(shown=("composite",))
@JSON_LINES
@file_option("--png", "png_path", help="Write a heatmap of one example.")
@click.pass_context
def attribute(
    ctx: click.Context,
    source: Source,
    granularity: Literal["token", "word", "sentence", "passage"],
    response_granularity: Literal["token", "word", "sentence"],
    target: str,
    layer: int,
    reader: ReaderChoice,
    as_json: bool,
    png_path: Path | None,
) -> None:
    """Relevance between the response's units and the prompt's, in logits; no detector is involved.

    It costs one pass for each unit of the side that has fewer. Sums are the same at every granularity,
    since each token is in one unit.

    \b
    Examples:
      lrp4rag attribute examples/hallucinated.json
      lrp4rag attribute examples/hallucinated.json --granularity word --png words.png
      lrp4rag attribute examples/grounded.json --target response-mean --composite cp_lrp --json
      lrp4rag attribute examples/grounded.json --response-granularity token
    """
    if png_path is not None:  # before the expensive part
        check_written(png_path, source.files)
    examples = source.read()
    if len(examples) > 1 and png_path:
        raise InputError(f"--png shows one example and there are {len(examples)}; add --id")

    from lrp4rag.lrp.flow import relevance_mode
    from lrp4rag.lrp.units import between
    from lrp4rag.report.units import heatmap, render_units, unit_record

    opened = reader.open()
    mode = relevance_mode(opened.model, reader.rules, target=target, max_memory=reader.max_memory)
    with mode as flow:

        def show(example: Example) -> None:
            encoded = opened.encode(example, truncation=reader.truncate)
            relevance = between(flow, encoded, response=response_granularity, prompt=granularity, layer=layer)
            flow.forget()
            if as_json:
                say_json(unit_record(example.id, relevance))
            else:
                open_console().print(render_units(example.id, relevance))
            if png_path is not None:
                heatmap(relevance, png_path)
                say(f"wrote {png_path}", err=True)

        ctx.exit(work_through(examples, show))
