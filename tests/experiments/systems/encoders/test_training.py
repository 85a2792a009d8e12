"""What running and training encoders shares, on tiny models; and token classifiers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from experiments.systems.encoders import running, training
from experiments.systems.encoders.running import (
    autocast,
    batches,
    chunk_spans,
    chunks_of,
    encoded_pair,
    seeded,
    tokens_read,
)
from experiments.systems.encoders.token_classifier import (
    TokenClassifier,
    Window,
    encoded_window,
    labelled_window,
)
from experiments.systems.encoders.training import IGNORED, Training, finetune
from experiments.systems.encoders.weights import load_encoder
from lrp4rag.reader import reader
from tests.experiments.systems.encoders.tiny import (
    WORDS,
    Marker,
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
    assert tokens_read(config, tiny_wordpiece(own), most) == expected


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


def test_the_seed_decides_whatever_was_drawn_before_and_draws_nothing_from_the_global_one(fresh):
    found = []
    for seed, drawn in ((0, 0), (0, 5), (1, 0)):
        model = fresh()
        assert model.config.hidden_dropout_prob > 0
        torch.manual_seed(drawn)
        finetune(model, TOKENIZER, items_of(16), Training(epochs=1, rate=5e-3, batch=8, seed=seed), "")
        after = torch.rand(1)
        torch.manual_seed(drawn)
        assert torch.equal(after, torch.rand(1))
        found.append(weights(model))
    assert same(found[0], found[1])
    assert not same(found[0], found[2])


def test_the_same_model_is_trained_and_frozen_parameters_stay(fresh):
    model = fresh()
    model.bert.requires_grad_(False)
    before = weights(model)
    assert finetune(model, TOKENIZER, items_of(16), Training(), "") is model
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
    finetune(looked, TOKENIZER, items, training, "", after_epoch=look)
    finetune(plain, TOKENIZER, items, training, "")
    assert [number for number, _ in seen] == [1, 2, 3]
    assert same(weights(looked), weights(plain))
    assert same(weights(looked), seen[2][1])
    assert not same(seen[0][1], seen[1][1])


def test_without_items_there_is_nothing_to_learn(fresh):
    with pytest.raises(ValueError, match="nothing to learn from"):
        finetune(fresh(), TOKENIZER, [], Training(), "")


@pytest.mark.parametrize(("items", "batch", "steps"), [(20, 8, 3), (16, 8, 2), (5, 8, 1), (70, 2, 35)])
def test_every_item_is_learned_from_once_an_epoch_in_batches_of_like_lengths(
    monkeypatch, items, batch, steps
):
    monkeypatch.setattr(training, "BLOCK", 4)
    made = items_of(items)
    rounds = list(training._rounds(made, Training(epochs=2, batch=batch), np.random.default_rng(0)))
    assert len(rounds) == 2 * steps
    for epoch in (rounds[:steps], rounds[steps:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(items))
        assert max(map(len, epoch)) <= batch
    if steps > 1:
        assert [one.tolist() for one in rounds[:steps]] != [one.tolist() for one in rounds[steps:]]
    lengths = [[len(made[k]["input_ids"]) for k in one] for one in rounds]
    if batch == 2:
        assert np.mean([max(one) - min(one) for one in lengths]) < 1
        assert [max(one) for one in lengths] != sorted(max(one) for one in lengths)


def test_the_rate_rises_and_falls_in_lines(fresh, monkeypatch):
    rates, step = [], torch.optim.AdamW.step

    def spy(self, *arguments, **options):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    finetune(fresh(), TOKENIZER, items_of(16), Training(epochs=5, rate=1e-3, batch=8, warmup=0.2), "")
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
        after = weights(finetune(model, TOKENIZER, items_of(8), settings, ""))
        moved.append({name: after[name] - before[name] for name in after})
    same_rate, apart = moved
    for name, step in apart.items():
        factor = 10 if name.startswith("classifier.") else 1
        torch.testing.assert_close(step, factor * same_rate[name], rtol=1e-3, atol=1e-6)
    assert apart["classifier.weight"].abs().max() > 0


def test_passes_of_few_tokens_have_the_gradient_of_their_batch(fresh, monkeypatch):
    # AdamW makes steps of noise where a gradient is almost 0.
    monkeypatch.setattr(torch.optim, "AdamW", lambda own, lr, weight_decay: torch.optim.SGD(own, lr))
    settings, found = Training(epochs=1, rate=0.1, batch=8), []
    for tokens in (None, 20):
        model, sizes = fresh(), []
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        spy = lambda _, __, named, sizes=sizes: sizes.append(tuple(named["input_ids"].shape))  # noqa: E731
        model.register_forward_pre_hook(spy, with_kwargs=True)
        found.append(weights(finetune(model, TOKENIZER, items_of(24), settings, "", tokens=tokens)))
        assert sum(rows for rows, _ in sizes) == 24
    assert max(rows * columns for rows, columns in sizes) <= 20
    assert not same(weights(fresh()), found[0])
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=0, atol=2e-5)


def test_tokens_that_share_a_character_with_a_span_are_labelled():
    # Characters 4 to 8 are of "was" and "red"; 14 to 16 of "dragon"; the blank at 2 of none.
    window = Window("the old bridge", RESPONSE, 0)
    item = labelled_window(window, [(5, 8), (14, 16), (2, 3)], TOKENIZER, 64)
    text = "[CLS] the old bridge [SEP] it was red . a dragon burned it . [SEP]"
    assert TOKENIZER.convert_ids_to_tokens(item["input_ids"]) == text.split(" ")
    assert item["labels"] == [*[IGNORED] * 5, 0, 1, 1, 0, 0, 1, 0, 0, 0, IGNORED]
    assert labelled_window(window, [], TOKENIZER, 64)["labels"][5:-1] == [0] * 9
    # Where the piece starts later, spans are shifted.
    window = replace(window, piece=RESPONSE[12:], start=12)
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
        monkeypatch.setattr(running, "batches", partial(batches, tokens=tokens))
        first, second, third = model(WINDOWS)
        assert first.scores == pytest.approx([0.1, 0.9, 0.1, 0.1, 0.1])
        assert first.spans.tolist() == [[12, 13], [14, 20], [21, 27], [28, 30], [30, 31]]
        assert second.scores == pytest.approx([0.1, 0.1, 0.6, 0.1])
        assert third.scores == pytest.approx([0.1, 0.6, 0.9, 0.1, 0.1, 0.1])
        assert third.spans[2].tolist() == [48, 54]
    assert model([]) == []


def test_a_loaded_model_gives_the_second_labels_probability(tmp_path):
    model = TokenClassifier.load(save_tiny_marker(tmp_path / "marker"))
    assert model.name.startswith("marker (")
    assert model.longest == 512
    found = model(WINDOWS)
    for window, scores in zip(WINDOWS, found, strict=True):
        logits = model.model(**TOKENIZER(window.context, window.piece, return_tensors="pt")).logits[0]
        expected = torch.softmax(logits, -1)[-1 - len(scores.spans) : -1, 1]
        assert scores.scores == pytest.approx(expected.detach().numpy(), abs=1e-5)
    assert len({float(one) for scores in found for one in scores.scores.round(4)}) > 9
