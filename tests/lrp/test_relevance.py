"""The result: it survives the disk bit by bit, refuses other files, and becomes captum's type."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from safetensors.numpy import save_file

from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.lrp import Relevance
from lrp4rag.reader import Encoded
from lrp4rag.strict_json import sealed

ARRAYS = ("logits", "response", "by_segment", "prompt", "matrix", "resampled")


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
    return relevance(
        matrix=matrix, prompt=matrix.mean(0), by_segment=matrix.T.copy(), resampled=matrix[:2].T.copy().T
    )


@pytest.mark.parametrize("one", [relevance(), full()], ids=["small", "full"])
def test_round_trip(one: Relevance, tmp_path: Path) -> None:
    """The same relevance is the same bytes, and replaces what was there."""
    path = tmp_path / "one.safetensors"
    relevance(composite="paper").save(path)
    one.save(path)
    again = Relevance.load(path)
    assert again.encoded == one.encoded
    assert isinstance(again.encoded.prompt_offsets[0], tuple)
    assert hash(again.encoded) == hash(one.encoded)
    assert (again.composite, again.target, again.reader) == (one.composite, one.target, one.reader)
    for name in ARRAYS:
        before, after = getattr(one, name), getattr(again, name)
        if before is None:
            assert after is None
        else:
            assert (after.dtype, after.shape) == (np.float32, before.shape)
            assert after.tobytes() == before.tobytes()
    content = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_the_smallest_and_largest_numbers_survive(tmp_path: Path) -> None:
    odd = np.array([1e-45, -0.0, 3.4e38], dtype=np.float32)
    relevance(response=odd).save(tmp_path / "odd")
    assert Relevance.load(tmp_path / "odd").response.tobytes() == odd.tobytes()


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


def cut(kept: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:kept]


@pytest.mark.parametrize(
    "damaged",
    [
        *(cut(kept) for kept in (0, 1, 7, 8, 60, -5)),
        *(lambda _, content=content: content for content in (b"hello, this is text", b"{}\n")),
        *(lambda _, content=content: content for content in (b"\x00" * 64, b"\xff" * 64, b"PK\x03\x04\x00")),
    ],
)
def test_a_truncated_or_another_file(damaged: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    full().save(path)
    path.write_bytes(damaged(path.read_bytes()))
    with pytest.raises(InputError, match=r"other\.safetensors"):
        Relevance.load(path)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        Relevance.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=str(tmp_path)):
        Relevance.load(tmp_path)


def header(path: Path) -> dict[str, object]:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["relevance"])


def changed(record: dict, **changes: object) -> dict:
    return {key: value for key, value in (record | changes).items() if value is not None}


def rewritten(path: Path, arrays: dict[str, np.ndarray], description: dict) -> None:
    """The file with other arrays, and with a description whose hash is right."""
    save_file(arrays, path, metadata={"relevance": json.dumps(sealed(description), sort_keys=True)})


@pytest.mark.parametrize(
    "change",
    [
        {"composite": None},
        {"layer": None},
        {"encoded": None},
        {"encoded": []},
        {"encoded": 3},
        {"encoded": {"prompt_ids": [1]}},
    ],
    ids=str,
)
def test_a_safetensors_file_with_another_record(change: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "foreign.safetensors"
    relevance().save(path)
    description = header(path)
    arrays = {name: getattr(relevance(), name) for name in ("logits", "response")}
    rewritten(path, arrays, description)
    assert Relevance.load(path).encoded == relevance().encoded
    rewritten(path, arrays, description | {"record": changed(description["record"], **change)})
    with pytest.raises(InputError, match=r"foreign\.safetensors: not a relevance file"):
        Relevance.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, "format 1, and this version reads 2; compute it again"),
        ({"format": 999}, "format 999, and this version reads 2"),
        ({"format": None}, r"damaged \(it does not hold relevance as it was written"),
    ],
    ids=str,
)
def test_a_file_of_another_version(change: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "old.safetensors"
    relevance().save(path)
    arrays = {name: getattr(relevance(), name) for name in ("logits", "response")}
    record = json.dumps(changed(header(path), **change))
    save_file(arrays, path, metadata={"relevance": record})
    with pytest.raises(InputError, match=rf"old\.safetensors: {message}"):
        Relevance.load(path)


@pytest.mark.parametrize("metadata", [None, {"other": "1"}, {"relevance": "no JSON"}, {"relevance": "[]"}])
def test_a_safetensors_file_of_something_else(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({"response": np.zeros(3, dtype=np.float32)}, path, metadata=metadata)
    with pytest.raises(InputError, match=r"weights\.safetensors"):
        Relevance.load(path)


@pytest.mark.parametrize("arrays", [["logits"], ["logits", "response", "weight"], ["logits", "own"]])
def test_a_record_with_other_arrays(arrays: list[str], tmp_path: Path) -> None:
    path = tmp_path / "arrays.safetensors"
    relevance().save(path)
    tensors = {name: np.zeros(3, dtype=np.float32) for name in arrays}
    rewritten(path, tensors, header(path))
    with pytest.raises(InputError, match=r"arrays\.safetensors: damaged \(arrays were added or are gone"):
        Relevance.load(path)


# captum.


def test_to_captum() -> None:
    one = full()
    result, prompt_only = one.to_captum(), replace(one, matrix=None).to_captum()
    assert result.input_tokens == one.prompt_tokens == ["a", " é"]
    assert result.output_tokens == one.response_tokens == ["x\n", "y", " z"]
    np.testing.assert_array_equal(result.token_attr.numpy(), one.matrix)
    np.testing.assert_allclose(result.seq_attr.numpy(), one.matrix.sum(0), rtol=1e-6)
    assert prompt_only.token_attr is None
    np.testing.assert_allclose(prompt_only.seq_attr.numpy(), result.seq_attr.numpy(), rtol=1e-6)
    result.token_attr.zero_()
    assert one.matrix.any()  # no memory is shared


def test_to_captum_needs_matrix_or_prompt() -> None:
    with pytest.raises(LRP4RAGError, match="matrix=True or prompt=True"):
        relevance().to_captum()


def test_captums_plots_run() -> None:
    import matplotlib.pyplot as plt

    result = full().to_captum()
    try:
        figure, axes = result.plot_token_attr(show=False)
        assert axes.images[0].get_array().shape == (3, 2)
        figure.canvas.draw()
        figure, axes = result.plot_seq_attr(show=False)
        assert len(axes.get_xticklabels()) == 2
        figure.canvas.draw()
    finally:
        plt.close("all")
