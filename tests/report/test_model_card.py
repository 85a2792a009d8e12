"""The model card: every section, tables that are tables, and the page of the bundled detector."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrp4rag.classifiers import Features
from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.folder import load_card
from lrp4rag.features.table import TokenTable
from lrp4rag.report.model_card import model_card
from lrp4rag.training import token_folds
from lrp4rag.training.corpus import Corpus
from lrp4rag.training.extract import Extraction
from lrp4rag.training.train import TokenRecipe, train
from lrp4rag.training.vector_detector import fit_vector_detector
from tests.classifiers.samples import labelled_rows
from tests.training.test_localisation import stored

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Card:
    rows = stored(tmp_path_factory.mktemp("store"))
    blocks = {"signals": TokenTable(("passages", "question"), (), (1,))}
    recipe = TokenRecipe(blocks)
    extraction = Extraction(rows.store, 0, len(rows), {})
    corpus = Corpus.of(rows.examples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_folds, "FOLDS", 2)  # each fits a network
        return train(corpus, extraction, reads=recipe, resamples=20, command="lrp4rag train x").card


def sections(page: str) -> list[str]:
    return [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]


def test_it_has_every_section_and_its_figures(card: Card) -> None:
    page = model_card(card, "mine")
    assert page.startswith("# Model card: mine\n")
    assert sections(page) == [
        "What it is",
        "Intended use",
        "What it is worth",
        "Operating points",
        "When it gives no verdict",
        "Known failures",
        "What was chosen, and on which data",
    ]
    assert f"| **this detector** | {card.evidence.generators['g1'].metrics['auroc'].value:.3f} [" in page
    assert f"| balanced | {card.threshold:.2f} |" in page
    assert "*length only*" in page
    assert "All generators together" in page
    assert "| 10 % | told | " in page
    assert "| 50 % | not told | " in page
    assert "False alarms by length" in page
    assert "`lrp4rag train x`" in page


def test_its_tables_are_tables(card: Card) -> None:
    for block in model_card(card, "mine").split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1, block
        assert not lines or set(lines[1]) <= set("|-"), block


def test_a_vector_detector_has_a_shorter_one() -> None:
    rows, labels, _ = labelled_rows()
    card = fit_vector_detector(rows, labels, features=Features(length=10)).card
    assert sections(model_card(card, "svm")) == ["What it is", "Intended use", "Known failures"]


def test_the_page_of_the_bundled_detector_is_its_own() -> None:
    page = (DOCS / "model-card.md").read_text(encoding="utf-8")
    assert page == model_card(load_card("default"), "default")
