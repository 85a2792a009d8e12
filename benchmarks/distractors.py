"""Does a verdict depend on what else was retrieved? Labelled responses among passages of other questions."""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks import command
from benchmarks.cells import Cell, Cells
from benchmarks.command import Report, benchmark, count, gigabytes, listed, table
from benchmarks.elsewhere.sets import read_pairs
from benchmarks.harness import apart, peak_of, silence
from benchmarks.kinds.folds import SOURCES, asking_others
from lrp4rag.claims.index import Index
from lrp4rag.claims.nearest import Nearest, nearest
from lrp4rag.claims.stating import stating
from lrp4rag.data import load_examples
from lrp4rag.example import Example, first_sources
from lrp4rag.judge import Detector, ExplainedVerdict
from lrp4rag.training.metrics import intervals
from lrp4rag.training.sets import EVERYDAY, load_set, set_path
from lrp4rag.util.progress import track
from lrp4rag.util.sentences import sentences_of

Beside = Callable[[str], AbstractContextManager[None]]


def examples_of(data: str, held: Path) -> tuple[list[Example], Beside]:
    """Return labelled responses, question by question, and what judges those of a source. Where there is a
    file `held` beside a detector, they are those of its sources, which its comparer did not learn from."""
    pairs = Path(data).is_file() and str(set_path(data)) == data
    examples = [item.example for item in read_pairs(Path(data))] if pairs else load_set(data)
    if not held.exists():
        return examples, lambda _: nullcontext()
    sources = set(json.loads(held.read_text()))
    return [one for one in examples if one.source in sources], asking_others


class Mixture:
    """Questions, and passages of others among theirs."""

    def __init__(self, examples: Sequence[Example], further: Iterable[str], seed: int) -> None:
        self._seed = seed
        pool = [(one.source, passage) for one in examples for passage in one.passages]
        self._pool = list(dict.fromkeys([*pool, *(("", passage) for passage in further)]))

    def mixed(self, example: Example, count: int) -> tuple[Example, list[int]]:
        """Return the example among `count` passages of other questions, the same for all responses to a
        question, and the numbers that its own passages have there."""
        draw = random.Random(f"{self._seed} {count} {example.source}")
        own = {passage for source, passage in self._pool if source == example.source}
        others = draw.sample([passage for _, passage in self._pool if passage not in own], count)
        total = count + len(example.passages)
        numbers = sorted(draw.sample(range(total), len(example.passages)))
        parts = dict(zip(numbers, example.passages, strict=True))
        rest = iter(others)
        passages = [parts[k] if k in parts else next(rest) for k in range(total)]
        return replace(example, passages=passages, sources=(), prompt="", spans=()), numbers


def supporting(example: Example) -> list[Nearest]:
    """Return the nearest sentences of an example's passages, of its response's sentences that state
    something."""
    index = Index(example.passages)
    claims = [one for one in sentences_of(example.response) if stating(one) == "a claim"]
    found = (nearest(index, example.passages, claim) for claim in claims)
    return [one for one in found if one is not None]


def is_read(verdict: ExplainedVerdict, place: Nearest, numbers: Sequence[int]) -> bool:
    """Say whether the place of an example's passages was read, where these have other `numbers`."""
    if verdict.excerpt is None:
        return True
    with suppress(ValueError):
        start, end = verdict.excerpt.within(numbers[place.passage], place.start, place.end)
        return end - start == place.end - place.start
    return False


def judged(detector: Detector, example: Example, mixture: Mixture, count: int) -> Cell:
    """Judge one response among `count` passages of other questions."""
    mixed, numbers = mixture.mixed(example, count)
    started = time.perf_counter()
    verdict = detector.judge(mixed, evidence=False)
    spent = time.perf_counter() - started
    places = [] if example.hallucinated else supporting(example)
    return {
        "id": example.id,
        "source": example.source,
        "label": int(bool(example.hallucinated)),
        "distractors": count,
        "characters": len(mixed.prompt),
        "prompt_tokens": len(verdict.encoded.prompt_ids),
        "read": verdict.read and [number + 1 for number in verdict.read],
        "own": [number + 1 for number in numbers],
        "probability": verdict.probability,
        "abstained": verdict.abstained,
        "supporting_read": [is_read(verdict, place, numbers) for place in places],
        "seconds": spent,
    }


def peak_bytes(name: str, dtype: str, example: Example) -> int:
    """Peak of a process that judges one example."""
    silence()
    detector = Detector.load(name, dtype=dtype)
    return peak_of(partial(detector.judge, example, evidence=False))


