"""Readers that are broken or hostile: refused in one line, and none of their code is run."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from lrp4rag.cli import main
from lrp4rag.example import Example
from lrp4rag.reader import Reader, load_reader, weights
from lrp4rag.reader.weights import file_hash, resolve, weights_hash
from lrp4rag.util.errors import InputError, LRP4RAGWarning
from tests.cli.conftest import runner
from tests.hostile.damage import NO_RECORD, put
from tests.tiny import bridge_example, save_tiny_gguf, tiny_llama, tiny_tokenizer

CODE = """
open({trace!r}, "w").close()
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
class Evil(PreTrainedTokenizerFast):
    pass
class EvilConfig(LlamaConfig):
    model_type = "evil"
class EvilModel(LlamaForCausalLM):
    config_class = EvilConfig
"""
TOKENIZER, CONFIG = "tokenizer_config.json", "config.json"
EVIL_CONFIG, EVIL_MODEL = {"AutoConfig": "evil.EvilConfig"}, {"AutoModelForCausalLM": "evil.EvilModel"}
MAPS: dict[str, tuple[str, dict[str, Any]]] = {
    "tokenizer": (TOKENIZER, {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}),
    "tokenizer of its own": (
        TOKENIZER,
        {"auto_map": {"AutoTokenizer": [None, "evil.Evil"]}, "tokenizer_class": "Evil"},
    ),
    "configuration": (CONFIG, {"auto_map": EVIL_CONFIG, "model_type": "evil"}),
    "model": (
        CONFIG,
        {"auto_map": EVIL_CONFIG | EVIL_MODEL, "model_type": "evil", "architectures": ["EvilModel"]},
    ),
    "known model": (CONFIG, {"auto_map": EVIL_MODEL}),
    "elsewhere": (TOKENIZER, {"auto_map": {"AutoTokenizer": "someone/evil--evil.Evil"}}),
}


@pytest.fixture
def folder(reader_folder: Path, tmp_path: Path) -> Path:
    """A tiny reader, to be changed."""
    return Path(shutil.copytree(reader_folder, tmp_path / "tiny"))


@pytest.fixture
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRP4RAG_CACHE", str(tmp_path_factory.mktemp("cache")))


def edit(path: Path, **changes: Any) -> None:
    record = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**record, **changes}))


@pytest.mark.parametrize("name", MAPS)
def test_code_of_a_reader_is_not_run_and_nobody_is_asked(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda prompt="": asked.append(prompt) or "y")
    trace = with_code(folder, name)
    with suppress(InputError):  # what transformers knows by itself is loaded without the code
        load_reader(str(folder))
    assert asked == []
    assert not trace.exists()


def with_code(folder: Path, *names: str) -> Path:
    """The reader with code of its own, and the file that it makes where it runs."""
    trace = folder.parent / "trace"
    (folder / "evil.py").write_text(CODE.format(trace=str(trace)))
    for file, changes in map(MAPS.get, names):
        edit(folder / file, **changes)
    return trace


def test_a_yes_on_standard_input_runs_nothing(folder: Path, tmp_path: Path) -> None:
    trace = with_code(folder, "tokenizer of its own", "model")
    data = tmp_path / "data.json"
    data.write_text('{"question": "Q?", "passages": ["P."], "response": "R."}')
    options = ["--reader", folder, "--detector", "none"]
    result = runner(main)("analyse", data, *options, code=2, stdin="y\n" * 10)
    assert result.stdout == ""
    assert result.stderr.startswith(
        f"Error: cannot load reader '{folder}': it needs code that comes with its"
    )
    assert result.stderr.count("\n") == 1
    assert not trace.exists()


@pytest.mark.parametrize(
    "content",
    [
        '{"model_type": "llama", "rms_norm_eps": NaN}',
        '{"model_type": "llama", "rope_theta": Infinity}',
        '{"model_type": "llama", "rope_theta": 1e999}',
        '{"model_type": "llama", "model_type": "llama"}',
        '{"model_type": "no such"}',
        '{"model_type": "qwen3", "num_hidden_layers": 2, "layer_types": ["none", "such"]}',
    ],
)
def test_a_configuration_that_is_none(content: str, folder: Path) -> None:
    (folder / "config.json").write_text(content)
    with pytest.raises(InputError, match=str(folder)) as caught:
        load_reader(str(folder))
    assert "\n" not in str(caught.value)
    assert not str(caught.value).endswith(":")


def test_a_link_to_nothing_beside_a_reader_does_not_matter(folder: Path) -> None:
    (folder / ".#config.json").symlink_to("someone@host.1234")  # as an editor leaves it
    assert load_reader(str(folder)).window == 512


@pytest.mark.parametrize(
    "name", ["nobody/\x1b[2J", "a" * 5000, "../../etc", "no such", "x.gguf", "", " ", "https://x"]
)
def test_a_name_of_no_reader(name: str) -> None:
    with pytest.raises(InputError):
        load_reader(name)


# What the hash is of is what is loaded.

SHARDS = [f"model-0000{k}-of-00002.safetensors" for k in (1, 2)]


@pytest.fixture
def sharded(folder: Path) -> Path:
    """A reader whose weights an index finds in two files."""
    arrays = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    keys = sorted(arrays)
    places = {key: SHARDS[k >= len(keys) // 2] for k, key in enumerate(keys)}
    for name in SHARDS:
        part = {key: arrays[key] for key in keys if places[key] == name}
        save_file(part, folder / name, metadata={"format": "pt"})
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_shards_are_hashed_and_what_lies_beside_them_is_not(sharded: Path) -> None:
    identity = load_reader(str(sharded)).identity
    (sharded / "consolidated.safetensors").write_bytes(b"another copy")
    assert load_reader(str(sharded)).identity == identity
    content = (sharded / SHARDS[1]).read_bytes()
    (sharded / SHARDS[1]).write_bytes(content[:-4] + b"\0\0\0?")
    assert load_reader(str(sharded)).identity != identity


@pytest.mark.parametrize(
    "name", ["../other/model.safetensors", "sub/model.safetensors", "/etc/x.safetensors"]
)
def test_weights_outside_of_the_folder_are_refused(name: str, sharded: Path, reader_folder: Path) -> None:
    index = sharded / "model.safetensors.index.json"
    record = json.loads(index.read_text())
    record["weight_map"] = dict.fromkeys(record["weight_map"], name)
    for place in (sharded.parent / "other", sharded / "sub"):
        shutil.copytree(reader_folder, place)
    index.write_text(json.dumps(record))
    (sharded / "decoy.safetensors").write_bytes((sharded / SHARDS[0]).read_bytes())
    with pytest.raises(InputError):
        load_reader(str(sharded))


# Settings.


@pytest.mark.parametrize(
    "setting",
    [
        {"num_beams": 0},
        {"num_beams": 1_000_000},
        {"return_dict_in_generate": True},
        {"stop_strings": ["a"]},
        {"repetition_penalty": -1.0},
        {"do_sample": True, "temperature": 5.0},
        {"max_length": 1},
        {"suppress_tokens": [0, 1, 2]},
        {"penalty_alpha": 0.5, "top_k": 4},
    ],
    ids=str,
)
def test_a_file_does_not_say_how_a_response_is_generated(
    setting: dict[str, Any], folder: Path, tiny_reader: Reader
) -> None:
    edit(folder / "generation_config.json", **setting)
    example = bridge_example(response=None)
    try:
        reader = load_reader(str(folder))
    except InputError:  # transformers refuses some by itself
        return
    expected = tiny_reader.generate(example, max_new_tokens=4)
    assert reader.generate(example, max_new_tokens=4).response_ids == expected.response_ids


@pytest.mark.parametrize("ids", [10**30, -1, [10**6], "x", [0, "1"], True, 0.5, [[0]]])
def test_an_end_of_sequence_that_the_model_does_not_have(ids: Any, folder: Path) -> None:
    """A number ends nothing; anything else is refused."""
    edit(folder / "generation_config.json", eos_token_id=ids)
    if ids in (10**30, -1, [10**6]):
        reader = load_reader(str(folder))
        assert reader.generate(bridge_example(response=None), max_new_tokens=2).response_ids
    else:
        with pytest.raises(InputError):
            load_reader(str(folder))


@pytest.mark.parametrize(
    "sizes",
    [
        {"num_hidden_layers": 10**9},
        {"vocab_size": 10**12},
        {"hidden_size": 10**9},
        {"text_config": {"num_hidden_layers": 10**9}},
        {"num_attention_heads": 10**6},
    ],
    ids=str,
)
def test_sizes_that_no_reader_has(sizes: dict[str, Any], folder: Path) -> None:
    edit(folder / "config.json", **sizes)
    started = time.perf_counter()
    with pytest.raises(InputError, match="more than any reader has"):
        load_reader(str(folder))
    assert time.perf_counter() - started < 5


def test_a_model_that_answers_in_tuples_is_asked_for_more(folder: Path) -> None:
    edit(folder / "config.json", return_dict=False)
    assert load_reader(str(folder)).generate(bridge_example(response=None), max_new_tokens=2).response_ids


# Tokenizers and chat templates.


@pytest.mark.parametrize(
    "template",
    [
        "{{ raise_exception('no') }}",
        "{% for %}",
        "{{ messages[9].content }}{{ 1 / 0 }}",
        "{{ undefined.attribute }}",
        "{{ messages | no_such_filter }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% for i in range(10 ** 9) %}x{% endfor %}",
    ],
)
def test_a_chat_template_that_fails(template: str, tiny_reader: Reader) -> None:
    with pytest.raises(InputError, match="chat_template=False"):
        replace(tiny_reader, tokenizer=tiny_tokenizer(template)).encode(bridge_example())


def test_a_tokenizer_that_is_larger_than_the_embeddings(tiny_reader: Reader) -> None:
    small = tiny_llama(dtype=torch.float32)
    small.resize_token_embeddings(40)
    with pytest.raises(InputError, match=r"token \d+, and its model has 40 embeddings"):
        replace(tiny_reader, model=small).encode(bridge_example())


@pytest.mark.parametrize("where", ["passages", "response", "question", "prompt"])
def test_text_that_no_window_holds_is_refused_before_it_is_cut_into_tokens(
    where: str, tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "The bridge was opened in 1901. " * 200_000
    change: dict[str, Any] = {"passages": [long], "prompt": f"{long} Q? P."}
    example = Example(
        **{"question": "Q?", "passages": ["P."], "response": "R.", where: change.get(where, long)}
    )
    called: list[str] = []
    monkeypatch.setattr("lrp4rag.reader.reader.encode_prompt", lambda *_, **__: called.append("tokens"))
    started = time.perf_counter()
    with pytest.raises(InputError, match="more than the reader's window of 512 tokens holds"):
        tiny_reader.encode(example)
    assert called == []
    assert time.perf_counter() - started < 5


# The reader that is converted once and kept.


@pytest.fixture(scope="module")
def conversion(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A GGUF file, and the files that are made of it."""
    gguf = save_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")
    folder = tmp_path_factory.mktemp("made")
    weights._convert(gguf, folder)
    return gguf, {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def converted(
    _cache: None, conversion: tuple[Path, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    """A GGUF file and the folder that was made of it, and is made again by writing the same files."""
    gguf, files = conversion

    def convert(_: Path, into: Path) -> None:
        for name, content in files.items():
            (into / name).write_bytes(content)

    monkeypatch.setattr(weights, "_convert", convert)
    return gguf, resolve(str(gguf))


def zero(path: Path, *, keep_time: bool = False) -> None:
    status, content = path.stat(), bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    path.write_bytes(bytes(content))
    if keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "zeroed": zero,
    "zeroed, time kept": partial(zero, keep_time=True),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "empty": lambda path: path.write_bytes(b""),
    "gone": Path.unlink,
    "folder": partial(put, kind="folder"),
    "pipe": partial(put, kind="pipe"),
}
FILES = ("model.safetensors", "tokenizer.json", "config.json", "tokenizer_config.json")


@pytest.mark.parametrize(
    ("file", "damage"),
    [*((FILES[0], damage) for damage in DAMAGES), *((file, "zeroed, time kept") for file in FILES[1:])],
)
def test_a_damaged_reader_is_made_again(file: str, damage: str, converted: tuple[Path, Path]) -> None:
    gguf, folder = converted
    path = folder / file
    whole = path.read_bytes()
    DAMAGES[damage](path)
    with pytest.raises(InputError, match="damaged"):
        weights_hash(folder)
    with pytest.warns(LRP4RAGWarning, match=f"{folder.name} is damaged and is made again"):
        assert resolve(str(gguf)) == folder
    assert path.read_bytes() == whole
    assert resolve(str(gguf)) == folder  # and no warning


def test_a_foreign_file_in_it_is_not_loaded_and_not_lost(converted: tuple[Path, Path]) -> None:
    gguf, folder = converted
    (folder / "adapter_config.json").write_text("{}")
    with pytest.warns(LRP4RAGWarning, match=r"made again; it holds other files, and is now .*-aside-"):
        resolve(str(gguf))
    assert not (folder / "adapter_config.json").exists()
    assert len(list(folder.parent.glob("*-aside-*/adapter_config.json"))) == 1
    (folder / ".DS_Store").write_text("x")  # which nothing reads
    assert resolve(str(gguf)) == folder


def test_a_damaged_note_too(converted: tuple[Path, Path]) -> None:
    gguf, folder = converted
    whole = (folder / "model.safetensors").read_bytes()
    for content in (*NO_RECORD, b"{}", b'{"files": 3}'):
        (folder / "lrp4rag_files.json").write_bytes(content)
        with pytest.warns(LRP4RAGWarning, match="made again"):
            assert resolve(str(gguf)) == folder
    (folder / "lrp4rag_files.json").unlink()  # which comes last: the conversion was killed
    (folder / "model.safetensors").write_bytes(b"half")
    assert resolve(str(gguf)) == folder
    assert (folder / "model.safetensors").read_bytes() == whole


@pytest.mark.usefixtures("_cache")
@pytest.mark.parametrize("content", [b"", b"\xff", b"0" * 63, b"0" * 65, b"x" * 64])
def test_a_damaged_memory_of_a_hash_is_not_believed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    digest = file_hash(path)
    (memo,) = (Path(os.environ["LRP4RAG_CACHE"]) / "hashes").iterdir()
    memo.write_bytes(content)
    assert file_hash(path) == digest
