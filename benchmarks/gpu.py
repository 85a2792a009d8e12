"""What a GPU does: whether relevance on it is right, what it costs, how many verdicts it gives a second, how
long a stream is held, and how long prompts may be. Needs no weights and no network."""

from __future__ import annotations

import copy
import gc
import importlib
import importlib.util
import inspect
import math
import re
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
import transformers
from torch import Tensor

from benchmarks import passes
from benchmarks.cells import Cell, Cells
from benchmarks.command import SETTINGS, device_name, exit_codes, gigabytes, listed, table
from benchmarks.harness import (
    Example,
    apart,
    difference,
    equal_parts,
    graph_of,
    in_rounds,
    now,
    peak_of,
    ratio,
    seconds,
    silence,
)
from benchmarks.shapes import SHAPES, laid_out, model_of
from lrp4rag.features.replay import state_layers
from lrp4rag.lrp import COMPOSITES, Flow, relevance_mode, stream
from lrp4rag.lrp.memory import is_out_of_memory
from lrp4rag.reader import Reader
from lrp4rag.reader.reader import DTYPES, check_device, fastest_dtype
from lrp4rag.reader.reading import Branch, PromptReading
from lrp4rag.reader.words import identity_of_none
from lrp4rag.report.templates import text
from lrp4rag.util.errors import RelevanceError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.text import one_line
from tests.lrp.llama_reference import llama_rows
from tests.tiny import tiny_config, tiny_llama

