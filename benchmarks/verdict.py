"""What the signals of one response cost, which a detector with relevance rests on, against a plain forward,
in one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks import command
from benchmarks.command import Result, benchmark, count
from benchmarks.harness import Example, apart, in_rounds, peak_of, plain_forward, seconds
from benchmarks.shapes import laid_out
from experiments.tokens.signals import FAST, FULL, PromptSignals, Wanted
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.attribution import prompt_mean
from lrp4rag.reader import Encoded, Reader, load_reader

SEGMENTS = replace(FULL, provenance=False)


def ways(reader: Reader, one: Encoded) -> dict[str, Callable[[], object]]:
    def response() -> None:
        with relevance_mode(reader.model) as flow:
            flow.push(one, prompt_mean(one))

    def signals(wanted: Wanted) -> None:
        with relevance_mode(reader.model) as flow:
            PromptSignals(flow, one, wanted=wanted, staged=True).of(one)

    return {
        "forward": partial(plain_forward, reader.model, Example(one.prompt_ids, one.response_ids)),
        "R_response": response,
        "fast": partial(signals, FAST),
        "segments": partial(signals, SEGMENTS),
        "full": partial(signals, FULL),
    }


def peak_bytes(way: str, prompt: int, response: int, dtype: str) -> int:
    reader = load_reader(dtype=dtype)
    return peak_of(ways(reader, laid_out(prompt, response, reader.model.config.vocab_size))[way])


@benchmark
@count("--prompt", 454, "Prompt tokens.", least=20)
@count("--response", 188, "Response tokens.", least=16)
@command.dtype
@command.rounds(default=3)
def main(prompt: int, response: int, dtype: str, rounds: int) -> Result:
    """Signals of one response on the default reader (lengths: RAGTruth QA's means).

    \b
    Examples:
      python -m benchmarks.verdict                                     about three minutes on 2 cores
      python -m benchmarks.verdict --prompt 60 --response 20 --rounds 1    a quick look
    """
    reader = load_reader(dtype=dtype)
    calls = ways(reader, laid_out(prompt, response, reader.model.config.vocab_size))
    taken = in_rounds({name: partial(seconds, call) for name, call in calls.items()}, rounds)
    best = {name: min(values) for name, values in taken.items()}
    result: dict[str, Any] = {}
    for name, elapsed in best.items():
        result[f"{name}_over_forward"] = elapsed / best["forward"]
        result[f"{name}_seconds"] = elapsed
        result[f"{name}_peak_bytes"] = apart(peak_bytes, name, prompt, response, dtype)
    return result


if __name__ == "__main__":
    main()
