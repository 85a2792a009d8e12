"""The store: a folder with what was extracted from each example, and a manifest of how.

    manifest.json                how it was made: reader, composite, target, truncation; the hash of the next
    examples.jsonl               every example, with its labels
    failures.jsonl               those that failed in the last run
    reading/KEY.safetensors      tokens, offsets and what a plain pass tells (`Reading`)
    relevance/KEY.safetensors    R_response, tokens and offsets (`Relevance`)
    segments/KEY.safetensors     relevance by segment
    prompt/KEY.safetensors       R_prompt
    matrix-64x16/KEY.safetensors R* resampled to 64 response by 16 prompt bins

A part can be added later; nothing is computed twice. KEY is a hash of the prompt and the response. Every file
but the log of failures has a hash, and what does not agree with it is refused.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.example import Example
from lrp4rag.features.parts import MATRIX, PARTS, PROMPT, READING, RELEVANCE, SEGMENTS, matrix_shape
from lrp4rag.features.record import Record
from lrp4rag.features.replay import AROUND
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.encoding import Encoded
from lrp4rag.training.manifest import Configuration, Data, Manifest, dump_examples, parse_examples
from lrp4rag.util.errors import InputError, LRP4RAGWarning
from lrp4rag.util.files import (
    check_folder,
    is_leftover,
    is_local,
    place_at,
    present,
    read_bytes,
    remove_leftovers,
    write_atomically,
)
from lrp4rag.util.hashes import hash_of, json_hash
from lrp4rag.util.strict_json import parse
from lrp4rag.util.tensors import Arrays, read_tensors, require_finite, write_tensors

__all__ = ["EXAMPLES", "FAILURES", "MANIFEST", "Configuration", "Store", "discard", "is_whole", "key_of"]

MANIFEST, EXAMPLES, FAILURES = "manifest.json", "examples.jsonl", "failures.jsonl"
FORMER_SEGMENTS = "signals"
"""The part with relevance by segment in stores of earlier versions."""
KIND = "arrays"
"""The kind of file that every part but relevance is."""
LARGEST = 2**34
"""Bytes of examples or failures that are read."""


@dataclass(frozen=True, slots=True)
class Store:
    """What was extracted, on disk, keyed by the content of the example."""

    folder: Path
    configuration: Configuration

    @classmethod
    def open(cls, folder: str | Path, configuration: Configuration) -> Store:
        """Open or create a store; raises `InputError` where it was made with another configuration."""
        store = cls(place_at(folder), configuration)
        folder, manifest = store.folder, store.folder / MANIFEST
        check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with _alone_in(folder):  # of two that make it, the second finds it made
            entries = list(folder.iterdir())
            if manifest.is_file():
                Manifest.read(manifest).configuration.require(configuration, manifest)
            elif not all(map(_left_behind, entries)):
                raise InputError("this folder has files but is no store; name another", path=folder)
            for path in entries:
                if _is_part(path.name) and (path.is_symlink() or not path.is_dir()):
                    what = "this is no folder of its own; a part of the store belongs here"
                    raise InputError(what, path=path)
            if not manifest.is_file():
                Manifest(configuration).write(manifest)
        # What a killed run left half written was never renamed into place.
        for path in (folder, *(folder / part for part in store.parts())):
            remove_leftovers(path)
        return store

    @classmethod
    def existing(cls, folder: str | Path) -> Store:
        """Open a store to read it, whatever its configuration; raises `InputError` where there is none."""
        folder = place_at(folder)
        if not (folder / MANIFEST).is_file():
            raise InputError("there is no store here; make one with lrp4rag extract", path=folder)
        return cls(folder, Manifest.read(folder / MANIFEST).configuration)

    def parts(self) -> list[str]:
        """Name the parts that have a folder, those of `PARTS` first; others have a file in it."""
        names = {path.name for path in self.folder.iterdir() if path.is_dir()}
        further = sorted(name for name in names - {*PARTS} if matrix_shape(name) or self.files(name))
        return [name for name in PARTS if name in names] + further

    def matrices(self) -> list[str]:
        """Name the parts that are R*, the one that classifiers read (`MATRIX`) first."""
        return sorted((part for part in self.parts() if matrix_shape(part)), key=lambda part: part != MATRIX)

    def files(self, part: str) -> list[Path]:
        """List the files of a part, whole or not."""
        return sorted((self.folder / part).glob("[!.]*.safetensors"))

    def path(self, example: Example, part: str = RELEVANCE) -> Path:
        return self.folder / part / f"{key_of(example)}.safetensors"

    def has(self, example: Example, part: str = RELEVANCE) -> bool:
        """Say whether the part is there; it may be damaged."""
        return present(self.path(example, part))

    def holds(self, example: Example, part: str = RELEVANCE) -> bool:
        """Say whether the part is there and whole (a damaged file is computed again)."""
        return self.has(example, part) and is_whole(self.path(example, part))

    def read(self, example: Example) -> Relevance:
        """Read R_response, and what else of `Relevance` is stored; raises `InputError` without the first."""
        path = self.path(example)
        if not self.has(example):
            raise InputError(f"no relevance for example '{example.id}'", path=self.folder)
        stored: dict[str, Any] = {}
        for part in (SEGMENTS, FORMER_SEGMENTS):
            if self.has(example, part):
                stored |= self.arrays(example, part, ["by_segment"])
                break
        if self.has(example, PROMPT):
            stored["prompt"] = self.arrays(example, PROMPT, ["prompt"])["prompt"]
        for part in [part for part in self.matrices() if self.has(example, part)][:1]:
            stored["resampled"] = self.arrays(example, part)["matrix"]
        return replace(Relevance.load(path, _name(path)), **stored)

    def read_record(self, example: Example) -> Record:
        """Read the record of a plain pass; raises `InputError` where it is missing or damaged."""
        path = self.path(example, READING)
        if not self.has(example, READING):
            raise InputError(
                f"no reading of example '{example.id}'; extract it (part reading)", path=self.folder
            )
        return replace(read_reading(path), generator=example.generator)

    def write_record(self, example: Example, record: Record) -> None:
        """Write the record of a plain pass."""
        path = self.path(example, READING)
        path.parent.mkdir(exist_ok=True)
        origin = {"encoded": asdict(record.encoded), "reader": dict(record.reader)}
        write_arrays(path, record.arrays(), _name(path), origin)

    def arrays(self, example: Example, part: str, names: Sequence[str] | None = None) -> Arrays:
        """Read the named arrays of a part, by default all of them; real ones in float32."""
        path = self.path(example, part)
        return read_arrays(path, names, _name(path))

    def write(self, example: Example, relevance: Relevance) -> None:
        path = self.path(example)
        path.parent.mkdir(exist_ok=True)
        relevance.save(path, _name(path))

    def write_arrays(self, example: Example, part: str, arrays: Arrays) -> None:
        path = self.path(example, part)
        path.parent.mkdir(exist_ok=True)
        write_arrays(path, arrays, _name(path))

    def examples(self) -> list[Example]:
        """Read every example that was given to `extract`, also those that failed.

        Raises `InputError` where the file is not as it was written.
        """
        return self._read_examples()[0]

    def add_examples(self, examples: Iterable[Example], *, rebuild: bool = False) -> None:
        """Remember examples, in place of equal ones whose labels may have changed.

        Raises `InputError` where examples.jsonl is damaged; with `rebuild`, it is made anew of these, with an
        `LRP4RAGWarning`.
        """
        added = _by_identity(examples)
        with _alone_in(self.folder):
            manifest, listed_before = self._manifest(), None
            try:
                listed, data = self._read_examples()
                listed_before = _by_identity(listed)
            except InputError:
                if not rebuild:
                    raise
                data = manifest.data
                words = f"it is made anew of the {len(added)} responses given now, and lists no others"
                remade = f"{self.folder / EXAMPLES}: changed, damaged or missing; {words}"
                warnings.warn(remade, LRP4RAGWarning, stacklevel=3)
            merged = {**(listed_before or {}), **added}
            if merged != listed_before:
                content = dump_examples(merged.values())
                coming = Data(examples=len(merged), sha256=hash_of(content))
                # Killed between these writes, the store is still good: the file has one of the two hashes.
                manifest = replace(manifest, data=data, coming=coming)
                manifest.write(self.folder / MANIFEST)
                write_atomically(self.folder / EXAMPLES, content)
                data = coming
            settled = replace(manifest, data=data, coming=None)
            if settled != manifest:
                settled.write(self.folder / MANIFEST)

    def log_failures(self, failures: Mapping[str, str]) -> None:
        """Replace the log of failed examples (id and reason, a JSON line each)."""
        path = self.folder / FAILURES
        if failures:
            lines = [json.dumps({"id": id, "error": why}) for id, why in sorted(failures.items())]
            write_atomically(path, "\n".join(lines) + "\n")
        else:
            path.unlink(missing_ok=True)

    def failures(self) -> dict[str, str]:
        """Read the examples that failed in the last run, and why; raises `InputError` naming the line where
        the log is damaged."""
        path, reasons = self.folder / FAILURES, {}
        content = read_bytes(path, LARGEST) if present(path) else b""
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                row = parse(line)
            except ValueError as error:
                raise InputError(f"damaged: {error}", path=path, line=number) from error
            id, why = (row.get("id"), row.get("error")) if isinstance(row, dict) else (None, None)
            if not (isinstance(id, str) and isinstance(why, str)):
                raise InputError("damaged: it does not say what failed, and why", path=path, line=number)
            reasons[id] = why
        return reasons

    def _manifest(self) -> Manifest:
        return Manifest.read(self.folder / MANIFEST)

    def _read_examples(self) -> tuple[list[Example], Data | None]:
        """Read the examples, and what the manifest would say of their file; None where there is no file."""
        path, manifest = self.folder / EXAMPLES, self._manifest()
        content = read_bytes(path, LARGEST) if present(path) else None
        digest = None if content is None else hash_of(content)
        # An extraction may have replaced both files since the manifest was read.
        if not manifest.accepts(digest) and not self._manifest().accepts(digest):
            raise InputError(
                f"{'missing' if content is None else 'changed or damaged'}: {MANIFEST} notes another hash; "
                "run lrp4rag extract again on all the data, which makes it anew",
                path=path,
            )
        if content is None or digest is None:
            return [], None
        examples = parse_examples(content, path)
        return examples, Data(examples=len(examples), sha256=digest)


def write_arrays(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    name: str | None = None,
    record: Mapping[str, Any] | None = None,
) -> None:
    """Write a part's file, as `name` and with a `record` where they are given; real numbers become float16.

    Raises `LRP4RAGError` for NaN or Inf.
    """
    require_finite(arrays)  # before what is too large for float16 is cut
    write_tensors(path, KIND, {key: lean(array) for key, array in arrays.items()}, record, name)


def read_arrays(path: Path, names: Collection[str] | None = None, name: str | None = None) -> Arrays:
    """Read the named arrays (by default all), real ones as float32.

    Raises `InputError` for a missing or damaged file, one that was written as another `name`, or one that
    lacks an array.
    """
    return widened(read_tensors(path, KIND, names, name)[1])


def read_reading(path: Path) -> Record:
    """Read a record. Raises `InputError` for a file that is missing, damaged or no reading."""
    record, arrays = read_tensors(path, KIND, None, _name(path))
    try:
        encoded, reader = Encoded.of(record["encoded"]), dict(record["reader"])
        states = {AROUND: arrays.pop(AROUND)}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not a reading: {error}", path=path) from error
    return Record(encoded, reader, widened(arrays), states)


def widened(arrays: Arrays) -> Arrays:
    """Turn real numbers into float32."""
    return {
        key: array.astype(np.float32) if array.dtype == np.float16 else array for key, array in arrays.items()
    }


def key_of(example: Example) -> str:
    """Hash what names an example's files: equal prompts and responses share them, whatever their ids."""
    return json_hash([example.prompt, example.response, *(asdict(span) for span in example.spans)])[:32]


