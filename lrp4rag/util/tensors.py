"""Store arrays in one safetensors file with hashes of its content, which are checked at reading.

Its metadata have one entry, named after the kind of file, which holds JSON:

    format   FORMAT
    name     what the file was written as ("PART/KEY" in a store), or null
    record   what else there is to say
    arrays   the SHA-256 of each array: of its name, type, shape and bytes
    sha256   that of the entries above
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.files import local_copy, write_atomically
from lrp4rag.util.strict_json import parse, sealed
from lrp4rag.util.types import not_finite

FORMAT = 2

Arrays = dict[str, NDArray[Any]]


def write_tensors(
    path: Path,
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    record: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> None:
    """Write a file whole or not at all; the same content is the same bytes.

    Raises `LRP4RAGError` for NaN or Inf: nothing that is stored has them.
    """
    from safetensors.numpy import save

    require_finite(arrays)
    plain = {key: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for key, array in arrays.items()}
    description = {
        "format": FORMAT,
        "name": name,
        "record": record or {},
        "arrays": {key: _digest(key, array) for key, array in plain.items()},
    }
    # One entry: safetensors does not keep the order of several.
    write_atomically(path, save(plain, metadata={kind: _text(description)}))


def read_tensors(
    path: Path, kind: str, names: Collection[str] | None = None, name: str | None = None
) -> tuple[dict[str, Any], Arrays]:
    """Read the record and the named arrays (by default all) that `write_tensors` wrote as this kind, and
    under this `name` where it is not None.

    Only the arrays that are read are checked, and that none was added or is gone. Raises `InputError` for a
    file that is missing or damaged, is of another kind or name, or lacks an array."""
    from safetensors import SafetensorError, safe_open

    try:
        with local_copy(path) as copy, safe_open(copy, framework="numpy") as file:
            description = _description((file.metadata() or {}).get(kind))
            if description is None:
                raise _damaged(path, f"it does not hold {kind} as it was written", name)
            if description["format"] != FORMAT:
                raise InputError(
                    f"format {description['format']}, and this version reads {FORMAT}; compute it again",
                    path=path,
                )
            if name is not None and description.get("name") != name:
                raise _damaged(path, f"it was written as {description.get('name')}", name)
            keys, written = file.keys(), description["arrays"]
            if set(keys) != set(written):
                raise _damaged(path, "arrays were added or are gone", name)
            missing = set(names or ()) - set(keys)
            if missing:
                raise InputError(f"no array '{min(missing)}'", path=path)
            arrays = {key: file.get_tensor(key) for key in (keys if names is None else names)}
    except OSError as error:
        raise InputError(f"cannot read: {error}", path=path) from error
    # Of a type that numpy lacks, which a flipped bit can name, get_tensor raises others than its own.
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"not a safetensors file: {error}", name) from error
    for key, array in arrays.items():
        if _digest(key, array) != written[key]:
            raise _damaged(path, f"'{key}' is not as it was written", name)
    bad = not_finite(arrays)
    if bad is not None:
        raise _damaged(path, f"'{bad}' has NaN or Inf", name)
    return description["record"], arrays


def require_finite(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise `LRP4RAGError` where an array has NaN or Inf."""
    bad = not_finite(arrays)
    if bad is not None:
        raise LRP4RAGError(f"'{bad}' has NaN or Inf")


def _description(text: str | None) -> dict[str, Any] | None:
    """Return the description in a file's metadata; None where it was changed."""
    if text is None:
        return None
    try:
        description = parse(text)
        if not isinstance(description, dict):
            return None
        if isinstance(description.get("format"), int) and description["format"] != FORMAT:
            return {"format": description["format"]}  # another version wrote it, with other hashes or none
        # The text, and not what it says: "\u00e9" and "\u00E9" are one letter, and one flipped bit apart.
        unchanged = text == _text(description) and all(
            isinstance(description.get(key), dict) for key in ("record", "arrays")
        )
        return description if unchanged else None
    except (ValueError, RecursionError):
        return None


def _text(description: dict[str, Any]) -> str:
    return json.dumps(sealed(description), sort_keys=True)


def _digest(name: str, array: NDArray[Any]) -> str:
    digest = hashlib.sha256(json.dumps([name, array.dtype.str, array.shape]).encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _damaged(path: Path, why: str, name: str | None) -> InputError:
    again = "run lrp4rag extract again, which computes it anew" if name else "compute it again"
    return InputError(f"damaged ({why}); {again}", path=path)
