"""What a store holds, and several stores in one."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lrp4rag.errors import InputError
from lrp4rag.experiments.store import Configuration, Store
from lrp4rag.progress import track


@dataclass(frozen=True, slots=True)
class Inventory:
    """How a store was made; per part its files and bytes; the examples by generator and label."""

    folder: Path
    configuration: Configuration
    examples: int
    sources: int
    generators: dict[str, int]
    hallucinated: dict[str, int]
    files: dict[str, int]
    megabytes: dict[str, float]


def inventory(folder: str | Path) -> Inventory:
    """Raises `InputError` where there is no store."""
    store = Store.existing(folder)
    examples = store.examples()
    files = {part: list((store.folder / part).glob("[!.]*.safetensors")) for part in store.parts()}
    return Inventory(
        folder=store.folder,
        configuration=store.configuration,
        examples=len(examples),
        sources=len({example.source for example in examples}),
        generators=dict(sorted(Counter(example.generator or "unknown" for example in examples).items())),
        hallucinated=dict(
            sorted(Counter(example.generator or "unknown" for example in examples if example.labels).items())
        ),
        files={part: len(paths) for part, paths in files.items()},
        megabytes={part: sum(path.stat().st_size for path in paths) / 1e6 for part, paths in files.items()},
    )


def merge(folders: Sequence[str | Path], out: str | Path) -> int:
    """Copy what `out` lacks; returns how many files. Raises `InputError` for stores that differ.

    Where several stores hold a file, the first one's is taken; of labels, the last one's. Killed and run
    again it goes on: a file is copied under another name, then renamed.
    """
    stores = [Store.existing(folder) for folder in folders]
    if any(store.folder.resolve() == Path(out).resolve() for store in stores):
        raise InputError("the merged store's folder is one of those to merge; name another", path=out)
    for store in stores[1:]:  # all of them before anything is written
        Store.open(stores[0].folder, store.configuration)
    target = Store.open(out, stores[0].configuration)
    missing: dict[Path, Path] = {}
    for store in stores:
        for part in store.parts():
            for path in sorted((store.folder / part).glob("[!.]*.safetensors")):
                if not (target.folder / part / path.name).exists():
                    missing.setdefault(target.folder / part / path.name, path)
    for copy, path in track(missing.items(), len(missing), "copying"):
        copy.parent.mkdir(exist_ok=True)
        partial = copy.with_name(f".{copy.name}.copy.tmp")
        shutil.copyfile(path, partial)
        partial.replace(copy)
    for store in stores:
        target.add_examples(store.examples())
    return len(missing)
