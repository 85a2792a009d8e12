"""`lrp4rag analyse`."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.engine import EngineChoice, engine_options
from lrp4rag.cli.inputs import Source, example_options, work_through
from lrp4rag.cli.options import (
    JSON_LINES,
    MAX_NEW_TOKENS,
    NO_POLICY,
    DetectorChoice,
    ReaderChoice,
    check_written,
    detector_options,
    file_option,
    gathered,
    hidden,
    open_detector,
    policy_option,
    reader_options,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.terminal import open_console, say, say_json, tell
from lrp4rag.util.text import one_line

if TYPE_CHECKING:
    from rich.console import OverflowMethod
    from rich.text import Text

    from lrp4rag.example import Example
    from lrp4rag.guard.policy import Assessment, Policy
    from lrp4rag.judge import ExplainedVerdict

HALLUCINATION = 3


@dataclass(frozen=True)
class Files:
    """The files that show one example."""

    html_path: Path | None
    png_path: Path | None

    @property
    def paths(self) -> list[Path]:
        return [path for path in (self.html_path, self.png_path) if path is not None]

    def require_writable(self, source: Source) -> None:
        """Raise `InputError` for files that cannot be written, or that are read."""
        if len({path.resolve() for path in self.paths}) < len(self.paths):
            raise InputError("--html and --png name the same file")
        for path in self.paths:
            check_written(path, source.files)

    def write(self, verdict: ExplainedVerdict, decision: Assessment | None, detector: str | None) -> None:
        if self.html_path is not None:
            from lrp4rag.report.html import html_page

            write_atomically(self.html_path, html_page(verdict, detector=detector, decision=decision))
        if self.png_path is not None:
            from lrp4rag.report.plots import png

            png(verdict, self.png_path)
        for path in self.paths:
            say(f"wrote {path}", err=True)


@command()
@example_options(response="The response. Without one, the reader generates it.")
@detector_options(", or 'none' for evidence without a verdict")
@reader_options(shown=("max-memory",), dtype="auto")
@hidden(MAX_NEW_TOKENS)
@policy_option(", or 'none' for no decision")
@JSON_LINES
@gathered(
    Files,
    "files",
    file_option("--html", "html_path", help="Write a self-contained page: what each sentence rests on."),
    file_option("--png", "png_path", help="Write plots of the relevance."),
)
@engine_options()
@click.option("--fail-on-hallucination", is_flag=True, help="Exit with 3 if a response is flagged.")
@click.pass_context
def analyse(
    ctx: click.Context,
    source: Source,
    choice: DetectorChoice,
    reader: ReaderChoice,
    max_new_tokens: int,
    policy_path: Path | None,
    as_json: bool,
    files: Files,
    engine: EngineChoice,
    fail_on_hallucination: bool,
) -> None:
    """Say whether a response is grounded in its passages, what each sentence rests on, and what a policy does
    with it.

    DATA is a JSONL or JSON file of examples, '-' for standard input, or a RAGTruth directory (with
    --id for one of its responses). Or give the parts: --question, --passage and --response.

    \b
    Examples:
      lrp4rag analyse examples/hallucinated.json --html page.html
      lrp4rag analyse --question "Who wrote it?" --passage @p1.txt --passage "Ann Lee, 1874."
      lrp4rag analyse generations.jsonl --json > verdicts.jsonl
      cat generations.jsonl | lrp4rag analyse - --fail-on-hallucination
      lrp4rag analyse s3://bucket/answers/ --engine ray --json

    A JSON example has "question", "passages" (a list) and "response"; optionally "id", "prompt" (as the
    generator got it), "template", "labels", "source_id" and "generator".
    """
    files.require_writable(source)  # before the expensive part
    if choice.detector_name == "none" and fail_on_hallucination:
        raise InputError("--fail-on-hallucination needs a detector")
    if choice.detector_name == "none" and policy_path not in (None, NO_POLICY):
        raise InputError("--policy decides on a verdict, and needs a detector")
    engine.require_possible(reader)
    if engine.several:
        if files.paths or choice.estimates:
            engine.require_one_process("--html, --png and --prevalence estimate are")
        source.require_complete()
        flagged, code = _by_workers(source, choice, engine, reader, policy_path, max_new_tokens, as_json)
    else:
        flagged, code = _in_this_process(source, choice, reader, policy_path, max_new_tokens, files, as_json)
    ctx.exit(code or (HALLUCINATION if flagged and fail_on_hallucination else 0))


def _in_this_process(
    source: Source,
    choice: DetectorChoice,
    reader: ReaderChoice,
    policy_path: Path | None,
    max_new_tokens: int,
    files: Files,
    as_json: bool,
) -> tuple[bool, int]:
    """Judge the examples in this process and print them; return whether one is flagged, and the exit code."""
    from lrp4rag.util.garbage import uncollected

    with uncollected():
        from lrp4rag.classifiers.prevalence import require_enough
        from lrp4rag.guard.policy import assess, load_policy

        if not gc.get_freeze_count():  # once a process: modules stay, and need not be looked at again
            gc.freeze()

    examples = source.read()
    if choice.estimates:
        require_enough(len(examples))
    if len(examples) > 1 and files.paths:
        raise InputError(f"--html and --png show one example and there are {len(examples)}; add --id")

    policy = None if policy_path == NO_POLICY else load_policy(policy_path)
    started = time.perf_counter()
    detector = open_detector(choice, reader)
    verdicts = detector.judge_each(
        examples,
        prevalence="estimate" if choice.estimates and detector.model is not None else None,
        rows=bool(files.paths),
        max_new_tokens=max_new_tokens,
        seconds={"load": time.perf_counter() - started},
    )

    def following() -> tuple[ExplainedVerdict, Assessment | None]:
        verdict = next(verdicts)
        if isinstance(verdict, Exception):
            raise verdict
        if policy is None or detector.model is None:
            return verdict, None
        return verdict, assess(policy, verdict.example, verdict)

    with closing(verdicts):
        if len(examples) > 1:
            return _print_many(examples, following, as_json)
        verdict, decision = following()
        _print_verdict(verdict, decision, as_json)
        files.write(verdict, decision, detector.name)
        return bool(verdict.hallucinated), 0


def _print_verdict(verdict: ExplainedVerdict, decision: Assessment | None, as_json: bool) -> None:
    from lrp4rag.report.record import record
    from lrp4rag.report.terminal import render

    if as_json:
        say_json(record(verdict, decision=decision))
    else:
        open_console().print(render(verdict, decision=decision))


class _Printer:
    """Prints a line per example, then a summary, of any number of them."""

    def __init__(self, as_json: bool) -> None:
        from lrp4rag.report.terminal import Tally

        self._as_json, self._console, self.tally = as_json, open_console(), Tally()

    def show(self, row: dict[str, Any], line: Text | str) -> None:
        self.tally.add(row)
        if self._as_json:
            say_json(row)
        else:  # lines are cut on a terminal, and whole in a pipe
            piped = not self._console.is_terminal
            overflow: OverflowMethod = "ignore" if piped else "ellipsis"
            self._console.print(line, no_wrap=True, overflow=overflow, crop=not piped)

    def end(self) -> bool:
        """Print the summary, where there is anything to sum up; returns whether an example is flagged."""
        from lrp4rag.report.terminal import render_summary

        if self.tally.examples:
            console = open_console(stderr=True) if self._as_json else self._console
            console.print(render_summary(self.tally), soft_wrap=True)
        return self.tally.flagged > 0


def _print_many(
    examples: Sequence[Example],
    following: Callable[[], tuple[ExplainedVerdict, Assessment | None]],
    as_json: bool,
) -> tuple[bool, int]:
    """Print all examples, in their order; return whether one is flagged, and the exit code."""
    from lrp4rag.report.record import record
    from lrp4rag.report.terminal import render_line

    printer = _Printer(as_json)

    def show(_: Example) -> None:
        verdict, decision = following()
        row = record(verdict, decision=decision)
        printer.show(row, render_line(verdict))

    code = work_through(examples, show)
    return printer.end(), code


def _by_workers(
    source: Source,
    choice: DetectorChoice,
    engine: EngineChoice,
    reader: ReaderChoice,
    policy_path: Path | None,
    max_new_tokens: int,
    as_json: bool,
) -> tuple[bool, int]:
    """Let workers judge the examples, and print them; return whether one is flagged, and the exit code. A
    detector or a policy that cannot be loaded is refused before they start."""
    from lrp4rag.guard.many import Failure, judge_many
    from lrp4rag.guard.policy import load_policy

    _ = choice.open()
    policy = None if policy_path == NO_POLICY else load_policy(policy_path)
    load = partial(open_detector, choice.for_workers(), engine.of_worker(reader))
    printer, code = _Printer(as_json), 0
    examples, options = source.read(), {"max_new_tokens": max_new_tokens}
    with engine.mapping(reader) as map_groups:
        for example, row in judge_many(examples, load, partial(_row, policy), map_groups, options):
            if isinstance(row, Failure):
                tell("Error", f"example '{one_line(example.id, 100)}': {row.error}")
                code = max(code, row.code)
            else:
                printer.show(row["record"], row["line"])
    return printer.end(), code


def _row(policy: Policy | None, verdict: ExplainedVerdict) -> dict[str, Any]:
    """Return the record of a verdict and its line, in the process that judged."""
    from lrp4rag.guard.policy import assess
    from lrp4rag.report.record import record
    from lrp4rag.report.terminal import render_line

    judged = policy is not None and verdict.detector.model is not None
    decision = assess(policy, verdict.example, verdict) if policy is not None and judged else None
    return {
        "record": record(verdict, decision=decision),
        "line": render_line(verdict).plain,
    }
