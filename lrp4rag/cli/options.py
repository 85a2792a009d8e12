"""Options that several commands share, each declared once, and the choices that they make."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lrp4rag.cli.command import advanced
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import absolute_name, check_output, is_local, place_at
from lrp4rag.util.text import one_line, without_secrets

DEFAULT_READER = "smollm2-135m"
NONE = "none"
"""The reader of a detector that compares texts only."""
BUNDLED = "default"
"""The detector that comes with the package."""

if TYPE_CHECKING:
    from lrp4rag.classifiers import Model
    from lrp4rag.judge import Detector
    from lrp4rag.reader import Reader

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

COMPOSITES = ("paper", "attnlrp", "cp_lrp")
DTYPES = ("float32", "bfloat16", "float16", "auto")
LARGEST_SIZE = 2.0**63
_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


class Number(click.FloatRange):
    """A number in a range. click's own lets NaN through: it compares as false with anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


ESTIMATE = "estimate"


class Prevalence(click.ParamType):  # type: ignore[type-arg]
    """A part of responses between 0 and 1, or the word "estimate"."""

    name = "P|estimate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != ESTIMATE:
            Number(0, 1, min_open=True, max_open=True).convert(value, param, ctx)
        return str(value)


class OperatingPoint(click.ParamType):  # type: ignore[type-arg]
    """A name, or a number between 0 and 1."""

    name = "NAME|RATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        try:
            float(value)
        except ValueError:
            return str(value)
        return Number(0, 1, min_open=True, max_open=True).convert(value, param, ctx)


class MemorySize(click.ParamType):  # type: ignore[type-arg]
    """Bytes, from a text such as 4GB or 500MiB.

    pydantic's `ByteSize` does not know "2Ti", takes bits, and overflows on long numbers.
    """

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?", str(value).strip().lower())
        size = float(match[1]) * _UNITS.get(match[2], 0) if match else 0.0
        if not 1 <= size < LARGEST_SIZE:
            shown = one_line(str(value), 40)
            self.fail(f"'{shown}' is not a memory size; give one such as 4GB or 500MB", param, ctx)
        return int(size)


def together(*options: Decorator) -> Decorator:
    """Combine options, which `--help` shows in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def hidden(*options: Decorator) -> Decorator:
    """Hide options from all help: former spellings, and options that few need."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        declared = len(getattr(function, "__click_params__", ()))
        function = together(*options)(function)
        for option in vars(function)["__click_params__"][declared:]:
            option.hidden = True
        return function

    return decorate


def gathered(kind: type, name: str, *options: Decorator) -> Decorator:
    """Pass options to a command as one argument `name`: a dataclass `kind` with a field for each."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **values: Any) -> Any:
            chosen = {field.name: values.pop(field.name) for field in fields(kind) if field.name in values}
            return function(*args, **{name: kind(**chosen)}, **values)

        return together(*options)(call)

    return decorate


def _refuse_dash(value: Any) -> None:
    """Refuse "-", which elsewhere is a stream: nobody looks for a file of that name."""
    if value == "-":
        raise click.BadParameter("'-' is no file or folder here; for one of that name, give ./-")


class LocalPath(click.Path):
    """A file or folder of this machine. Without this, a URL would be taken for a folder's name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "://" in value:
            self.fail(f"{without_secrets(value)} is a URL, and here it must be a file or folder", param, ctx)
        _refuse_dash(value)
        return super().convert(value, param, ctx)


PATH = LocalPath(path_type=Path)
file_option = partial(click.option, metavar="FILE", type=PATH)
repeatable = partial(click.option, multiple=True)


def check_written(path: Path, more: Iterable[str | Path] = ()) -> Path:
    """Return the path of an output; raises `InputError` as `check_output` does, also for a file that this
    command reads or that is in `more`."""
    inputs: list[str | Path] = []
    for value in click.get_current_context().params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if is_local(item) and item is not path:
                inputs.append(item)
    return check_output(path, [*inputs, *more])


count = partial(click.option, type=click.IntRange(1))

