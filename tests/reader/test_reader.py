"""A reader: what it loads from, what identifies it, what it refuses."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from lrp4rag import Detector
from lrp4rag.classifiers import Model
from lrp4rag.judge import analyse
from lrp4rag.reader import DEFAULT_READER, Reader, encode, load_reader
from lrp4rag.reader.reader import reader_weights, tokenizer_hash
from lrp4rag.util.errors import InputError
from tests.tiny import CHATML, bridge_example, save_tiny_gguf, tiny_tokenizer

DTYPES = ("float32", "bfloat16", "float16")


@pytest.fixture
def copied(reader_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny reader's folder, to be changed."""
    return Path(shutil.copytree(reader_folder, tmp_path / "copy"))


def load(folder: Path, **options: object) -> Reader:
    return load_reader(str(folder), device="cpu", **options)


# Loading.


def test_a_folder(reader_folder: Path) -> None:
    reader = load(reader_folder)
    assert reader.model.config.num_hidden_layers == 2
    assert reader.model.dtype == torch.float32
    assert not reader.model.training
    assert reader.window == 512
    assert reader.identity.name == "tiny"
    expected = load_file(reader_folder / "model.safetensors")
    for name, weight in reader.model.state_dict().items():
        assert torch.equal(weight, expected[name])