def measured(cells: Sequence[Cell], threshold: float) -> dict[str, Any]:
    """Measure the responses beside one number of passages of other questions."""
    labels = np.array([cell["label"] for cell in cells], dtype=bool)
    scores = np.array([cell["probability"] for cell in cells], dtype=np.float64)
    groups = np.array([cell["source"] for cell in cells], dtype=np.str_)
    metrics = intervals(labels, scores, groups, threshold)
    supported = [one for cell in cells for one in cell["supporting_read"]]
    return {
        "distractors": cells[0]["distractors"],
        "responses": len(cells),
        "with_a_verdict": 1 - statistics.mean(cell["abstained"] for cell in cells),
        **{name: metrics[name].model_dump() for name in ("auroc", "balanced_accuracy")},
        "sentences": len(supported),
        "supporting_read": statistics.mean(supported) if supported else None,
        "seconds": statistics.median(cell["seconds"] for cell in cells),
        "prompt_tokens": statistics.mean(cell["prompt_tokens"] for cell in cells),
        "characters": statistics.mean(cell["characters"] for cell in cells),
    }


@benchmark
@click.option("--data", required=True, help="Minimal pairs, or labelled examples.")
@click.option(
    "--passages",
    type=click.Path(exists=True),
    help="More passages.  [default: of the set everyday]",
)
@click.option("--detector", "name", default="default", show_default=True, help="A trained detector.")
@listed("--counts", click.IntRange(0), "0,8,16,32,64", "Passages of other questions.")
@count("--limit", 1000, "Questions.")
@click.option("--seed", default=0, show_default=True, help="Draws the passages and their places.")
@click.option("--cache", type=click.Path(), help="What was judged: a run resumes from there.")
@click.option("--peaks/--no-peaks", default=True, help="Measure memory too, in a process for each length.")
@command.dtype
def main(
    data: str,
    passages: str | None,
    name: str,
    counts: tuple[int, ...],
    limit: int,
    seed: int,
    cache: str | None,
    peaks: bool,
    dtype: str,
) -> Report:
    """Labelled responses beside their own passages, and among passages of other questions.

    The detector of a fold (`benchmarks.kinds held`) judges the questions that it did not learn from.

    \b
    Examples:
      python -m benchmarks.distractors --data pairs.jsonl --dtype bfloat16 --cache out/distractors.json
      python -m benchmarks.distractors --data pairs.jsonl --limit 2 --counts 0,16 --no-peaks    a quick look
      python -m benchmarks.distractors --data everyday --detector FOLDS/0 --limit 20 --dtype bfloat16
    """
    examples, beside = examples_of(data, Path(name) / SOURCES)
    further = (text for one in load_examples(passages or EVERYDAY) for text in one.passages)
    mixture = Mixture(examples, further, seed)
    chosen = first_sources((one.source for one in examples), limit)
    examples = [one for one in examples if one.source in chosen]
    detector = Detector.load(name, dtype=dtype)
    setup = {"detector": detector.card.sha256, "dtype": dtype, "seed": seed}
    cells = Cells(None if cache is None else Path(cache), setup)
    questions = [list(group) for _, group in groupby(examples, lambda one: one.source)]
    groups = [(group, number) for group in questions for number in counts]
    with detector:
        for group, number in track(groups, len(groups), "questions and counts"):
            missing = [one for one in group if f"{number} {one.id}" not in cells]
            with beside(str(group[0].source)):
                cells.add({f"{number} {one.id}": judged(detector, one, mixture, number) for one in missing})
    rows = []
    for number in counts:
        row = measured([cells[f"{number} {one.id}"] for one in examples], detector.card.threshold)
        if peaks:
            row["peak_bytes"] = apart(peak_bytes, name, dtype, mixture.mixed(examples[0], number)[0])
        rows.append(row)
    found = {"threshold": detector.card.threshold, "rows": rows}
    found["answers"] = [cells[f"{number} {one.id}"] for number in counts for one in examples]
    return found, table(HEAD, [_shown(row) for row in rows])


HEAD = ("others", "verdicts", "AUROC", "balanced accuracy", "supporting read", "seconds", "tokens", "peak")


def _shown(row: dict[str, Any]) -> list[str]:
    return [
        str(row["distractors"]),
        f"{row['with_a_verdict']:.3f}",
        *(f"{row[name]['value']:.3f}" for name in ("auroc", "balanced_accuracy")),
        "" if row["supporting_read"] is None else f"{row['supporting_read']:.3f}",
        f"{row['seconds']:.2f}",
        f"{row['prompt_tokens']:.0f}",
        gigabytes(row["peak_bytes"]) if "peak_bytes" in row else "",
    ]


if __name__ == "__main__":
    main()
