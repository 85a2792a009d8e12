"""How many answers a minute one server judges."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import click
import httpx

from benchmarks.command import Report, benchmark, count, listed
from benchmarks.service.client import TIMEOUT, examples, judge_body, quantiles
from benchmarks.service.server import quick, reader, started
from benchmarks.service.table import rows_of


def seconds_of(url: str, bodies: list[dict[str, Any]]) -> list[float]:
    """Of each answer, judged one after the other. Raises `httpx.HTTPStatusError` for one that is not."""
    found = []
    with httpx.Client(base_url=url, timeout=TIMEOUT) as client:
        for body in bodies:
            began = time.monotonic()
            client.post("/v1/judge", json=body).raise_for_status()
            found.append(time.monotonic() - began)
    return found


@benchmark
@count("--answers", 60, "Answers that are judged.")
@listed("--dtypes", click.Choice(["float32", "bfloat16"]), "float32,bfloat16", "Of the reader.")
@reader("default")
@quick(answers=5, reader="tiny")
def main(answers: int, dtypes: tuple[str, ...], reader: str, quick: bool) -> Report:
    """Answers a minute through POST /v1/judge, one after the other: the reader judges one at a time.

    \b
    Examples:
      python -m benchmarks.service.capacity --quick
      python -m benchmarks.service.capacity --dtypes bfloat16
    """
    bodies = [judge_body(one) for one in examples(answers)]
    result: dict[str, Any] = {}
    for dtype in dtypes:
        with tempfile.TemporaryDirectory() as name, started(Path(name), reader=reader, dtype=dtype) as server:
            seconds_of(server.url, bodies[:1])  # the first pass is slower
            seconds = seconds_of(server.url, bodies)
        result[f"{dtype}_answers_per_minute"] = 60 * len(seconds) / sum(seconds)
        result |= quantiles(f"{dtype}_seconds", seconds)
    return result, rows_of(result)


if __name__ == "__main__":
    main()
