"""Extraction: relevance of every example into a store, resumable at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lrp4rag.errors import LRP4RAGError
from lrp4rag.example import Example
from lrp4rag.experiments.store import Configuration, Store
from lrp4rag.generator.encoding import Truncation
from lrp4rag.generator.reader import Reader
from lrp4rag.lrp.attribute import attribute
from lrp4rag.lrp.composites import composite_named
from lrp4rag.lrp.mode import relevance_mode
from lrp4rag.progress import track


@dataclass(frozen=True, slots=True)
class Extraction:
    """The store, and how many examples were computed now, were there already, or failed (and why)."""

    store: Store
    computed: int
    present: int
    failures: dict[str, str]


def extract(
    examples: Sequence[Example],
    reader: Reader,
    folder: str | Path,
    *,
    composite: str = "attnlrp",
    truncation: Truncation = "error",
) -> Extraction:
    """Compute R_response of every example that the store lacks; a failure is logged and passed over.

    Kill it at any moment and run it again: a row is written whole or not at all.
    """
    name = composite_named(composite).name
    configuration = Configuration(reader.identity.as_dict(), name, truncation=truncation)
    store = Store.open(folder, configuration)
    # Equal examples share a row.
    wanted = {store.path(example): example for example in examples}
    missing = [example for example in wanted.values() if not store.holds(example)]
    failed: dict[Path, str] = {}
    if missing:
        with relevance_mode(reader.model, name) as flow:
            for example in track(missing, len(missing), "extracting relevance"):
                try:
                    encoded = reader.encode(example, truncation=truncation)
                    store.write(example, attribute(reader, encoded, flow=flow))
                # RuntimeError: torch, for example when memory runs out on one long row.
                except (LRP4RAGError, RuntimeError) as error:
                    failed[store.path(example)] = str(error)
    failures = {row.id: failed[store.path(row)] for row in examples if store.path(row) in failed}
    store.log_failures(failures)
    computed = len(missing) - len(failed)
    return Extraction(store, computed, len(wanted) - len(missing), failures)
