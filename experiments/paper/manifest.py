"""manifest.json: what a folder of results was made with, and a hash of everything in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import Field, TypeAdapter, ValidationError

from experiments.pages import PAGE, PROGRAM
from experiments.paper.context import Context
from lrp4rag.classifiers.card import package_versions
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.strict_json import read_record
from lrp4rag.util.types import first_fault

MANIFEST, NAME = "manifest.json", "reproduce"
BASELINES = "baselines"
"""The section that reads no relevance."""


@dataclass(frozen=True, slots=True)
class Generator:
    """How many responses of it, and which parts all of them have."""

    rows: Annotated[int, Field(gt=0, strict=True)]
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says that other pages need. `seconds` has the sections that were run."""

    kind: Annotated[str, Field(pattern=f" {NAME}$")]
    generators: Annotated[dict[str, Generator], Field(min_length=1)]
    baselines: tuple[str, ...]
    seconds: dict[str, float]

    def rows_with(self, part: str) -> dict[str, int]:
        """The responses of each generator that the page has results on a part of: baselines read none."""
        read = self.seconds.keys() - {BASELINES}
        return {name: one.rows for name, one in self.generators.items() if read and part in one.parts}


@dataclass(frozen=True, slots=True)
class Beside:
    """Another page of the evaluation: its folder's name, the link to it, and what it is of."""

    name: str
    link: str
    manifest: Manifest


def content_of(
    context: Context, command: str, seconds: Mapping[str, float], files: Sequence[Path], folder: Path
) -> dict[str, Any]:
    """Without dates or places on the machine: equal results give equal manifests, but for the seconds."""
    more = {name: version(name) for name in ("numpy", "scipy", "matplotlib", "seaborn")}
    return {
        "kind": f"{PROGRAM} {NAME}",
        "command": command,
        "versions": package_versions() | more,
        "settings": asdict(context.settings),
        "stores": {name: _store(rows) for name, rows in {"main": context.rows, **context.stores}.items()},
        "generators": {
            name: {
                "rows": len(subset),
                "hallucinated": int(subset.labels.sum()),
                "digest": subset.rows.digest,
                "parts": context.extras(subset),
            }
            for name, subset in context.subsets.items()
        },
        "baselines": list(context.baselines),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "outputs": {path.name: hash_of(path.read_bytes()) for path in sorted(files)},
    }


def _store(rows: Rows) -> dict[str, Any]:
    configuration = rows.store.configuration.as_dict()
    reader = dict(configuration["reader"])
    # A reader may go by the path of its folder.
    reader["name"] = Path(str(reader.get("name", ""))).name
    return configuration | {"reader": reader, "rows": len(rows), "digest": rows.digest}


def read(folder: Path) -> Manifest:
    """Raises `InputError` where a folder has no manifest, or one that does not say what it is of."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError("no manifest of python -m experiments reproduce", path=path)
    try:
        return TypeAdapter(Manifest).validate_python(read_record(path, "a manifest"))
    except ValidationError as error:
        fault, field = first_fault(error)
        why = f"it does not say what it is of: make it again ({fault})"
        raise InputError(why, path=path, field=field) from error


def link_to(other: Path, folder: Path) -> Beside:
    """What another folder of results has, for a page in `folder` to link to; raises `InputError` as `read`
    does."""
    link = Path(os.path.relpath(other / PAGE, folder)).as_posix()
    return Beside(other.resolve().name, quote(link), read(other))


def write(folder: Path, content: dict[str, Any], earlier: Mapping[str, Any]) -> None:
    """Write the manifest, and remove what an earlier run wrote and this one did not."""
    outputs = earlier.get("outputs")
    if not isinstance(outputs, dict):
        outputs = {}
    for path in folder.iterdir():
        if path.name in content["outputs"] or path.name not in outputs or path.is_symlink():
            continue
        if path.is_file() and hash_of(path.read_bytes()) == outputs[path.name]:  # unchanged since
            path.unlink()
    write_atomically(folder / MANIFEST, json.dumps(content, indent=2) + "\n")


def begin(folder: Path) -> None:
    """Mark a new folder, so that a run that is killed while it writes can continue."""
    write_atomically(folder / MANIFEST, json.dumps({"kind": f"{PROGRAM} {NAME}", "outputs": {}}) + "\n")
