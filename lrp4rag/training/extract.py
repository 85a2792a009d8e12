"""Extraction: the parts of a store, computed once, in one or several processes, resumable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT, RELEVANCE, part_named
from lrp4rag.lrp.composites import composite_named
from lrp4rag.lrp.families import can_pull
from lrp4rag.reader.encoding import Truncation
from lrp4rag.reader.reader import Reader
from lrp4rag.training.extractor import FILLERS, Extractor, Failures, Filler, Group
from lrp4rag.training.store import Configuration, Store, discard
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.processes import map_tasks
from lrp4rag.util.progress import track


class Load(Protocol):
    """Loads the reader of a worker in its process."""

    def __call__(self, *, worker: int) -> Reader: ...


class _Filling:
    """Fills the parts of a store, group by group."""

    def __init__(
        self,
        load: Load,
        store: Store,
        parts: Sequence[str],
        max_memory: int | None,
        fillers: Mapping[str, Filler],
        *,
        worker: int = 0,
    ) -> None:
        self._extractor = Extractor(load(worker=worker), store, max_memory=max_memory, fillers=fillers)
        self._parts = parts

    def run(self, group: Group) -> Failures:
        return self._extractor.run(group, self._parts)

    def close(self) -> None:
        self._extractor.close()


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
    parts: Sequence[str] = (RELEVANCE,),
    max_memory: int | None = None,
    workers: int = 1,
    load: Load | None = None,
    fillers: Mapping[str, Filler] = FILLERS,
) -> Extraction:
    """Compute the parts that the store lacks of every example; a failure is logged and the rest go on.

    Safe to interrupt: running it again resumes. A file is written whole or not at all, and a damaged one is
    computed again (damaged examples.jsonl is made anew of `examples`, with an `LRP4RAGWarning`). With several
    `workers`, `load` gives each its reader (it is called with the worker's number, in its process). `fillers`
    compute the parts.
    Raises `InputError` for an unknown part, one that this reader or composite cannot have, or a store
    that was made with another configuration.
    """
    parts = [part_named(part, fillers) for part in parts]
    rules = composite_named(composite)
    require_possible(parts, reader)
    store = Store.open(folder, Configuration(reader.identity.as_dict(), rules.name, truncation=truncation))

    def run(groups: Sequence[Group]) -> Iterator[tuple[Group, Failures]]:
        many = 1 if load is None else min(workers, len(groups))
        load_there = load if load is not None and many > 1 else lambda *, worker: reader
        share = max_memory if max_memory is None else max_memory // max(many, 1)
        create = partial(_Filling, load_there, store, parts, share, fillers)
        with closing(map_tasks(groups, create, many)) as done:
            for number, failures in done:
                yield groups[number], failures

    return fill(store, examples, parts, run)


def fill(
    store: Store,
    examples: Sequence[Example],
    parts: Sequence[str],
    run: Callable[[Sequence[Group]], Iterable[tuple[Group, Failures]]],
) -> Extraction:
    """Have groups of responses `run` that lack a part in the store, and log those that failed."""
    store.add_examples(examples, rebuild=True)
    # Equal examples share files.
    by_path = {store.path(example): example for example in examples}
    looking = track(by_path.values(), len(by_path), "looking at what is there")
    missing = [example for example in looking if not is_complete(store, example, parts)]
    done = run(groups_of(missing, examples))
    each = ((example, reasons.get(example)) for group, reasons in done for example in group.examples)
    results = track(each, len(missing), "extracting relevance")
    failed = {store.path(example): why for example, why in results if why is not None}
    failures = {row.id: failed[store.path(row)] for row in examples if store.path(row) in failed}
    store.log_failures(failures)
    return Extraction(store, len(missing) - len(failed), len(by_path) - len(missing), failures)


def require_possible(parts: Sequence[str], reader: Reader) -> None:
    """Raise `InputError` for parts that this reader cannot have of any example."""
    if not parts:
        raise InputError("name at least one part to extract, such as relevance")
    if PROMPT in parts and not can_pull(reader.model):
        raise InputError(
            "R_prompt is pulled, and this reader's layers give no derivatives (is it quantised?); leave the "
            "part prompt out, and choose a vector that does not need it, such as total or matrix"
        )


def is_complete(store: Store, example: Example, parts: Sequence[str]) -> bool:
    """Say whether all parts are there; a damaged file is removed, so that it is computed again."""
    complete = [store.holds(example, part) for part in parts]
    for part, is_there in zip(parts, complete, strict=True):
        if not is_there:
            discard(store.path(example, part))
    return all(complete)


def groups_of(missing: Sequence[Example], examples: Sequence[Example]) -> list[Group]:
    """Group examples by prompt, each group with the next prompt in an order that never changes."""
    prompts: dict[str, list[Example]] = {}
    for example in missing:
        prompts.setdefault(prompt_key(example), []).append(example)
    by_key = {prompt_key(example): example for example in examples}
    order = sorted(by_key)
    following = dict(zip(order, order[1:] + order[:1], strict=True))
    return [
        Group(tuple(group), None if following[key] == key else by_key[following[key]])
        for key, group in prompts.items()
    ]


def prompt_key(example: Example) -> str:
    """Hash a prompt with the places of its parts."""
    return json_hash(
        [example.prompt, [[span.kind, span.index, span.start, span.end] for span in example.spans]]
    )
