"""What a prompt says of passages that contradict each other, so that the model does not choose in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from lrp4rag.guard.checks.check import Finding
from lrp4rag.guard.checks.conflicts.documents import named
from lrp4rag.source import Source
from lrp4rag.util.text import one_line

QUOTED = 200
"""Characters of a sentence that a note quotes."""
MOST = 8
"""Conflicts that a note names."""


def prompt_note(findings: Sequence[Finding], sources: Sequence[Source]) -> str:
    """Both sides of each conflict with version and date, and how to answer then; "" without a conflict."""
    conflicts = [one for one in findings if one.kind == "conflict"][:MOST]
    if not conflicts:
        return ""
    lines = [
        "The passages contradict each other. Where the answer depends on it, name both sides and sources:"
    ]
    for one in conflicts:
        details = cast(Mapping[str, Any], one.details)
        lines += [f"- {_side(side, sources, details['newer'])}" for side in details["sides"]]
    return "\n".join(lines)


def _side(side: Mapping[str, Any], sources: Sequence[Source], newer: int | None) -> str:
    passage = side["passage"]
    latest = ", the newer one" if passage == newer else ""
    return f'Passage {named(passage, sources[passage])}{latest}: "{one_line(side["text"], QUOTED)}"'
