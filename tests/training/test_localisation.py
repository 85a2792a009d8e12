"""Localisation on stores whose hallucinated tokens have little relevance to the passages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.features.parts import READING
from lrp4rag.features.plain import PlainTable
from lrp4rag.training.folds import HONEST
from lrp4rag.training.localisation import CLASSIFIER, RELEVANCE, Localisation, lines_record, localisation
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store
from lrp4rag.training.token_folds import cross_validate_tokens
from lrp4rag.training.tokens import tokens_of
from lrp4rag.util.errors import InputError
from tests.classifiers.samples import relevance_of
from tests.features.records import random_record, without_tokens
from tests.training.labelled import examples
from tests.training.stored import CONFIGURATION, stored

ONE = replace(HONEST, repeats=1, folds=2)
FEW = {"plain": PlainTable(("likelihoods",), ())}


def localised(rows: Rows, blocks: dict[str, PlainTable] = FEW) -> Localisation:
    """Of a classifier of tokens that was cross-validated on the rows."""
    tokens = tokens_of(rows, blocks)
    predicted = {CLASSIFIER: cross_validate_tokens(tokens, ONE)}
    return localisation(rows, tokens, predicted, ONE, resamples=20)


@pytest.mark.usefixtures("few_networks")
def test_hallucinated_words_are_found_and_controls_stand_beside(tmp_path: Path) -> None:
    found = localised(stored(tmp_path, 40))
    assert list(found.lines) == ["g1", "g2", "all"]
    for lines in found.lines.values():
        assert list(lines) == [CLASSIFIER, RELEVANCE, "position", "novel words", "flag everything"]
        best, everything = lines[CLASSIFIER], lines["flag everything"]
        assert best.tokens["auroc"].value > 0.9
        assert best.spans["f1"].value > 0.5 > everything.spans["f1"].value
        assert everything.spans["recall"].value == everything.sentences["recall"].value == 1
        assert everything.tokens["auroc"].value == 0.5
    assert list(found.responses["g1"]) == [CLASSIFIER, "length only", "novel words", "flag everything"]
    assert found.responses["g1"][CLASSIFIER]["auroc"].value > 0.9
    assert found.responses["g1"]["flag everything"]["auroc"].value == 0.5
    assert found.rows == {"g1": 40, "g2": 40, "all": 80}
    assert len(found.chosen) == 2
    made = json.loads(json.dumps(lines_record(found)))
    assert made["g1"]["lines"]["position"]["spans"]["f1"][0] == pytest.approx(
        found.lines["g1"]["position"].spans["f1"].value
    )


@pytest.mark.usefixtures("few_networks")
def test_noise_in_long_responses_looks_like_a_verdict_and_length_stands_beside_it(tmp_path: Path) -> None:
    """Why whole responses need the control: the highest of more tokens are higher."""
    store = Store.open(tmp_path, CONFIGURATION)
    draw = np.random.default_rng(0)
    rows = [
        replace(row, response=" ".join(f"w{k}" for k in range(30 if row.labels else 10)))
        for row in examples(60)
    ]
    store.add_examples(rows)
    for k, row in enumerate(rows):
        words = len(row.response.split(" "))
        store.write(row, relevance_of(draw.normal(size=words), text=row.response))
        store.write_record(row, random_record(words, k, row.response))
    found = localised(Rows.open(tmp_path))
    responses = next(iter(found.responses.values()))
    assert responses[CLASSIFIER]["auroc"].value > 0.8
    assert responses["length only"]["auroc"].value > 0.9


def test_rows_that_cannot_be_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = stored(tmp_path, 12)
    few = tokens_of(rows, FEW)
    few = replace(few, flags=few.flags & (few.owner < 6))
    with pytest.raises(InputError, match="10 sources with annotated tokens are needed, and there are 3"):
        cross_validate_tokens(few, ONE)
    rows.store.path(rows.examples[5], READING).unlink()
    with pytest.raises(InputError, match="no reading of example"):
        tokens_of(Rows.open(tmp_path), FEW)
    empty = without_tokens(random_record(3))
    monkeypatch.setattr(Rows, "readings", lambda self: iter([empty] * len(self)))
    with pytest.raises(InputError, match="without tokens"):
        tokens_of(rows, FEW)
