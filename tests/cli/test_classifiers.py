"""`train`, `evaluate` and `analyse` with every classifier, and with every vector."""

import json

import pytest

from tests.training.quick import few_steps

FEW = ["--bootstrap", 10, "--workers", 1]
COMBINATIONS = [
    ("threshold", "prompt", 220),
    ("svm", "matrix_t", 16),
    ("mlp", "segments", 220),
    ("lstm", "matrix", 64),
]


@pytest.fixture(autouse=True)
def _quick():
    """What is tested here is the way through the commands."""
    with few_steps():
        yield


@pytest.mark.parametrize(("classifier", "vector", "length"), COMBINATIONS)
def test_what_is_trained_can_be_evaluated_and_analysed(
    run, labelled_file, store, reader_folder, tmp_path, classifier, vector, length
):
    folder, reader = tmp_path / "d", ["--reader", reader_folder]
    choice = ["--classifier", classifier, "--vector", vector]
    trained = run("train", labelled_file, "--store", store, "--out", folder, *reader, *choice, *FEW)
    assert f"{classifier} (quick), threshold 0.5" in trained.stdout
    card = json.loads((folder / "card.json").read_text())
    assert (card["classifier"], card["input"]["vector"]) == (classifier, vector)
    assert card["input"]["length"] == length

    common = [*reader, "--detector", folder, "--json"]
    few = ["--allow-seen", "--bootstrap", 10]
    evaluated = json.loads(run("evaluate", labelled_file, *common, *few).stdout)
    analysed = json.loads(run("analyse", labelled_file, "--id", "bridge-1", *common).stdout)
    assert len(evaluated["probabilities"]) == 14
    assert analysed["probability"] == pytest.approx(evaluated["probabilities"]["bridge-1"], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vector", "matrix", "--resampling", "zeros"], "resampling 'zeros' is not possible for matrix"),
        (["--vector", "matrix_t", "--length", 64], "length of 'matrix_t' must be 1 to 16, got 64"),
        (["--length", 0], "length of 'total' must be 1 to 10000, got 0"),
        (["--classifier", "oracle"], "'oracle' is not one of"),
        (["--classifier", "tokens", "--length", 9], "length and resampling are not for"),
        (["--classifier", "text", "--vector", "total"], "not for the classifier 'text'"),
        (["--classifier", "text", "--block", "state"], "not for the classifier 'text'"),
        (["--classifier", "svm", "--more", "everyday"], "'tokens' and 'text', not 'svm'"),
        (["--classifier", "svm", "--block", "state"], "for the classifier 'tokens', not 'svm'"),
        (["--block", "x"], "unknown block 'x'"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_extracted(
    run, labelled_file, reader_folder, tmp_path, options, message
):
    places = ["--store", tmp_path / "s", "--out", tmp_path / "d"]
    assert message in run("train", labelled_file, *places, "--reader", reader_folder, *options, code=2).stderr
    assert not (tmp_path / "s").exists()
