"""What a detector has seen: its figures on that would be too good."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lrp4rag.classifiers.card import AlarmInput, Card
from lrp4rag.example import Example
from lrp4rag.reader.comparer import EntailmentModel, bundled_comparer
from lrp4rag.util.errors import InputError


def seen_examples(
    card: Card, examples: Sequence[Example], comparer: EntailmentModel | None = None
) -> list[Example]:
    """Return the examples whose question and passages the detector, or its comparer (by default the bundled
    one), was trained on."""
    sources = set(card.training.sources) if card.training else set()
    if isinstance(card.input, AlarmInput) and card.input.comparer:
        sources |= (comparer or bundled_comparer()).seen
    return [example for example in examples if example.content_hash in sources]


def refuse_seen(
    card: Card, examples: Sequence[Example], path: str | Path, comparer: EntailmentModel | None = None
) -> None:
    """Raise `InputError` where the detector, or its comparer, was trained on sources of these examples."""
    seen = seen_examples(card, examples, comparer)
    if seen:
        raise InputError(
            f"{len(seen)} of {len(examples)} examples share question and passages with the "
            f"detector's training data (first: '{seen[0].id}'), so its metrics on them would be too "
            "good; leave them out, or allow seen sources",
            path=path,
        )
