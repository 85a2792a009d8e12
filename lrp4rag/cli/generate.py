"""`lrp4rag generate`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.inputs import example_options, read_examples, work_through
from lrp4rag.cli.memory import memory_option
from lrp4rag.cli.options import MAX_NEW_TOKENS, Number, generator_options, open_reader
from lrp4rag.errors import InputError
from lrp4rag.terminal import open_console, say_json

if TYPE_CHECKING:
    from lrp4rag.example import Example
    from lrp4rag.generation import GeneratedToken, Generation

WINDOW = 17

Generate = Callable[["Example", "Callable[[GeneratedToken], None] | None"], "Generation"]


@click.command(short_help="Let the reader answer, each token with its relevance.")
@example_options
@generator_options
@memory_option
@MAX_NEW_TOKENS
@click.option("--stream", is_flag=True, help="Show each token as it comes (with --json: a line each).")
@click.option(
    "--temperature",
    default=0.0,
    type=Number(0),
    help="Draw tokens at this temperature.  [default: 0, the most likely token]",
)
@click.option("--top-k", type=click.IntRange(1), help="Draw from the K most likely tokens only.")
@click.option(
    "--top-p",
    type=Number(0, 1, min_open=True),
    help="Draw from the most likely tokens that together have probability P only.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Makes the draws repeatable.")
@click.option(
    "--stop-below",
    type=Number(),
    metavar="X",
    help="Stop once the prompt's relevance, in logits and averaged over the last tokens, is below X. "
    "Never sooner than there are that many tokens.",
)
@click.option(
    "--window",
    type=click.IntRange(1),
    help=f"Average over this many tokens for --stop-below.  [default: {WINDOW}]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per example, one per line.")
@click.pass_context
def generate(
    ctx: click.Context,
    data: str | None,
    id_: str | None,
    question: str | None,
    context: tuple[Path, ...],
    template: Path | None,
    reader_name: str,
    device: str | None,
    dtype: str,
    chat_template: bool | None,
    composite: str | None,
    truncate: str,
    max_memory: int | None,
    max_new_tokens: int,
    stream: bool,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
    stop_below: float | None,
    window: int | None,
    as_json: bool,
) -> None:
    """Let the reader answer a question from its passages, and show what each token rests on.

    Every token comes with its relevance to each passage, to the question and to the template, from the
    pass that generates it. On a terminal, a token's background says how much of its relevance comes
    from the passages: the sum over the passages, as a share of the sum of the absolute relevance of all
    segments. A table then gives the sums over the response, and names the passage that leads.

    DATA is a JSONL or JSON file of examples, '-' for standard input, or a RAGTruth directory; responses
    in it are ignored. Or give the parts: --question and --context.

    \b
    Examples:
      lrp4rag generate examples/grounded.json --stream
      lrp4rag generate --question "Who wrote it?" --context p1.txt --context p2.txt --stream
      lrp4rag generate questions.jsonl --json > responses.jsonl
      lrp4rag generate one.json --temperature 0.8 --top-p 0.9 --seed 1
      lrp4rag generate one.json --stream --stop-below 2

    Relevance depends on the reader, so a good threshold for --stop-below does too: look at "total" in
    the output of --json first.
    """
    if not temperature and (top_k is not None or top_p is not None or seed is not None):
        raise InputError("--top-k, --top-p and --seed are for draws; add --temperature above 0")
    if window is not None and stop_below is None:
        raise InputError("--window is for --stop-below")
    window = window or WINDOW
    examples = read_examples(data, id_, question, context, template)

    from lrp4rag.generation import generate as run
    from lrp4rag.lrp.stream import Sampling, running_below

    started = time.perf_counter()
    reader = open_reader(reader_name, device, dtype, chat_template, None)
    load = time.perf_counter() - started
    sampling = Sampling(temperature, top_k or 0, 1.0 if top_p is None else top_p, seed)

    def generated(example: Example, follow: Callable[[GeneratedToken], None] | None) -> Generation:
        generation = run(
            example,
            reader,
            follow=follow,
            composite=composite or "attnlrp",
            sampling=sampling,
            stop=None if stop_below is None else running_below(stop_below, window),
            max_new_tokens=max_new_tokens,
            max_memory=max_memory,
            truncation=truncate,  # type: ignore[arg-type]
        )
        return replace(generation, seconds={"load": load, **generation.seconds})

    if as_json:
        code = work_through(examples, lambda example: _print_json(example, generated, stream))
    else:
        stopped = f"stopped: below {stop_below} on average over the last {window} tokens"
        headed = len(examples) > 1
        code = work_through(examples, lambda example: _print(example, generated, stream, headed, stopped))
    ctx.exit(code)


def _print_json(example: Example, generated: Generate, stream: bool) -> None:
    from lrp4rag.report.generation import record_generation, record_token

    def follow(token: GeneratedToken) -> None:
        _echo({"id": example.id, **record_token(token)})

    _echo(record_generation(generated(example, follow if stream else None)))


def _echo(row: dict[str, Any]) -> None:
    say_json(row)  # which also flushes


def _print(example: Example, generated: Generate, stream: bool, headed: bool, stopped: str) -> None:
    from rich.text import Text

    from lrp4rag.report.generation import TokenPrinter, render_legend, render_response, render_totals
    from lrp4rag.text import one_line

    console = open_console()
    legend = render_legend(console)

    def open_up() -> None:
        if headed:
            console.print(Text(one_line(example.id, 60), style="bold"))
        if legend is not None:
            console.print(legend)
            console.print()

    if stream:
        open_up()
        printer = TokenPrinter(console)
        generation = generated(example, printer)
        printer.finish(generation)
    else:
        generation = generated(example, None)
        open_up()
        console.print(render_response(generation))
    console.print()
    console.print(render_totals(generation, stopped))
    if headed:
        console.print()