NO_POLICY = Path("none")


def policy_option(more: str = "") -> Decorator:
    """Declare `--policy`, a file. The command loads it once its other input is there: policies import the
    detector, which takes seconds."""
    help = f"YAML file of the policy{more}.  [default: the built-in one]"
    return click.option("--policy", "policy_path", type=PATH, metavar="FILE", help=help)


JSON_LINES = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per example.")
MAX_NEW_TOKENS = advanced(
    "--max-new-tokens",
    default=256,
    type=click.IntRange(1),
    help="Most tokens of a response that the reader writes.",
)
BOOTSTRAP = advanced(
    "--bootstrap",
    "resamples",
    default=1000,
    type=click.IntRange(10, 100_000),
    help="Bootstrap samples behind each interval.",
)
LIMIT = count(
    "--limit",
    metavar="N",
    help="Use only responses to the first N sources (a source is a question with its passages).",
)


GENERATOR = repeatable("--generator", help="Use only responses of this generator; repeatable.")
STORE_HELP = "Folder that keeps what is extracted, so that nothing is computed twice."


class FolderOrURL(click.ParamType):  # type: ignore[type-arg]
    """A folder here, or behind a URL of fsspec such as s3://bucket/store."""

    name = "FOLDER|URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        _refuse_dash(value)
        return place_at(value)


FOLDER_OR_URL = FolderOrURL()


@dataclass(frozen=True)
class ReaderChoice:
    """The reader, and how it reads."""

    reader_name: str
    device: str | None
    dtype: str
    chat_template: bool | None = None
    composite: str | None = None
    truncate: Literal["error", "passages"] = "error"
    max_memory: int | None = None

    @property
    def rules(self) -> str:
        """The composite to use where no detector names one."""
        return self.composite or "attnlrp"

    def open(self, detector: Model | None = None, *, worker: int = 0) -> Reader:
        """Load the reader, with the detector's chat framing unless the options name one. A detector that
        needs no reader gets none unless one is named. The reader of a further `worker` is on the next GPU,
        where there are several and no device is named."""
        from lrp4rag.reader import load_reader

        name, dtype, framing = self.reader_name, self.dtype, self.chat_template
        if detector is None:
            self.require_reader()
        else:
            name = NONE if detector.texts and name in (NONE, DEFAULT_READER) else name
            dtype = detector.dtype(dtype)
            framing = detector.framing if framing is None else framing
        device = self._device_of(worker)
        return load_reader(
            name, device=device, dtype=dtype, chat_template=framing, max_memory=self.max_memory
        )

    def require_reader(self) -> None:
        """Raise `InputError` where no reader is chosen."""
        if self.reader_name == NONE:
            raise InputError("this needs a reader; 'none' is for judging by texts alone", field="reader")

    def for_workers(self) -> ReaderChoice:
        """Adapt the choice for a cluster's workers, which run in other folders and see one GPU, or none."""
        device = "cuda" if self.device is not None and self.device.startswith("cuda") else self.device
        return replace(self, reader_name=absolute_name(self.reader_name), device=device)

    def _device_of(self, worker: int) -> str | None:
        if self.device is None and worker:
            import torch

            if torch.cuda.device_count() > 1:
                return f"cuda:{worker % torch.cuda.device_count()}"
        return self.device


COMPOSITE = advanced(
    "--composite",
    type=click.Choice(COMPOSITES),
    help="LRP rules: attnlrp, cp_lrp (conserves) or paper (Gradient x Input).  [default: the detector's, or "
    "attnlrp]",
)


def _dtype(default: str) -> Decorator:
    return advanced(
        "--dtype",
        type=click.Choice(DTYPES),
        default=default,
        help="Precision; 'auto' takes bfloat16 where the device is faster in it.",
    )


