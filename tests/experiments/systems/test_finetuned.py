"""The reader, fine-tuned: a tiny random one learns, is kept and read again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import Phi3Config, Phi3ForCausalLM

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems import finetuned, trained
from lrp4rag.experiments.systems.encoders.training import Training
from lrp4rag.experiments.systems.finetuned import FINE_TUNED, SequenceClassifier, item_of, measure
from lrp4rag.experiments.systems.kit import Choices, Kit
from lrp4rag.experiments.systems.trained import learned_sources
from lrp4rag.reader import reader as readers
from lrp4rag.reader.weights import file_hash
from tests.experiments.systems.couples import couples, rows_of, unlabelled
from tests.tiny import bridge_example, tiny_tokenizer

pytest.importorskip("peft")
# peft asks transformers by a name that is about to go.
pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")

EXAMPLES = couples(6)


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch, hash_cache: Path) -> None:
    monkeypatch.setenv("LRP4RAG_CACHE", str(hash_cache))
    monkeypatch.setattr(readers, "fastest_dtype", lambda device: "float32")
    monkeypatch.setattr(finetuned, "TRAINING", Training(epochs=1, rate=1e-2, batch=4))


def kit_of(reader: Path | str, folder: Path, **options: Any) -> Kit:
    return Kit(folder, Choices(reader=str(reader), device="cpu", dtype="float32"), **options)


@pytest.fixture
def kit(reader_folder: Path, tmp_path: Path) -> Kit:
    return kit_of(reader_folder, tmp_path / "kit")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The models as they were trained."""
    found: list[Any] = []
    save = trained.save

    def spy(model: Any, tokenizer: Any, folder: Path) -> None:
        found.append(model)
        save(model, tokenizer, folder)

    monkeypatch.setattr(finetuned, "save", spy)
    return found


def test_prompt_and_response_are_read_as_they_are_replayed(kit: Kit) -> None:
    example = bridge_example()
    encoded, item = kit.reader.encode(example), item_of(example, kit.reader)
    assert item["input_ids"] == [*encoded.prompt_ids, *encoded.response_ids]
    assert len(encoded.response_ids) > 3
    assert item["attention_mask"] == [1] * len(item["input_ids"])
    assert set(item) == {"input_ids", "attention_mask"}  # no label
    with pytest.raises(InputError, match="exceed the reader's window"):
        item_of(bridge_example(response="It was opened long ago. " * 100), kit.reader)


def test_what_is_learned_is_saved_and_read_again(kit: Kit, tmp_path: Path, models: list[Any]) -> None:
    folder = tmp_path / "kept"
    finetuned.train_llm(EXAMPLES, kit, folder)
    (model,) = models
    again = finetuned.load_llm(folder, kit)
    assert again.name == "kept"
    expected = SequenceClassifier("x", model, kit.reader)(EXAMPLES)
    assert again(EXAMPLES) == pytest.approx(expected, abs=1e-5)
    assert len(set(expected.round(4))) > 3
    # What was learned is not what was drawn.
    untrained = SequenceClassifier("x", finetuned._headed(kit).eval(), kit.reader)(EXAMPLES)
    assert abs(untrained - expected).max() > 0.01


