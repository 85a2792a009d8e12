"""`lrp4rag generate`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import advanced, command
from lrp4rag.cli.inputs import Source, example_options, work_through
from lrp4rag.cli.options import (
    COMPOSITE,
    JSON_LINES,
    MAX_NEW_TOKENS,
    Number,
    ReaderChoice,
    gathered,
    model_options,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import open_console, say_json

if TYPE_CHECKING:
    from lrp4rag.example import Example
    from lrp4rag.generation import GeneratedToken, Generation

WINDOW = 17

Generate = Callable[["Example", "Callable[[GeneratedToken], None] | None"], "Generation"]


@command()
@example_options(more=False)
@gathered(
    ReaderChoice,
    "reader",
    *model_options("The model that writes the response"),
    COMPOSITE,
)
@MAX_NEW_TOKENS
@click.option("--stream", is_flag=True, help="Show each token as it comes (with --json: a line each).")
@click.option(
    "--temperature",
    default=0.0,
    type=Number(0),
    help="Sample tokens at this temperature; at 0 the most likely token is taken.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Makes the samples repeatable.")
@click.option(
    "--stop-below",
    type=Number(),
    metavar="X",
    help=f"Stop once the prompt's relevance, averaged over the last {WINDOW} tokens, is below X logits.",
)
@click.option(
    "--judge",
    is_flag=True,
    help="Judge each sentence as it ends, by the bundled detector or that of --detector; no relevance.",
)
@advanced("--detector", metavar="NAME|FOLDER", help="Of --judge.  [default: default]")
@JSON_LINES
@click.pass_context
def generate(
    ctx: click.Context,
    source: Source,
    reader: ReaderChoice,
    max_new_tokens: int,
    stream: bool,
    temperature: float,
    seed: int | None,
    stop_below: float | None,
    judge: bool,
    detector: str | None,
    as_json: bool,
) -> None:
    """Let the reader answer a question from its passages, and show what each token rests on.

    Every token comes with its relevance to each passage, to the question and to the template, from the
    pass that generates it. On a terminal, a token's background shows how much of its relevance comes
    from the passages: the sum over the passages, as a share of the sum of the absolute relevance of all
    segments. A table then gives the sums over the response, and names the leading passage.

    DATA is a JSONL or JSON file of examples, '-' for standard input, or a RAGTruth directory; responses
    in it are ignored. Or give the parts: --question and --passage.

    \b
    Examples:
      lrp4rag generate examples/grounded.json --stream
      lrp4rag generate --question "Who wrote it?" --passage @p1.txt --passage @p2.txt --stream
      lrp4rag generate questions.jsonl --json > responses.jsonl
      lrp4rag generate one.json --temperature 0.8 --seed 1
      lrp4rag generate one.json --stream --stop-below 2
      lrp4rag generate one.json --judge

    Relevance depends on the reader, and so does a good threshold for --stop-below: look at "total" in
    the output of --json first.
    """
    if not temperature and seed is not None:
        raise InputError("--seed is for sampling; add --temperature above 0")
    if detector is not None and not judge:
        raise InputError("--detector is for --judge")
    if judge:
        if stream or temperature or stop_below is not None:
            raise InputError(
                "--judge takes the most likely tokens, and shows sentences; it is used by itself"
            )
        ctx.exit(_judged(source, reader, detector or "default", max_new_tokens, as_json))
    examples = source.read()

    from lrp4rag.generation import generate as run
    from lrp4rag.lrp.streaming import Sampling, running_below

    started = time.perf_counter()
    opened = reader.open()
    load = time.perf_counter() - started
    sampling = Sampling(temperature, seed=seed)

    def generated(example: Example, follow: Callable[[GeneratedToken], None] | None) -> Generation:
        generation = run(
            example,
            opened,
            follow=follow,
            composite=reader.rules,
            sampling=sampling,
            stop=None if stop_below is None else running_below(stop_below, WINDOW),
            max_new_tokens=max_new_tokens,
        )
        return replace(generation, seconds={"load": load, **generation.seconds})

    if as_json:
        code = work_through(examples, lambda example: _print_json(example, generated, stream))
    else:
        stopped = f"stopped: below {stop_below} on average over the last {WINDOW} tokens"
        headed = len(examples) > 1
        code = work_through(examples, lambda example: _print(example, generated, stream, headed, stopped))
    ctx.exit(code)


def _judged(source: Source, choice: ReaderChoice, name: str, max_new_tokens: int, as_json: bool) -> int:
    """Write and judge an answer to each example, sentence by sentence; return the exit code."""
    from lrp4rag.classifiers.model import Model
    from lrp4rag.judge import Detector
    from lrp4rag.report.generation import PiecePrinter, record_piece

    examples = source.read()
    detector = Detector(Model.load(name), choice.open())
    console = open_console()

    def answer(example: Example) -> None:
        if as_json:
            detector.answer(
                example,
                lambda piece: say_json({"id": example.id, **record_piece(piece)}),
                max_new_tokens=max_new_tokens,
            )
        else:
            printer = PiecePrinter(console)
            printer.begin(example.id if len(examples) > 1 else None)
            detector.answer(example, printer, max_new_tokens=max_new_tokens)
            printer.finish()

    with detector:
        return work_through(examples, answer)


def _print_json(example: Example, generated: Generate, stream: bool) -> None:
    from lrp4rag.report.generation import record_generation, record_token

    def follow(token: GeneratedToken) -> None:
        say_json({"id": example.id, **record_token(token)})

    say_json(record_generation(generated(example, follow if stream else None)))


def _print(example: Example, generated: Generate, stream: bool, headed: bool, stopped: str) -> None:
    from rich.text import Text

    from lrp4rag.report.generation import TokenPrinter, render_legend, render_totals
    from lrp4rag.util.text import one_line

    console = open_console()
    printer = TokenPrinter(console)

    def open_up() -> None:
        if headed:
            console.print(Text(one_line(example.id, 60), style="bold"))
        if (legend := render_legend(console)) is not None:
            console.print(legend)
            console.print()

    if stream:
        open_up()
        generation = generated(example, printer)
    else:
        generation = generated(example, None)
        open_up()
        for token in generation.tokens:
            printer(token)
    printer.finish(generation)
    console.print()
    console.print(render_totals(generation, stopped))
    if headed:
        console.print()
