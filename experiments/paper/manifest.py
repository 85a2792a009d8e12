"""manifest.json: what a folder of results was made with, and a hash of everything in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field, TypeAdapter, ValidationError

from experiments.claim import PAGE, claim
from experiments.paper.context import Context
from lrp4rag.classifiers.card import package_versions
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.strict_json import read_record
from lrp4rag.util.types import first_fault

MANIFEST = "manifest.json"
# As the results of before say; the command is `python -m experiments` now.
KIND = "lrp4rag experiments reproduce"
BASELINES = "baselines"
"""The section that reads no relevance."""
MORE_VERSIONS = ("numpy", "scipy", "matplotlib", "seaborn")


@dataclass(frozen=True, slots=True)
class Generator:
    """How many responses of it, and which parts all of them have."""

    rows: Annotated[int, Field(gt=0, strict=True)]
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What a manifest says that other pages need. `seconds` has the sections that were run."""

    kind: Literal["lrp4rag experiments reproduce"]
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
    known: Known


def manifest(
    context: Context, command: str, seconds: Mapping[str, float], files: Sequence[Path], folder: Path
) -> dict[str, Any]:
    """Without dates or places on the machine: equal results give equal manifests, but for the seconds."""
    rows = next(iter(context.subsets.values())).rows
    return {
        "kind": KIND,
        "command": command,
        "versions": package_versions() | {name: version(name) for name in MORE_VERSIONS},
        "settings": context.key["settings"],
        "stores": {"main": _store(rows)} | {name: _store(each) for name, each in context.variants.items()},
        "generators": {
            name: {
                "rows": len(subset),
                "hallucinated": int(subset.labels.sum()),
                "digest": subset.digest,
                "parts": context.extras(subset),
            }
            for name, subset in context.subsets.items()
        },
        "baselines": [] if context.baselines is None else list(context.baselines.sources),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "outputs": {str(path.relative_to(folder)): sha256(path) for path in sorted(files)},
    }


def sha256(path: Path) -> str:
    return hash_of(path.read_bytes())


def read(folder: Path) -> Known:
    """Raises `InputError` where a folder has no manifest, or one that does not say what it is of."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError("no manifest of python -m experiments reproduce", path=path)
    try:
        return TypeAdapter(Known).validate_python(read_record(path, "a manifest"))
    except ValidationError as error:
        fault, field = first_fault(error)
        why = f"it does not say what it is of: make it again ({fault})"
        raise InputError(why, path=path, field=field) from error


def link_to(other: Path, folder: Path) -> Beside:
    """What another folder of results has, for a page in `folder` to link to; raises `InputError` as `read`
    does."""
    link = Path(os.path.relpath(other / PAGE, folder)).as_posix()
    return Beside(other.resolve().name, quote(link), read(other))


def claim_results(folder: Path) -> dict[str, str]:
    """Prepare the output folder; returns what an earlier reproduction wrote in it: names, and hashes.

    Raises `InputError` where the folder has results of something else: its README would be replaced.
    """
    found = claim(folder, KIND, MANIFEST)
    if not found:  # so that a run that is killed while it writes can go on
        _write(folder, {"kind": KIND, "outputs": {}})
    outputs = found.get("outputs")
    return dict(outputs) if isinstance(outputs, dict) else {}


def write(folder: Path, content: dict[str, Any], earlier: Mapping[str, str]) -> None:
    """Write the manifest, and remove what an earlier reproduction wrote and this one did not."""
    for path in folder.iterdir():
        if path.name in content["outputs"] or path.name not in earlier or path.is_symlink():
            continue
        if path.is_file() and sha256(path) == earlier[path.name]:  # not what somebody changed since
            path.unlink()
    _write(folder, content)


def _write(folder: Path, content: dict[str, Any]) -> None:
    write_atomically(folder / MANIFEST, json.dumps(content, indent=2) + "\n")


def _store(rows: Rows) -> dict[str, Any]:
    configuration = rows.store.configuration.as_dict()
    reader = dict(configuration["reader"])
    # A reader may go by the path of its folder.
    reader["name"] = Path(str(reader.get("name", ""))).name
    return configuration | {"reader": reader, "rows": len(rows), "digest": rows.digest}
