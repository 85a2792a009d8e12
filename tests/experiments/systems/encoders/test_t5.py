"""Published models on T5, as tiny random ones: the prompt, and where the answer is read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import T5Config, T5ForConditionalGeneration, T5ForTokenClassification

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.encoders import entailment, t5
from lrp4rag.experiments.systems.encoders.entailment import load_entailment
from tests.experiments.systems.encoders.tiny import tiny_wordpiece

PAIRS = [("the old stone bridge is red", "it is red"), ("the river", "a dragon burned the bridge")]
ANSWERS = (3, 9)


def config(**changes) -> T5Config:
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


@pytest.fixture
def hhem(tmp_path: Path) -> tuple[Path, T5ForTokenClassification]:
    """As published: weights under a prefix, and a configuration that asks for code."""
    folder = tmp_path / "hhem"
    folder.mkdir()
    model = T5ForTokenClassification(config(num_labels=2)).eval()
    state = {f"t5.{name}": value.clone() for name, value in model.state_dict().items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    asks = {"AutoConfig": "code.Config", "AutoModelForSequenceClassification": "code.Model"}
    (folder / "config.json").write_text(json.dumps({"model_type": "HHEMv2", "auto_map": asks}))
    (folder / "code.py").write_text("raise SystemExit('remote code was run')")
    return folder, model


def test_hhem_reads_the_second_label_at_the_first_token(hhem, foundation: Path) -> None:
    folder, model = hhem
    loaded = t5.load_hhem(str(folder), str(foundation))
    found = loaded(PAIRS)
    tokenizer = tiny_wordpiece()
    for (premise, text), value in zip(PAIRS, found, strict=True):
        question = "<pad> Determine if the hypothesis is true given the premise?"
        words = f"{question}\n\nPremise: {premise}\n\nHypothesis: {text}"
        encoded = tokenizer(words, return_tensors="pt")
        with torch.no_grad():
            logits = model(encoded["input_ids"], encoded["attention_mask"]).logits
        assert value == pytest.approx(torch.softmax(logits[0, 0], -1)[1].item(), abs=1e-5)
    assert abs(found[0] - found[1]) > 1e-3
    assert loaded.name == "hhem"
    assert loaded([]).shape == (0,)


def test_minicheck_compares_two_answers_at_the_first_place(tmp_path: Path) -> None:
    model = T5ForConditionalGeneration(config()).eval()
    model.save_pretrained(tmp_path / "mc")
    tiny_wordpiece().save_pretrained(tmp_path / "mc")
    loaded = t5.load_minicheck(str(tmp_path / "mc"))
    assert loaded.answers == (3, 209)
    loaded = t5.T5Entailment("m", loaded.model, loaded.tokenizer, loaded.prompt, ANSWERS)
    found = loaded(PAIRS)
    for (premise, text), value in zip(PAIRS, found, strict=True):
        encoded = tiny_wordpiece()(f"predict: {premise}</s>{text}", return_tensors="pt")
        with torch.no_grad():
            first = torch.zeros(1, 1, dtype=torch.long)
            logits = model(encoded["input_ids"], encoded["attention_mask"], decoder_input_ids=first).logits
        assert value == pytest.approx(torch.softmax(logits[0, 0, list(ANSWERS)], -1)[1].item(), abs=1e-5)
    assert abs(found[0] - found[1]) > 1e-4
    order = loaded(PAIRS[::-1])
    assert np.allclose(order[::-1], found, atol=1e-5)


def test_weights_that_are_missing_are_refused(hhem, foundation: Path) -> None:
    folder, model = hhem
    held = {name: value for name, value in model.state_dict().items() if "classifier" not in name}
    state = {f"t5.{name}": value.clone() for name, value in held.items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="not trained for this"):
        t5.load_hhem(str(folder), str(foundation))


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
