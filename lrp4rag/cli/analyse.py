"""`lrp4rag analyse`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.inputs import example_options, input_files, read_examples, work_through
from lrp4rag.cli.memory import memory_option
from lrp4rag.cli.options import (
    MAX_NEW_TOKENS,
    open_detector,
    open_reader,
    operating_options,
    reader_options,
)
from lrp4rag.errors import InputError
from lrp4rag.files import check_output, write_atomically
from lrp4rag.terminal import open_console, say, say_json

if TYPE_CHECKING:
    from lrp4rag.classifiers.analysis import Analysis
    from lrp4rag.example import Example

HALLUCINATION = 3


@click.command(short_help="Verdict and evidence for one response, or for a file of them.")
@example_options
@click.option("--response", help="The response. Without one, the reader generates it.")
@click.option(
    "--detector",
    "detector_name",
    default="default",
    show_default=True,
    metavar="FOLDER",
    help="A trained detector, a bundled one (default, fast), or 'none' for evidence without a verdict.",
)
@click.option(
    "--fast",
    is_flag=True,
    help="The bundled detector of about four plain forward passes, not ten (docs/results/compare): tells no "
    "passages apart.",
)
@operating_options
@reader_options
@memory_option
@MAX_NEW_TOKENS
@click.option("--json", "as_json", is_flag=True, help="One JSON object per example, one per line.")
@click.option(
    "--html",
    "html_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a self-contained heatmap page: what each sentence rests on.",
)
@click.option(
    "--png",
    "png_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write plots of the relevance.",
)
@click.option("--tokens", is_flag=True, help="In the page, also what each token rests on (slower).")
@click.option("--fail-on-hallucination", is_flag=True, help="Exit with 3 if a response is flagged.")
@click.pass_context
def analyse(
    ctx: click.Context,
    data: str | None,
    id_: str | None,
    question: str | None,
    context: tuple[Path, ...],
    response: str | None,
    template: Path | None,
    detector_name: str,
    fast: bool,
    operating_point: str | None,
    false_positive_rate: float | None,
    reader_name: str,
    device: str | None,
    dtype: str,
    chat_template: bool | None,
    composite: str | None,
    truncate: str,
    max_memory: int | None,
    max_new_tokens: int,
    as_json: bool,
    html_path: Path | None,
    png_path: Path | None,
    tokens: bool,
    fail_on_hallucination: bool,
) -> None:
    """Say whether a response is grounded in its passages, and what each sentence rests on.

    DATA is a JSONL or JSON file of examples, '-' for standard input, or a RAGTruth directory (with
    --id for one of its responses). Or give the parts: --question, --context and --response.

    \b
    Examples:
      lrp4rag analyse examples/hallucinated.json --html page.html
      lrp4rag analyse --question "Who wrote it?" --context p1.txt --context p2.txt
      lrp4rag analyse generations.jsonl --json > verdicts.jsonl
      cat generations.jsonl | lrp4rag analyse - --fail-on-hallucination

    A JSON example has "question", "passages" (a list) and "response"; optionally "id", "prompt" (as the
    generator got it), "template", "labels", "source_id" and "generator".
    """
    outputs = [path for path in (html_path, png_path) if path is not None]
    for path in outputs:  # before the expensive part
        check_output(path, input_files(data, context, template))
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise InputError("--html and --png name the same file")
    if fail_on_hallucination and detector_name == "none":
        raise InputError("--fail-on-hallucination needs a detector")
    if tokens and html_path is None:
        raise InputError("--tokens is for the page; add --html FILE")
    examples = read_examples(data, id_, question, context, template, response)
    if len(examples) > 1 and (html_path or png_path):
        raise InputError(f"--html and --png show one example and there are {len(examples)}; add --id")

    from lrp4rag.classifiers.analysis import analyse as run
    from lrp4rag.progress import track

    started = time.perf_counter()
    if fast:
        if detector_name != "default":
            raise InputError("--fast is a detector of its own; leave --detector out")
        detector_name = "fast"
    detector = open_detector(detector_name, operating_point, false_positive_rate)
    reader = open_reader(reader_name, device, dtype, chat_template, detector)
    load = time.perf_counter() - started

    def analysed(example: Example) -> Analysis:
        analysis = run(
            example,
            reader,
            detector,
            composite=composite,
            rows=html_path is not None or png_path is not None,
            tokens=tokens,
            truncation=truncate,  # type: ignore[arg-type]
            max_new_tokens=max_new_tokens,
            max_memory=max_memory,
            follow=track,
        )
        return replace(analysis, seconds={"load": load, **analysis.seconds})

    if len(examples) == 1:
        analysis = analysed(examples[0])
        named = f"{detector_name} ({detector.card.classifier})" if detector else None
        _print_one(analysis, as_json)
        _write_files(analysis, named, html_path, png_path)
        flagged, code = bool(analysis.verdict.hallucinated), 0
    else:
        flagged, code = _print_many(examples, analysed, as_json)
    ctx.exit(code or (HALLUCINATION if flagged and fail_on_hallucination else 0))


def _write_files(analysis: Analysis, name: str | None, html_path: Path | None, png_path: Path | None) -> None:
    if html_path is not None:
        from lrp4rag.report.html import html_page

        write_atomically(html_path, html_page(analysis, detector=name))
        say(f"wrote {html_path}", err=True)
    if png_path is not None:
        from lrp4rag.report.plots import png

        png(analysis, png_path)
        say(f"wrote {png_path}", err=True)


def _print_one(analysis: Analysis, as_json: bool) -> None:
    if as_json:
        _print_json(analysis)
        return
    from lrp4rag.report.terminal import render

    open_console().print(render(analysis))


def _print_json(analysis: Analysis) -> dict[str, Any]:
    from lrp4rag.report.record import record

    row: dict[str, Any] = record(analysis)
    say_json(row)
    return row


def _print_many(examples: Sequence[Example], analysed: Any, as_json: bool) -> tuple[bool, int]:
    """One line each as they come, then a summary; an example that fails is told and passed over."""
    from lrp4rag.report.record import record
    from lrp4rag.report.terminal import render_line, render_summary

    console, records = open_console(), list[dict[str, Any]]()

    def one(example: Example) -> None:
        analysis = analysed(example)
        if as_json:
            records.append(_print_json(analysis))
        else:
            records.append(record(analysis))
            # On a terminal a line is a line; what is piped is not cut.
            piped = not console.is_terminal
            console.print(render_line(analysis), no_wrap=True, overflow="ellipsis", soft_wrap=piped)

    code = work_through(examples, one)
    summary_console = open_console(stderr=True) if as_json else console
    if records:
        summary_console.print(render_summary(records))
    return any(row["hallucinated"] for row in records), code
