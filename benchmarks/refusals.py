"""How often do passages have what answers say to be missing, of right refusals and of false ones?"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import click

from benchmarks.answers import some_answers
from benchmarks.command import Report, benchmark, count, table
from lrp4rag.claims.answer import Passages
from lrp4rag.claims.refusals import missing_words, refusal_in
from lrp4rag.util.progress import track
from lrp4rag.util.sentences import sentences_in

OUTCOMES = ("there", "absent", "undecided")


@lru_cache(maxsize=1)
def passages_of(question: str, passages: tuple[str, ...]) -> Passages:
    return Passages(question, passages)


@benchmark
@click.option("--data", default="everyday", show_default=True, help="Labelled examples, or a set's name.")
@count("--every", 1, "Of the questions, the first, and each so-many-th after it.")
def main(data: str, every: int) -> Report:
    """Sentences that say that something is missing, by whether the passages have it.

    A sentence with a labelled span is a false one. Equal sentences on one question count once.

    \b
    Examples:
      python -m benchmarks.refusals --every 2
      python -m benchmarks.refusals --data ragtruth --every 3
    """
    examples, counts, seen = some_answers(data, every), Counter[tuple[str, str]](), set[tuple[str, ...]]()
    for example in track(examples, len(examples), "answers"):
        response = example.response or ""
        for start, end in sentences_in(response):
            is_false = any(one.start < end and start < one.end for one in example.labels or ())
            key = (example.question, response[start:end], str(is_false))
            if key in seen:
                continue
            seen.add(key)
            passages = passages_of(example.question, tuple(example.passages))
            found = refusal_in(passages, response, start, end)
            if found is None and not missing_words(response, start, end):
                continue
            counts["false" if is_false else "right", "undecided" if found is None else found.outcome] += 1
    result = {side: {each: counts[side, each] for each in OUTCOMES} for side in ("right", "false")}
    rows = [[side, *(str(counts[side, each]) for each in OUTCOMES)] for side in result]
    return {"sentences": result}, table(["refusal", *OUTCOMES], rows)


if __name__ == "__main__":
    main()
