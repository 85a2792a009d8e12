"""`lrp4rag attribute`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.inputs import example_options, input_files, read_examples, work_through
from lrp4rag.cli.memory import memory_option
from lrp4rag.cli.options import attribution_options, open_reader
from lrp4rag.errors import InputError
from lrp4rag.files import check_output
from lrp4rag.terminal import open_console, say, say_json

if TYPE_CHECKING:
    from lrp4rag.example import Example
    from lrp4rag.lrp.readout import Target
    from lrp4rag.reader import Reader

UNITS = ("token", "word", "sentence")
TARGETS = ("response", "largest", "mean", "response-mean", "response-largest", "largest-mean")


@click.command(short_help="Relevance itself: what each part of a response rests on in the prompt.")
@example_options
@click.option("--response", help="The response.")
@click.option(
    "--granularity",
    type=click.Choice([*UNITS, "passage"]),
    default="passage",
    show_default=True,
    help="Units of the prompt.",
)
@click.option(
    "--response-granularity",
    type=click.Choice(UNITS),
    default="sentence",
    show_default=True,
    help="Units of the response.",
)
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    default="response",
    show_default=True,
    help="The logit that is explained: of the response's token, the largest, the mean, or a contrast.",
)
@click.option(
    "--rather-than",
    metavar="TOKEN",
    help="Explain why the response's tokens rather than this one (its text must be one token).",
)
@click.option(
    "--layer",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Relevance of the residual stream at the input of this decoder layer; 0 is the embeddings.",
)
@attribution_options
@memory_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per example, one per line.")
@click.option(
    "--png",
    "png_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a heatmap (one example).",
)
@click.pass_context
def attribute(
    ctx: click.Context,
    data: str | None,
    id_: str | None,
    question: str | None,
    context: tuple[Path, ...],
    template: Path | None,
    response: str | None,
    granularity: str,
    response_granularity: str,
    target: str,
    rather_than: str | None,
    layer: int,
    reader_name: str,
    device: str | None,
    dtype: str,
    chat_template: bool | None,
    composite: str | None,
    truncate: str,
    max_memory: int | None,
    as_json: bool,
    png_path: Path | None,
) -> None:
    """Relevance between the response's units and the prompt's, in logits; no detector is involved.

    It costs one pass for each unit of the side that has fewer. Sums stay the same at every granularity,
    since each token is in one unit.

    \b
    Examples:
      lrp4rag attribute examples/hallucinated.json
      lrp4rag attribute examples/hallucinated.json --granularity word --png words.png
      lrp4rag attribute examples/grounded.json --target response-mean --composite cp_lrp --json
      lrp4rag attribute examples/grounded.json --layer 20 --response-granularity token
    """
    if png_path is not None:  # before the expensive part
        check_output(png_path, input_files(data, context, template))
    if rather_than is not None and target != "response":
        raise InputError("--rather-than is a target of its own; leave --target out")
    examples = read_examples(data, id_, question, context, template, response)
    if len(examples) > 1 and png_path:
        raise InputError(f"--png shows one example and there are {len(examples)}; add --id")

    from lrp4rag.lrp.between import between
    from lrp4rag.lrp.mode import relevance_mode
    from lrp4rag.report.units import heatmap, render_units, unit_record

    reader = open_reader(reader_name, device, dtype, chat_template, None)
    explained = target if rather_than is None else _contrast(reader, rather_than)
    mode = relevance_mode(reader.model, composite or "attnlrp", target=explained, max_memory=max_memory)
    with mode as flow:

        def one(example: Example) -> None:
            encoded = reader.encode(example, truncation=truncate)  # type: ignore[arg-type]
            relevance = between(
                flow,
                encoded,
                response=response_granularity,  # type: ignore[arg-type]
                prompt=granularity,  # type: ignore[arg-type]
                layer=layer,
            )
            flow.forget()
            if as_json:
                say_json(unit_record(example.id, relevance))
            else:
                open_console().print(render_units(example.id, relevance))
            if png_path is not None:
                heatmap(relevance, png_path)
                say(f"wrote {png_path}", err=True)

        ctx.exit(work_through(examples, one))


def _contrast(reader: Reader, text: str) -> Target:
    from lrp4rag.lrp.readout import Target

    tokenizer: Any = reader.tokenizer
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        pieces = ", ".join(repr(tokenizer.decode([token])) for token in ids)
        raise InputError(
            f"'{text}' is {len(ids)} tokens for this reader ({pieces}); give one, "
            "with the space before it where it has one",
            field="--rather-than",
        )
    return Target("response", (ids[0],))
