"""`Rows`: labelled examples and what a store holds of them, as arrays for classifiers and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lrp4rag.example import Example
from lrp4rag.features.parts import READING, RELEVANCE
from lrp4rag.features.record import Record
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.encoding import Encoded, tokens_in
from lrp4rag.reader.reader import Reader, load_reader
from lrp4rag.reader.words import NONE, identity_of_none
from lrp4rag.training.comparing import Entailments
from lrp4rag.training.folds import groups_of, labels_of
from lrp4rag.training.manifest import Configuration
from lrp4rag.training.store import Store, key_of
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash

Labels = NDArray[np.bool_]
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """R labelled responses whose relevance is stored. Arrays are read on first use, then cached.

    `entailments` are what a comparer makes of each one's sentences, where there is one.
    """

    store: Store
    examples: tuple[Example, ...]
    _cache: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)
    entailments: Entailments | None = None

    @classmethod
    def open(cls, folder: str | Path) -> Rows:
        """Open the labelled rows of a store; raises `InputError` where there are none."""
        store = Store.existing(folder)
        examples = tuple(
            example
            for example in store.examples()
            if example.labels is not None and (store.has(example) or store.has(example, READING))
        )
        if not examples:
            raise InputError("this store holds no labelled response; extract labelled data", path=folder)
        return cls(store, examples)

    def __len__(self) -> int:
        return len(self.examples)

    def select(self, which: Array | Sequence[int]) -> Self:
        """Select the rows of a mask (R,) or of indices; what was read is shared."""
        indices = np.arange(len(self))[np.asarray(which)]
        entailments = None if self.entailments is None else [self.entailments[k] for k in indices]
        return replace(self, examples=tuple(self.examples[k] for k in indices), entailments=entailments)

    def select_generators(self, names: Sequence[str]) -> Self:
        """Select the responses of some generators, all where none is named.

        Raises `InputError` for a generator without responses, which lists those that have some.
        """
        generators = self.generators
        for name in names:
            if name not in generators:
                every = ", ".join(sorted(set(generators)))
                raise InputError(f"no responses of '{name}'; there are: {every}", path=self.store.folder)
        return self.select(np.isin(generators, names)) if names else self

    @property
    def labels(self) -> Labels:
        """(R,), True for hallucinated."""
        return labels_of(self.examples)

    @property
    def groups(self) -> NDArray[np.str_]:
        """(R,), the source of each: question and passages."""
        return groups_of(self.examples)

    @property
    def generators(self) -> NDArray[np.str_]:
        return np.array([example.generator or "unknown" for example in self.examples])

    @property
    def by_generator(self) -> dict[str, NDArray[np.intp]]:
        """The numbers of each generator's rows."""
        generators = self.generators
        return {name: np.flatnonzero(generators == name) for name in sorted(set(generators))}

    @property
    def encodings(self) -> list[Encoded]:
        """Tokens and offsets, of whichever part has them."""
        return [
            self._read("", "", example).encoded
            if self.store.has(example, RELEVANCE)
            else self._read(READING, "", example)
            for example in self.examples
        ]

    @property
    def relevances(self) -> list[Relevance]:
        """With `prompt`, `by_segment` and `resampled` where they are stored."""
        return [self._read("", "", example) for example in self.examples]

    def arrays(self, name: str, part: str) -> list[Array]:
        """Read one array of a part of each row, in float32; raises `InputError` where a row has none."""
        return [self._read(part, name, example) for example in self.examples]

    def readings(self) -> Iterator[Record]:
        """Read the record of a plain pass of each row, one by one and not cached; what responses to one
        prompt are compared with is made once where they follow each other."""
        return self._entailed(_with_one_context(map(self.store.read_record, self.examples)))

    def _entailed(self, records: Iterable[Record]) -> Iterator[Record]:
        entailments = [None] * len(self) if self.entailments is None else self.entailments
        for example, record, of_response in zip(self.examples, records, entailments, strict=True):
            yield replace(record, source=example.source, entailed=of_response)

    def records(self) -> Iterator[Record]:
        """Make a record with relevance alone of each row."""
        for example, relevance in zip(self.examples, self.relevances, strict=True):
            yield Record.of(relevance, generator=example.generator)

    @property
    def matrices(self) -> Array:
        """R* resampled, (R, L_r, L_p), in logits."""
        parts = [part for part in self.store.matrices() if self.has(part)]
        if not parts:
            raise InputError("no R* here; extract it (part matrix-64x16)", path=self.store.folder)
        return np.stack(self.arrays("matrix", parts[0]))

    @property
    def token_flags(self) -> list[Labels]:
        """Which response tokens lie in a labelled span, (t,) each."""
        return list(map(token_flags, self.examples, self.encodings))

    def has(self, part: str) -> bool:
        """Say whether every row has this part."""
        return all(self.store.has(example, part) for example in self.examples)

    @cached_property
    def digest(self) -> str:
        """Changes with the rows, their labels, and how the store was made."""
        rows = [
            [key_of(row), row.source, row.generator, [[label.start, label.end] for label in row.labels or ()]]
            for row in self.examples
        ]
        return json_hash([self.store.configuration.as_dict(), rows])[:16]

    def _read(self, part: str, name: str, example: Example) -> Any:
        # Relevance is gathered from several parts, which may grow; an array comes from one file.
        key = (f"{part}/{name}", key_of(example))
        if key not in self._cache:
            if part == READING:
                value: Any = self.store.read_record(example).encoded
            else:
                value = self.store.arrays(example, part, [name])[name] if part else self.store.read(example)
            self._cache[key] = value
        return self._cache[key]


def _with_one_context(records: Iterable[Record]) -> Iterator[Record]:
    last: Record | None = None
    for record in records:
        shared = record
        if last is not None:
            before, encoded = last.encoded, record.encoded
            if (before.text, before.spans) == (encoded.text, encoded.spans):
                shared = replace(record, prompt=last.context)
        last = shared
        yield shared


def token_flags(example: Example, encoded: Encoded) -> Labels:
    """Return which response tokens lie in a labelled span."""
    spans = [(label.start, label.end) for label in example.labels or ()]
    return tokens_in(encoded.response_offsets, spans)


@dataclass(frozen=True, eq=False)
class TextRows(Rows):
    """R labelled responses as words: there is no reader, and nothing is stored."""

    @classmethod
    def of(cls, examples: Sequence[Example]) -> TextRows:
        """Take examples that have a response."""
        configuration = Configuration(identity_of_none().as_dict(), "attnlrp", "response")
        return cls(Store(Path(), configuration), tuple(examples))

    def has(self, part: str) -> bool:
        """Nothing is stored."""
        return False

    @cached_property
    def _reader(self) -> Reader:
        return load_reader(NONE)

    @property
    def encodings(self) -> list[Encoded]:
        return [self._reader.encode(example) for example in self.examples]

    def readings(self) -> Iterator[Record]:
        identity = self._reader.identity.as_dict()
        encoded = ((self._reader.encode(example), example.generator) for example in self.examples)
        records = (Record(encoding, identity, generator=name) for encoding, name in encoded)
        return self._entailed(_with_one_context(records))
