"""manifest.json: what a folder of results was made with, and a hash of everything in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lrp4rag.classifiers.card import package_versions
from lrp4rag.errors import InputError
from lrp4rag.experiments.claim import PAGE, claim
from lrp4rag.experiments.paper.context import Context
from lrp4rag.files import write_atomically
from lrp4rag.hashes import hash_of
from lrp4rag.strict_json import read_record
from lrp4rag.training.rows import Rows

MANIFEST = "manifest.json"
KIND = "lrp4rag experiments reproduce"
MORE_VERSIONS = ("numpy", "scipy", "matplotlib", "seaborn")


@dataclass(frozen=True, slots=True)
class Beside:
    """Another page of the evaluation: its folder's name, the link to it, how many responses of each generator
    it is of, which parts all of a generator's have, and which baselines were run."""

    name: str
    link: str
    rows: dict[str, int]
    parts: tuple[str, ...]
    baselines: tuple[str, ...]


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


def link_to(other: Path, folder: Path) -> Beside:
    """What another folder of results has, for a page in `folder` to link to.

    Raises `InputError` where it has no manifest, or one that does not say what it is of.
    """
    path = other / MANIFEST
    if not path.is_file():
        raise InputError("no manifest of lrp4rag experiments reproduce", path=path)
    record = read_record(path, "a manifest")
    try:
        rows = {str(name): int(one["rows"]) for name, one in record["generators"].items()}
        parts = dict.fromkeys(str(each) for one in record["generators"].values() for each in one["parts"])
        named = tuple(str(name) for name in record["baselines"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("it does not say what rows and parts it is of: make it again", path=path) from error
    link = Path(os.path.relpath(other / PAGE, folder)).as_posix()
    return Beside(other.resolve().name, link, rows, tuple(parts), named)


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
