"""Rows to train on: to each source one faithful response and one with a made-up sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lrp4rag.example import Example, Label
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Configuration, Store
from tests.classifiers.samples import READER


def couples(count: int, first: int = 0) -> list[Example]:
    """The second response of a source says of a dragon what is in no passage, and that is annotated."""
    made = []
    for k in range(first, first + count):
        told = f"The old bridge {k} is red."
        passages = [f"{told} It was a stone bridge.", f"The river {k} is blue. Nobody lives near."]
        responses = {
            f"{told} It was a stone bridge.": (),
            f"{told} A dragon burned it.": (Label(len(told) + 1, len(told) + 20),),
        }
        made += [
            Example.create(
                question=f"What of bridge {k}?",
                passages=passages,
                response=response,
                labels=labels,
                id=f"bridge-{k}-{bool(labels)}",
                generator="g",
            )
            for response, labels in responses.items()
        ]
    return made


def rows_of(examples: Sequence[Example], folder: Path) -> Rows:
    """Rows of a store that holds nothing of them."""
    return Rows(Store.open(folder, Configuration(READER, "attnlrp")), tuple(examples))


def unlabelled(rows: Rows) -> Rows:
    return Rows(rows.store, tuple(replace(one, labels=None) for one in rows.examples))
