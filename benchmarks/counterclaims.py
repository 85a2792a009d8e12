"""By which margins are counter-claims the better supported ones, of right answers and of faulty ones?"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any
from unittest.mock import patch

import click

from benchmarks import command
from benchmarks.answers import detector_of, kind_of, some_answers
from benchmarks.command import Report, benchmark, count, listed, table
from lrp4rag.claims.counterclaims import CounterClaim
from lrp4rag.classifiers import assessor
from lrp4rag.classifiers.countered import margin
from lrp4rag.classifiers.verdict import Assessment
from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.util.progress import track


def margins_of(detector: Detector, example: Example) -> list[float] | None:
    """Return the margins, in log odds, of the counter-claims of a response's sentences; None where it is
    flagged without them."""
    found = list[float]()

    def collect(
        assessment: Assessment, number: int, own: float, counter: CounterClaim, other: float | None, *_: Any
    ) -> Assessment:
        by = margin(own, other, counter)
        found.extend([] if by is None else [by])
        return assessment

    with patch.object(assessor, "with_counter_claim", collect):
        options = {"evidence": False, "reasons": False}
        verdict = detector.examine(detector.prompt(example), example.response, **options)
    return None if verdict.hallucinated else found


@benchmark
@click.option("--data", default="everyday", show_default=True, help="Labelled examples, or a set's name.")
@count("--every", 8, "Of the questions, the first, and each so-many-th after it.")
@listed("--margins", click.FloatRange(0), "0.5,0.75,1,1.25,1.5", "In log odds.")
@click.option("--reader", default="default", show_default=True, help="none: texts alone.")
@command.dtype
def main(data: str, every: int, margins: tuple[float, ...], reader: str, dtype: str) -> Report:
    """Answers that are flagged by their counter-claims alone, by the margin from which they are.

    Right answers that the detector learned from are less suspect than others, so that few of them reach a
    margin.

    \b
    Examples:
      python -m benchmarks.counterclaims
      python -m benchmarks.counterclaims --data answers.jsonl --every 1
    """
    examples, detector = some_answers(data, every), detector_of(reader, dtype)
    answers, asked, flagged = Counter[str](), Counter[str](), defaultdict[float, Counter[str]](Counter)
    with detector:
        for example in track(examples, len(examples), "answers"):
            kind = kind_of(example)
            found = margins_of(detector, example)
            answers[kind] += 1
            asked[kind] += bool(found)
            for least in margins:
                flagged[least][kind] += max(found or [-math.inf]) >= least
    rows = [
        [kind, *map(str, (number, asked[kind], *(flagged[least][kind] for least in margins)))]
        for kind, number in sorted(answers.items())
    ]
    result = {
        "answers": dict(answers),
        "with_counter_claims": dict(asked),
        "flagged": {str(least): dict(flagged[least]) for least in margins},
    }
    return result, table(["kind", "answers", "with one", *(f"from {one:g}" for one in margins)], rows)


if __name__ == "__main__":
    main()
