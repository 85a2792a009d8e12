"""Which tokens of a response are made up: labels to learn from, and what is read of windows."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.encoders import token_classifier
from lrp4rag.experiments.systems.encoders.running import batches
from lrp4rag.experiments.systems.encoders.token_classifier import (
    TokenClassifier,
    Window,
    encoded_window,
    labelled_window,
)
from lrp4rag.experiments.systems.encoders.training import IGNORED
from tests.experiments.systems.encoders.tiny import (
    Marker,
    save_tiny_encoder,
    save_tiny_marker,
    tiny_wordpiece,
)

TOKENIZER = tiny_wordpiece()
RESPONSE = "It was red. A dragon burned it."
#           0123456789012345678901234567890


def test_tokens_that_share_a_character_with_a_span_are_labelled() -> None:
    # Characters 4 to 8 are of "was" and "red"; 14 to 16 of "dragon"; the blank at 2 of none.
    window = Window("the old bridge", RESPONSE, 0)
    item = labelled_window(window, [(5, 8), (14, 16), (2, 3)], TOKENIZER, 64)
    tokens = TOKENIZER.convert_ids_to_tokens(item["input_ids"])
    assert tokens == [
        *("[CLS]", "the", "old", "bridge", "[SEP]"),
        *("it", "was", "red", ".", "a", "dragon", "burned", "it", ".", "[SEP]"),
    ]
    assert item["labels"] == [*[IGNORED] * 5, 0, 1, 1, 0, 0, 1, 0, 0, 0, IGNORED]
    assert labelled_window(window, [], TOKENIZER, 64)["labels"][5:-1] == [0] * 9


def test_a_span_that_ends_before_a_token_does_not_label_it() -> None:
    window = Window("the", "it was red", 0)
    assert labelled_window(window, [(0, 3)], TOKENIZER, 64)["labels"][3:-1] == [1, 0, 0]
    assert labelled_window(window, [(0, 4)], TOKENIZER, 64)["labels"][3:-1] == [1, 1, 0]
    # Every piece of a word has characters of its own: b, ##o, ##x.
    window = Window("the", "a box", 0)
    assert labelled_window(window, [(3, 4)], TOKENIZER, 64)["labels"][3:-1] == [0, 0, 1, 0]


def test_spans_are_shifted_by_where_the_piece_starts() -> None:
    window = Window("the old bridge", RESPONSE[12:], 12)
    _, spans, places = encoded_window(window, TOKENIZER, 64)
    assert [RESPONSE[start:end] for start, end in spans] == ["A", "dragon", "burned", "it", "."]
    assert places.tolist() == [5, 6, 7, 8, 9]
    labels = labelled_window(window, [(5, 8), (14, 16)], TOKENIZER, 64)["labels"]
    assert labels[5:-1] == [0, 1, 0, 0, 0]


def test_context_is_cut_off_and_the_piece_is_not() -> None:
    window = Window("the old bridge is red", RESPONSE, 0)
    item, spans, places = encoded_window(window, TOKENIZER, 14)
    assert TOKENIZER.convert_ids_to_tokens(item["input_ids"])[:4] == ["[CLS]", "the", "old", "[SEP]"]
    assert (len(item["input_ids"]), len(spans), places[0]) == (14, 9, 4)


def test_of_a_piece_that_exceeds_the_window_as_much_as_fits_is_read() -> None:
    item, spans, places = encoded_window(Window("the old bridge", "it was red " * 10, 5), TOKENIZER, 12)
    assert len(item["input_ids"]) == 12
    assert 0 < len(spans) == len(places) < 10
    assert spans[:2].tolist() == [[5, 7], [8, 11]]


def test_a_text_without_tokens_has_no_spans() -> None:
    item, spans, places = encoded_window(Window("the", "\u200b", 0), TOKENIZER, 64)
    assert (spans.shape, places.shape) == ((0, 2), (0,))
    assert len(item["input_ids"]) == 4


WINDOWS = [
    Window("the old bridge is red and it was old", "A dragon burned it.", 12),
    Window("it", "It was red.", 0),
    Window("the river", "The red dragon is blue.", 40),
]


def test_probabilities_are_those_of_the_pieces_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    marker = Marker({"dragon": 0.9, "red": 0.6})
    for tokens in (4096, 1):
        monkeypatch.setattr(token_classifier, "batches", partial(batches, tokens=tokens))
        first, second, third = TokenClassifier("m", marker, TOKENIZER)(WINDOWS)
        assert first.probabilities == pytest.approx([0.1, 0.9, 0.1, 0.1, 0.1])
        assert first.spans.tolist() == [[12, 13], [14, 20], [21, 27], [28, 30], [30, 31]]
        assert second.probabilities == pytest.approx([0.1, 0.1, 0.6, 0.1])
        assert third.probabilities == pytest.approx([0.1, 0.6, 0.9, 0.1, 0.1, 0.1])
        assert third.spans[2].tolist() == [48, 54]
    assert TokenClassifier("m", marker, TOKENIZER)([]) == []


def test_a_loaded_model_gives_the_second_labels_probability(tmp_path: Path) -> None:
    folder = save_tiny_marker(tmp_path / "marker")
    model = TokenClassifier.load(folder)
    assert model.name.startswith("marker (")
    assert model.longest == 512
    found = model(WINDOWS)
    for window, scores in zip(WINDOWS, found, strict=True):
        encoded = TOKENIZER(window.context, window.piece, return_tensors="pt")
        logits = model.model(**encoded).logits[0]
        expected = torch.softmax(logits, -1)[-1 - len(scores.spans) : -1, 1]
        assert scores.probabilities == pytest.approx(expected.detach().numpy(), abs=1e-5)
    assert (
        len({round(float(one), 4) for one in np.concatenate([scores.probabilities for scores in found])}) > 9
    )


def test_models_without_two_trained_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 3 labels of tokens, not 2"):
        TokenClassifier.load(save_tiny_marker(tmp_path / "three", labels=3))
    with pytest.raises(InputError, match="not trained for this"):
        TokenClassifier.load(save_tiny_encoder(tmp_path / "bare"))
