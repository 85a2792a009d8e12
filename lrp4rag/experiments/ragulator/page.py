"""The page of RAGulator's evaluation: Markdown, a figure, and everything as JSON."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from jinja2 import Environment

from lrp4rag.experiments.claim import PAGE, claim
from lrp4rag.experiments.figures.results import Entry, draw_forest
from lrp4rag.experiments.figures.style import save
from lrp4rag.experiments.ragulator import measure, published, tasks
from lrp4rag.experiments.ragulator.measure import Evaluation
from lrp4rag.experiments.systems.entailment import RAGULATOR, TRAINING
from lrp4rag.experiments.systems.ragulator import sentences
from lrp4rag.experiments.systems.trained import UNSEEN
from lrp4rag.files import write_atomically
from lrp4rag.report.numbers import number, percent, percent_interval, with_interval
from lrp4rag.report.templates import markdown_templates
from lrp4rag.training.records import rounded, to_json

TEMPLATES = Path(__file__).parent / "templates"
KIND, RESULTS = "lrp4rag experiments ragulator", "results.json"


def write_page(found: Evaluation, out: Path, command: str, resamples: int) -> list[Path]:
    """README.md, results.json and the figure.

    Raises `InputError` where the folder has a page that this did not write.
    """
    claim(out, KIND, RESULTS)
    record = {
        "kind": KIND,
        "command": command,
        "resamples": resamples,
        "published": [one._asdict() for one in (*published.IN_DISTRIBUTION, *published.LABELLING)],
        **to_json(found),
    }
    write_atomically(out / RESULTS, json.dumps(rounded(record), indent=1) + "\n")
    entries = [
        Entry(line.name, "control" if line.control else "detector", line.tasks["annotated"])
        for line in found.lines
    ]
    drawn = draw_forest(entries, ("auroc", "f1"), title="Sentences that annotators marked")
    files = save(drawn, out / "sentences")
    page = (
        _environment()
        .get_template("page.md.j2")
        .render(
            found=found,
            command=command,
            resamples=resamples,
            published=published,
            measure=measure,
            shares=tasks.SHARES,
            grids=sentences,
            training=RAGULATOR,
            others=TRAINING,
            unseen=UNSEEN,
        )
    )
    write_atomically(out / PAGE, page)
    return [out / PAGE, out / RESULTS, *files]


@cache
def _environment() -> Environment:
    environment = markdown_templates(TEMPLATES)
    environment.filters |= {
        "interval": with_interval,
        "number": number,
        "percent": percent,
        "percent_interval": percent_interval,
    }
    return environment