TOLERANCE = {"float32": 1e-3, "float16": 0.1, "bfloat16": 0.3}
"""Largest difference from float64, over the largest value. A wrong rule shows in float32; half precision must
not overflow or lose the sum, and these weights are harder on it than weights that have learned."""
CHECKED = {
    "vocab_size": 512, "hidden_size": 128, "intermediate_size": 344, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 512,
}  # fmt: skip
CHECKED_PROMPT, CHECKED_RESPONSE = 150, 8  # the prompt is longer than one block of attention's queries
PASSAGES = 5
ALTERNATIVES, ALTERNATIVE = 24, 6
"""Alternatives to values of a response, and tokens of each."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """How large what is measured is, in tokens where nothing else is said."""

    shapes: tuple[str, ...]
    prompt: int
    response: int
    batches: tuple[int, ...]
    streamed_prompts: tuple[int, ...]
    sentence: int
    sentences: int
    long_prompts: tuple[int, ...]
    rounds: int


WHOLE = Lengths(
    shapes=("smollm2-135m", "llama-3.2-1b", "llama-3.1-8b", "llama-2-13b"),
    prompt=454,  # the means of RAGTruth's questions
    response=188,
    batches=(1, 4, 16, 64),
    streamed_prompts=(454, 4096),
    sentence=24,
    sentences=40,
    long_prompts=(4096, 8192, 16384, 32768),
    rounds=3,
)
REHEARSAL = Lengths(("tiny",), 40, 18, (1, 2), (40,), 4, 9, (64,), 1)


class Models:
    """Makes models of random weights and holds the last one: two may not fit."""

    def __init__(self, device: str, dtype: str) -> None:
        self.device, self.dtype = torch.device(device), dtype
        self._held: tuple[str, str] | None = None
        self._model: Any = None

    def __call__(self, shape: str, dtype: str) -> Any:
        if self._held != (shape, dtype):
            self.forget()
            self._model = model_of(shape, str(self.device), dtype)
            self._held = shape, dtype
        return self._model

    def forget(self) -> None:
        self._model = self._held = None
        self.free()

    def free(self) -> None:
        """Give back what a measurement left, also one that ran out of memory."""
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()


def relevance_of(flow: Flow, example: Example, other: Example) -> dict[str, tuple[Tensor, Example]]:
    """Relevance by every way through a model, (tangents, tokens) but for R_prompt and R*."""
    parts = equal_parts(len(example.prompt_ids), 3)
    streamed = list(stream(flow, example.prompt_ids, parts, max_new_tokens=4, stop_ids=()))
    written = Example(example.prompt_ids, tuple(token.id for token in streamed))
    values = np.stack([token.relevance for token in streamed], axis=1)
    return {
        "push": (flow.push(example, parts), example),
        "R_prompt": (flow.pull(example, example.mean_response)[0], example),
        "pull": (flow.pull(example), example),
        "shared_prefix": (flow.push_shared([example, other], parts)[1], other),
        "batch": (flow.push_batch([example, other], [parts, parts])[1], other),
        "stream": (torch.from_numpy(values), written),
    }


def correctness(models: Models, _: Lengths, dtype: str, composite: str) -> Cell:
    """Largest differences from a reference in float64 that shares no code, over the largest value, of random
    weights that make every rule far from linear; adjoint is that of push from pull. TF32 is not used."""
    made: Any = tiny_llama(tiny_config(**CHECKED), dtype=torch.float32)
    model = made.to(DTYPES[dtype])
    exact = copy.deepcopy(model).double()  # of the weights as they were rounded
    example = Example.random(CHECKED_PROMPT, CHECKED_RESPONSE, CHECKED["vocab_size"])
    other = Example(example.prompt_ids, example.response_ids[::-1][: CHECKED_RESPONSE // 2])
    with relevance_mode(model.to(models.device).requires_grad_(False), composite) as flow:
        relevance = relevance_of(flow, example, other)
    parts = equal_parts(CHECKED_PROMPT, 3).double()
    rows: dict[Example, Tensor] = {}
    cell: Cell = {}
    for name, (values, explained) in relevance.items():
        if explained not in rows:
            reference = llama_rows(exact, explained.prompt_ids, explained.response_ids, composite)[1]
            rows[explained] = reference[:, :CHECKED_PROMPT]
        matrix = rows[explained]
        special = {"R_prompt": matrix.mean(0), "pull": matrix}
        cell[name] = difference(values.cpu(), special.get(name, parts @ matrix.T))
    pushed, pulled = (relevance[name][0].cpu().double() for name in ("push", "pull"))
    cell["adjoint"] = difference(pushed, parts @ pulled.T)
    return cell | {"right": all(value <= TOLERANCE[dtype] for value in cell.values())}


def cost(models: Models, lengths: Lengths, shape: str, dtype: str) -> Cell:
    """Passes with relevance over plain forwards, and peak memory, weights included."""
    model = models(shape, dtype)
    example = Example.random(lengths.prompt, lengths.response, model.config.vocab_size)
    ways: dict[str, Callable[[], float]] = {
        "forward": partial(passes.forward, model, example),
        "R_response": partial(passes.push, model, example, example.mean_prompt),
        "by_passage": partial(passes.push, model, example, equal_parts(lengths.prompt, PASSAGES)),
        "R_prompt": partial(passes.pull_prompt, model, example),
    }
    taken = in_rounds(ways, lengths.rounds)
    cell: Cell = {"forward_seconds": statistics.median(taken["forward"])}
    cell |= {f"{name}_over_forward": ratio(taken[name], taken["forward"]) for name in ways}
    del cell["forward_over_forward"]
    return cell | {f"{name}_peak_bytes": peak_of(way, model.device) for name, way in ways.items()}


class IdTokenizer:
    """What captum asks of a tokenizer, for a text that is token ids with blanks between them."""

    def encode(self, text: str, add_special_tokens: bool = True, return_tensors: str | None = None) -> Any:
        ids = [int(word) for word in text.split()]
        return torch.tensor([ids]) if return_tensors else ids

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        offsets = [match.span() for match in re.finditer(r"\d+", text)]
        return {"input_ids": self.encode(text), "offset_mapping": offsets}

    def decode(self, token_ids: Tensor) -> str:
        return " ".join(str(token) for token in token_ids.tolist())

    def convert_ids_to_tokens(self, token_ids: list[int]) -> list[str]:
        return [str(token) for token in token_ids]


def captum_row(model: Any, example: Example) -> Callable[[], float]:
    """A row by `LLMGradientAttribution`, of the middle token, as one turn of captum's own loop does it."""
    from captum.attr import LayerGradientXActivation, LLMGradientAttribution, TextTokenInput

    embeddings, j = model.get_input_embeddings(), len(example.response_ids) // 2
    method = LLMGradientAttribution(LayerGradientXActivation(model, embeddings), IdTokenizer())
    prefix = " ".join(str(token) for token in (*example.prompt_ids, *example.response_ids[:j]))
    target = torch.tensor(example.response_ids[j : j + 1], device=model.device)

    def row() -> float:
        embeddings.weight.requires_grad_(True)  # captum takes the gradient of what this layer gives
        try:
            return seconds(
                lambda: method.attribute(TextTokenInput(prefix, IdTokenizer()), target=target), model.device
            )
        finally:
            embeddings.weight.requires_grad_(False)

    return row


