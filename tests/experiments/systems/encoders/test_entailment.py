"""Support of a hypothesis by a premise."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.encoders import running
from lrp4rag.experiments.systems.encoders.entailment import CrossEncoder, support_label
from lrp4rag.experiments.systems.encoders.running import batches
from tests.experiments.systems.encoders.tiny import (
    WORDS,
    save_tiny_classifier,
    save_tiny_encoder,
    save_tiny_marker,
)

PAIRS = [
    ("the old stone bridge is red", "it is red"),
    ("the river", "it was"),
    ("a dragon burned the red bridge and it was old", "the bridge is old and blue"),
    ("it", "a"),
    ("the bridge", "a dragon burned the old stone bridge"),
]


def labels(*names: str) -> Any:
    return SimpleNamespace(id2label=dict(enumerate(names)))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("contradiction", "neutral", "entailment"), 2),
        (("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), 0),
        (("entailment", "not_entailment"), 0),
        (("not supported", "supported"), 1),
        (("inconsistent", "consistent"), 1),
        (("LABEL_0", "LABEL_1"), 1),
        (("LABEL_0",), None),
        (("score",), None),
    ],
)
def test_which_label_means_support(names: tuple[str, ...], expected: int | None) -> None:
    assert support_label(labels(*names), "m") == expected


@pytest.mark.parametrize(
    "names", [("negative", "positive"), ("LABEL_0", "LABEL_1", "LABEL_2"), ("LABEL_1", "LABEL_0")]
)
def test_labels_that_do_not_say_it_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=f"no label of 'm' means support: {', '.join(names).lower()}"):
        support_label(labels(*names), "m")


def biased(folder: Path, *names: str, bias: list[float]) -> CrossEncoder:
    """A classifier whose logits are its bias, whatever it reads."""
    model = CrossEncoder.load(save_tiny_classifier(folder, *names))
    with torch.no_grad():
        model.model.classifier.weight.zero_()
        model.model.classifier.bias.copy_(torch.tensor(bias))
    return model


def test_probabilities_are_those_of_the_label_of_support(tmp_path: Path) -> None:
    three = biased(tmp_path / "3", "contradiction", "neutral", "entailment", bias=[0.0, 2.0, 1.0])
    assert three.support == 2
    assert three(PAIRS) == pytest.approx([np.e / (1 + np.e + np.e**2)] * 5)
    unnamed = biased(tmp_path / "2", bias=[np.log(3), 0.0])
    assert unnamed(PAIRS[:1]) == pytest.approx([1 / 4])
    one = biased(tmp_path / "1", "score", bias=[np.log(3)])
    assert one.support is None
    assert one(PAIRS[:2]) == pytest.approx([3 / 4] * 2)
    found = one([])
    assert found.shape == (0,)
    assert found.dtype == np.float64


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoder:
    """Random, with a head that tells pairs apart: logits lie around 0."""
    folder = tmp_path_factory.mktemp("entailment") / "bert"
    made = CrossEncoder.load(save_tiny_classifier(folder, "not supported", "supported"))
    with torch.no_grad():
        made.model.classifier.weight *= 20
        encoded = made.tokenizer(*PAIRS[0], return_tensors="pt")
        made.model.classifier.bias -= made.model(**encoded).logits[0]
    return made


def test_pairs_keep_their_order_though_they_are_read_by_length(
    tiny: CrossEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = np.concatenate([tiny([pair]) for pair in PAIRS])
    assert len(set(alone.round(3))) == len(PAIRS)
    for tokens in (4096, 40, 1):
        monkeypatch.setattr(running, "batches", partial(batches, tokens=tokens))
        assert tiny(PAIRS) == pytest.approx(alone, abs=1e-5)


def test_premise_and_hypothesis_are_not_the_same(tiny: CrossEncoder) -> None:
    with torch.no_grad():
        logits = tiny.model(**tiny.tokenizer("the old bridge", "it was red", return_tensors="pt")).logits[0]
    found, turned = tiny([("the old bridge", "it was red"), ("it was red", "the old bridge")])
    assert found == pytest.approx(float(torch.softmax(logits, -1)[1]), abs=1e-5)
    assert abs(found - turned) > 0.001


def test_what_exceeds_the_longest_is_cut_off_the_longer_text(tiny: CrossEncoder) -> None:
    assert tiny.longest == 512
    words = " ".join(np.random.default_rng(0).choice(WORDS, 600))
    kept = " ".join(words.split()[:505])  # 512 less three special tokens and four of the hypothesis
    found = tiny([(words, "it was the dragon"), (kept, "it was the dragon"), (words, words)])
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert 0 < found[2] < 1


def test_a_folder_is_named_by_its_last_part_and_its_weights(tmp_path: Path) -> None:
    """What is kept under a model's name must not be taken for that of other weights in its place."""
    first = CrossEncoder.load(save_tiny_classifier(tmp_path / "bert"))
    again = CrossEncoder.load(str(tmp_path / "bert"))
    other = CrossEncoder.load(save_tiny_classifier(tmp_path / "bert", seed=1))
    assert first.name == again.name
    assert first.name.startswith("bert (")
    assert other.name != first.name
    assert str(tmp_path) not in first.name


def test_models_that_were_not_trained_for_it_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not trained for this"):
        CrossEncoder.load(save_tiny_encoder(tmp_path / "bare"))
    with pytest.raises(InputError, match="not trained for this"):
        CrossEncoder.load(save_tiny_marker(tmp_path / "marker"))
    with pytest.raises(InputError, match="means support: negative, positive"):
        CrossEncoder.load(save_tiny_classifier(tmp_path / "moods", "negative", "positive"))


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    folder = Path(save_tiny_classifier(tmp_path / "bert"))
    torch.save(CrossEncoder.load(str(folder)).model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="safetensors"):
        CrossEncoder.load(str(folder))
