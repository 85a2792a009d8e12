"""How many answers take something from a passage about something else, and are flagged for that alone?"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from unittest.mock import patch

import click

from benchmarks import command
from benchmarks.answers import detector_of, kind_of, some_answers
from benchmarks.command import Report, benchmark, count, table
from lrp4rag.claims.borrowed import Subjects
from lrp4rag.claims.index import Index
from lrp4rag.classifiers.assessor import Assessor
from lrp4rag.example import Example
from lrp4rag.judge import Detector
from lrp4rag.util.progress import track
from lrp4rag.util.sentences import sentences_in


@lru_cache(maxsize=1)
def subjects_of(question: str, passages: tuple[str, ...]) -> Subjects:
    return Subjects(question, Index(passages))


def borrows(example: Example) -> bool:
    """Say whether a sentence of its response does, by the texts."""
    subjects, response = subjects_of(example.question, tuple(example.passages)), example.response or ""
    return any(subjects.borrowed(response, sentences_in(response)))


def is_flagged(detector: Detector, example: Example) -> bool | None:
    prompt = detector.prompt(example)
    return detector.examine(prompt, example.response, evidence=False, reasons=False).hallucinated


@benchmark
@click.option("--data", default="everyday", show_default=True, help="Labelled examples, or a set's name.")
@count("--every", 1, "Of the questions, the first, and each so-many-th after it.")
@click.option("--reader", default="default", show_default=True, help="none: texts alone.")
@command.dtype
def main(data: str, every: int, reader: str, dtype: str) -> Report:
    """Answers that rest on a passage about something else than was asked, by the kind of their fault.

    Those that do are judged twice: as they are judged, and as if nothing were known of it.

    \b
    Examples:
      python -m benchmarks.borrowed --dtype bfloat16
      python -m benchmarks.borrowed --data answers.jsonl --reader none
    """
    examples = [one for one in some_answers(data, every) if one.response]
    kinds = list(map(kind_of, examples))
    answers, borrowing, flagged, alone = Counter(kinds), Counter[str](), Counter[str](), Counter[str]()
    with detector_of(reader, dtype) as detector:
        for kind, example in zip(kinds, track(examples, len(examples), "answers"), strict=True):
            if not borrows(example):
                continue
            borrowing[kind] += 1
            if is_flagged(detector, example):
                flagged[kind] += 1
                with patch.object(Assessor, "_unborrowed", lambda *given: given[-1]):
                    alone[kind] += not is_flagged(detector, example)
    columns = (answers, borrowing, flagged, alone)
    rows = [[kind, *(str(counts[kind]) for counts in columns)] for kind in sorted(answers)]
    result = {
        "answers": dict(answers),
        "borrowing": dict(borrowing),
        "flagged": dict(flagged),
        "flagged_for_that_alone": dict(alone),
    }
    return result, table(["kind", "answers", "borrowing", "flagged", "for that alone"], rows)


if __name__ == "__main__":
    main()
