"""Read examples that the command line names, from a file or in parts, and work through many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.options import PATH, Decorator, gathered, hidden, repeatable
from lrp4rag.util.errors import EXAMPLE_ERRORS, InputError
from lrp4rag.util.terminal import tell
from lrp4rag.util.text import one_line

if TYPE_CHECKING:
    from lrp4rag.example import Example


@dataclass(frozen=True)
class Source:
    """The examples of DATA, or one example in parts."""

    data: str | None
    question: str | None
    passages: tuple[str, ...]
    response: str | None = None
    id_: str | None = None
    template: Path | None = None

    def require_complete(self) -> None:
        """Raise `InputError` unless there is DATA, or else question and passages."""
        in_parts = self.question is not None or bool(self.passages) or self.response is not None
        if self.data is not None and in_parts:
            raise InputError("give DATA or --question, --passage and --response, not both")
        if self.data is None and (self.question is None or not self.passages):
            raise InputError("give DATA, or --question and at least one --passage (see --help)")

    def read(self) -> list[Example]:
        """Read the examples; raises `InputError` for parts that are missing, empty or beside DATA."""
        from lrp4rag.data import load_examples, read_text, select
        from lrp4rag.example import Example

        self.require_complete()
        template = read_text(self.template) if self.template else None
        if self.data is not None:
            examples = load_examples(self.data, template=template)
            return examples if self.id_ is None else [select(examples, self.id_, self.data)]
        assert self.question is not None
        passages = tuple(_passage(passage) for passage in self.passages)
        try:
            return [
                Example(
                    question=self.question,
                    passages=passages,
                    response=self.response,
                    template=template,
                    id=self.id_ or "example",
                )
            ]
        except InputError as error:
            name = (error.field or "").partition("[")[0]
            raise InputError(error.reason, field=f"--{name.removesuffix('s')}") from None

    @property
    def files(self) -> list[Path]:
        """The files that are read: none of them may be an output too."""
        named = [path for passage in self.passages if (path := _file_of(passage)) is not None]
        return [*named, *([self.template] if self.template else []), *data_files(self.data)]


def example_options(response: str | None = None, *, more: bool = True) -> Decorator:
    """Declare DATA and the parts of an example, as a `Source` named `source`; `response` is that option's
    help, and `more` adds --id and --template."""
    options: list[Decorator] = [
        click.argument("data", required=False, metavar="[DATA]"),
        click.option("--question", help="The question, instead of DATA."),
        repeatable(
            "--passage",
            "passages",
            metavar="TEXT|@FILE",
            help="A retrieved passage, or @ and the file that holds it (@@ for a literal @); repeatable.",
        ),
    ]
    if response is not None:
        options.append(click.option("--response", help=response))
    if more:
        options.insert(1, click.option("--id", "id_", help="Use only the example of DATA with this id."))
        template = click.option("--template", type=PATH, help="A text file with {context} and {question}.")
        options.append(hidden(template))
    return gathered(Source, "source", *options)


def _file_of(text: str) -> Path | None:
    """Return the file of "@FILE"; None for text, and for "@@" that stands for a literal "@"."""
    return Path(text[1:]) if text.startswith("@") and not text.startswith("@@") else None


def _passage(option: str) -> str:
    from lrp4rag.data import read_text

    path = _file_of(option)
    if option == "@":
        raise InputError("no file is named after the @", field="--passage")
    text = option.removeprefix("@") if path is None else read_text(path).strip()
    if not text.strip():
        raise InputError("the passage is empty", path=path, field="--passage")
    return text


def data_files(data: str | None) -> list[Path]:
    """Return the files of DATA."""
    from lrp4rag.data import RAGTRUTH_FILES

    if data is None:
        return []
    if data == "-":
        return [Path("/dev/stdin")]
    return [Path(data), *(Path(data) / name for name in RAGTRUTH_FILES)]


def load_data(data: str, generators: Sequence[str], limit: int | None = None) -> list[Example]:
    """Read the examples of DATA, a path or the name of a set, by these generators (all, where none is named),
    of their first `limit` sources."""
    from lrp4rag.example import first_sources
    from lrp4rag.training.sets import load_set

    examples = load_set(data)
    names = sorted({example.generator or "unknown" for example in examples})
    for name in generators:
        if name not in names:
            raise InputError(f"no responses of '{name}'; there are: {', '.join(names)}", path=data)
    if generators:
        examples = [example for example in examples if (example.generator or "unknown") in generators]
    first = first_sources((example.source for example in examples), limit)
    return [example for example in examples if example.source in first]


def work_through(examples: Sequence[Example], work: Callable[[Example], None]) -> int:
    """Do the work of each example, and return the exit code; one of many that fails is reported and
    skipped."""
    if len(examples) == 1:
        work(examples[0])
        return 0
    code = 0
    for example in examples:
        try:
            work(example)
        except EXAMPLE_ERRORS as error:
            tell("Error", f"example '{one_line(example.id, 100)}': {error}")
            code = max(code, getattr(error, "exit_code", 1))
    return code
