"""Loading what a folder or the hub holds: models, tokenizers and configurations, and never their code."""

from __future__ import annotations

from typing import Any

from lrp4rag.errors import first_line


def pretrained(kind: Any, place: Any, **options: Any) -> Any:
    """What a class of transformers makes of a place. Nothing else in the package calls `from_pretrained`:
    where remote code is not refused, transformers asks on standard input whether to run it."""
    return kind.from_pretrained(place, trust_remote_code=False, **options)


def reason(error: Exception) -> str:
    """Why something could not be loaded, in one line."""
    if "trust_remote_code" in str(error):
        return "it needs code that comes with its files, and lrp4rag runs none"
    return first_line(error)
