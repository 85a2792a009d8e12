"""The store: a folder with what was extracted from each example, and a manifest of how.

    manifest.json                how it was made: reader, composite, target, truncation
    examples.jsonl               every example, with its labels
    relevance/KEY.safetensors    R_response, tokens and offsets (`Relevance`)
    signals/KEY.safetensors      relevance by segment, provenance, likelihoods, states ... (`Signals`)
    states/KEY.safetensors       hidden states of each token (`States`)
    prompt/KEY.safetensors       R_prompt
    sentences/KEY.safetensors    one row per sentence (`Sentences`)
    matrix-64x16/KEY.safetensors R* resampled to 64 response by 16 prompt bins

A part can be added later; nothing is computed twice. KEY is a hash of the prompt and the response.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.experiments.arrays import read_arrays, write_arrays
from lrp4rag.experiments.examples import read_examples, write_examples
from lrp4rag.files import remove_leftovers, write_atomically
from lrp4rag.generator.encoding import Truncation
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.parts import MATRIX, PARTS, PROMPT, RELEVANCE, SIGNALS, matrix_shape

FORMAT = 2
MANIFEST, EXAMPLES, FAILURES = "manifest.json", "examples.jsonl", "failures.jsonl"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What one store shares. `reader` is `ReaderIdentity.as_dict()`."""

    reader: dict[str, Any]
    composite: str
    target: str = "response"
    truncation: Truncation = "error"

    def as_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Store:
    """What was extracted, on disk, keyed by the content of the example."""

    folder: Path
    configuration: Configuration

    @classmethod
    def open(cls, folder: str | Path, configuration: Configuration) -> Store:
        """Open or create a store; raises `InputError` where it was made with another configuration."""
        folder = Path(folder)
        manifest = folder / MANIFEST
        if folder.exists() and not folder.is_dir():
            raise InputError("the store must be a folder", path=folder)
        if manifest.is_file():
            _require_same(_read_manifest(manifest), configuration.as_dict(), manifest)
        elif folder.is_dir() and not all(_left_behind(path) for path in folder.iterdir()):
            raise InputError("this folder has files but is no store; name another", path=folder)
        folder.mkdir(parents=True, exist_ok=True)
        if not manifest.is_file():
            write_atomically(manifest, json.dumps(configuration.as_dict(), indent=2) + "\n")
        store = cls(folder, configuration)
        # What a killed run left half written was never renamed into place.
        for place in (folder, *(store._part(part) for part in store.parts())):
            remove_leftovers(place)
        return store

    @classmethod
    def existing(cls, folder: str | Path) -> Store:
        """Open a store to read it, whatever its configuration; raises `InputError` where there is none."""
        folder = Path(folder)
        if not (folder / MANIFEST).is_file():
            raise InputError("there is no store here; make one with lrp4rag extract", path=folder)
        manifest = _read_manifest(folder / MANIFEST)
        manifest.pop("data", None)
        if manifest.pop("format", None) != FORMAT:
            raise InputError(f"not a store of format {FORMAT}; extract it again", path=folder / MANIFEST)
        try:
            return cls(folder, Configuration(**manifest))
        except TypeError as error:
            raise InputError(f"not a manifest: {error}", path=folder / MANIFEST) from error

    def parts(self) -> list[str]:
        """The parts that hold something, those of `PARTS` first."""
        names = [path.name for path in self.folder.iterdir() if path.is_dir()]
        return [name for name in PARTS if name in names] + sorted(
            name for name in names if matrix_shape(name)
        )

    def matrices(self) -> list[str]:
        """The parts that are R*, the one that classifiers read (`MATRIX`) first."""
        return sorted((part for part in self.parts() if matrix_shape(part)), key=lambda part: part != MATRIX)

    def path(self, example: Example, part: str = RELEVANCE) -> Path:
        return self._part(part) / f"{key_of(example)}.safetensors"

    def holds(self, example: Example, part: str = RELEVANCE) -> bool:
        """Whether the part is there and can be read (a damaged file is computed again)."""
        path = self.path(example, part)
        if not path.is_file():
            return False
        try:
            Relevance.load(path) if part == RELEVANCE else read_arrays(path, ())
        except InputError:
            return False
        return True

    def read(self, example: Example) -> Relevance:
        """R_response, and whatever else of a `Relevance` is stored; raises `InputError` without the first."""
        path = self.path(example)
        if not path.is_file():
            raise InputError(f"no relevance for example '{example.id}'", path=self.folder)
        found: dict[str, Any] = {}
        if self.path(example, SIGNALS).is_file():
            found["by_segment"] = self.arrays(example, SIGNALS, ["by_segment"])["by_segment"]
        if self.path(example, PROMPT).is_file():
            found["prompt"] = self.arrays(example, PROMPT, ["prompt"])["prompt"]
        for part in [part for part in self.matrices() if self.path(example, part).is_file()][:1]:
            found["resampled"] = self.arrays(example, part)["matrix"]
        return replace(Relevance.load(path), **found)

    def arrays(
        self, example: Example, part: str, names: Sequence[str] | None = None
    ) -> dict[str, NDArray[Any]]:
        """The named arrays of a part, by default all of them; real ones in float32."""
        return read_arrays(self.path(example, part), names)

    def write(self, example: Example, relevance: Relevance) -> None:
        self._part(RELEVANCE).mkdir(exist_ok=True)
        relevance.save(self.path(example))

    def write_arrays(self, example: Example, part: str, arrays: dict[str, NDArray[Any]]) -> None:
        self._part(part).mkdir(exist_ok=True)
        write_arrays(self.path(example, part), arrays)

    def examples(self) -> list[Example]:
        """Every example that was given to `extract`, also those that failed."""
        path = self.folder / EXAMPLES
        return read_examples(path) if path.is_file() else []

    def add_examples(self, examples: Iterable[Example]) -> None:
        """Remember examples, in place of equal ones whose labels may have changed."""
        known = {(example.id, key_of(example)): example for example in self.examples()}
        merged = {**known, **{(example.id, key_of(example)): example for example in examples}}
        if merged != known:
            write_examples(self.folder / EXAMPLES, merged.values())
        if merged:
            self._note_data(len(merged))

    def _note_data(self, examples: int) -> None:
        """The manifest says which data the store is of; another store of the same data says the same."""
        path = self.folder / MANIFEST
        digest = hashlib.sha256((self.folder / EXAMPLES).read_bytes()).hexdigest()
        manifest = _read_manifest(path)
        noted = {**manifest, "data": {"examples": examples, "sha256": digest}}
        if noted != manifest:
            write_atomically(path, json.dumps(noted, indent=2) + "\n")

    def log_failures(self, failures: dict[str, str]) -> None:
        """Replace the log of failed examples (id and reason, a JSON line each)."""
        path = self.folder / FAILURES
        if failures:
            lines = [json.dumps({"id": id, "error": why}) for id, why in sorted(failures.items())]
            write_atomically(path, "\n".join(lines) + "\n")
        else:
            path.unlink(missing_ok=True)

    def _part(self, part: str) -> Path:
        return self.folder / part


def key_of(example: Example) -> str:
    """What names an example's files: equal prompts and responses share them, whatever their ids."""
    parts = [example.prompt, example.response, *(asdict(span) for span in example.spans)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _left_behind(path: Path) -> bool:
    """Whether a run that was killed before it wrote the manifest leaves this."""
    if path.is_dir():
        return (path.name in PARTS or matrix_shape(path.name) is not None) and not any(path.iterdir())
    return path.match(f".{MANIFEST}.*.tmp")


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"not a manifest: {error}", path=path) from error
    if not isinstance(manifest, dict):
        raise InputError("not a manifest", path=path)
    return manifest


def _require_same(found: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    for name in wanted:
        # The name a reader goes by may differ where its hashes do not.
        old, new = (_comparable(config.get(name)) for config in (found, wanted))
        if old != new:
            raise InputError(
                f"the store was made with {name} {old}, not {new}; name another folder", path=path
            )


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key != "name"}
    return value