@pytest.mark.parametrize(
    ("dtype", "chosen"), [*((name, name) for name in DTYPES), ("auto", "bfloat16"), ("auto", "float32")]
)
def test_dtypes(dtype: str, chosen: str, reader_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "auto" takes the one that the device is fast in."""
    able = {"amx_bf16": chosen == "bfloat16"}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able, raising=False)
    reader = load(reader_folder, dtype=dtype)
    assert reader.model.dtype == getattr(torch, chosen)
    assert reader.identity.dtype == chosen


def test_encode_uses_window_and_template_of_the_reader(tiny_reader: Reader, reader_folder: Path) -> None:
    example = bridge_example()
    assert tiny_reader.encode(example) == encode(example, tiny_reader.tokenizer)
    raw = load(reader_folder, chat_template=False)
    assert raw.encode(example) == encode(example, raw.tokenizer, chat_template=False)
    long = bridge_example(passages=["word " * 600])
    for refused, match in ((long, "window of 512"), (bridge_example(response=None), "response")):
        with pytest.raises(InputError, match=match):
            tiny_reader.encode(refused)
    assert len(tiny_reader.encode(long, truncation="passages").prompt_ids) < 512


def test_generate_is_greedy(tiny_reader: Reader) -> None:
    example = bridge_example(response=None)
    answered = tiny_reader.generate(example, max_new_tokens=8)
    assert answered == tiny_reader.generate(example, max_new_tokens=8)
    assert answered == tiny_reader.encode(example.with_response(answered.response))
    # The first token is the most likely one after the prompt.
    ids = torch.tensor([answered.prompt_ids])
    with torch.no_grad():
        best = int(tiny_reader.model(ids).logits[0, -1].argmax())
    assert answered.response.startswith(tiny_reader.tokenizer.decode([best]).strip())


def test_a_prompt_without_its_response(tiny_reader: Reader) -> None:
    encoded = tiny_reader.encode_prompt(bridge_example())
    whole = tiny_reader.encode(bridge_example())
    assert encoded == replace(whole, response="", response_ids=(), response_offsets=())
    assert encoded == tiny_reader.encode_prompt(bridge_example(response=None))
    n = len(encoded.prompt_ids)
    assert tiny_reader.room(encoded, 8) == 8
    assert tiny_reader.room(encoded, 10_000) == 512 - n


def windowed(reader: Reader, window: int) -> Reader:
    model = copy.deepcopy(reader.model)
    model.config.max_position_embeddings = window
    return replace(reader, model=model)


def test_a_prompt_leaves_room_for_a_response(tiny_reader: Reader) -> None:
    example = bridge_example(response=None)
    n = len(tiny_reader.encode_prompt(example).prompt_ids)
    full = windowed(tiny_reader, n)
    for refused in (full.encode_prompt, full.generate):
        with pytest.raises(InputError, match=f"prompt of {n} tokens leaves no room .* window of {n}"):
            refused(example)
    cut = full.encode_prompt(example, max_new_tokens=5, truncation="passages")
    assert (len(cut.prompt_ids), cut.dropped) == (n - 5, 5)
    assert full.room(cut, 8) == 5
    answered = windowed(tiny_reader, n + 3).generate(example, max_new_tokens=50)
    assert len(answered.prompt_ids) == n
    # Truncation makes room for the response, and the prompt is replayed as it was.
    answered = full.generate(example, max_new_tokens=8, truncation="passages")
    assert answered.dropped == 8
    analysis = analyse(example, full, None, max_new_tokens=8, truncation="passages")
    assert analysis.encoded == answered


# Identity.


def test_the_digest_is_the_same_across_dtypes_names_and_loads(reader_folder: Path, copied: Path) -> None:
    first = load(reader_folder).identity
    assert load(reader_folder).identity == first
    for other in (load(reader_folder, dtype="bfloat16").identity, load(copied).identity):
        assert other != first
        assert other.digest == first.digest
    assert first.as_dict()["digest"] == first.digest


def change_a_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][0] += 1e-3
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def change_the_template(folder: Path) -> None:
    tiny_tokenizer(CHATML.replace("assistant", "model")).save_pretrained(folder)


def in_json(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return edit


CHANGES: dict[str, Callable[[Path], object]] = {
    "another token": lambda folder: tiny_tokenizer(extra=("<|tool|>",)).save_pretrained(folder),
    "another weight": change_a_weight,
    "other merges": in_json("tokenizer.json", lambda content: content["model"]["merges"].reverse()),
    "another template": change_the_template,
    # The same weights compute something else.
    "another rotary base": in_json("config.json", lambda c: c["rope_parameters"].update(rope_theta=1e5)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_digest_differs_with(change: str, copied: Path) -> None:
    before = load(copied).identity.digest
    CHANGES[change](copied)
    assert load(copied).identity.digest != before


def test_the_digest_differs_with_the_use_of_the_chat_template(copied: Path) -> None:
    """The template that is not used does not matter; the identity says which it is."""
    identity, raw = load(copied).identity, load(copied, chat_template=False).identity
    assert identity.digest != raw.digest
    assert load(copied, chat_template=True).identity == identity
    change_the_template(copied)
    assert load(copied, chat_template=False).identity.digest == raw.digest
    assert str(identity) == f"copy (chat template, {identity.digest})"
    assert "raw prompt" in str(raw)


@pytest.mark.parametrize("name", ["folder", "tiny.gguf", "none"])
def test_weights_are_hashed_without_loading_them(name: str, reader_folder: Path, tmp_path: Path) -> None:
    place = {"folder": str(reader_folder), "none": "none"}.get(name) or str(save_tiny_gguf(tmp_path / name))
    assert reader_weights(place) == load_reader(place, device="cpu").identity.weights


def test_the_tokenizers_hash_depends_neither_on_how_it_was_stored_nor_on_its_use(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    before = tokenizer_hash(tokenizer)
    tokenizer.save_pretrained(tmp_path)
    encode(bridge_example(), tokenizer)
    assert tokenizer_hash(type(tokenizer).from_pretrained(tmp_path)) == tokenizer_hash(tokenizer) == before
    assert tokenizer_hash(tiny_tokenizer(bos=True)) != before


# Errors.


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model", "smollm2", "a/b/c", "~/nowhere"])
def test_an_unknown_model(name: str) -> None:
    started = time.monotonic()
    with pytest.raises(InputError, match="cannot load reader") as caught:
        load_reader(name)
    assert name in str(caught.value)
    assert DEFAULT_READER in str(caught.value)
    assert time.monotonic() - started < 5


def test_a_dtype_or_device_that_is_unknown_or_not_there(
    reader_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for dtype in ("float64", "fp16", ""):
        with pytest.raises(InputError, match=f"'{dtype}'.*float32, bfloat16, float16"):
            load(reader_folder, dtype=dtype)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    unknown = {device: f"unknown device '{device}'" for device in ("gpu", "cpu:x", "")}
    for device, message in {**unknown, "cuda:0": "no CUDA device"}.items():
        with pytest.raises(InputError, match=message):
            load_reader(str(reader_folder), device=device)


def test_a_folder_without_safetensors_or_without_a_weight(copied: Path) -> None:
    """Weights that are pickled only are not loaded; transformers would fill in random numbers."""
    path = copied / "model.safetensors"
    weights = load_file(path)
    path.unlink()
    torch.save(weights, copied / "pytorch_model.bin")
    with pytest.raises(InputError, match="copy"):
        load(copied)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"up_proj"):
        load(copied)


def test_a_reader_of_another_architecture_loads_and_is_refused_by_relevance(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    from lrp4rag.lrp import attribute

    tokenizer = tiny_tokenizer()
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2, n_positions=256)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    reader = load(tmp_path)
    encoded = reader.encode(bridge_example())
    with pytest.raises(InputError, match="GPT2LMHeadModel"):
        attribute(reader, encoded)
    with pytest.raises(InputError, match="GPT2LMHeadModel"):  # rather than that another detector is needed
        Detector(Model.load(), reader)


def test_loading_is_quiet_and_leaves_the_programs_settings(reader_folder: Path) -> None:
    code = """
import logging, sys, warnings
from transformers.utils import logging as transformers
from lrp4rag import load_reader
load_reader(sys.argv[1], device="cpu")
assert transformers.is_progress_bar_enabled()
assert transformers.get_verbosity() == logging.WARNING
assert logging.getLogger("torch.utils._pytree").level == logging.NOTSET
assert ("ignore", None, Warning, None, 0) not in warnings.filters
"""
    ours = ("LRP4RAG_QUIET", "TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS", "TQDM_DISABLE")
    program = {name: value for name, value in os.environ.items() if name not in ours}
    command = [sys.executable, "-c", code, str(reader_folder)]
    found = subprocess.run(command, env=program, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


# The real one.


def test_the_default_reader(default_reader: Reader) -> None:
    assert default_reader.identity.name == DEFAULT_READER
    assert default_reader.identity.chat_template
    config = default_reader.model.config
    assert type(default_reader.model).__name__ == "LlamaForCausalLM"
    assert (config.num_hidden_layers, config.hidden_size) == (30, 576)
    assert (config.num_attention_heads, config.num_key_value_heads) == (9, 3)
    assert default_reader.window >= 2048
    example = bridge_example()
    encoded = default_reader.encode(example)
    messages = [{"role": "user", "content": example.prompt}]
    own = default_reader.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
    assert encoded.prompt_ids == tuple(own["input_ids"])
    assert default_reader.tokenizer.decode(encoded.response_ids) == example.response


def test_the_default_reader_answers(default_reader: Reader) -> None:
    example = bridge_example(5, passages=["The old stone bridge was opened in 1905."], response=None)
    answered = default_reader.generate(example, max_new_tokens=14)
    assert "1905" in answered.response
    assert example.prompt in answered.text
    assert not answered.response.startswith(" ")