def is_whole(path: Path) -> bool:
    """Say whether a part's file is as it was written, and in its place; all of it is read."""
    try:
        if path.parent.name == RELEVANCE:
            Relevance.load(path, _name(path))
        elif path.parent.name == READING:
            read_reading(path)
        else:
            read_arrays(path, name=_name(path))
    except InputError:
        return False
    return True


def discard(path: Path) -> None:
    """Remove what is in the place of a part's file, such as a damaged one or a link; a folder is left."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)


def lean(array: NDArray[Any]) -> NDArray[Any]:
    """Halve the memory of real numbers: as float16, cut to what that holds."""
    if not np.issubdtype(array.dtype, np.floating):
        return array
    largest = float(np.finfo(np.float16).max)
    halved: NDArray[np.float16] = np.clip(array, -largest, largest).astype(np.float16)
    return halved


def _name(path: Path) -> str:
    """Return PART/KEY, which is in the file too: in another's place, it would be read as that one."""
    return f"{path.parent.name}/{path.stem}"


def _by_identity(examples: Iterable[Example]) -> dict[tuple[str, str], Example]:
    return {(example.id, key_of(example)): example for example in examples}


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process changes what both read first: the manifest and the examples."""
    if sys.platform == "win32" or not is_local(folder):
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network disks have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_part(name: str) -> bool:
    return name in PARTS or matrix_shape(name) is not None


def _left_behind(path: Path) -> bool:
    """Say whether a run that was killed before it wrote the manifest leaves this."""
    empty_part = _is_part(path.name) and path.is_dir() and not any(path.iterdir())
    return is_leftover(path) or empty_part
