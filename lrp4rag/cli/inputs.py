"""Where examples come from on the command line: a file, or their parts; and working through many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.options import Decorator
from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.terminal import tell
from lrp4rag.text import one_line

if TYPE_CHECKING:
    from lrp4rag.example import Example


def example_options(function: Callable[..., Any]) -> Callable[..., Any]:
    options: list[Decorator] = [
        click.argument("data", required=False, metavar="[DATA]"),
        click.option("--id", "id_", help="Only the example of DATA with this id."),
        click.option("--question", help="The question, instead of DATA."),
        click.option(
            "--context",
            multiple=True,
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="A text file with one retrieved passage; repeat it for several.",
        ),
        click.option(
            "--template",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="A text file with {context} and {question}, to render the prompt from.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def read_examples(
    data: str | None,
    id_: str | None,
    question: str | None,
    context: Sequence[Path],
    template: Path | None,
    response: str | None = None,
) -> list[Example]:
    """The examples of DATA, or the one that was given in parts."""
    from lrp4rag.data import load_examples, read_text, select
    from lrp4rag.example import Example

    rendered = read_text(template) if template else None
    if data is not None:
        if question is not None or context or response is not None:
            raise InputError("give DATA or --question, --context and --response, not both")
        examples = load_examples(data, template=rendered)
        return [select(examples, id_, data)] if id_ is not None else examples
    if question is None or not context:
        raise InputError("give DATA, or --question and at least one --context FILE (see --help)")
    passages = [read_text(path).strip() for path in context]
    for path, passage in zip(context, passages, strict=True):
        if not passage:
            raise InputError("the context is empty", path=path, field="--context")
    return [
        Example.create(
            question=question,
            passages=passages,
            response=response,
            template=rendered,
            id=id_ or "example",
        )
    ]


def input_files(data: str | None, context: Sequence[Path] = (), template: Path | None = None) -> list[Path]:
    """The files that are read: none of them may be an output too."""
    from lrp4rag.data import RAGTRUTH_FILES

    named = [*context, *([] if template is None else [template])]
    if data == "-":
        return [*named, Path("/dev/stdin")]
    if data is not None:
        named += [Path(data), *(Path(data) / name for name in RAGTRUTH_FILES)]
    return named


def work_through(examples: Sequence[Example], work: Callable[[Example], None]) -> int:
    """Do each example's work; one of many that fails is told and passed over. Returns the exit code."""
    if len(examples) == 1:
        work(examples[0])
        return 0
    code = 0
    for example in examples:
        try:
            work(example)
        # RuntimeError: torch, for example when memory runs out on one long row.
        except (LRP4RAGError, RuntimeError, IndexError, ValueError) as error:
            tell("Error", f"example '{one_line(example.id, 100)}': {error}")
            code = max(code, getattr(error, "exit_code", 1))
    return code
