"""The store: a folder with one relevance file per example, and a manifest of how they were made."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.files import remove_leftovers, write_atomically
from lrp4rag.lrp.relevance import Relevance

FORMAT = 1
MANIFEST, ROWS, FAILURES = "manifest.json", "rows", "failures.jsonl"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What relevance in one store shares. `reader` is `ReaderIdentity.as_dict()`."""

    reader: dict[str, Any]
    composite: str
    target: str = "response"
    truncation: str = "error"

    def as_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Store:
    """Relevance on disk, keyed by the content of the example, so that nothing is computed twice."""

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
        elif folder.is_dir() and any(folder.iterdir()) and not (folder / ROWS).is_dir():
            raise InputError("this folder has files but is no store; name another", path=folder)
        (folder / ROWS).mkdir(parents=True, exist_ok=True)
        # What a killed run left half written was never renamed into place.
        for place in (folder, folder / ROWS):
            remove_leftovers(place)
        if not manifest.is_file():
            write_atomically(manifest, json.dumps(configuration.as_dict(), indent=2) + "\n")
        return cls(folder, configuration)

    def path(self, example: Example) -> Path:
        return self.folder / ROWS / f"{_key(example)}.safetensors"

    def __contains__(self, example: Example) -> bool:
        return self.path(example).is_file()

    def holds(self, example: Example) -> bool:
        """Whether the example's relevance is there and can be read (a damaged file is computed again)."""
        try:
            self.read(example)
        except InputError:
            return False
        return True

    def read(self, example: Example) -> Relevance:
        """The relevance of an example; raises `InputError` where the store has none."""
        if example not in self:
            raise InputError(f"no relevance for example '{example.id}'", path=self.folder)
        return Relevance.load(self.path(example))

    def write(self, example: Example, relevance: Relevance) -> None:
        relevance.save(self.path(example))

    def log_failures(self, failures: dict[str, str]) -> None:
        """Replace the log of failed examples (id and reason, a JSON line each)."""
        path = self.folder / FAILURES
        if failures:
            lines = [json.dumps({"id": id, "error": why}) for id, why in sorted(failures.items())]
            write_atomically(path, "\n".join(lines) + "\n")
        else:
            path.unlink(missing_ok=True)


def _key(example: Example) -> str:
    parts = [example.prompt, example.response, *(asdict(span) for span in example.spans)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


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
