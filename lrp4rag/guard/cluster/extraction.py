"""Extraction by many machines into one store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lrp4rag.example import Example
from lrp4rag.guard.cluster.workers import Rows, Workers, map_groups, worker_errors
from lrp4rag.lrp.composites import composite_named
from lrp4rag.reader.encoding import Truncation
from lrp4rag.reader.reader import Reader
from lrp4rag.training.extract import Extraction, fill, require_possible
from lrp4rag.training.extractor import Extractor, Failures, Group
from lrp4rag.training.store import MANIFEST, Configuration, Store

Load = Callable[[], Reader]


@dataclass(frozen=True)
class Plan:
    """The settings of a worker that extracts: its reader, and the parts of each response."""

    load: Load
    composite: str
    truncation: Truncation
    parts: tuple[str, ...]
    max_memory: int | None = None


class ExtractionWorker:
    """Fills the parts of a store with a reader of its own. Raises `InputError` where the machine has another
    reader under the same name than the one the store was made with."""

    def __init__(self, plan: Plan, store: Store) -> None:
        reader, configuration = plan.load(), store.configuration
        with_reader = replace(configuration, reader=reader.identity.as_dict())
        configuration.require(with_reader, store.folder / MANIFEST)
        self._parts, self._extractor = plan.parts, Extractor(reader, store, max_memory=plan.max_memory)

    def run(self, group: Group) -> Rows:
        """Return a row for each example with its error, empty where it did not fail."""
        failures = self._extractor.run(group, self._parts)
        return [{"error": failures.get(example, "")} for example in group.examples]


def extract_on_cluster(examples: Sequence[Example], folder: Path, plan: Plan, workers: Workers) -> Extraction:
    """Extract every response into a store, as `training.extract.extract` does.

    Safe to interrupt and to kill, here and on any machine: running it again resumes. The store's
    configuration comes from a worker, which has the device and the memory that the reader needs.
    """
    import ray

    with worker_errors():
        task = ray.remote(max_retries=2, **workers.resources)(_configuration)
        configuration: Configuration = ray.get(task.remote(plan))
    store = Store.open(folder, configuration)

    def run(groups: Sequence[Group]) -> Iterator[tuple[Group, Failures]]:
        for number, rows in map_groups(groups, partial(ExtractionWorker, plan, store), workers):
            pairs = zip(groups[number].examples, rows, strict=True)
            yield groups[number], {example: row["error"] for example, row in pairs if row["error"]}

    return fill(store, examples, plan.parts, run)


def _configuration(plan: Plan) -> Configuration:
    """Return the configuration of the store. Raises `InputError` for parts that the reader or the composite
    cannot have."""
    reader, rules = plan.load(), composite_named(plan.composite)
    require_possible(plan.parts, reader)
    return Configuration(reader.identity.as_dict(), rules.name, truncation=plan.truncation)
