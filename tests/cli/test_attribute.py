"""`lrp4rag attribute` prints relevance between units; `lrp4rag check` follows a logit back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lrp4rag.cli.attribute import TARGETS
from lrp4rag.cli.options import MemorySize
from lrp4rag.lrp import TARGETS as LIBRARY_TARGETS


def test_the_targets_are_the_librarys():
    """Named twice, so that --help need not import the library."""
    assert tuple(LIBRARY_TARGETS) == TARGETS


SIGNATURE = b"\x89PNG\r\n\x1a\n"


def row_of(run, reader_folder, example_file, *options):
    return json.loads(run("attribute", example_file, "--reader", reader_folder, "--json", *options).stdout)


def test_the_record_is_relevance_in_logits(run, reader_folder, example_file):
    row = row_of(run, reader_folder, example_file, "--composite", "cp_lrp")
    assert (row["id"], row["composite"], row["target"], row["layer"]) == ("bridge", "cp_lrp", "response", 0)
    assert [unit["text"] for unit in row["response"]] == ["It was opened in 1874.", "Aliens built it."]
    assert [unit["text"] for unit in row["prompt"]] == ["template", "question", "passage 1", "passage 2"]
    relevance = np.array(row["relevance"])
    assert relevance.shape == (2, 4)
    # cp_lrp conserves: prompt and earlier response tokens make up the logits.
    np.testing.assert_allclose(relevance.sum(1) + row["own"], row["logits"], atol=1e-3)


def test_sums_are_the_same_at_every_granularity(run, reader_folder, example_file):
    totals = [
        np.sum(row_of(run, reader_folder, example_file, "--granularity", unit)["relevance"], axis=1)
        for unit in ("token", "word", "sentence", "passage")
    ]
    for total in totals[1:]:
        np.testing.assert_allclose(total, totals[0], atol=1e-3)
    by_token = row_of(run, reader_folder, example_file, "--response-granularity", "token")
    np.testing.assert_allclose(np.sum(by_token["relevance"]), totals[0].sum(), atol=2e-3)


def test_targets_and_layers(run, reader_folder, example_file):
    response, mean, contrast = (
        np.array(row_of(run, reader_folder, example_file, "--target", name)["relevance"])
        for name in ("response", "mean", "response-mean")
    )
    np.testing.assert_allclose(contrast, response - mean, atol=1e-3)
    deeper = row_of(run, reader_folder, example_file, "--layer", 1)
    assert deeper["layer"] == 1
    assert not np.allclose(deeper["relevance"], response)


@pytest.mark.parametrize("unit", ["passage", "word"])
def test_the_terminal_and_the_heatmap(run, reader_folder, example_file, tmp_path, unit):
    path = tmp_path / "map.png"
    options = ["--granularity", unit, "--png", path]
    result = run("attribute", example_file, "--reader", reader_folder, *options)
    assert "relevance in logits" in result.stdout
    assert "It was opened in 1874." in result.stdout
    assert ("p2" in result.stdout) == (unit == "passage")
    assert path.read_bytes().startswith(SIGNATURE)


def test_several_examples_and_one_that_fails(run, reader_folder, tmp_path):
    path = tmp_path / "some.jsonl"
    rows = [
        {"id": "a", "question": "q", "passages": ["p"], "response": "r."},
        {"id": "b", "question": "q", "passages": ["p"]},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    result = run("attribute", path, "--reader", reader_folder, "--json", code=2)
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["a"]
    assert "example 'b'" in result.stderr


def test_memory_that_is_too_little_is_told(run, reader_folder, example_file):
    result = run("attribute", example_file, "--reader", reader_folder, "--max-memory", "1MB", code=1)
    assert "raise --max-memory by" in result.stderr
    same = row_of(run, reader_folder, example_file, "--max-memory", "100GB")
    assert same == row_of(run, reader_folder, example_file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4GB", 4e9), ("4G", 4e9), ("2Ti", 2**41), ("500 MB", 5e8), ("1.5gib", 1.5 * 2**30), ("1000", 1000)],
)
def test_sizes_are_understood(text, expected):
    assert MemorySize().convert(text, None, None) == int(expected)


def test_check_tells_what_is_lost(run, reader_folder):
    output = run("check", "--reader", reader_folder).stdout
    for name in ("paper", "attnlrp", "cp_lrp"):
        assert f"{name}: " in output
    assert "conserved to 0.001 at" in output


def test_check_fails_where_cp_lrp_loses(run, reader_folder):
    """No tolerance at all: rounding is a loss."""
    options = ["--reader", reader_folder, "--composite", "cp_lrp", "--tolerance", 0]
    assert "do not fit" in run("check", *options, code=1).stdout