_READER = {
    "chat-template": advanced(
        "--chat-template/--no-chat-template",
        default=None,
        help="Wrap the prompt in the model's chat template, or not.  [default: as the detector, or wrapped]",
    ),
    "composite": COMPOSITE,
    "truncate": advanced(
        "--truncate",
        type=click.Choice(["error", "passages"]),
        default="error",
        help="Refuse a prompt longer than the model's window, or drop the ends of its passages.",
    ),
    "max-memory": advanced(
        "--max-memory",
        type=MemorySize(),
        metavar="SIZE",
        help="Memory that the process (or GPU) may use, such as 4GB; passes are made to fit.",
    ),
}


def reader_options(
    shown: Collection[str] = ("dtype", "composite", "max-memory"), dtype: str = "float32"
) -> Decorator:
    """Declare a reader's options, as a `ReaderChoice` named `reader`; help shows `shown` and the model's.

    A verdict's default `dtype` is the device's fastest ("auto"); what is stored or shown as numbers is in
    float32.
    """
    options: dict[str, Decorator] = {"dtype": _dtype(dtype), **_READER}
    more = (option if name in shown else hidden(option) for name, option in options.items())
    return gathered(ReaderChoice, "reader", *_model("The model that replays the response"), *more)


def model_options(description: str = "The model") -> list[Decorator]:
    """Return the options of a model alone, for a `ReaderChoice`."""
    return [*_model(description), hidden(_dtype("float32"))]


def _model(description: str) -> list[Decorator]:
    return [
        click.option(
            "--reader",
            "reader_name",
            default=DEFAULT_READER,
            metavar="MODEL",
            help=f"{description}: the default, a hub id, a folder or a .gguf file.",
        ),
        click.option(
            "--device",
            help="cpu, cuda, cuda:K, or auto: layers on all GPUs, in memory and on disk.  "
            "[default: cuda where there is one]",
        ),
    ]


@dataclass(frozen=True)
class DetectorChoice:
    """The detector, and its threshold."""

    detector_name: str
    operating_point: str | float | None
    false_positive_rate: float | None
    prevalence: str | None = None
    comparer: Path | None = None

    @property
    def estimates(self) -> bool:
        """True where the prevalence is estimated from the responses."""
        return self.prevalence == ESTIMATE

    def beside(self, reader: ReaderChoice) -> DetectorChoice:
        """Take the detector of texts in the place of the bundled one, beside a reader that it does not
        know."""
        if self.detector_name != BUNDLED or reader.reader_name == DEFAULT_READER:
            return self
        from lrp4rag.classifiers.model import detector_beside

        return replace(self, detector_name=str(detector_beside(BUNDLED, reader.reader_name)))

    def for_workers(self) -> DetectorChoice:
        """Adapt the choice for a cluster's workers, which run in other folders."""
        comparer = None if self.comparer is None else self.comparer.absolute()
        return replace(self, detector_name=absolute_name(self.detector_name), comparer=comparer)

    def open(self, device: str | None = None) -> Model | None:
        """Load the detector (None for "none") at the chosen threshold and prevalence; an estimated one is
        set later. A comparer in the place of its own is on the `device`."""
        if self.operating_point is not None and self.false_positive_rate is not None:
            raise InputError("--operating-point and --false-positive-rate both set the threshold; give one")
        wanted = self.false_positive_rate if self.operating_point is None else self.operating_point
        if self.detector_name == "none":
            options = {
                "an operating point": wanted,
                "a prevalence": self.prevalence,
                "a comparer": self.comparer,
            }
            for name, value in options.items():
                if value is not None:
                    raise InputError(f"{name} needs a detector")
            return None
        from lrp4rag.classifiers import Model

        detector = Model.load(self.detector_name, self.comparer, device)
        if wanted is not None:
            detector = detector.at(wanted)
        if self.prevalence not in (None, ESTIMATE):
            detector = detector.at_prevalence(float(self.prevalence))
        return detector


def _detector(more: str = "") -> Decorator:
    help = f"A trained detector{more}."
    return click.option("--detector", "detector_name", default=BUNDLED, metavar="FOLDER", help=help)


