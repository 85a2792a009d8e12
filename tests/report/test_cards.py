"""A detector's card: tables that are whole at any width, and a page with every section."""

from __future__ import annotations

import re

import pytest

from lrp4rag.classifiers import Features
from lrp4rag.classifiers.card import Interval
from lrp4rag.classifiers.folder import BUNDLED, load_card
from lrp4rag.report.cards import COLUMNS, metrics_table, model_card, render_card
from lrp4rag.training.vector_detector import fit_vector_detector
from tests.classifiers.samples import labelled_rows
from tests.experiments.hostile.written import renamed
from tests.hostile.pages import harmless, known, safe_links, structure
from tests.hostile.strings import IN_PAGES
from tests.report.samples import printed_at

WIDTHS = [40, 80, 200]
CARD = load_card(BUNDLED)
PAGE = model_card(CARD, "mine")


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_metrics_are_whole_at_any_width(width: int, terminal: bool) -> None:
    """Also where each interval is as wide as can be."""
    metrics = {name: Interval(value=0.101 + k / 1000, low=1.0, high=1.0) for k, name in enumerate(COLUMNS)}
    text = printed_at(metrics_table("Responses", {"flag everything": metrics}), width, terminal=terminal)
    assert "…" not in text
    for k, heading in enumerate(COLUMNS.values()):
        assert re.search(rf"(?<!\S){re.escape(heading)}(?!\S)", text), heading
        assert re.search(rf"(?<!\S){0.101 + k / 1000:.3f}(?!\S)", text), heading
    assert text.count("1.00-1.00") == len(COLUMNS)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_card_is_whole_at_any_width(width: int) -> None:
    def words(text: str) -> list[str]:
        return sorted(set(text.split()))

    card = render_card(CARD)
    assert words(printed_at(card, width)) == words(printed_at(card, 1000))


def sections(page: str) -> list[str]:
    return [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]


def test_the_page_has_every_section_and_its_figures() -> None:
    assert PAGE.startswith("# Model card: mine\n")
    assert {"What it is", "Intended use", "What it is worth", "Operating points", "Known failures"} <= {
        *sections(PAGE)
    }
    (name, evidence), *_ = CARD.evidence.generators.items()
    assert f"| **this detector** | {evidence.metrics['auroc'].value:.3f} [" in PAGE
    assert name in PAGE
    assert "*length only*" in PAGE
    assert f"`{CARD.training.command}`" in PAGE


def test_tables_of_the_page_are_tables() -> None:
    for block in PAGE.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1, block
        assert not lines or set(lines[1]) <= set("|-"), block


def test_a_vector_detector_has_a_shorter_page() -> None:
    rows, labels, _ = labelled_rows()
    card = fit_vector_detector(rows, labels, features=Features(length=10)).card
    assert sections(model_card(card, "svm")) == ["What it is", "Intended use", "Known failures"]


@pytest.mark.parametrize("value", IN_PAGES)
def test_the_card_of_a_detector(value: str) -> None:
    card = load_card("default")
    assert card.training is not None
    assert card.evidence is not None

    def page(called: str) -> str:
        names = dict.fromkeys(["llama-2-7b-chat"], called)
        changed = card.model_copy(
            update={
                "composite": called,
                "reader": {**card.reader, "name": called, "digest": called},
                "training": card.training.model_copy(
                    update={"command": called, "generators": renamed(card.training.generators, names)}
                ),
                "versions": {called: called},
                "evidence": card.evidence.model_copy(
                    update={"generators": renamed(dict(card.evidence.generators), names)}
                ),
                "selections": [one.model_copy(update={"chosen": called}) for one in card.selections],
            }
        )
        return model_card(changed, called)

    made = page(value)
    assert structure(made) == known("card", page, harmless(value))
    assert safe_links(made)
