"""By which margins are counter-claims the better supported ones, of right answers and of faulty ones?"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from unittest.mock import patch

import click
from scipy.special import logit

from benchmarks import command
from benchmarks.command import Report, benchmark, count, listed, table
from lrp4rag.claims.answer import Passages, compare_answer
from lrp4rag.claims.counterclaims import counter_claims
from lrp4rag.classifiers import countered
from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.training.sets import load_set
from lrp4rag.util.progress import track
from lrp4rag.util.sentences import sentences_in

RIGHT = "right"


def margins_of(detector: Detector, example: Example) -> list[float] | None:
    """Return the margins, in log odds, of the counter-claims of a response's sentences; None where it is
    flagged without them."""
    response, passages = str(example.response), example.passages
    sentences = compare_answer(Passages(example.question, passages), response, list(sentences_in(response)))
    counters = [
        (k, each) for k, one in enumerate(sentences) for each in counter_claims(response, passages, one)
    ]
    if not counters:
        return []
    prompt = detector.prompt(example)
    verdict = detector.examine(prompt, response, evidence=False, reasons=False)
    if verdict.hallucinated:
        return None
    found = []
    for k, one in counters:
        cut = response[: sentences[k].start] + one.words
        other = detector.examine(prompt, cut, evidence=False, reasons=False)
        own, after = verdict.sentences[k].probability, other.sentences[-1].probability
        if own is not None and after is not None:
            found.append(float(logit(own) - logit(after)))
    return found


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
    examples = load_set(data)
    sources = dict.fromkeys(one.source for one in examples)
    chosen = set(list(sources)[::every])
    examples = [one for one in examples if one.source in chosen]
    options = {} if reader == "none" else {"dtype": dtype, "truncation": "passages"}
    detector = Detector.load(reader=None if reader == "none" else reader, **options)  # type: ignore[arg-type]
    answers, asked, flagged = Counter[str](), Counter[str](), defaultdict[float, Counter[str]](Counter)
    with detector, patch.object(countered, "MARGIN", math.inf):
        for example in track(examples, len(examples), "answers"):
            kind = next((str(one.kind) for one in example.labels or ()), RIGHT)
            found = margins_of(detector, example)
            answers[kind] += 1
            asked[kind] += bool(found)
            for margin in margins:
                flagged[margin][kind] += max(found or [-math.inf]) >= margin
    rows = [
        [kind, *map(str, (number, asked[kind], *(flagged[margin][kind] for margin in margins)))]
        for kind, number in sorted(answers.items())
    ]
    result = {
        "answers": dict(answers),
        "with_counter_claims": dict(asked),
        "flagged": {str(margin): dict(flagged[margin]) for margin in margins},
    }
    return result, table(["kind", "answers", "with one", *(f"from {one:g}" for one in margins)], rows)


if __name__ == "__main__":
    main()
