"""`Variant`: the same responses in another store, made with other rules or another prompt."""

from __future__ import annotations

from dataclasses import dataclass

from lrp4rag.experiments.paper.context import Context
from lrp4rag.experiments.paper.parts import Part, in_common
from lrp4rag.training.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """`kind` is what distinguishes the store from the main one, `what` what it is there.

    `part` and `anchor` are the rows that both have, in one order; `anchor` is the main store's.
    """

    name: str
    kind: str
    what: str
    anchor: Part
    part: Part


def variant_of(context: Context, part: Part, name: str) -> Variant | None:
    """None where too few rows are in common."""
    rows = context.variants[name]
    if part.generator not in rows.generators:
        return None
    anchor, other = in_common(part, Part.of(rows, part.generator))
    if not len(anchor) or not anchor.enough:
        return None
    return Variant(name, *_kind(part.rows, rows), anchor, other)


def variants_of(context: Context, part: Part) -> list[Variant]:
    """Those that have enough rows in common with a part."""
    found = (variant_of(context, part, name) for name in context.variants)
    return [variant for variant in found if variant is not None]


def _kind(main: Rows, other: Rows) -> tuple[str, str]:
    ours, theirs = main.store.configuration, other.store.configuration
    if ours.composite != theirs.composite:
        return "rules", theirs.composite
    if ours.reader.get("chat_template") != theirs.reader.get("chat_template"):
        return "prompt", "chat template" if theirs.reader.get("chat_template") else "raw"
    if ours.reader.get("digest") != theirs.reader.get("digest"):
        return "reader", str(theirs.reader.get("name", "")).rsplit("/", 1)[-1]
    if ours.target != theirs.target:
        return "target", theirs.target
    return "precision", str(theirs.reader.get("dtype"))