def detector_options(more: str = "") -> Decorator:
    """Declare a detector's options, as a `DetectorChoice` named `choice`; `more` extends the help."""
    return gathered(
        DetectorChoice,
        "choice",
        _detector(more),
        advanced(
            "--operating-point",
            type=OperatingPoint(),
            help="Threshold: one-in-ten, balanced, high-precision or high-recall, or the part of faithful "
            "responses that may be flagged, such as 0.05 (token detectors only).  [default: the card's]",
        ),
        hidden(
            click.option(
                "--false-positive-rate",
                type=Number(0, 1, min_open=True, max_open=True),
                help="The rate as --operating-point has it.",
            )
        ),
        advanced(
            "--prevalence",
            type=Prevalence(),
            help="The part of responses that are hallucinated where the detector is used, such as 0.1, or "
            "'estimate' from the responses given: probabilities shift, and the same responses are flagged "
            "(token detectors only).  [default: as in training]",
        ),
        advanced(
            "--comparer",
            type=PATH,
            metavar="FILE",
            help="A published model in the place of the comparer: a file of lrp4rag calibrate.",
        ),
    )


def open_detector(choice: DetectorChoice, reader: ReaderChoice, *, worker: int = 0) -> Detector:
    """Load a detector with its reader, or the detector that judges beside another reader. The reader of a
    further `worker` is on the next GPU, as for `ReaderChoice.open`."""
    from lrp4rag.judge import Detector

    choice = choice.beside(reader)
    model = choice.open(reader.device)
    if choice.estimates and model is not None:
        _ = model.assumed_prevalence  # what has none is refused before the expensive part
    return Detector(
        model,
        reader.open(model, worker=worker),
        name=f"{choice.detector_name} ({model.card.classifier})" if model else None,
        composite=reader.composite,
        truncation=reader.truncate,
        max_memory=reader.max_memory,
    )


@dataclass(frozen=True)
class JudgeChoice:
    """A detector and its reader, of commands that decide on answers."""

    detector_name: str
    reader_name: str | None = None
    device: str | None = None
    operating_point: str | None = None

    def open(self) -> Detector:
        """Load the detector with its reader. Raises `InputError` for what cannot be loaded."""
        from lrp4rag.judge import OF_CARD, Detector

        if self.detector_name == "none":
            raise InputError("a policy needs a detector")
        detector = Detector.load(self.detector_name, reader=self.reader_name or OF_CARD, device=self.device)
        return detector if self.operating_point is None else detector.at(self.operating_point)


def judge_options(*more: Decorator) -> Decorator:
    """Declare a detector and its reader, as a `JudgeChoice` named `choice`; `more` are its other fields."""
    return gathered(
        JudgeChoice,
        "choice",
        _detector(),
        click.option(
            "--reader",
            "reader_name",
            metavar="MODEL",
            help="Its reader; none: compare texts only.  [default: its card's]",
        ),
        *more,
    )


def shown_command() -> str:
    """Return the command as typed, with the last part of each path: pages name no folders of a machine."""
    words = []
    for word in shlex.split(click.get_current_context().find_root().obj):
        name, sign, value = word.rpartition("=")
        words.append(f"{name}{sign}{value.rstrip('/').rsplit('/', 1)[-1]}")
    return shlex.join(words)


def _read(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Make the file's values the defaults of the command's options; the command line comes first."""
    from lrp4rag.util.yaml_file import line_of, read_yaml

    if path is None:
        return
    names = {
        name.lstrip("-"): str(option.name)
        for option in ctx.command.params
        if isinstance(option, click.Option) and not option.is_eager
        for name in option.opts
        if name.startswith("--")
    }
    defaults: dict[str, Any] = {}
    for name, value in read_yaml(path).items():
        spelled = name.replace("_", "-")
        if spelled not in names:
            raise InputError(
                f"'{name}' is no option of {ctx.command.name}; there are: {', '.join(sorted(names))}",
                path=path,
                line=line_of(path, name),
            )
        defaults[names[spelled]] = value
    ctx.default_map = {**(ctx.default_map or {}), **defaults}


CONFIG = click.option(
    "--config",
    type=PATH,
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_read,
    help="YAML or JSON file with options by name, also those that few need (docs/detector.md).",
)
