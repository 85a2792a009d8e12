"""Options that several commands share, and how they become readers and detectors."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.errors import InputError

if TYPE_CHECKING:
    from lrp4rag.classifiers import FittedDetector
    from lrp4rag.reader import Reader

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

COMPOSITES = ("paper", "attnlrp", "cp_lrp")
DTYPES = ("float32", "bfloat16", "float16", "auto")


class Number(click.FloatRange):
    """A number in a range. click's own lets NaN through: it compares as false with anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no number to work with", param, ctx)
        return number


MAX_NEW_TOKENS = click.option(
    "--max-new-tokens",
    default=256,
    show_default=True,
    type=click.IntRange(1),
    help="Tokens of a response that the reader writes, at most.",
)
RESAMPLES = click.option(
    "--resamples",
    default=1000,
    show_default=True,
    type=click.IntRange(10, 100_000),
    help="Bootstrap resamples behind the intervals.",
)
SOURCES = click.option(
    "--sources",
    type=click.IntRange(1),
    metavar="N",
    help="Only responses to the first N sources (a question with its passages): a part of what takes long.",
)
BLOCKS = click.option(
    "--block",
    "blocks",
    multiple=True,
    metavar="NAME",
    help="Features that tokens are judged by: signals, segments, quick, state, passages "
    "(docs/features.md); repeat it for several.  [default: signals, state, passages]",
)
GENERATOR = click.option(
    "--generator", multiple=True, help="Only responses of this generator; repeat it for several."
)
JOBS = click.option(
    "--jobs", type=click.IntRange(1), help="Processes of the cross-validation.  [default: one for each core]"
)
WORKERS = click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Processes that share the extraction, and --max-memory; where there are several GPUs and --device "
    "names none, each takes the next one.",
)


def operating_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say from which probability on a response is flagged."""
    return together(
        [
            click.option(
                "--operating-point",
                metavar="NAME",
                help="Flag from the probability that the detector's card has under this name: balanced, "
                "high-precision or high-recall; only detectors that judge tokens have these.  "
                "[default: balanced]",
            ),
            click.option(
                "--false-positive-rate",
                type=Number(0, 1, min_open=True, max_open=True),
                metavar="RATE",
                help="Flag from the probability that this part of faithful responses reached in training; "
                "only detectors that judge tokens know it.",
            ),
        ]
    )(function)


def reader_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options of a reader that replays responses for a detector."""
    return _reader_options("replays", "as the detector", "as the detector")(function)


def attribution_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options of a reader that replays responses, with no detector to follow."""
    return _reader_options("replays", "chat template", "attnlrp")(function)


def generator_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options of a reader that writes the responses itself."""
    return _reader_options("writes", "chat template", "attnlrp")(function)


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options of a model by itself, without examples."""
    return together(_model_options("The model"))(function)


def _model_options(what: str) -> list[Decorator]:
    return [
        click.option(
            "--reader",
            "reader_name",
            default="smollm2-135m",
            show_default=True,
            metavar="MODEL",
            help=f"{what}: the default, a hub id, a folder or a .gguf file.",
        ),
        click.option("--device", help="cpu, cuda or cuda:K.  [default: cuda where there is one]"),
        click.option(
            "--dtype",
            type=click.Choice(DTYPES),
            default="float32",
            show_default=True,
            help="Precision; 'auto' takes bfloat16 where the device is faster in it.",
        ),
    ]


def _reader_options(does: str, framing: str, composite: str) -> Decorator:
    options: list[Decorator] = [
        *_model_options(f"Model that {does} the response"),
        click.option(
            "--chat-template/--no-chat-template",
            default=None,
            help=f"Wrap the prompt in the model's chat template, or not.  [default: {framing}]",
        ),
        click.option(
            "--composite",
            type=click.Choice(COMPOSITES),
            help=f"LRP rules: attnlrp, cp_lrp (conserves), paper (Gradient x Input).  [default: {composite}]",
        ),
        click.option(
            "--truncate",
            type=click.Choice(["error", "passages"]),
            default="error",
            show_default=True,
            help="A prompt longer than the model's window: refuse it, or drop the ends of passages.",
        ),
    ]

    return together(options)


def together(options: list[Decorator]) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def open_reader(
    name: str, device: str | None, dtype: str, chat_template: bool | None, detector: FittedDetector | None
) -> Reader:
    """The reader; without --[no-]chat-template, prompts are framed as the detector's were."""
    from transformers.utils import logging

    from lrp4rag.reader import load_reader

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if chat_template is None and detector is not None:
        chat_template = detector.card.reader["chat_template"]
    return load_reader(name, device=device, dtype=dtype, chat_template=chat_template)


def open_reader_of_worker(
    name: str, device: str | None, dtype: str, chat_template: bool | None, worker: int
) -> Reader:
    """The reader of a worker, each on the next GPU where there are several and none was named."""
    if device is None and worker:
        import torch

        if torch.cuda.device_count() > 1:
            device = f"cuda:{worker % torch.cuda.device_count()}"
    return open_reader(name, device, dtype, chat_template, None)


def open_detector(name: str, point: str | None = None, rate: float | None = None) -> FittedDetector | None:
    """The detector in a folder, a bundled one ("default", "fast"), or None ("none"); at an operating point of
    its card, or at a false-positive rate."""
    if point is not None and rate is not None:
        raise InputError("--operating-point and --false-positive-rate both say when to flag; give one")
    wanted = point if point is not None else rate
    if name == "none":
        if wanted is not None:
            raise InputError("an operating point needs a detector")
        return None
    from lrp4rag.classifiers import FittedDetector

    detector = FittedDetector.load(name)
    return detector if wanted is None else detector.at(wanted)


def shown_command(given: str) -> str:
    """As it was given, with the last part of every path: a page must not tell where a machine keeps files."""
    words = []
    for word in shlex.split(given):
        name, sign, value = word.rpartition("=")
        words.append(f"{name}{sign}{value.rstrip('/').rsplit('/', 1)[-1]}")
    return shlex.join(words)
