"""`python -m benchmarks.sizes`: time and memory of readers by size: measured where they fit, computed where
not."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks import command
from benchmarks.command import Report, benchmark, count, listed, table
from benchmarks.devices import SHAPES, config_of, model_of
from benchmarks.harness import Example, apart, forget_peak, peak_resident, plain_forward, seconds
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.memory import Shape, Sizes, pull_bytes, push_bytes
from lrp4rag.reader.reader import DTYPES
from lrp4rag.report.figure_text import png_of
from lrp4rag.util.files import write_atomically

BITS = {"float32": 32, "bfloat16": 16, "int8": 8, "4 bits": 4.5}
"""Of a weight; 4 bits and the scales of blocks of 64. Embeddings stay in 16 where others have fewer."""
MEASURED = "smollm2-135m,smollm2-360m,qwen2.5-0.5b,llama-3.2-1b"
ROUNDS = 3


@dataclass(frozen=True)
class Counted:
    """What follows from a model's sizes: parameters, those of the embedding, and multiplications and
    additions of a plain pass over prompt and response, logits of the response alone."""

    parameters: int
    embedding: int
    operations: float


@dataclass(frozen=True)
class Passes:
    """Seconds of a plain forward, a push (one tangent) and a pull (one cotangent, its replay included), and
    the peak bytes of push and pull with the weights."""

    forward: float
    push: float
    pull: float
    push_peak: float
    pull_peak: float


def counted(shape: str, prompt: int, response: int) -> Counted:
    """By transformers' own layers, on no device."""
    from transformers import LlamaForCausalLM

    config = config_of(shape)
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    embedding = int(config.vocab_size * config.hidden_size)
    linear = sum(
        one.weight.numel()
        for name, one in model.named_modules()
        if isinstance(one, torch.nn.Linear) and name != "lm_head"
    )
    length = prompt + response - 1
    attention = config.num_hidden_layers * 2 * length**2 * config.hidden_size / 2  # causal: half of all pairs
    operations = 2 * (linear * length + attention + embedding * response)
    return Counted(sum(one.numel() for one in model.parameters()), embedding, operations)


def measured(shape: str, dtype: str, prompt: int, response: int) -> dict[str, float]:
    """In a process of its own."""
    model = model_of(shape, "cpu", dtype)
    example = Example.random(prompt, response, model.config.vocab_size)
    plain_forward(model, example)
    forward = min(seconds(lambda: plain_forward(model, example)) for _ in range(ROUNDS))
    with relevance_mode(model) as flow:
        forget_peak()
        push = min(seconds(lambda: flow.push(example, example.mean_prompt)) for _ in range(ROUNDS))
        push_peak = peak_resident()
        forget_peak()
        pull = seconds(lambda: flow.pull(example, example.mean_response))
        pull_peak = peak_resident()
    return asdict(Passes(forward, push, pull, push_peak, pull_peak))


def weights(one: Counted, bits: float) -> float:
    """Bytes."""
    return one.embedding * max(bits, 16) / 8 + (one.parameters - one.embedding) * bits / 8


def computed(
    shape: str, dtype: str, one: Counted, length: int, known: list[tuple[Counted, Passes]], base: float
) -> Passes:
    """From the operations, at the speed and the ratios of what was measured; memory by the estimates that
    `--max-memory` plans with, and `base`, what the libraries take."""
    speed = statistics.median(each.operations / passes.forward for each, passes in known)
    push, pull = (
        statistics.median(getattr(passes, name) / passes.forward for _, passes in known)
        for name in ("push", "pull")
    )
    forward = one.operations / speed
    size = Shape.of(_Named(config_of(shape), dtype))
    held = base + weights(one, BITS[dtype])
    return Passes(
        forward,
        forward * push,
        forward * pull,
        held + push_bytes(size, length, 1, Sizes()),
        held + pull_bytes(size, length, 1, Sizes()),
    )


class _Named:
    """A configuration as `Shape.of` reads a model."""

    def __init__(self, config: Any, dtype: str) -> None:
        self.config, self.weight = config, torch.empty(0, dtype=DTYPES[dtype])

    def get_input_embeddings(self) -> Any:
        return self


