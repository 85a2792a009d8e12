"""The result: it survives the disk bit by bit, refuses other files, and becomes captum's type."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from safetensors.numpy import save_file

from lrp4rag.lrp import Relevance
from lrp4rag.reader import Encoded
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.strict_json import sealed
from tests.hostile.damage import BYTES


def relevance(**changes: object) -> Relevance:
    """Two prompt tokens, three response tokens; made by hand, since no model is needed."""
    encoded = Encoded(
        prompt_ids=(5, 6),
        response_ids=(7, 8, 9),
        text="a é",
        response="x\ny z",
        prompt_offsets=((0, 1), (1, 3)),
        response_offsets=((0, 2), (2, 3), (3, 5)),
        segments=(0, 2),
        segment_names=("template", "question", "passage 1"),
        dropped=4,
    )
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(3, 2)).astype(np.float32)
    fields = {
        "encoded": encoded,
        "composite": "attnlrp",
        "target": "response",
        "reader": {"name": "tiny", "digest": "0123", "chat_template": True},
        "logits": rng.normal(size=3).astype(np.float32),
        "response": matrix.mean(1),
    }
    return Relevance(**(fields | changes))


def full() -> Relevance:
    matrix = np.arange(6, dtype=np.float32).reshape(3, 2) / 7
    extremes = np.array([1e-45, -0.0, 3.4e38], dtype=np.float32)
    parts = {"by_segment": matrix.T.copy(), "resampled": matrix[:2].T.copy().T, "own": extremes}
    return relevance(matrix=matrix, prompt=matrix.mean(0), **parts)


@pytest.mark.parametrize("original", [relevance(), full()], ids=["small", "full"])
def test_round_trip(original: Relevance, tmp_path: Path) -> None:
    """The same relevance is the same bytes, and replaces what was there."""
    path = tmp_path / "one.safetensors"
    relevance(composite="paper").save(path)
    original.save(path)
    loaded = Relevance.load(path)
    assert loaded.encoded == original.encoded
    assert isinstance(loaded.encoded.prompt_offsets[0], tuple)
    assert hash(loaded.encoded) == hash(original.encoded)
    assert (loaded.composite, loaded.target, loaded.reader) == (
        original.composite,
        original.target,
        original.reader,
    )
    assert loaded._arrays().keys() == original._arrays().keys()
    for name, array in loaded._arrays().items():
        before = getattr(original, name)
        assert (array.dtype, array.shape, array.tobytes()) == (np.float32, before.shape, before.tobytes())
    content = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fault", ["NaN", "Inf", "no JSON", "a full disk"])
def test_a_failed_save_keeps_the_old_file_and_leaves_nothing_else(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relevance().save(tmp_path / "one")
    before = (tmp_path / "one").read_bytes()
    if fault == "no JSON":
        bad, error = relevance(reader={"name": object()}), pytest.raises(TypeError)
    elif fault == "a full disk":
        bad, error = full(), pytest.raises(OSError, match="No space")
        monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    else:
        bad = relevance(response=np.array([0, float(fault), 1], dtype=np.float32))
        error = pytest.raises(LRP4RAGError, match="'response' has NaN or Inf")
    with error:
        bad.save(tmp_path / "one")
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    assert (tmp_path / "one").read_bytes() == before


def description(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["relevance"])


def write(path: Path, text: str | None, names: Sequence[str] = ("logits", "response")) -> None:
    """A safetensors file of these arrays, with this description."""
    known = relevance()._arrays()
    arrays = {name: known.get(name, np.zeros(3, dtype=np.float32)) for name in names}
    save_file(arrays, path, metadata={"relevance": text} if text else {"other": "1"})


def without(fields: dict[str, Any], **changes: object) -> dict[str, Any]:
    """The fields with these changes, and without those that are changed to None."""
    return {key: value for key, value in (fields | changes).items() if value is not None}


METADATA = [lambda path, text=text: write(path, text) for text in (None, "no JSON", "[]")]
VERSION = [
    (lambda path, format=format: write(path, json.dumps(without(description(path), format=format))), message)
    for format, message in (
        (1, "format 1, and this version reads 2; compute it again"),
        (999, "format 999, and this version reads 2"),
        (None, r"damaged \(it does not hold relevance as it was written"),
    )
]
# From here on the hashes are right.
ARRAYS = [
    lambda path, names=names: write(path, json.dumps(sealed(description(path)), sort_keys=True), names)
    for names in (["logits"], ["logits", "response", "weight"], ["logits", "own"])
]
CHANGES = [{"composite": None}, {"layer": None}, {"encoded": None}, {"encoded": []}, {"encoded": 3}]
CHANGES += [{"encoded": {"prompt_ids": [1]}}]


def with_record(path: Path, change: dict[str, object]) -> None:
    header = description(path)
    header["record"] = without(header["record"], **change)
    write(path, json.dumps(sealed(header), sort_keys=True))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        *((lambda path, name=name: path.write_bytes(BYTES[name](path.read_bytes())), "") for name in BYTES),
        *((damage, "") for damage in METADATA),
        *VERSION,
        *((damage, r"damaged \(arrays were added or are gone") for damage in ARRAYS),
        *((partial(with_record, change=change), "not a relevance file") for change in CHANGES),
    ],
)
def test_a_damaged_or_another_file(damage: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    relevance().save(path)
    with_record(path, {})
    assert Relevance.load(path).encoded == relevance().encoded
    damage(path)
    with pytest.raises(InputError, match=rf"one\.safetensors: {message}"):
        Relevance.load(path)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match=str(path)):
            Relevance.load(path)


# captum.


def test_to_captum() -> None:
    original = full()
    result, prompt_only = original.to_captum(), replace(original, matrix=None).to_captum()
    assert result.input_tokens == original.prompt_tokens == ["a", " é"]
    assert result.output_tokens == original.response_tokens == ["x\n", "y", " z"]
    np.testing.assert_array_equal(result.token_attr.numpy(), original.matrix)
    np.testing.assert_allclose(result.seq_attr.numpy(), original.matrix.sum(0), rtol=1e-6)
    assert prompt_only.token_attr is None
    np.testing.assert_allclose(prompt_only.seq_attr.numpy(), result.seq_attr.numpy(), rtol=1e-6)
    result.token_attr.zero_()
    assert original.matrix.any()  # no memory is shared


def test_to_captum_needs_matrix_or_prompt() -> None:
    with pytest.raises(LRP4RAGError, match="matrix=True or prompt=True"):
        relevance().to_captum()
