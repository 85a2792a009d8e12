"""Readers that are broken or hostile: refused in one line, and none of their code is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from lrp4rag.errors import InputError, LRP4RAGWarning
from lrp4rag.example import Example
from lrp4rag.reader import Reader, load_reader
from lrp4rag.reader.weights import file_hash, resolve, weights_hash
from tests.reader.test_weights import save_tiny_gguf
from tests.tiny import bridge_example, save_tiny_reader, tiny_llama, tiny_tokenizer

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
MAPS: dict[str, dict[str, Any]] = {
    "tokenizer": {"tokenizer_config.json": {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}},
    "tokenizer of its own": {
        "tokenizer_config.json": {
            "auto_map": {"AutoTokenizer": [None, "evil.Evil"]},
            "tokenizer_class": "Evil",
        }
    },
    "configuration": {"config.json": {"auto_map": {"AutoConfig": "evil.EvilConfig"}, "model_type": "evil"}},
    "model": {
        "config.json": {
            "auto_map": {"AutoConfig": "evil.EvilConfig", "AutoModelForCausalLM": "evil.EvilModel"},
            "model_type": "evil",
            "architectures": ["EvilModel"],
        }
    },
    "known model": {"config.json": {"auto_map": {"AutoModelForCausalLM": "evil.EvilModel"}}},
    "elsewhere": {"tokenizer_config.json": {"auto_map": {"AutoTokenizer": "someone/evil--evil.Evil"}}},
}


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRP4RAG_CACHE", str(tmp_path_factory.mktemp("cache")))


def edit(path: Path, **changes: Any) -> None:
    record = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**record, **changes}))


@pytest.mark.parametrize("name", MAPS)
def test_code_of_a_reader_is_not_run_and_nobody_is_asked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda prompt="": asked.append(prompt) or "y")
    folder, trace = save_tiny_reader(tmp_path / "tiny"), tmp_path / "trace"
    (folder / "evil.py").write_text(CODE.format(trace=str(trace)))
    for file, changes in MAPS[name].items():
        edit(folder / file, **changes)
    with suppress(InputError):  # what transformers knows by itself is loaded without the code
        load_reader(str(folder))
    assert asked == []
    assert not trace.exists()


def test_a_yes_on_standard_input_runs_nothing(tmp_path: Path) -> None:
    folder, trace = save_tiny_reader(tmp_path / "tiny"), tmp_path / "trace"
    (folder / "evil.py").write_text(CODE.format(trace=str(trace)))
    for name in ("tokenizer of its own", "model"):
        for file, changes in MAPS[name].items():
            edit(folder / file, **changes)
    data = tmp_path / "data.json"
    data.write_text('{"question": "Q?", "passages": ["P."], "response": "R."}')
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "lrp4rag",
            "analyse",
            str(data),
            "--reader",
            str(folder),
            "--detector",
            "none",
        ],
        input="y\n" * 10,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"Error: cannot load reader '{folder}': it needs code that comes with its")
    assert done.stderr.count("\n") == 1
    assert not trace.exists()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", ""),
        ("config.json", "{"),
        ("config.json", "[]"),
        ("config.json", "[" * 100_000),
        ("config.json", '{"model_type": "llama", "rms_norm_eps": NaN}'),
        ("config.json", '{"model_type": "llama", "rope_theta": Infinity}'),
        ("config.json", '{"model_type": "llama", "rope_theta": 1e999}'),
        ("config.json", '{"model_type": "llama", "model_type": "llama"}'),
        ("config.json", '{"model_type": "no such"}'),
        ("config.json", "{}"),
        ("tokenizer.json", ""),
        ("tokenizer.json", "{"),
        ("tokenizer.json", "[" * 100_000),
        ("tokenizer.json", "{}"),
        ("tokenizer_config.json", "{"),
        ("model.safetensors", ""),
        ("model.safetensors", "x" * 100),
        ("model.safetensors", "\xff" * 8 + "{"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(file: str, content: str, tmp_path: Path) -> None:
    folder = save_tiny_reader(tmp_path / "tiny")
    (folder / file).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        load_reader(str(folder))
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_pipe_for_a_configuration_is_not_waited_for(tmp_path: Path) -> None:
    folder = save_tiny_reader(tmp_path / "tiny")
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    with pytest.raises(InputError, match=r"config\.json"):
        load_reader(str(folder))


def test_a_link_to_nothing_beside_a_reader_does_not_matter(tmp_path: Path) -> None:
    folder = save_tiny_reader(tmp_path / "tiny")
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


def sharded(folder: Path, names: list[str], **weights: str) -> Path:
    """A reader whose weights an index finds in files of these names."""
    from safetensors.torch import load_file, save_file

    save_tiny_reader(folder)
    arrays = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    keys = sorted(arrays)
    halves = [keys[: len(keys) // 2], keys[len(keys) // 2 :]]
    for name, half in zip(names, halves, strict=True):
        (folder / name).parent.mkdir(exist_ok=True)
        save_file({key: arrays[key] for key in half}, folder / name, metadata={"format": "pt"})
    places = {key: name for name, half in zip(names, halves, strict=True) for key in half}
    index = {"metadata": {"total_size": 1}, "weight_map": {**places, **weights}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_shards_are_hashed_and_what_lies_beside_them_is_not(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "tiny", SHARDS)
    identity = load_reader(str(folder)).identity
    (folder / "consolidated.safetensors").write_bytes(b"another copy")
    assert load_reader(str(folder)).identity == identity
    content = (folder / SHARDS[1]).read_bytes()
    (folder / SHARDS[1]).write_bytes(content[:-4] + b"\0\0\0?")
    assert load_reader(str(folder)).identity != identity


@pytest.mark.parametrize(
    "name", ["../other/model.safetensors", "sub/model.safetensors", "/etc/x.safetensors"]
)
def test_weights_outside_of_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    folder = sharded(tmp_path / "tiny", SHARDS)
    index = folder / "model.safetensors.index.json"
    record = json.loads(index.read_text())
    record["weight_map"] = dict.fromkeys(record["weight_map"], name)
    (tmp_path / "other").mkdir()
    (folder / "sub").mkdir()
    for place in (tmp_path / "other", folder / "sub"):
        (place / "model.safetensors").write_bytes(
            (save_tiny_reader(place / "r") / "model.safetensors").read_bytes()
        )
    index.write_text(json.dumps(record))
    (folder / "decoy.safetensors").write_bytes((folder / SHARDS[0]).read_bytes())
    with pytest.raises(InputError):
        load_reader(str(folder))


@pytest.mark.parametrize("weights", [None, [], "x", {}])
def test_an_index_that_is_none(weights: Any, tmp_path: Path) -> None:
    folder = sharded(tmp_path / "tiny", SHARDS)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    with pytest.raises(InputError):
        load_reader(str(folder))


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
def test_a_file_does_not_say_how_a_response_is_generated(setting: dict[str, Any], tmp_path: Path) -> None:
    plain, odd = save_tiny_reader(tmp_path / "plain"), save_tiny_reader(tmp_path / "odd")
    edit(odd / "generation_config.json", **setting)
    example = bridge_example(response=None)
    try:
        reader = load_reader(str(odd))
    except InputError:  # transformers refuses some by itself
        return
    expected = load_reader(str(plain)).generate(example, max_new_tokens=4)
    assert reader.generate(example, max_new_tokens=4).response_ids == expected.response_ids


@pytest.mark.parametrize("ids", [10**30, -1, [10**6]])
def test_an_end_of_sequence_that_the_model_does_not_have_ends_nothing(ids: Any, tmp_path: Path) -> None:
    folder = save_tiny_reader(tmp_path / "tiny")
    edit(folder / "generation_config.json", eos_token_id=ids)
    reader = load_reader(str(folder))
    assert reader.generate(bridge_example(response=None), max_new_tokens=2).response_ids


@pytest.mark.parametrize("ids", ["x", [0, "1"], True, 0.5, [[0]]])
def test_an_end_of_sequence_that_is_no_token(ids: Any, tmp_path: Path) -> None:
    folder = save_tiny_reader(tmp_path / "tiny")
    edit(folder / "generation_config.json", eos_token_id=ids)
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
def test_sizes_that_no_reader_has(sizes: dict[str, Any], tmp_path: Path) -> None:
    folder = save_tiny_reader(tmp_path / "tiny")
    edit(folder / "config.json", **sizes)
    started = time.perf_counter()
    with pytest.raises(InputError, match="more than any reader has"):
        load_reader(str(folder))
    assert time.perf_counter() - started < 5


def test_a_model_that_answers_in_tuples_is_asked_for_more(tmp_path: Path) -> None:
    folder = save_tiny_reader(tmp_path / "tiny")
    edit(folder / "config.json", return_dict=False)
    assert load_reader(str(folder)).generate(bridge_example(response=None), max_new_tokens=2).response_ids


# Tokenizers and chat templates.


def reader_with(tokenizer: PreTrainedTokenizerFast, reader: Reader) -> Reader:
    return Reader(reader.model, tokenizer, reader.identity)


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
        "{{ messages[0].content | upper }}",
        "nothing of it",
        "{{ messages[0].content }}{{ messages[0].content }}",
    ],
)
def test_a_chat_template_that_fails_or_rewrites(template: str, tiny_reader: Reader) -> None:
    reader = reader_with(tiny_tokenizer(template), tiny_reader)
    with pytest.raises(InputError, match="--no-chat-template"):
        reader.encode(bridge_example())


def test_a_tokenizer_that_is_larger_than_the_embeddings(tiny_reader: Reader) -> None:
    large = tiny_tokenizer(vocabulary=420, extra=tuple(f"<|x{k}|>" for k in range(300)))
    text = "The bridge was opened in 1901. " * 5
    reader = reader_with(large, tiny_reader)
    rows = tiny_reader.model.get_input_embeddings().weight.shape[0]
    example = Example(question="Q?", passages=[text], response="It <|x1|> was.")
    ids = reader.tokenizer(text)["input_ids"]
    if max(ids) < rows:  # the control tokens come first: cut the embeddings instead
        small = tiny_llama(dtype=torch.float32)
        small.resize_token_embeddings(40)
        reader = Reader(small, large, tiny_reader.identity)
    with pytest.raises(InputError, match=r"token \d+, and its model has \d+ embeddings"):
        reader.encode(example)


@pytest.mark.parametrize("where", ["passage", "response", "question", "prompt"])
def test_text_that_no_window_holds_is_refused_before_it_is_cut_into_tokens(
    where: str, tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "The bridge was opened in 1901. " * 200_000
    given: dict[str, Any] = {"question": "Q?", "passages": ["P."], "response": "R."}
    if where == "prompt":
        given["prompt"] = f"{long} Q? P."
    else:
        given["passages" if where == "passage" else where] = [long] if where == "passage" else long
    example = Example(**given)
    called: list[str] = []
    monkeypatch.setattr("lrp4rag.reader.reader.encode", lambda *_, **__: called.append("tokens"))
    started = time.perf_counter()
    with pytest.raises(InputError, match="more than the reader's window of 512 tokens holds"):
        tiny_reader.encode(example)
    assert called == []
    assert time.perf_counter() - started < 5


# The reader that is converted once and kept.


def converted(tmp_path: Path) -> tuple[Path, Path]:
    gguf = save_tiny_gguf(tmp_path / "tiny.gguf")
    return gguf, resolve(str(gguf))


def zeroed(path: Path, *, keep_time: bool = False) -> None:
    status = path.stat()
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    path.write_bytes(bytes(content))
    if keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    "file", ["model.safetensors", "tokenizer.json", "config.json", "tokenizer_config.json"]
)
@pytest.mark.parametrize(
    "damage", ["zeroed", "zeroed, time kept", "truncated", "empty", "gone", "a folder", "a pipe", "longer"]
)
def test_a_damaged_reader_is_made_again(file: str, damage: str, tmp_path: Path) -> None:
    gguf, folder = converted(tmp_path)
    path = folder / file
    whole = path.read_bytes()
    if damage.startswith("zeroed"):
        zeroed(path, keep_time=damage.endswith("kept"))
    elif damage == "truncated":
        path.write_bytes(whole[:-7])
    elif damage == "longer":
        path.write_bytes(whole + b"x")
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        if damage == "a folder":
            path.mkdir()
        elif damage == "a pipe":
            os.mkfifo(path)
    with pytest.raises(InputError, match="damaged"):
        weights_hash(folder)
    with pytest.warns(LRP4RAGWarning, match=f"{folder.name} is damaged and is made again"):
        assert resolve(str(gguf)) == folder
    assert path.read_bytes() == whole
    assert resolve(str(gguf)) == folder  # and no warning


def test_a_foreign_file_in_it_is_not_loaded_and_not_lost(tmp_path: Path) -> None:
    gguf, folder = converted(tmp_path)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.warns(LRP4RAGWarning, match=r"made again; it holds other files, and is now .*-aside-"):
        resolve(str(gguf))
    assert not (folder / "adapter_config.json").exists()
    assert len(list(folder.parent.glob("*-aside-*/adapter_config.json"))) == 1
    (folder / ".DS_Store").write_text("x")  # which nothing reads
    assert resolve(str(gguf)) == folder


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"files": 3}', b"[" * 100_000])
def test_a_damaged_note_too(content: bytes, tmp_path: Path) -> None:
    gguf, folder = converted(tmp_path)
    (folder / "lrp4rag_files.json").write_bytes(content)
    with pytest.warns(LRP4RAGWarning, match="made again"):
        assert resolve(str(gguf)) == folder


@pytest.mark.parametrize("content", [b"", b"\xff", b"0" * 63, b"0" * 65, b"x" * 64])
def test_a_damaged_memory_of_a_hash_is_not_believed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    digest = file_hash(path)
    (memo,) = (Path(os.environ["LRP4RAG_CACHE"]) / "hashes").iterdir()
    memo.write_bytes(content)
    assert file_hash(path) == digest


def test_hashing_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gguf, folder = converted(tmp_path)
    assert weights_hash(folder) == file_hash(gguf)
    monkeypatch.setattr("hashlib.file_digest", None)
    assert resolve(str(gguf)) == folder
    assert weights_hash(folder) == file_hash(gguf)
