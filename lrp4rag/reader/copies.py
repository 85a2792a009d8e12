"""Recognise the default reader's weights by their values, in whichever files they are."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from lrp4rag.util.hashes import json_hash

GGUF = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of the default reader's file, by which cards and stores know it."""
_NUMBER, _VALUES = 134_515_008, "d9102abf9b72a0a46102c60b0189ad7e4c65a9cbb584a534655b89c8415e5a64"
"""The number of its weights, and their `_values` hash."""
_EMBEDDINGS, _OUTPUT = "model.embed_tokens.weight", "lm_head.weight"


def known_as(files: Sequence[Path], digest: str) -> str:
    """Return the hash that identifies weights: `digest`, that of their files, unless every number is the
    default reader's."""
    from safetensors import SafetensorError

    try:
        return GGUF if _values(files) == _VALUES else digest
    except SafetensorError:  # what loads the weights tells what is wrong with them
        return digest


def _values(files: Sequence[Path]) -> str | None:
    """Hash the values, by name and as float32; None if their number differs or float32 does not hold them
    exactly. An output layer tied to the embeddings is left out, as files may leave it out."""
    import torch
    from safetensors import safe_open

    with ExitStack() as stack:
        opened = [stack.enter_context(safe_open(file, "pt")) for file in files]
        holders = {name: one for one in opened for name in one.keys()}  # noqa: SIM118 - it is no dict
        shapes = {name: holders[name].get_slice(name).get_shape() for name in sorted(holders)}
        if sum(math.prod(shape) for name, shape in shapes.items() if name != _OUTPUT) != _NUMBER:
            return None
        found: dict[str, tuple[list[int], str]] = {}
        for name, shape in shapes.items():
            weight = holders[name].get_tensor(name)
            values = weight.to(torch.float32)
            if not torch.equal(values.to(weight.dtype), weight):
                return None
            found[name] = (shape, hashlib.sha256(values.numpy().tobytes()).hexdigest())
    if found.get(_OUTPUT) == found.get(_EMBEDDINGS):
        found.pop(_OUTPUT, None)
    return json_hash(found, sort_keys=True)
