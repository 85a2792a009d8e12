"""The tables of docs/features.md, from the registries: what is documented is what is computed."""

from __future__ import annotations

from collections.abc import Iterable

from lrp4rag.features.plain import GROUPS
from lrp4rag.features.pulled import SENTENCE_FEATURES
from lrp4rag.features.response import POOLINGS, PROMPT_FEATURES
from lrp4rag.features.text import TEXT_FEATURES
from lrp4rag.features.tokens import PROFILES, TOKEN_FEATURES


def tables_in_markdown() -> dict[str, str]:
    """By the heading that each table stands under."""
    tokens = [(one.name, one.group, one.unit, one.range, one.definition) for one in TOKEN_FEATURES.values()]
    text = [(one.name, one.unit, one.range, one.definition) for one in TEXT_FEATURES.values()]
    profiles = [(one.name, one.unit, one.range, one.definition) for one in PROFILES.values()]
    poolings = [(one.name, one.definition) for one in POOLINGS.values()]
    sentences = [(one.name, one.definition) for one in SENTENCE_FEATURES.values()]
    prompt = [(one.name, one.unit, one.range, one.definition) for one in PROMPT_FEATURES.values()]
    plain = [
        (one.name, name, one.unit, one.range, one.definition)
        for name, group in GROUPS.items()
        for one in group.features
    ]
    return {
        "Of a plain pass": _table(("feature", "group", "unit", "range", "definition"), plain),
        "Of a token": _table(("feature", "group", "unit", "range", "definition"), tokens),
        "Of a token's text": _table(("feature", "unit", "range", "definition"), text),
        "Profiles of a token": _table(("profile", "unit", "range", "definition"), profiles),
        "Of a response": _table(("pooling", "definition"), poolings),
        "Of sentences": _table(("feature", "definition"), sentences),
        "Of R_prompt": _table(("feature", "unit", "range", "definition"), prompt),
    }


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
