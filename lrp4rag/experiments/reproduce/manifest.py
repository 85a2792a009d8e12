"""manifest.json: what a folder of results was made with, and a hash of everything in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lrp4rag.classifiers.card import package_versions
from lrp4rag.errors import InputError
from lrp4rag.experiments.reproduce.context import Context
from lrp4rag.experiments.rows import Rows
from lrp4rag.files import write_atomically

MANIFEST, PAGE = "manifest.json", "README.md"
KIND = "lrp4rag reproduce"
MORE_VERSIONS = ("numpy", "scipy", "matplotlib", "seaborn")


def manifest(
    context: Context, command: str, seconds: Mapping[str, float], files: Sequence[Path], folder: Path
) -> dict[str, Any]:
    """Without dates or places on the machine: equal results give equal manifests, but for the seconds."""
    rows = next(iter(context.parts.values())).rows
    return {
        "kind": KIND,
        "command": command,
        "versions": package_versions() | {name: version(name) for name in MORE_VERSIONS},
        "settings": context.key["settings"],
        "stores": {"main": _store(rows)} | {name: _store(each) for name, each in context.variants.items()},
        "generators": {
            name: {"rows": len(part), "hallucinated": int(part.labels.sum()), "digest": part.digest}
            for name, part in context.parts.items()
        },
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "outputs": {str(path.relative_to(folder)): sha256(path) for path in sorted(files)},
    }


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def claim(folder: Path) -> list[Path]:
    """Prepare the output folder; returns the files of an earlier reproduction in it.

    Raises `InputError` where the folder has files but no manifest of ours: its README would be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError("the results need a folder", path=folder)
    if folder.is_dir() and any(folder.iterdir()):
        found = _read(folder / MANIFEST)
        if found.get("kind") != KIND:
            why = "this folder has files that lrp4rag reproduce did not write; name another"
            raise InputError(why, path=folder)
        return [folder / name for name in found.get("outputs", {}) if Path(name).name == name]
    folder.mkdir(parents=True, exist_ok=True)
    return []


def write(folder: Path, content: dict[str, Any], earlier: Sequence[Path]) -> None:
    """Write the manifest, and remove what an earlier reproduction wrote and this one did not."""
    for path in earlier:
        if path.name not in content["outputs"]:
            path.unlink(missing_ok=True)
    write_atomically(folder / MANIFEST, json.dumps(content, indent=2) + "\n")


def _store(rows: Rows) -> dict[str, Any]:
    configuration = rows.store.configuration.as_dict()
    reader = dict(configuration["reader"])
    # A reader may go by the path of its folder.
    reader["name"] = Path(str(reader.get("name", ""))).name
    return configuration | {"reader": reader, "rows": len(rows), "digest": rows.digest}


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
