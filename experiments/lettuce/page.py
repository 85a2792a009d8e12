"""The page of LettuceDetect's epochs: Markdown, a figure, and everything as JSON."""

from __future__ import annotations

from pathlib import Path

from experiments.figures.epochs import draw_epochs
from experiments.figures.style import save
from experiments.lettuce.measure import Lettuce
from experiments.results_page import Results, write_record
from experiments.systems.lettuce import MARKED_FROM
from lrp4rag.classifiers.card import package_versions
from lrp4rag.training.folds import ONCE

TEMPLATE = Path(__file__).parent / "templates" / "page.md.j2"
KIND = "lrp4rag experiments lettuce"


def write_page(found: Lettuce, out: Path, command: str, resamples: int) -> list[Path]:
    """README.md, the figure and results.json.

    Raises `InputError` where the folder has a page that this did not write.
    """
    versions = package_versions()
    write_record(
        out, KIND, found, command=command, protocol=ONCE.words, resamples=resamples, versions=versions
    )
    return render(out)


def render(out: Path) -> list[Path]:
    """README.md and the figure of the results.json that is there, which stands last.

    Raises `InputError` where that is not what `python -m experiments lettuce` writes.
    """
    results = Results.of(out)
    found = results.found(Lettuce)
    lines = {
        f"from {MARKED_FROM}": [one.from_half.spans["f1"] for one in found.epochs],
        "from a threshold chosen aside": [one.from_threshold.spans["f1"] for one in found.epochs],
    }
    beside = f"comparison's, {found.former_epochs} epochs, from {MARKED_FROM}"
    drawn = draw_epochs([one.number for one in found.epochs], lines, beside, found.former.spans["f1"])
    files = save(drawn, out / "epochs")
    page = results.write_page(
        TEMPLATE,
        found=found,
        resamples=results.get("resamples", int),
        protocol=results.get("protocol", str),
        half=MARKED_FROM,
    )
    return [page, *files, results.path]
