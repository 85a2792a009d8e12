"""What many answers cost: those to some prompts, beside an encoder that reads each with its prompt."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import click
import torch

from benchmarks import command
from benchmarks.command import Report, benchmark, count, gigabytes, table
from benchmarks.harness import ReaderCounter, forget_peak, peak_resident, ratio
from lrp4rag import Detector, Example
from lrp4rag.data import load_examples
from lrp4rag.training.sets import EVERYDAY

TEXT = "text"
SIZES = dict[str, Any]()
"""Of the encoder, where it is not as large as ModernBERT-base."""


def chosen(examples: Sequence[Example], prompts: int, answers: int) -> list[Example]:
    """Return so many answers to each of the first prompts that have as many, prompt by prompt."""
    groups = (list(group) for _, group in itertools.groupby(examples, lambda one: one.prompt))
    enough = (group[:answers] for group in groups if len(group) >= answers)
    return [one for group in itertools.islice(enough, prompts) for one in group]


def encoder(sizes: dict[str, Any]) -> Any:
    """Return a classifier of tokens with random weights in the shape of ModernBERT-base, which LettuceDetect
    has; `sizes` replaces some of it."""
    from transformers import ModernBertConfig, ModernBertForTokenClassification

    torch.manual_seed(0)
    config = ModernBertConfig(**{"num_labels": 2, "attn_implementation": "sdpa", **sizes})
    model: Any = ModernBertForTokenClassification(config)
    return model.eval().requires_grad_(False)


@torch.inference_mode()
def classify(model: Any, rows: Sequence[Sequence[int]]) -> None:
    """Classify the tokens of each answer after its prompt, one by one: on a CPU padding is work too."""
    for ids in rows:
        model(torch.tensor([ids]) % model.config.vocab_size)


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call: where there is much to be done, other work on the machine slows a
    clock."""
    started = time.process_time()
    call()
    return time.process_time() - started


@dataclass(frozen=True, slots=True)
class Work:
    """What judging answers took: processor seconds, what the reader did, and peak memory in each half."""

    seconds: float
    passes: int
    tokens_read: int
    first_half_peak_bytes: int
    second_half_peak_bytes: int


def judge(detector: Detector, rows: Sequence[Example]) -> Work:
    """Judge answers without evidence, each verdict let go before the next, as `analyse` does."""
    half, peaks, taken = len(rows) // 2, list[int](), 0.0
    with ReaderCounter(detector.reader) as counter:
        forget_peak()
        verdicts = detector.judge_each(rows, evidence=False)
        for number in range(1, len(rows) + 1):
            taken += seconds(lambda: require(next(verdicts)))
            if number in (half, len(rows)):
                peaks.append(peak_resident())
                forget_peak()
        verdicts.close()
    return Work(taken, counter.passes, counter.tokens, peaks[0], peaks[-1])


def require(verdict: object) -> None:
    """Raise what stopped a verdict."""
    if isinstance(verdict, Exception):
        raise verdict


@benchmark
@click.option("--data", type=click.Path(exists=True), help="Answers.  [default: of the set everyday]")
@count("--prompts", 12, "Prompts.")
@count("--answers", 5, "Answers to each of them.")
@click.option("--detector", "name", default="default", show_default=True, help="A trained detector.")
@command.rounds(default=1)
def main(data: str | None, prompts: int, answers: int, name: str, rounds: int) -> Report:
    """Verdicts without evidence on many answers, with the reader and of texts alone, beside a classifier of
    tokens with random weights in the shape of ModernBERT-base.

    \b
    Examples:
      python -m benchmarks.many
      python -m benchmarks.many --prompts 200     1,000 answers
    """
    rows = chosen(load_examples(data or EVERYDAY), prompts, answers)
    detector, texts = Detector.load(name), Detector.load(TEXT, reader=None)
    encoded = [detector.reader.encode(one) for one in rows]
    tokens = [[*one.prompt_ids, *one.response_ids] for one in encoded]
    model = encoder(SIZES)
    judge(detector, rows[:1])
    texts.judge(rows[0], evidence=False)
    classify(model, tokens[:1])
    done, taken = list[Work](), {way: list[float]() for way in ("verdicts", "texts", "encoder")}
    for _ in range(rounds):  # not `in_rounds`, whose first calls, which do not count, take as long
        done.append(judge(detector, rows))
        taken["verdicts"].append(done[-1].seconds)
        taken["texts"].append(seconds(partial(texts.judge_many, rows, evidence=False)))
        taken["encoder"].append(seconds(partial(classify, model, tokens)))
    result: dict[str, Any] = {
        "prompts": len({one.prompt for one in rows}),
        "judged": len(rows),
        "tokens": sum(map(len, tokens)),
        **asdict(done[-1]),
        **{f"{way}_over_encoder": ratio(taken[way], taken["encoder"]) for way in ("verdicts", "texts")},
        **{f"{way}_a_second": len(rows) / statistics.median(values) for way, values in taken.items()},
    }
    lines = [
        (way, f"{result[f'{way}_a_second']:.3g}", f"{result.get(f'{way}_over_encoder', 1.0):.2f}")
        for way in taken
    ]
    peaks = (gigabytes(getattr(done[-1], f"{half}_half_peak_bytes")) for half in ("first", "second"))
    about = (
        f"{len(rows)} answers to {result['prompts']} prompts, {result['tokens']:,} tokens; the reader read "
        f"{result['tokens_read']:,} in {result['passes']} passes; peak of either half: {', '.join(peaks)}"
    )
    return result, [*table(("", "answers a second of a core", "time over the encoder's"), lines), "", about]


if __name__ == "__main__":
    main()
