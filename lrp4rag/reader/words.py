"""A reader without a model: it splits an example into words, for a detector that compares text only."""

from __future__ import annotations

import re
from typing import Any

from lrp4rag.reader.identity import ReaderIdentity

NONE = "none"
"""The name of such a reader."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


class Words:
    """A tokenizer whose tokens are words and signs; all have the same number."""

    chat_template = None

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        spans = [match.span() for match in _TOKEN.finditer(text)]
        return {"input_ids": [0] * len(spans), "offset_mapping": spans}


class NoModel:
    """In the place of a model, which a detector that compares text does not have."""

    config = None


def identity_of_none() -> ReaderIdentity:
    """Return the identity of the reader without a model."""
    return ReaderIdentity(NONE, "", "", "", "", chat_template=False, dtype="")
