"""What a comparer makes of the sentences of many responses, by several processes, kept on disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from lrp4rag.classifiers.vectors import FEATURE_VERSION
from lrp4rag.example import Example
from lrp4rag.features.entailment import pairs_of_each
from lrp4rag.reader.comparer import Entailment, bundled_comparer
from lrp4rag.reader.reader import DTYPES, fastest_dtype
from lrp4rag.training.store import discard
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.processes import one_thread
from lrp4rag.util.progress import track
from lrp4rag.util.tensors import read_tensors, write_tensors

KIND = "entailments"
CHUNK = 200
"""Responses whose entailments are one file: a run that was killed resumes after it."""

Entailments = list[tuple[Entailment, ...]]


def entailments_of(examples: Sequence[Example], folder: Path, jobs: int = 1) -> Entailments:
    """Return the entailments of each response, by the networks of the comparer that did not learn from its
    source; what is in `folder` is read from there. Raises `InputError` where there is no comparer."""
    digest = bundled_comparer().digest
    chunks = [examples[first : first + CHUNK] for first in range(0, len(examples), CHUNK)]
    paths = [folder / f"{KIND}-{_key(chunk, digest)}.safetensors" for chunk in chunks]
    entailments = [_read(path, chunk) for path, chunk in zip(paths, chunks, strict=True)]
    missing = [number for number, of_chunk in enumerate(entailments) if of_chunk is None]
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered")
    tasks = (delayed(_compared)(number, chunks[number], paths[number]) for number in missing)
    for number in track(pool(tasks), len(missing), "comparing claims"):
        entailments[number] = _read(paths[number], chunks[number])
    if any(of_chunk is None for of_chunk in entailments):
        raise InputError("what the comparer made of responses is gone; run it again", path=folder)
    return [of_response for chunk in entailments if chunk is not None for of_response in chunk]


def _dtype() -> torch.dtype:
    """Return the precision that they are computed in: log odds in bfloat16 are the same to some hundredths,
    and where the processor has it, it is three times as fast."""
    return DTYPES[fastest_dtype("cpu")]


def _key(chunk: Sequence[Example], digest: str) -> str:
    texts = [[each.question, list(each.passages), each.response, each.source] for each in chunk]
    return json_hash([FEATURE_VERSION, str(_dtype()), digest, texts])[:32]


@one_thread()
def _compared(number: int, chunk: Sequence[Example], path: Path) -> int:
    """Compare the sentences of some responses, write what came out, and return the chunk's number."""
    comparer, entailed, counts = bundled_comparer(_dtype()), list[Entailment](), list[int]()
    for example, _, pairs in pairs_of_each(chunk):
        entailed += comparer(pairs, example.source)
        counts.append(len(pairs))
    arrays = {
        "classes": np.array([each.classes for each in entailed], dtype=np.float32).reshape(-1, 3),
        "words": np.concatenate([each.words for each in entailed] or [np.zeros(0, dtype=np.float32)]),
        "spans": np.concatenate([each.spans for each in entailed] or [np.zeros((0, 2), dtype=np.intp)]),
        "lengths": np.array([len(each.words) for each in entailed], dtype=np.int64),
        "counts": np.array(counts, dtype=np.int64),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_tensors(path, KIND, arrays, name=path.stem)
    return number


def _read(path: Path, chunk: Sequence[Example]) -> Entailments | None:
    """Read the entailments of some responses; None where they are not there as they were written."""
    if not path.is_file():
        return None
    try:
        _, arrays = read_tensors(path, KIND, name=path.stem)
    except InputError:
        discard(path)
        return None
    if len(arrays["counts"]) != len(chunk):
        return None
    ends = np.cumsum(arrays["lengths"])
    words, spans = _split(arrays["words"], ends), _split(arrays["spans"], ends)
    entailments = (Entailment(*columns) for columns in zip(arrays["classes"], spans, words, strict=True))
    return [tuple(islice(entailments, count)) for count in arrays["counts"].tolist()]


def _split(array: NDArray[Any], ends: NDArray[np.intp]) -> list[NDArray[Any]]:
    return np.split(array, ends[:-1]) if len(ends) else []
