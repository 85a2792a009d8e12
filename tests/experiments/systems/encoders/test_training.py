"""Fine-tuning on tiny models that learn in a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from lrp4rag.experiments.systems.encoders import training
from lrp4rag.experiments.systems.encoders.running import seeded
from lrp4rag.experiments.systems.encoders.training import IGNORED, Training, finetune, padded
from lrp4rag.experiments.systems.encoders.weights import load_encoder
from tests.experiments.systems.encoders.tiny import WORDS, save_tiny_encoder

QUICK = Training(epochs=8, rate=5e-3, batch=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_encoder(tmp_path_factory.mktemp("training") / "bert", initializer_range=0.1)


def fresh(folder: str, kind: Any = AutoModelForSequenceClassification) -> tuple[Any, Any]:
    with seeded(0):
        return load_encoder(folder, kind, num_labels=2)


def items_of(tokenizer: Any, count: int = 64) -> list[dict[str, Any]]:
    """Of random words; the label says whether a dragon is among them."""
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(WORDS, generator.integers(2, 8))) for _ in range(count)]
    return [dict(tokenizer(text)) | {"labels": int("dragon" in text.split())} for text in texts]


def right(model: Any, tokenizer: Any, items: list[dict[str, Any]]) -> float:
    batch = padded(items, tokenizer, "cpu")
    with torch.no_grad():
        return float((model(**batch).logits.argmax(-1) == batch["labels"]).float().mean())


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, second[name]) for name, value in first.items())


def test_a_simple_rule_is_learned_and_the_model_is_left_in_evaluation_mode(folder: str) -> None:
    model, tokenizer = fresh(folder)
    items = items_of(tokenizer)
    batch = padded(items, tokenizer, "cpu")
    before = model(**batch).loss.item()
    trained = finetune(model, tokenizer, items, QUICK, "test")
    assert trained is model
    assert not model.training
    with torch.no_grad():
        assert model(**batch).loss.item() < before / 4
    assert right(model, tokenizer, items) > 0.95
    assert right(model, tokenizer, items_of(tokenizer, 128)[64:]) > 0.9


def test_tokens_learn_their_labels(folder: str) -> None:
    model, tokenizer = fresh(folder, AutoModelForTokenClassification)
    dragon = tokenizer.convert_tokens_to_ids("dragon")
    items = [
        item | {"labels": [IGNORED, *(int(one == dragon) for one in item["input_ids"][1:-1]), IGNORED]}
        for item in items_of(tokenizer)
    ]
    finetune(model, tokenizer, items, QUICK, "test")
    batch = padded(items, tokenizer, "cpu")
    found, known = model(**batch).logits.argmax(-1), batch["labels"] != IGNORED
    assert (found == batch["labels"])[known].float().mean() > 0.98


def test_the_seed_decides_whatever_was_drawn_before(folder: str) -> None:
    short = replace(QUICK, epochs=1)
    found = []
    for seed, drawn in ((0, 0), (0, 5), (1, 0)):
        model, tokenizer = fresh(folder)
        assert model.config.hidden_dropout_prob > 0
        torch.rand(drawn)
        np.random.default_rng().random(drawn)
        found.append(
            weights(finetune(model, tokenizer, items_of(tokenizer, 16), replace(short, seed=seed), ""))
        )
    assert same(found[0], found[1])
    assert not same(found[0], found[2])


def test_the_global_generator_is_left_alone(folder: str) -> None:
    model, tokenizer = fresh(folder)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    finetune(model, tokenizer, items_of(tokenizer, 8), replace(QUICK, epochs=1), "")
    assert torch.equal(torch.rand(1), expected)


def test_frozen_parameters_stay(folder: str) -> None:
    model, tokenizer = fresh(folder)
    model.bert.requires_grad_(False)
    before = weights(model)
    finetune(model, tokenizer, items_of(tokenizer, 16), QUICK, "")
    after = weights(model)
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert changed == {"classifier.weight", "classifier.bias"}


def test_without_items_there_is_nothing_to_learn(folder: str) -> None:
    model, tokenizer = fresh(folder)
    with pytest.raises(ValueError, match="nothing to learn from"):
        finetune(model, tokenizer, [], QUICK, "")


@pytest.mark.parametrize(("items", "batch", "steps"), [(20, 8, 3), (16, 8, 2), (5, 8, 1), (70, 2, 35)])
def test_every_item_is_learned_from_once_an_epoch(
    folder: str, monkeypatch: pytest.MonkeyPatch, items: int, batch: int, steps: int
) -> None:
    monkeypatch.setattr(training, "BLOCK", 4)
    _, tokenizer = fresh(folder)
    made = items_of(tokenizer, items)
    rounds = list(training._rounds(made, Training(epochs=2, batch=batch), np.random.default_rng(0)))
    assert len(rounds) == 2 * steps
    for epoch in (rounds[:steps], rounds[steps:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(items))
        assert max(map(len, epoch)) <= batch
    if steps > 1:
        assert [one.tolist() for one in rounds[:steps]] != [one.tolist() for one in rounds[steps:]]


def test_items_of_like_lengths_share_a_batch(folder: str) -> None:
    _, tokenizer = fresh(folder)
    made = items_of(tokenizer, 64)
    rounds = training._rounds(made, Training(epochs=1, batch=8), np.random.default_rng(0))
    lengths = [[len(made[k]["input_ids"]) for k in one] for one in rounds]
    assert max(max(one) - min(one) for one in lengths) <= 2
    assert [max(one) for one in lengths] != sorted(max(one) for one in lengths)


def test_the_rate_rises_and_falls_in_lines(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    step = torch.optim.AdamW.step

    def spy(self: Any, *arguments: Any, **options: Any) -> Any:
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    model, tokenizer = fresh(folder)
    settings = Training(epochs=5, rate=1e-3, batch=8, warmup=0.2)
    finetune(model, tokenizer, items_of(tokenizer, 16), settings, "")
    # 10 steps, of which the first 2 rise from 0, and the last 8 fall towards 0.
    assert rates == pytest.approx([0, 0.5e-3, *(1e-3 * k / 8 for k in range(8, 0, -1))])


def test_a_batch_is_padded_and_labels_of_tokens_with_ignored(folder: str) -> None:
    _, tokenizer = fresh(folder)
    long, short = dict(tokenizer("the old bridge")), dict(tokenizer("it"))
    batch = padded([long | {"labels": [0, 1, 1, 0, 0]}, short | {"labels": [1, 0, 1]}], tokenizer, "cpu")
    assert batch["labels"].tolist() == [[0, 1, 1, 0, 0], [1, 0, 1, IGNORED, IGNORED]]
    assert batch["attention_mask"].tolist() == [[1] * 5, [1, 1, 1, 0, 0]]
    assert batch["input_ids"][1, 3:].tolist() == [tokenizer.pad_token_id] * 2
    assert padded([long | {"labels": 1}, short | {"labels": 0}], tokenizer, "cpu")["labels"].tolist() == [
        1,
        0,
    ]
    assert "labels" not in padded([long, short], tokenizer, "cpu")


def test_trained_weights_survive_being_saved(folder: str, tmp_path: Path) -> None:
    model, tokenizer = fresh(folder)
    items = items_of(tokenizer)
    finetune(model, tokenizer, items, QUICK, "")
    model.save_pretrained(tmp_path / "again")
    tokenizer.save_pretrained(tmp_path / "again")
    again, _ = load_encoder(str(tmp_path / "again"), AutoModelForSequenceClassification, whole=True)
    assert same(weights(model), weights(again))


def test_passes_of_few_tokens_have_the_gradient_of_their_batch(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Training(epochs=1, rate=0.1, batch=8)
    found, sizes = [], []

    def spy(items: list[Any], *arguments: Any) -> Any:
        made = padded(items, *arguments)
        sizes.append(tuple(made["input_ids"].shape))
        return made

    monkeypatch.setattr(training, "padded", spy)
    # AdamW makes steps of noise where a gradient is almost 0.
    monkeypatch.setattr(torch.optim, "AdamW", lambda own, lr, weight_decay: torch.optim.SGD(own, lr))
    for tokens in (None, 20):
        model, tokenizer = fresh(folder)
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        sizes.clear()
        found.append(
            weights(finetune(model, tokenizer, items_of(tokenizer, 24), settings, "", tokens=tokens))
        )
    assert max(rows * columns for rows, columns in sizes) <= 20
    assert sum(rows for rows, _ in sizes) == 24
    before = weights(fresh(folder)[0])
    assert not same(before, found[0])
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=0, atol=2e-5)