@benchmark
@listed(
    "--measure",
    click.STRING,
    MEASURED,
    "Shapes to measure here.",
)
@command.dtype
@count("--prompt", 400, "Prompt tokens.", least=5)
@count("--response", 200, "Response tokens.", least=2)
@click.option("--plot", type=click.Path(), help="Draw time and memory by size here (PNG).")
def main(measure: tuple[str, ...], dtype: str, prompt: int, response: int, plot: str | None) -> Report:
    """Parameters, weights, time and memory of readers from 135 million to 8 billion parameters."""
    sizes = {shape: counted(shape, prompt, response) for shape in SHAPES if shape != "tiny"}
    found = {shape: Passes(**apart(measured, shape, dtype, prompt, response)) for shape in measure}
    known = [(sizes[shape], passes) for shape, passes in found.items()]
    length = prompt + response - 1
    # What is beside weights and estimates in the measured rows: interpreter and libraries.
    plain = {shape: computed(shape, dtype, sizes[shape], length, known, 0.0) for shape in found}
    beside = {shape: found[shape].push_peak - plain[shape].push_peak for shape in found}
    rows = []
    for shape, one in sorted(sizes.items(), key=lambda pair: pair[1].parameters):
        others = [name for name in found if name != shape] or [*found]  # no row is estimated from itself
        base = statistics.median(beside[name] for name in others)
        from_ = [(sizes[name], found[name]) for name in others]
        estimate = computed(shape, dtype, one, length, from_, base)
        rows.append(
            {
                "shape": shape,
                **asdict(one),
                "weights": {name: weights(one, bits) for name, bits in BITS.items()},
                "measured": asdict(found[shape]) if shape in found else None,
                "computed": asdict(estimate),
            }
        )
    errors = {
        name: max(abs(row["computed"][name] / row["measured"][name] - 1) for row in rows if row["measured"])
        for name in ("forward", "push", "pull", "push_peak", "pull_peak")
    }
    if plot is not None:
        draw(rows, Path(plot))
    return {"rows": rows, "largest_error": errors}, lines(rows, errors)


def lines(rows: list[dict[str, Any]], errors: dict[str, float]) -> list[str]:
    shown = []
    for row in rows:
        passes = row["measured"] or row["computed"]
        shown.append(
            [
                row["shape"],
                f"{row['parameters'] / 1e6:,.0f}",
                *(f"{row['weights'][name] / 1e9:.2f}" for name in BITS),
                "measured" if row["measured"] else "computed",
                *(f"{passes[name]:.1f}" for name in ("forward", "push", "pull")),
                *(f"{passes[name] / 1e9:.1f}" for name in ("push_peak", "pull_peak")),
            ]
        )
    columns = ["forward, s", "push, s", "pull, s", "push, GB", "pull, GB"]
    head = ["shape", "million parameters", *(f"weights in {name}, GB" for name in BITS), "", *columns]
    worst = ", ".join(f"{name.replace('_', ' ')} {error:.0%}" for name, error in errors.items())
    return [
        *table(head, shown),
        "",
        f"largest errors of what is computed, on the rows that were measured: {worst}",
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Time and memory by size, both axes logarithmic."""
    from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullFormatter

    from experiments.figures.style import blank, themed

    there = [row for row in rows if row["measured"]]
    with themed():
        drawn = blank((10.0, 4.0))
        left, right = drawn.subplots(1, 2)
        for panel, names, unit in (
            (left, {"forward": "plain forward", "push": "push", "pull": "pull"}, 1.0),
            (right, {"push_peak": "push", "pull_peak": "pull"}, 1e9),
        ):
            for number, (name, label) in enumerate(names.items()):
                line, dots = {"label": label}, {"marker": "o", "ls": ""}
                for shown, kind, how in ((rows, "computed", line), (there, "measured", dots)):
                    panel.plot(
                        [row["parameters"] / 1e9 for row in shown],
                        [row[kind][name] / unit for row in shown],
                        color=f"C{number}",
                        **how,
                    )
            panel.set(xscale="log", yscale="log", xlabel="billion parameters")
            for axis, ticks in ((panel.xaxis, (0.1, 0.3, 1, 3, 10)), (panel.yaxis, (1, 3, 10, 30, 100, 300))):
                axis.set_major_locator(FixedLocator(ticks))
                axis.set_major_formatter(FormatStrFormatter("%g"))
                axis.set_minor_formatter(NullFormatter())
            panel.legend(frameon=False, title="line: computed; dots: measured")
        left.set_ylabel("seconds")
        right.set_ylabel("peak memory, GB")
        write_atomically(path, png_of(drawn, 120))


if __name__ == "__main__":
    main()
