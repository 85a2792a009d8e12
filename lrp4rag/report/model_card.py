"""A detector's card as a page: what it is for, what it is worth, and where it fails."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.operating import precision_at
from lrp4rag.classifiers.prevalence import PREVALENCES
from lrp4rag.report.numbers import difference, with_interval
from lrp4rag.report.templates import markdown_templates
from lrp4rag.report.words import reader_words

RESPONSES = ("auroc", "accuracy", "precision", "recall", "f1", "ece")


def model_card(card: Card, name: str) -> str:
    """Markdown. `name` is what the detector is called."""
    generators = {} if card.evidence is None else dict(card.evidence.generators)
    page: str = _template().render(
        card=card,
        name=name,
        reader=reader_words({**card.reader, "name": Path(str(card.reader.get("name", ""))).name}),
        generators=generators,
        responses=RESPONSES,
        left_out=card.evidence is not None and any(one.left_out for one in card.evidence.pairs),
        precision_at=precision_at,
        prevalences=PREVALENCES,
        point=next(
            (name for name, one in card.operating_points.items() if one.threshold == card.threshold),
            "balanced",
        ),
    )
    return page


@cache
def _template() -> Any:
    environment = markdown_templates(Path(__file__).parent)
    environment.filters |= {"interval": with_interval, "difference": difference}
    return environment.get_template("model_card.md.j2")
