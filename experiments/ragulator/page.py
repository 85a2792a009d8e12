"""The page of RAGulator's evaluation: Markdown, a figure, and everything as JSON."""

from __future__ import annotations

from pathlib import Path

from experiments.figures.results import Entry, draw_forest
from experiments.figures.style import save
from experiments.ragulator import measure, published, tasks
from experiments.ragulator.measure import Evaluation
from experiments.results_page import Results, write_record
from experiments.systems.entailment import RAGULATOR, TRAINING
from experiments.systems.ragulator import sentences
from experiments.systems.trained import UNSEEN

TEMPLATE = Path(__file__).parent / "templates" / "page.md.j2"
KIND = "lrp4rag experiments ragulator"


def write_page(found: Evaluation, out: Path, command: str, resamples: int) -> list[Path]:
    """README.md, results.json and the figure.

    Raises `InputError` where the folder has a page that this did not write.
    """
    write_record(
        out,
        KIND,
        found,
        command=command,
        resamples=resamples,
        published=[one._asdict() for one in (*published.IN_DISTRIBUTION, *published.LABELLING)],
    )
    return render(out)


def render(out: Path) -> list[Path]:
    """README.md and the figure of the results.json that is there, which stands last.

    Raises `InputError` where that is not what `python -m experiments ragulator` writes.
    """
    results = Results.of(out)
    found = results.found(Evaluation)
    entries = [
        Entry(line.name, "control" if line.control else "detector", line.tasks["annotated"])
        for line in found.lines
    ]
    drawn = draw_forest(entries, ("auroc", "f1"), title="Sentences that annotators marked")
    files = save(drawn, out / "sentences")
    page = results.write_page(
        TEMPLATE,
        found=found,
        resamples=results.get("resamples", int),
        published=published,
        measure=measure,
        shares=tasks.SHARES,
        grids=sentences,
        training=RAGULATOR,
        others=TRAINING,
        unseen=UNSEEN,
    )
    return [page, *files, results.path]
