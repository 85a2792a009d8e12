"""What a sentence costs while its response is written, by its number, with several clients at a time."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, zip_longest
from typing import Any
from unittest.mock import patch

import click
import numpy as np

from benchmarks import command
from benchmarks.command import Result, benchmark, count, listed
from benchmarks.harness import ReaderCounter
from benchmarks.service.client import examples
from lrp4rag import Detector, Example
from lrp4rag.guard.service.settings import Settings
from lrp4rag.reader.comparer import EntailmentModel

CLOCKS = {"processor": time.process_time, "wall": time.perf_counter}


def long_answers(number: int, joined: int) -> list[Example]:
    """So many questions with long responses, each made of several: all of their passages, and responses."""
    rows = examples(number * joined)
    return [
        Example(
            some[0].question,
            [passage for one in some for passage in one.passages],
            " ".join(str(one.response) for one in some),
        )
        for some in (rows[k * joined : (k + 1) * joined] for k in range(number))
    ]


@contextmanager
def counting_pairs() -> Iterator[Counter[str]]:
    """Count the pairs that the comparer reads."""
    done = Counter[str]()
    entailments = EntailmentModel._entailments

    def compared(self: EntailmentModel, pairs: Sequence[Any], asked: tuple[int, ...]) -> Any:
        done["pairs"] += len(pairs)
        return entailments(self, pairs, asked)

    with patch.object(EntailmentModel, "_entailments", compared):
        yield done


def streamed(
    detector: Detector, answers: Sequence[Example], clock: Callable[[], float] = time.process_time
) -> tuple[list[list[float]], Counter[str]]:
    """Judge the sentences of several responses by turns: seconds of each response's k-th sentence, by k; and
    what was read for them, without the prompts."""
    seconds = list[list[float]]()
    with detector:
        streams = [detector.reading(one.question, one.passages) for one in answers]
        for stream in streams:
            stream.prepare()
        ready = [
            [*stream.ready(str(one.response)), *stream.ready(None)]
            for stream, one in zip(streams, answers, strict=True)
        ]
        with counting_pairs() as done, ReaderCounter(detector.reader) as reader:
            for turn in zip_longest(*ready):
                taken = []
                for stream, given in zip(streams, turn, strict=True):
                    started = clock()
                    if given is not None and stream.judge(given[0], followed=given[1]).so_far is not None:
                        taken.append(clock() - started)
                        done["sentences"] += 1
                seconds += [taken] if taken else []
        done["tokens"] = reader.tokens
    return seconds, done


@benchmark
@count("--joined", 3, "Responses of the bundled set that make a long one.")
@listed("--clients", click.IntRange(1), "1,2,4", "By turns; each number is measured by itself.")
@click.option(
    "--clock",
    default="processor",
    show_default=True,
    type=click.Choice(list(CLOCKS)),
    help="Seconds of all threads, or on the wall, where nothing else runs.",
)
@command.dtype
def main(joined: int, clients: tuple[int, ...], clock: str, dtype: str) -> Result:
    """What a sentence costs while its response is written, with several clients by turns.

    \b
    Examples:
      python -m benchmarks.held
      python -m benchmarks.held --joined 6      long responses, to prompts that are read in excerpts
    """
    answers = long_answers(max(clients), joined)
    detector = Detector.load(dtype=dtype, prompt_bytes=Settings().prompt_bytes)
    streamed(detector, long_answers(1, 1))  # the first pass is slower
    result = dict[str, Any]()
    for number in clients:
        waits, seconds, done = list[float](), list[list[float]](), Counter[str]()
        for k in range(0, len(answers), number):
            taken, counted = streamed(detector, answers[k : k + number], CLOCKS[clock])
            seconds += [[] for _ in taken[len(seconds) :]]
            for turn, some in enumerate(taken):
                seconds[turn] += some
            done += counted
            waits += [wait for some in taken for wait in accumulate(some)]
        of_each = [one for taken in seconds for one in taken]
        third = max(len(seconds) // 3, 1)
        first, last = (
            statistics.mean(map(statistics.mean, some)) for some in (seconds[:third], seconds[-third:])
        )
        for share in (50, 95):
            result[f"p{share}_{number}"] = float(np.percentile(waits, share))
        result[f"seconds_{number}"] = statistics.mean(of_each)
        result[f"last_over_first_{number}"] = last / first
        for name in ("sentences", "tokens", "pairs"):
            result[f"{name}_{number}"] = done[name]
        result[f"by_sentence_{number}"] = [round(statistics.mean(taken), 4) for taken in seconds]
    return result


if __name__ == "__main__":
    main()
