"""Answers of HaluEval as if reviewers had spoken on them: does it help to learn from reviews?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from benchmarks.command import SETTINGS, OutputFile, exit_codes
from benchmarks.elsewhere.sets import HALUEVAL, SETS
from lrp4rag.util.files import write_atomically


@click.command(context_settings=SETTINGS)
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help=f"Folder with {HALUEVAL}/{SETS[HALUEVAL].file}.",
)
@click.option("--questions", default=250, show_default=True, type=click.IntRange(1), help="The first ones.")
@click.option("--out", required=True, type=OutputFile(), help="Labelled data, as feedback export writes it.")
def main(data: Path, questions: int, out: Path) -> None:
    """Write a right and a hallucinated answer to each question, to learn from and to compare with.

    \b
    Examples:
      python -m benchmarks.reviewed --data DATA --out reviewed.jsonl
      lrp4rag train reviewed.jsonl --no-pairs --compare-with default --store STORE --out reviewed/
      lrp4rag card reviewed/ --json
    """
    with exit_codes():
        items = SETS[HALUEVAL].read(data / HALUEVAL / SETS[HALUEVAL].file)[: 2 * questions]
    rows = [
        {
            "id": one.example.id,
            "question": one.example.question,
            "passages": list(one.example.passages),
            "response": one.example.response,
            "labels": [{"start": label.start, "end": label.end} for label in one.example.labels or ()],
        }
        for one in items
    ]
    write_atomically(out, "".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