def test_adapter_and_head_alone_are_saved_as_safetensors(kit: Kit, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    finetuned.train_llm(EXAMPLES[:4], kit, folder)
    assert {file.suffix for file in folder.iterdir()} <= {".json", ".safetensors", ".md"}
    (file,) = folder.glob("*.safetensors")
    with safe_open(file, "pt") as weights:
        names = list(weights.keys())
        head = [weights.get_tensor(name) for name in names if name.endswith("score.weight")]
    assert [tuple(one.shape) for one in head] == [(2, 48)]
    others = [name for name in names if not name.endswith("score.weight")]
    # Two layers, two projections, two factors each.
    assert len(others) == 8
    assert all(".lora_A." in name or ".lora_B." in name for name in others)
    assert {name.split(".")[-3] for name in others} == {"q_proj", "v_proj"}


def test_the_readers_weights_stay_as_they_are(
    kit: Kit, reader_folder: Path, tmp_path: Path, models: list[Any]
) -> None:
    file = reader_folder / "model.safetensors"
    digest, before = file_hash(file), file.read_bytes()
    plain = {name: value.clone() for name, value in kit.reader.model.state_dict().items()}
    finetuned.train_llm(EXAMPLES[:4], kit, tmp_path / "kept")
    assert file.read_bytes() == before
    assert file_hash(file) == digest
    assert all(torch.equal(value, plain[name]) for name, value in kit.reader.model.state_dict().items())
    (model,) = models
    held = {
        name.removeprefix("base_model.model.").replace(".base_layer", ""): value
        for name, value in model.state_dict().items()
        if "lora_" not in name and "score" not in name
    }
    assert set(held) == {name for name in plain if not name.startswith("lm_head")}
    assert all(torch.equal(value, plain[name]) for name, value in held.items())


def test_the_same_seed_makes_the_same_model(reader_folder: Path, tmp_path: Path) -> None:
    found = []
    for name, seed, drawn in (("a", 0, 0), ("b", 0, 9), ("c", 1, 0)):
        kit = kit_of(reader_folder, tmp_path, seed=seed)
        torch.rand(drawn)
        finetuned.train_llm(EXAMPLES[:4], kit, tmp_path / name)
        found.append(finetuned.load_llm(tmp_path / name, kit)(EXAMPLES))
    assert found[0].tolist() == found[1].tolist()
    assert found[0].tolist() != found[2].tolist()


def test_log_odds_are_those_of_the_last_token_whatever_is_padded(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finetuned.train_llm(EXAMPLES[:4], kit, tmp_path)
    model = finetuned.load_llm(tmp_path, kit)
    rows = [bridge_example(), bridge_example(response="It was opened. Nobody knows when."), *EXAMPLES[:2]]
    expected = []
    for example in rows:
        ids = torch.tensor([item_of(example, kit.reader)["input_ids"]])
        with torch.no_grad():
            states = model.model.base_model.model.model(ids).last_hidden_state
            no, yes = model.model.base_model.model.score(states[0, -1])
        expected.append(float(yes - no))
    assert model(rows) == pytest.approx(expected, abs=1e-5)
    monkeypatch.setattr(finetuned, "TOKENS_A_BATCH", 1)
    assert model(rows) == pytest.approx(expected, abs=1e-5)
    (one,) = measure(rows_of(rows[:1], tmp_path / "s"), kit, model)
    assert one.numbers == pytest.approx(expected[:1], abs=1e-5)
    assert one.suspicion is None


def test_it_judges_by_what_is_fresh_to_it_and_labels_judged_are_not_looked_at(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trained, "FRESH", 0.5)
    given, judged = (rows_of(couples(*one), tmp_path / "s") for one in ((10,), (2, 60)))
    # Lessons of the kit would be too many: it learns from the rows it is given.
    scorer = FINE_TUNED.fit(given, kit_of(kit.choices.reader, tmp_path / "kit", lessons=judged))
    fresh = ~np.isin(given.groups, learned_sources(given, 0))
    assert fresh.sum() == 10
    assert scorer.outside.rows.tolist() == np.flatnonzero(fresh).tolist()
    scores = scorer.score(judged, kit)
    assert all(0 < one.probability < 1 and one.suspects is None for one in scores)
    assert scorer.score(unlabelled(judged), kit) == scores
    (folder,) = (tmp_path / "kit" / "weights").iterdir()
    assert folder.name.startswith("lora-")
    # A second call takes what is kept.
    monkeypatch.setattr(finetuned, "train_llm", None)
    assert FINE_TUNED.fit(given, kit).score(judged, kit) == scores


def test_a_rule_that_one_word_tells_is_learned(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finetuned, "TRAINING", Training(epochs=6, rate=2e-2, batch=4))
    finetuned.train_llm(EXAMPLES, kit, tmp_path)
    odds = finetuned.load_llm(tmp_path, kit)(couples(3, first=80))
    assert odds[1::2].min() > odds[::2].max()


def test_a_reader_without_the_projections_is_refused(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    config = Phi3Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        pad_token_id=0,
    )
    Phi3ForCausalLM(config).save_pretrained(tmp_path / "fused")
    tokenizer.save_pretrained(tmp_path / "fused")
    with pytest.raises(InputError, match=r"LoRA cannot adapt fused \(.*target_modules"):
        finetuned.train_llm(EXAMPLES, kit_of(tmp_path / "fused", tmp_path), tmp_path / "out")


def test_without_peft_it_says_what_to_install(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(InputError, match=r"this baseline needs peft: pip install 'lrp4rag\[baselines\]'"):
        FINE_TUNED.fit(rows_of(EXAMPLES, tmp_path / "s"), kit)
    assert not any((tmp_path / "kit" / "weights").iterdir())


def test_too_few_fresh_sources_are_told_with_what_to_do(kit: Kit, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"all but 2; these calibrate it, but 5 folds .* are 2; ext"):
        FINE_TUNED.fit(rows_of(couples(10), tmp_path / "s"), kit)
