"""Extraction by many machines into one store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from lrp4rag.example import Example
from lrp4rag.guard.cluster.groups import Groups, HeldGroups, Numbered
from lrp4rag.guard.cluster.index import Identities, hashes, identity_of, index
from lrp4rag.guard.cluster.session import errors_of_workers
from lrp4rag.guard.cluster.work import Workers, spread
from lrp4rag.lrp.composites import composite_named
from lrp4rag.reader.encoding import Truncation
from lrp4rag.reader.reader import Reader
from lrp4rag.training.extract import Extraction, is_complete, require_possible
from lrp4rag.training.extractor import Extractor, Group
from lrp4rag.training.store import MANIFEST, Configuration, Store
from lrp4rag.util.progress import track


@dataclass(frozen=True)
class Extracting:
    """What a worker needs to know: how it gets its reader, the store, and what is wanted of each response."""

    load: Callable[[int], Reader]
    store: Store
    parts: tuple[str, ...]
    max_memory: int | None
    threads: int


class ExtractionWorker:
    """One reader that fills the parts of the store."""

    def __init__(self, plan: Extracting) -> None:
        import torch

        torch.set_num_threads(plan.threads)
        self._plan, reader, made = plan, plan.load(0), plan.store.configuration
        # Each machine loads what it has under the reader's name.
        here = replace(made, reader=reader.identity.as_dict())
        made.require(here, plan.store.folder / MANIFEST)
        self._extractor = Extractor(reader, plan.store, max_memory=plan.max_memory)

    def run(self, group: Group, numbered: Sequence[Numbered]) -> Iterator[dict[str, Any]]:
        """Of each example its id, whether it was computed now, and why it failed ("": it did not)."""
        store, parts = self._plan.store, self._plan.parts
        alike = {store.path(example): example for example in group.examples}
        missing = {place: one for place, one in alike.items() if not is_complete(store, one, parts)}
        failures = self._extractor.run(Group(tuple(missing.values()), group.other), parts) if missing else {}
        for _, _, example in numbered:
            place = store.path(example)
            why = failures.get(missing[place], "") if place in missing else ""
            told = alike[place].id == example.id  # of equal responses, one counts
            computed = told and place in missing and not why
            yield {"id": example.id, "computed": computed, "told": told, "why": why}


def extract_files(
    files: Sequence[str],
    folder: Any,
    plan: Callable[[Store], Extracting],
    configure: Callable[[], Configuration],
    workers: Workers,
) -> Extraction:
    """Extract every response of JSONL or Parquet files into a store; see `training.extract.extract`.

    Safe to interrupt and to kill, here and on any machine: running it again resumes.
    `configure` loads a reader to tell what the store is made with: when all rows are found to be good.
    """
    with tempfile.TemporaryFile(prefix="lrp4rag-") as lines:
        identities: list[Identities] = []

        def keep(content: bytes, found: Identities) -> None:
            lines.write(content)
            identities.append(found)

        groups = index(files, keep=keep)
        store = Store.open(folder, configure())
        _remember(store, lines, np.concatenate(identities))
    return _extract(groups, plan(store), workers)


def extract_examples(
    examples: Sequence[Example],
    folder: Any,
    plan: Callable[[Store], Extracting],
    configure: Callable[[], Configuration],
    workers: Workers,
) -> Extraction:
    """The same for examples that were read already, as the evaluation needs them."""
    store = Store.open(folder, configure())
    store.add_examples(examples, rebuild=True)
    return _extract(HeldGroups.of(examples), plan(store), workers)


def configuration_of(
    load: Callable[[int], Reader],
    composite: str,
    truncation: Truncation,
    parts: Sequence[str],
    workers: Workers,
) -> Configuration:
    """Of the store, told by a worker, which has the device and the memory that the reader needs.

    Raises `InputError` for parts that this reader or composite cannot have.
    """
    import ray

    def told() -> Configuration:
        reader, rules = load(0), composite_named(composite)
        require_possible(parts, reader, rules)
        return Configuration(reader.identity.as_dict(), rules.name, truncation=truncation)

    with errors_of_workers():
        found: Configuration = ray.get(ray.remote(max_retries=2, **workers.resources)(told).remote())
    return found


def _extract(groups: Groups, plan: Extracting, workers: Workers) -> Extraction:
    computed = present = 0
    failures: dict[str, str] = {}
    done = spread(groups, ExtractionWorker, plan, workers)
    for row in track(done, groups.examples, "extracting relevance"):
        computed += row["computed"]
        present += row["told"] and not row["computed"] and not row["why"]
        if row["why"]:
            failures[row["id"]] = row["why"]
    plan.store.log_failures(failures)
    return Extraction(plan.store, computed, present, failures)


def _remember(store: Store, lines: BinaryIO, identities: Identities) -> None:
    """The examples of the run in the store, beside those that it has of earlier ones."""
    ranked = np.sort(identities.view([("high", np.uint64), ("low", np.uint64)]).reshape(-1))

    def given(example: Example) -> bool:
        one = hashes([identity_of(example)]).view(ranked.dtype).reshape(-1)
        place = int(np.searchsorted(ranked, one)[0])
        return place < len(ranked) and bool(ranked[place] == one[0])

    store.add_lines(lines, len(identities), given)
