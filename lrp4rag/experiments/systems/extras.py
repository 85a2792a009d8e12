"""Libraries that only some baselines need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lrp4rag.errors import InputError


def extra(module: str) -> Any:
    """The module; raises `InputError` that says what to install where it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"this baseline needs {module}: pip install 'lrp4rag[baselines]'") from error
