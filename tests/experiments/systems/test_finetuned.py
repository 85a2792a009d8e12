"""The reader, fine-tuned: a tiny random one learns, is saved and read again."""

from __future__ import annotations

import sys
from functools import partial

import pytest
import torch
from safetensors import safe_open
from transformers import Phi3Config, Phi3ForCausalLM

from experiments.cache import Cache
from experiments.systems import encoders, finetuned
from experiments.systems.encoders import Training, batches
from experiments.systems.finetuned import (
    FINE_TUNED,
    SequenceClassifier,
    classifier_of,
    item_of,
    measure,
)
from experiments.systems.resources import ModelChoice, Resources, seen_sources
from lrp4rag.util.errors import InputError
from tests.experiments.systems.stand_ins import couples, rows_of
from tests.tiny import bridge_example, tiny_tokenizer

pytest.importorskip("peft")


# peft asks transformers by a name that is about to go.
pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
EXAMPLES = couples(6)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(finetuned, "TRAINING", Training(epochs=1, rate=1e-2, batch=4))


def resources_of(reader, folder, **options):
    return Resources(Cache(folder), ModelChoice(str(reader), device="cpu", dtype="float32"), **options)


@pytest.fixture
def resources(reader_folder, tmp_path):
    return resources_of(reader_folder, tmp_path / "resources")


def test_prompt_and_response_are_read_as_they_are_replayed(resources):
    example = bridge_example()
    encoded, item = resources.reader.encode(example), item_of(example, resources.reader)
    assert item["input_ids"] == [*encoded.prompt_ids, *encoded.response_ids]
    assert len(encoded.response_ids) > 3
    assert item["attention_mask"] == [1] * len(item["input_ids"])
    assert set(item) == {"input_ids", "attention_mask"}  # no label
    with pytest.raises(InputError, match="exceed the reader's window"):
        item_of(bridge_example(response="It was opened long ago. " * 100), resources.reader)


def test_what_is_learned_is_saved_and_read_again(resources, tmp_path):
    folder = tmp_path / "kept"
    finetuned.train_llm(resources, EXAMPLES, folder)
    again = finetuned.load_llm(resources, folder)
    assert again.name == "kept"
    # Nothing but the adapter and the head, as safetensors.
    assert {file.suffix for file in folder.iterdir()} <= {".json", ".safetensors", ".md"}
    (file,) = folder.glob("*.safetensors")
    with safe_open(file, "pt") as weights:
        names = [name for name in weights.keys() if not name.endswith("score.weight")]  # noqa: SIM118
    # Two layers, two projections, two factors each.
    assert len(names) == 8
    assert all(".lora_A." in name or ".lora_B." in name for name in names)
    assert {name.split(".")[-3] for name in names} == {"q_proj", "v_proj"}
    expected = again(EXAMPLES)
    assert len(set(expected.round(4))) > 3
    # What was learned is not what was drawn.
    untrained = SequenceClassifier("x", finetuned._with_head(resources).eval(), resources.reader)(EXAMPLES)
    assert abs(untrained - expected).max() > 0.01


def test_the_readers_weights_stay_as_they_are(resources, reader_folder, tmp_path):
    file = reader_folder / "model.safetensors"
    before = file.read_bytes()
    plain = {name: value.clone() for name, value in resources.reader.model.state_dict().items()}
    finetuned.train_llm(resources, EXAMPLES[:4], tmp_path / "kept")
    assert file.read_bytes() == before
    assert all(torch.equal(value, plain[name]) for name, value in resources.reader.model.state_dict().items())


def test_the_same_seed_makes_the_same_model(reader_folder, tmp_path):
    found = []
    for name, seed, drawn in (("a", 0, 0), ("b", 0, 9), ("c", 1, 0)):
        resources = resources_of(reader_folder, tmp_path, seed=seed)
        torch.rand(drawn)
        finetuned.train_llm(resources, EXAMPLES[:4], tmp_path / name)
        found.append(finetuned.load_llm(resources, tmp_path / name)(EXAMPLES))
    assert found[0].tolist() == found[1].tolist()
    assert found[0].tolist() != found[2].tolist()


def test_log_odds_are_those_of_the_last_token_whatever_is_padded(resources, tmp_path, monkeypatch):
    finetuned.train_llm(resources, EXAMPLES[:4], tmp_path)
    model = finetuned.load_llm(resources, tmp_path)
    rows = [bridge_example(), bridge_example(response="It was opened. Nobody knows when."), *EXAMPLES[:2]]
    expected = []
    for example in rows:
        ids = torch.tensor([item_of(example, resources.reader)["input_ids"]])
        with torch.no_grad():
            states = model.model.base_model.model.model(ids).last_hidden_state
            no, yes = model.model.base_model.model.score(states[0, -1])
        expected.append(float(yes - no))
    assert model(rows) == pytest.approx(expected, abs=1e-5)
    monkeypatch.setattr(encoders, "batches", partial(batches, tokens=1))
    assert model(rows) == pytest.approx(expected, abs=1e-5)
    (one,) = measure(rows_of(rows[:1], tmp_path / "s"), resources, model)
    assert one.numbers == pytest.approx(expected[:1], abs=1e-5)
    assert one.suspicion is None


def test_the_rows_given_are_learned_from_and_not_all_training_rows(resources, tmp_path, monkeypatch):
    given, others = (rows_of(couples(*one), tmp_path / "s") for one in ((10,), (2, 60)))
    wider = resources_of(resources.choice.name, tmp_path / "r", training_rows=others)
    found = classifier_of(given, wider)
    seen = seen_sources(given, 0)
    assert found.unseen.tolist() == [one.source not in seen for one in given.examples]
    assert found.model.name.startswith("lora-")
    monkeypatch.setattr(finetuned, "train_llm", None)  # a second call takes what is cached
    assert classifier_of(given, wider).model is found.model


def test_a_rule_that_one_word_tells_is_learned(resources, tmp_path, monkeypatch):
    monkeypatch.setattr(finetuned, "TRAINING", Training(epochs=6, rate=2e-2, batch=4))
    finetuned.train_llm(resources, EXAMPLES, tmp_path)
    odds = finetuned.load_llm(resources, tmp_path)(couples(3, first=80))
    assert odds[1::2].min() > odds[::2].max()


def test_a_reader_without_the_projections_is_refused(tmp_path):
    tokenizer = tiny_tokenizer()
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Phi3Config(vocab_size=len(tokenizer), max_position_embeddings=512, pad_token_id=0, **sizes)
    Phi3ForCausalLM(config).save_pretrained(tmp_path / "fused")
    tokenizer.save_pretrained(tmp_path / "fused")
    with pytest.raises(InputError, match=r"LoRA cannot adapt fused \(.*target_modules"):
        finetuned.train_llm(resources_of(tmp_path / "fused", tmp_path), EXAMPLES, tmp_path / "out")


def test_without_peft_it_says_what_to_install(resources, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(InputError, match=r"this baseline needs peft: pip install 'lrp4rag\[baselines\]'"):
        FINE_TUNED.fit(rows_of(EXAMPLES, tmp_path / "s"), resources)
    assert not any((tmp_path / "resources" / "weights").iterdir())
