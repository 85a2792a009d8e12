"""SHA-256 of contents, JSON values and files, in hexadecimal digits."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from lrp4rag.util.files import opened


def hash_of(content: bytes | str) -> str:
    """Hash a content."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def json_hash(value: Any, *, sort_keys: bool = False) -> str:
    """Hash a value as JSON."""
    return hash_of(json.dumps(value, sort_keys=sort_keys))


def file_hash(path: str | Path) -> str:
    """Hash a regular file, read in chunks; raises `InputError` for any other."""
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
