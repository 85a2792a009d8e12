"""`train`, `evaluate` and `analyse` with every classifier, and with every vector."""

import json
import warnings

import pytest
import torch
from sklearn.base import clone

from lrp4rag.classifiers.registry import CLASSIFIERS, candidates_of
from tests.tiny import save_tiny_reader
from tests.training.labelled import examples, write_jsonl

FEW = ["--bootstrap", 10, "--workers", 1]
COMBINATIONS = [
    ("threshold", "prompt", 220),
    ("svm", "matrix_t", 16),
    ("mlp", "segments", 220),
    ("lstm", "matrix", 64),
]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """One candidate each, and small ones: what is tested here is the way through the commands."""
    for name in CLASSIFIERS:
        first = next(iter(candidates_of(name).values()))
        monkeypatch.setitem(CLASSIFIERS, name, {"quick": clone(first)})
    CLASSIFIERS["lstm"]["quick"].set_params(hidden_size=8, max_epochs=2)


@pytest.mark.parametrize(("classifier", "vector", "length"), COMBINATIONS)
def test_what_is_trained_can_be_evaluated_and_analysed(
    run, labelled_file, store, reader_folder, tmp_path, classifier, vector, length
):
    """Two ways to one probability: from the store, where arrays have 16 bits, and computed at once."""
    folder, reader = tmp_path / "d", ["--reader", reader_folder]
    choice = ["--classifier", classifier, "--vector", vector]
    trained = run("train", labelled_file, "--store", store, "--out", folder, *reader, *choice, *FEW)
    assert f"{classifier} (quick), threshold 0.5" in trained.stdout
    card = json.loads((folder / "card.json").read_text())
    assert (card["classifier"], card["input"]["vector"]) == (classifier, vector)
    assert card["input"]["length"] == length

    common = [*reader, "--detector", folder, "--json"]
    stored = ["--allow-seen", "--store", store, "--bootstrap", 10]
    evaluated = json.loads(run("evaluate", labelled_file, *common, *stored).stdout)
    analysed = json.loads(run("analyse", labelled_file, "--id", "bridge-1", *common).stdout)
    assert len(evaluated["probabilities"]) == 24
    assert analysed["probability"] == pytest.approx(evaluated["probabilities"]["bridge-1"], abs=5e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vector", "matrix", "--resampling", "zeros"], "resampling 'zeros' is not possible for matrix"),
        (["--vector", "matrix_t", "--length", 64], "length of 'matrix_t' must be 1 to 16, got 64"),
        (["--length", 0], "length of 'total' must be 1 to 10000, got 0"),
        (["--classifier", "oracle"], "'oracle' is not one of"),
        (["--classifier", "tokens", "--length", 9], "length and resampling are not for"),
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


@pytest.fixture(scope="module")
def quantised_folder(tmp_path_factory):
    hint = "quantised models need: pip install 'lrp4rag[quantised]'"
    quantization = pytest.importorskip("torchao.quantization", reason=hint)
    from transformers import AutoModelForCausalLM, AutoTokenizer, TorchAoConfig

    place = tmp_path_factory.mktemp("quantised")
    plain = save_tiny_reader(place / "plain", hidden_size=64, intermediate_size=128, num_attention_heads=4)
    config = TorchAoConfig(quantization.Int8WeightOnlyConfig())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoModelForCausalLM.from_pretrained(plain, dtype=torch.float32, quantization_config=config)
        model.save_pretrained(place / "reader")
    AutoTokenizer.from_pretrained(plain).save_pretrained(place / "reader")
    return place / "reader"


def test_a_quantised_reader_has_no_r_prompt_but_a_matrix(run, quantised_folder, tmp_path):
    """R_prompt is pulled; R* in bins is pushed, so that an LSTM can be had."""
    path = write_jsonl(examples(14), tmp_path / "data.jsonl")
    places = ["--store", tmp_path / "s", "--out", tmp_path / "d", "--reader", quantised_folder]
    stderr = run("train", path, *places, "--vector", "prompt", code=2).stderr
    assert "pulled, and this reader's" in stderr
    assert not (tmp_path / "s").exists()
    choice = ["--vector", "matrix", "--classifier", "lstm", *FEW]
    assert "lstm (this)" in run("train", path, *places, *choice).stdout
