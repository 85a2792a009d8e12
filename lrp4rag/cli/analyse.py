"""`lrp4rag analyse`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.command import advanced, command
from lrp4rag.cli.inputs import Source, example_options, work_through
from lrp4rag.cli.options import (
    JSON_LINES,
    MAX_NEW_TOKENS,
    DetectorChoice,
    ReaderChoice,
    detector_options,
    detector_reader_options,
    file_option,
)
from lrp4rag.errors import InputError
from lrp4rag.files import check_output, write_atomically
from lrp4rag.terminal import open_console, say, say_json

if TYPE_CHECKING:
    from lrp4rag.classifiers import FittedDetector
    from lrp4rag.classifiers.analysis import Analysis
    from lrp4rag.example import Example

HALLUCINATION = 3


@command(short_help="Verdict and evidence for one response, or for each response of a file.")
@example_options(response="The response. Without one, the reader generates it.")
@detector_options(", or 'none' for evidence without a verdict")
@click.option(
    "--fast",
    is_flag=True,
    help="Use the bundled detector 'fast': about four plain forward passes, not ten, and no attribution to "
    "single passages (docs/results/compare).",
)
@detector_reader_options()
@MAX_NEW_TOKENS
@JSON_LINES
@file_option("--html", "html_path", help="Write a self-contained heatmap page: what each sentence rests on.")
@file_option("--png", "png_path", help="Write plots of the relevance.")
@advanced("--tokens", is_flag=True, help="In the page, also show what each token rests on (slower).")
@click.option("--fail-on-hallucination", is_flag=True, help="Exit with 3 if a response is flagged.")
@click.pass_context
def analyse(
    ctx: click.Context,
    source: Source,
    choice: DetectorChoice,
    fast: bool,
    reader: ReaderChoice,
    max_new_tokens: int,
    as_json: bool,
    html_path: Path | None,
    png_path: Path | None,
    tokens: bool,
    fail_on_hallucination: bool,
) -> None:
    """Say whether a response is grounded in its passages, and what each sentence rests on.

    DATA is a JSONL or JSON file of examples, '-' for standard input, or a RAGTruth directory (with
    --id for one of its responses). Or give the parts: --question, --passage and --response.

    \b
    Examples:
      lrp4rag analyse examples/hallucinated.json --html page.html
      lrp4rag analyse --question "Who wrote it?" --passage @p1.txt --passage "Ann Lee, 1874."
      lrp4rag analyse generations.jsonl --json > verdicts.jsonl
      cat generations.jsonl | lrp4rag analyse - --fail-on-hallucination

    A JSON example has "question", "passages" (a list) and "response"; optionally "id", "prompt" (as the
    generator got it), "template", "labels", "source_id" and "generator".
    """
    outputs = [path for path in (html_path, png_path) if path is not None]
    for path in outputs:  # before the expensive part
        check_output(path, source.files)
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise InputError("--html and --png name the same file")
    if fast:
        if choice.detector_name != "default":
            raise InputError("--fast chooses a detector; leave --detector out")
        choice = replace(choice, detector_name="fast")
    if fail_on_hallucination and choice.detector_name == "none":
        raise InputError("--fail-on-hallucination needs a detector")
    if tokens and html_path is None:
        raise InputError("--tokens is for the page; add --html FILE")
    examples = source.read()
    from lrp4rag.classifiers.prevalence import FEWEST

    if choice.estimates and len(examples) < FEWEST:
        raise InputError(
            f"--prevalence estimate needs {FEWEST} responses or more, and there are {len(examples)}; give a "
            "number"
        )
    if len(examples) > 1 and outputs:
        raise InputError(f"--html and --png show one example and there are {len(examples)}; add --id")

    from lrp4rag.classifiers.analysis import analysing
    from lrp4rag.progress import track

    started = time.perf_counter()
    detector = choice.open()
    opened = reader.open(detector)
    load = time.perf_counter() - started

    with analysing(opened, detector, composite=reader.composite, max_memory=reader.max_memory) as analyse_one:

        def analysed(example: Example) -> Analysis:
            analysis = analyse_one(
                example,
                rows=bool(outputs),
                tokens=tokens,
                truncation=reader.truncate,
                max_new_tokens=max_new_tokens,
                follow=track,
            )
            return replace(analysis, seconds={"load": load, **analysis.seconds})

        if len(examples) == 1:
            analysis = analysed(examples[0])
            _print_one(analysis, as_json)
            named = f"{choice.detector_name} ({detector.card.classifier})" if detector else None
            _write_files(analysis, named, html_path, png_path)
            flagged, code = bool(analysis.verdict.hallucinated), 0
        else:
            flagged, code = _print_many(examples, analysed, as_json, detector if choice.estimates else None)
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
    from lrp4rag.report.record import record
    from lrp4rag.report.terminal import render

    if as_json:
        say_json(record(analysis))
    else:
        open_console().print(render(analysis))


def _print_many(
    examples: Sequence[Example],
    analysed: Callable[[Example], Analysis],
    as_json: bool,
    estimating: FittedDetector | None,
) -> tuple[bool, int]:
    """A line per example, then a summary; where the prevalence is estimated, all lines at the end. Returns
    whether one is flagged, and the exit code."""
    from lrp4rag.report.record import record
    from lrp4rag.report.terminal import render_line, render_summary

    console, records = open_console(), list[dict[str, Any]]()
    waiting: list[Analysis] = []

    def one(example: Example) -> None:
        if estimating is None:
            show(analysed(example))
        else:
            waiting.append(analysed(example))

    def show(analysis: Analysis) -> None:
        records.append(record(analysis))
        if as_json:
            say_json(records[-1])
        else:  # lines are cut on a terminal, and whole in a pipe
            piped = not console.is_terminal
            console.print(render_line(analysis), no_wrap=True, overflow="ellipsis", soft_wrap=piped)

    code = work_through(examples, one)
    if estimating is not None and waiting:
        from lrp4rag.classifiers.detector import at_estimated_prevalence

        verdicts, prevalence = at_estimated_prevalence(estimating, [one.verdict for one in waiting])
        say(f"estimated prevalence: {prevalence:.2f} of {len(waiting)} responses", err=True)
        for analysis, verdict in zip(waiting, verdicts, strict=True):
            show(replace(analysis, verdict=verdict))
    if records:
        (open_console(stderr=True) if as_json else console).print(render_summary(records))
    return any(row["hallucinated"] for row in records), code