def row_cost(library: str, model: Any, lengths: Lengths) -> Cell:
    """One row of R* by a library over a plain forward, and R_response made of a row for each token."""
    example = Example.random(lengths.prompt, lengths.response, model.config.vocab_size)
    row: Callable[[], float]
    if library == "captum":
        row = captum_row(model, example)
    else:  # one graph is kept: at its best
        row = partial(passes.backward, model, example, graph_of(model, example.inputs, lengths.response))
    ways: dict[str, Callable[[], float]] = {"forward": partial(passes.forward, model, example), "row": row}
    taken = in_rounds(ways, lengths.rounds)
    over = ratio(taken["row"], taken["forward"])
    cell = {"row_seconds": statistics.median(taken["row"]), "row_over_forward": over}
    return cell | {"R_response_over_forward": lengths.response * over}


def lxt_cost(shape: str, device: str, dtype: str, lengths: Lengths) -> Cell:
    """`row_cost` by LXT, which changes Llama's classes for good."""
    from transformers.models.llama import modeling_llama

    importlib.import_module("lxt.efficient").monkey_patch(modeling_llama)
    return row_cost("lxt", model_of(shape, device, dtype), lengths)


def libraries(models: Models, lengths: Lengths, shape: str, library: str) -> Cell:
    """A row of R*, and R_response, for which other libraries need a row for each token of the response."""
    if library != "autograd" and importlib.util.find_spec(library) is None:
        return {"note": "not installed"}
    if library == "lxt":  # in a process of its own, which needs the memory
        models.forget()
        try:
            return apart(lxt_cost, shape, str(models.device), models.dtype, lengths)
        except ImportError as error:  # LXT 2.1 needs transformers 4
            return {"note": one_line(f"cannot be imported: {error}", 200)}
    return row_cost(library, models(shape, models.dtype), lengths)


