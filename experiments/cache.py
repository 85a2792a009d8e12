"""Results that take long, each kept as a JSON file as soon as it is computed: nothing is unpickled.

A run that was killed resumes after its last result, and what did not change is not computed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import signature
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from experiments.records import UNREADABLE, from_json, to_json
from lrp4rag.classifiers.vectors import FEATURE_VERSION
from lrp4rag.training.store import discard
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import check_folder, remove_leftovers, write_atomically
from lrp4rag.util.hashes import hash_of, json_hash
from lrp4rag.util.progress import track
from lrp4rag.util.strict_json import read_record, require_seal, sealed

T = TypeVar("T")
VERSION = 1
"""Raised whenever a result of equal arguments would come out differently."""
LARGEST = 1 << 30
"""Bytes of a file: some results hold a number for each token of a store, many times."""
FOLDER = Path("~/.cache/lrp4rag/experiments")


@dataclass(frozen=True, slots=True, eq=False)
class Cache:
    """Results of functions by their arguments, in a folder (None: nothing is kept); `jobs` processes compute
    what is missing. A file that is not as it was written is computed again."""

    folder: Path | None = None
    jobs: int = 1

    @classmethod
    def open(cls, folder: Path | None = None, jobs: int = 1) -> Cache:
        """Default: a folder of this user. Raises `InputError` where nothing can be written to it."""
        folder = (folder or FOLDER).expanduser()
        check_folder(folder).mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        return cls(folder, jobs)

    @property
    def place(self) -> Path:
        """A folder for files of any kind."""
        return self.folder or FOLDER.expanduser()

    def call(
        self, function: Callable[..., T], *arguments: Any, ignore: Sequence[str] = (), kind: Any = None
    ) -> T:
        """Call a function, or read its result for equal arguments. Parameters in `ignore` do not change it;
        `kind` is its type, by default that of the function's annotation."""
        if self.folder is None:
            return function(*arguments)
        pairs = zip(signature(function).parameters, arguments, strict=False)
        key = {name: described(value) for name, value in pairs if name not in ignore}
        name = json_hash([VERSION, FEATURE_VERSION, function.__module__, function.__qualname__, key])[:32]
        path = self.folder / f"{function.__name__.strip('_')}-{name}.json"
        kind = kind or get_type_hints(function)["return"]
        try:
            record = read_record(path, "a result", LARGEST)
            require_seal(record, path, "the result")
            if record["key"] == name:
                kept: T = from_json(kind, record["value"])
                return kept
        except (FileNotFoundError, InputError, *UNREADABLE):
            pass
        value = to_json(function(*arguments))
        self.folder.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            path.rename(path.with_name(f"{path.name}.{token_hex(4)}.aside"))
        discard(path)
        write_atomically(path, json.dumps(sealed({"key": name, "value": value}), allow_nan=False) + "\n")
        result: T = from_json(kind, value)  # rounded, as it will be read
        return result

    def map(
        self,
        function: Callable[..., T],
        calls: Iterable[tuple[Any, ...]],
        count: int,
        label: str,
        ignore: Sequence[str] = (),
    ) -> list[T]:
        """The results of `count` calls, in their order, each on one core. Where `calls` is a generator, it
        gathers arguments shortly before their turn."""
        # Without memory maps: a killed run would leave their files behind.
        pool = Parallel(n_jobs=self.jobs, return_as="generator", max_nbytes=None)
        results = pool(delayed(_on_one_core)(self, function, arguments, ignore) for arguments in calls)
        return list(track(results, count, label))


def _on_one_core(
    cache: Cache, function: Callable[..., T], arguments: tuple[Any, ...], ignore: Sequence[str]
) -> T:
    with threadpool_limits(1):
        return cache.call(function, *arguments, ignore=ignore)


def described(value: Any) -> Any:
    """JSON that only equal values share: arrays by their hash, estimators and dataclasses by their parts."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, hash_of(value.tobytes())]
    parts = None
    if isinstance(value, BaseEstimator):
        parts = value.get_params(deep=False)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    if parts is not None:
        return [type(value).__qualname__, described(parts)]
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [described(item) for item in value]
    if callable(value) and "<" not in value.__qualname__:  # of a module, whose name says all
        return f"{value.__module__}.{value.__qualname__}"
    return value.item() if isinstance(value, np.generic) else value
