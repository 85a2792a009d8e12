"""The file of a comparer: what its networks learned, small enough to come with the package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lrp4rag.reader.comparer import KIND, Network, embeddings_hash, new_network
from lrp4rag.util.hashes import hash_of, json_hash
from lrp4rag.util.tensors import write_tensors

EIGHT_BITS = 127.0
RANK = 96
"""Of what matrices have learned."""


def save_comparer(
    path: Path, networks: Sequence[Network], learned: Mapping[str, int], seen: Iterable[str] = ()
) -> None:
    """Write what networks have learned, the number of the network that learned from each source, and hashes
    of the prompts that were `seen`.

    Of the encoder's matrices that is their difference from the published ones, as the product of two of
    `RANK`, in 8 bits with a scale for each row: the log odds of a claim are the same to .1 or so.
    """
    published, _ = new_network()
    arrays = {
        f"{number}/{name}": array
        for number, network in enumerate(networks)
        for name, array in _compressed(network.learned(), published.learned())
    }
    record = {
        "networks": len(networks),
        "embeddings": embeddings_hash(published),
        "learned": dict(sorted(learned.items())),
        "seen": sorted(set(seen)),
    }
    parts = [hash_of(f"{name} {hash_of(arrays[name].tobytes())}") for name in sorted(arrays)]
    digest = hash_of("".join([json_hash(record, sort_keys=True), *parts]))
    write_tensors(path, KIND, arrays, {**record, "digest": digest})


def _compressed(
    weights: Mapping[str, Tensor], published: Mapping[str, Tensor]
) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, weight in weights.items():
        array = weight.detach().float().numpy()
        if array.ndim < 2 or not name.startswith("encoder."):
            yield name, array.astype(np.float32)
            continue
        left, sizes, right = np.linalg.svd(
            array - published[name].detach().float().numpy(), full_matrices=False
        )
        rank = min(RANK, len(sizes))
        root = np.sqrt(sizes[:rank])
        factors = {"left": left[:, :rank] * root, "right": root[:, None] * right[:rank]}
        for side, factor in factors.items():
            scale = np.maximum(np.abs(factor).max(1, keepdims=True), 1e-12) / EIGHT_BITS
            yield f"{name}/{side}", np.round(factor / scale).astype(np.int8)
            yield f"{name}/{side}/scale", scale.astype(np.float32)