def alternatives(first: int, last: int, count: int, vocabulary: int) -> list[Branch]:
    """Random tokens in place of the response's, spread over its tokens `first` to `last`."""
    ids = Example.random(0, count * ALTERNATIVE, vocabulary, seed=first + 1).response_ids
    return [
        Branch(first + k * (last - first) // count, ids[k * ALTERNATIVE : (k + 1) * ALTERNATIVE])
        for k in range(count)
    ]


def verdicts(models: Models, lengths: Lengths, shape: str) -> Cell:
    """The plain passes of one verdict after another, as a detector asks for them: prompt, then response with
    its likelihoods and states and alternatives of its values. Texts are compared on the CPU besides."""
    model = models(shape, models.dtype)
    encoded = laid_out(lengths.prompt, lengths.response, model.config.vocab_size)
    others = alternatives(0, lengths.response, ALTERNATIVES, model.config.vocab_size)
    reader = Reader(model, None, identity_of_none())

    def verdict() -> list[float]:
        marks = [now(model.device)]
        reading = PromptReading(reader, encoded, state_layers(reader))
        marks.append(now(model.device))
        reading.read(encoded.response_ids, others)
        return [*marks, now(model.device)]

    spent = np.median(np.diff(in_rounds({"": verdict}, lengths.rounds)[""]), axis=0).tolist()
    cell: Cell = dict(zip(("prompt_seconds", "response_seconds"), spent, strict=True))
    cell["verdicts_a_second"] = 1 / sum(spent)
    cell["further_responses_a_second"] = 1 / sum(spent[1:])  # to the same prompt
    return cell | {"peak_bytes": peak_of(verdict, model.device)}


@torch.no_grad()
def batch_of_verdicts(models: Models, lengths: Lengths, shape: str, batch: int) -> Cell:
    """Prompts with responses a second, so many in one pass: what batching verdicts could reach."""
    model = models(shape, models.dtype)
    examples = [
        Example.random(lengths.prompt, lengths.response, model.config.vocab_size, seed)
        for seed in range(batch)
    ]
    inputs = torch.cat([example.inputs for example in examples]).to(model.device)
    weights = [example.mean_prompt for example in examples]

    def push() -> float:
        with relevance_mode(model) as flow:
            return seconds(lambda: flow.push_batch(examples, weights, at_once=batch), model.device)

    def forward() -> float:
        call = partial(model, inputs, use_cache=False, logits_to_keep=lengths.response)
        return seconds(call, model.device)

    ways = {"forward": forward, "R_response": push}
    taken = in_rounds(ways, lengths.rounds)
    cell: Cell = {f"{name}s_a_second": batch / statistics.median(taken[name]) for name in ways}
    return cell | {f"{name}_peak_bytes": peak_of(way, model.device) for name, way in ways.items()}


def hold(models: Models, lengths: Lengths, shape: str, prompt: int) -> Cell:
    """Until the reader has read a new sentence, with alternatives of its values, after a cached prompt."""
    model = models(shape, models.dtype)
    vocabulary, length = model.config.vocab_size, lengths.sentence
    encoded = laid_out(prompt, length * lengths.sentences, vocabulary)
    reader, taken = Reader(model, None, identity_of_none()), list[float]()
    for _ in range(2):  # the first stream chooses kernels
        started = now(model.device)
        reading = PromptReading(reader, encoded, state_layers(reader))
        marks = [now(model.device)]
        for end in range(length, length * lengths.sentences + 1, length):
            reading.read(encoded.response_ids[:end], alternatives(end - length, end, 3, vocabulary))
            marks.append(now(model.device))
        taken = np.diff(marks).tolist()
    p50, p95 = np.quantile(taken, (0.5, 0.95)).tolist()
    return {"prompt_seconds": marks[0] - started, "p50_seconds": p50, "p95_seconds": p95}


def long_prompt(models: Models, lengths: Lengths, shape: str, prompt: int, way: str) -> Cell:
    """One pass over a long prompt, once, after one over a short prompt."""
    model = models(shape, models.dtype)
    calls: dict[str, Callable[[Example], float]] = {
        "forward": partial(passes.forward, model),
        "R_response": lambda example: passes.push(model, example, example.mean_prompt),
        "R_prompt": partial(passes.pull_prompt, model),
    }
    vocabulary, taken = model.config.vocab_size, list[float]()
    calls[way](Example.random(8, 2, vocabulary))
    example = Example.random(prompt, 32, vocabulary)
    peak = peak_of(lambda: taken.append(calls[way](example)), model.device)
    return {"seconds": taken[0], "peak_bytes": peak}


@dataclass(frozen=True, slots=True)
class Part:
    """Some of what is measured, once with each of `choices`, in a share of the time and in what parts before
    it left of theirs. The docstring of `measure` stands on the page."""

    title: str
    measure: Callable[..., Cell]
    share: float
    choices: Sequence[tuple[Any, ...]]

    def calls(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """The key of each cell, and what is measured for it."""
        for choice in self.choices:
            yield f"{self.title}: {', '.join(map(str, choice))}", choice


def parts_of(lengths: Lengths, dtype: str) -> list[Part]:
    """All parts, the most important first."""
    shapes = lengths.shapes
    priced = dict.fromkeys([*product(shapes, [dtype]), *product(shapes[:2], ["float32"])])
    ways = ("forward", "R_response", "R_prompt")
    return [
        Part("Correctness", correctness, 0.1, list(product(DTYPES, COMPOSITES))),
        Part("Cost of relevance", cost, 0.2, list(priced)),
        Part("Verdicts a second", verdicts, 0.1, list(product(shapes))),
        Part("By batch size", batch_of_verdicts, 0.15, list(product(shapes, lengths.batches))),
        Part("Hold time of a stream", hold, 0.1, list(product(shapes, lengths.streamed_prompts))),
        Part("Long prompts", long_prompt, 0.2, list(product(shapes, lengths.long_prompts, ways))),
        Part("Other libraries", libraries, 0.15, list(product(shapes, ("autograd", "captum", "lxt")))),
    ]


class OutOfTime(BaseException):
    """The time of a part is over; no handler of errors on the way holds it up."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Raise `OutOfTime` in what runs inside once the deadline, of `time.monotonic`, has passed."""

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(measure: Callable[[], Cell]) -> Cell:
    """What is measured; that memory ran out is a result, anything else that is raised an error."""
    try:
        cell = measure()
        odd = [name for name, value in cell.items() if isinstance(value, float) and not math.isfinite(value)]
        return cell | dict.fromkeys(odd, "not finite")  # JSON has no such number
    except Exception as error:  # one cell must not lose the others
        if is_out_of_memory(error):
            return {"note": "out of memory"}
        return {"error": one_line(f"{type(error).__name__}: {error}", 300)}


def page(setup: dict[str, Any], lengths: Lengths, parts: Sequence[Part], cells: Cells) -> Iterator[str]:
    """The lines of the page of what is there."""
    about = ", ".join(f"{name} {value}" for name, value in {**setup, **asdict(lengths)}.items())
    yield f"# What {text(setup['device_name'])} does"
    yield from ("", f"Written by `python -m benchmarks.gpu`. Weights are random. {text(about)}.")
    for part in parts:
        yield from ("", f"## {part.title}", "", text(inspect.getdoc(part.measure)), "")
        rows = {key: cells[key] for key, _ in part.calls() if key in cells}
        head = list(dict.fromkeys(figure for cell in rows.values() for figure in cell))
        body = [
            [key.partition(": ")[2], *(in_words(figure, cell.get(figure)) for figure in head)]
            for key, cell in rows.items()
        ]
        yield from table(("", *(figure.replace("_", " ") for figure in head)), body)
        if missing := [key.partition(": ")[2] for key, _ in part.calls() if key not in rows]:
            yield from ("", f"Not measured: {'; '.join(missing)}.")


def in_words(figure: str, value: Any) -> str:
    if value is None:
        return ""
    if figure.endswith("_bytes"):
        return gigabytes(value)
    return f"{value:.3g}" if isinstance(value, float) else text(str(value))


@click.command(context_settings=SETTINGS)
@click.option("--device", help="cuda or cuda:K; by default cuda, and cpu for a rehearsal.")
@click.option("--dtype", type=click.Choice(list(DTYPES)), help="By default the device's fastest.")
@listed("--shapes", click.Choice(list(SHAPES)), "", "Models to measure; by default all four.")
@click.option("--minutes", default=8.0, show_default=True, type=click.FloatRange(0, min_open=True))
@click.option("--rehearse", is_flag=True, help="All steps on a tiny model and short prompts, in seconds.")
@click.option(
    "--out",
    default="out/gpu",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of gpu.json and README.md; what is there already is not measured again.",
)
def main(
    device: str | None, dtype: str | None, shapes: tuple[str, ...], minutes: float, rehearse: bool, out: Path
) -> None:
    """What a GPU does, without weights or a network: is relevance right, what does it cost, how many verdicts
    a second, how long is a stream held, how long may prompts be.

    \b
    Each part ends with its share of the time, and each result is written as soon as it is there: run it again
    to go on. Exits with 1 where relevance is wrong.

    \b
    Examples:
      python -m benchmarks.gpu                                    8 minutes on a GPU
      python -m benchmarks.gpu --shapes llama-3.1-8b --minutes 3  one model
      python -m benchmarks.gpu --rehearse                         the same steps, small, on a CPU
    """
    silence()
    with exit_codes():
        device = check_device(device or ("cpu" if rehearse else "cuda"))
        dtype = dtype or fastest_dtype(device)
        lengths = REHEARSAL if rehearse else WHOLE
        if shapes:
            lengths = replace(lengths, shapes=shapes)
        setup = {
            "device_name": device_name(torch.device(device)),
            "dtype": dtype,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "rehearsal": rehearse,
        }
        measure_all(out, setup, lengths, Models(device, dtype), 60 * minutes)


def measure_all(out: Path, setup: dict[str, Any], lengths: Lengths, models: Models, limit: float) -> None:
    """Measure what is not there yet, within `limit` seconds. Raises `RelevanceError` where relevance is
    wrong."""
    out.mkdir(parents=True, exist_ok=True)
    cells, parts = Cells(out / "gpu.json", setup), parts_of(lengths, models.dtype)
    deadline, wrong = time.monotonic(), list[str]()

    def write() -> None:
        write_atomically(out / "README.md", "\n".join(page(setup, lengths, parts, cells)) + "\n")

    for part in parts:
        deadline += limit * part.share
        for key, choice in part.calls():
            if key not in cells or "error" in cells[key]:  # that may have been a fault of the machine
                try:
                    with until(deadline):
                        cell = outcome(partial(part.measure, models, lengths, *choice))
                except OutOfTime:
                    break
                finally:
                    models.free()
                cells.add({key: cell})
                write()
                figures = ", ".join(f"{name} {in_words(name, value)}" for name, value in cell.items())
                click.echo(f"{key}: {figures}")
            if "error" in cells[key] or not cells[key].get("right", True):
                wrong.append(key)
    write()
    if wrong:
        raise RelevanceError(f"wrong or not computed: {'; '.join(wrong)}")


if __name__ == "__main__":
    main()
