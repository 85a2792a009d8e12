"""A kind of detector that the package does not have: what there is to write for one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from lrp4rag.classifiers import Model
from lrp4rag.classifiers.card import ModelInput
from lrp4rag.classifiers.folder import write_detector
from lrp4rag.classifiers.verdict import Assessment
from lrp4rag.features.record import Record
from lrp4rag.judge import analyse
from lrp4rag.reader import Reader
from lrp4rag.report.cards import model_card, render_card
from lrp4rag.util.errors import InputError
from tests.classifiers.samples import card_of
from tests.tiny import bridge_example


class NovelWordsInput(ModelInput):
    kind: Literal["novel words"] = "novel words"
    shortest: int

    def words(self) -> str:
        return f"the share of words of at least {self.shortest} letters that no passage has"


@dataclass(frozen=True, eq=False)
class NovelWords(Model):
    weight: float

    def score(self, record: Record) -> Assessment:
        known, used = (self._words(text) for text in (record.encoded.text, record.encoded.response))
        return Assessment(self.weight * len(used - known) / max(len(used), 1))

    def _words(self, text: str) -> set[str]:
        return {word for word in re.findall(r"\w+", text.lower()) if len(word) >= self.card.input.shortest}

    def arrays(self):
        return {"weight": np.array(self.weight)}

    @classmethod
    def of(cls, card, arrays):
        return cls(card, float(arrays["weight"]))


@pytest.fixture
def detector(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setitem(Model.kinds, "novel words", NovelWords)
    identity = tiny_reader.identity.as_dict()
    card = card_of(identity, NovelWordsInput(shortest=4), classifier="novel words")
    return NovelWords(card, 1.0)


def test_it_judges_and_is_loaded_as_any_other(detector: Model, tiny_reader: Reader, tmp_path: Path) -> None:
    loaded = Model.load(detector.save(tmp_path / "d"))
    assert (loaded.weight, loaded.card.input) == (detector.weight, detector.card.input)
    for response, hallucinated in (
        ("Nobody knows that whatsoever.", True),
        (bridge_example(1).passages[0], False),
    ):
        verdict = analyse(bridge_example(1, response=response), tiny_reader, loaded)
        assert verdict.hallucinated is hallucinated
        assert len(verdict.sentences) >= 1
    with pytest.raises(InputError, match="not a novel word detector"):
        Model.load(write_detector(tmp_path / "other", detector.card, {}))  # without its array


def test_its_card_is_printed(detector: Model) -> None:
    page = model_card(detector.card, "novel")
    assert "# Model card: novel" in page
    assert detector.card.input.words().startswith("the share of words")
    render_card(detector.card)
