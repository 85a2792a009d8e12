"""Token features on disk: read from a store once, and then shared by the processes that learn from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from lrp4rag.classifiers.features import FEATURE_VERSION
from lrp4rag.classifiers.token_model import Tokens
from lrp4rag.errors import InputError
from lrp4rag.features.blocks import Block
from lrp4rag.files import opened, read_bytes, remove_leftovers, write_atomically, written_atomically
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import tokens_of


def tokens_on_disk(rows: Rows, folder: Path, blocks: Mapping[str, Block]) -> Tokens:
    """Tokens whose blocks are read from files in `folder` as they are needed; missing ones are made first.

    Raises `InputError` where the store lacks what a block is made of.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    paths = {name: folder / f"{name}-{_digest(rows, asdict(block))}.npy" for name, block in blocks.items()}
    missing = {name: block for name, block in blocks.items() if not _whole(paths[name])}
    tokens = tokens_of(rows, missing)
    for name, table in tokens.blocks.items():
        with written_atomically(paths[name]) as file:
            np.save(file, table, allow_pickle=False)
        write_atomically(_note(paths[name]), f"{_hash(paths[name])}\n")
    held = {name: np.load(path, mmap_mode="r", allow_pickle=False) for name, path in paths.items()}
    return replace(tokens, blocks=held)


def _whole(path: Path) -> bool:
    """Whether a table is there as it was written; it is read once for that."""
    try:
        return read_bytes(_note(path), 100).decode().strip() == _hash(path)
    except (InputError, OSError, ValueError):
        return False


def _note(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _hash(path: Path) -> str:
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(rows: Rows, block: dict[str, object]) -> str:
    content = json.dumps([rows.digest, FEATURE_VERSION, block])
    return hashlib.sha256(content.encode()).hexdigest()[:16]
